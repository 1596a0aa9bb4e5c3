"""Label volumes from strangers: one line, no crash, nothing followed, nothing misread."""

import bz2
import gzip
import json
import os
import re
import zlib
from types import SimpleNamespace

import h5py
import imagecodecs
import nrrd
import numpy as np
import pytest
import tifffile
import zarr

from eutely import read
from eutely.errors import EutelyError, ReadError
from eutely.io.limits import VARIABLE
from eutely.io.lzf import unpacked_size
from eutely.io.volumes import open_volume, write_volume
from eutely.io.volumes.zarr_chunks import check_codecs

SIZE = (0.1, 0.2, 0.5)
HEADER = """NRRD0004
type: uint16
dimension: 3
sizes: 40 30 14
encoding: raw
endian: little
spacings: 0.1 0.2 0.5
units: "um" "um" "um"
"""


def boxes():
    """Twelve boxes on a rising diagonal, z, y, x."""
    volume = np.zeros((14, 30, 40), dtype=np.uint16)
    for n in range(12):
        volume[n : n + 2, 2 * n : 2 * n + 3, 3 * n : 3 * n + 4] = n + 1
    return volume


def contents(path):
    """Read the labels of a volume; the nuclei too, as all commands do."""
    read(path)
    with open_volume(path) as volume:
        labels = np.zeros(volume.shape, dtype=np.int64)
        for block, (z, y, x) in volume.blocks():
            depth, height, width = block.shape
            labels[z : z + depth, y : y + height, x : x + width] = block
    return labels


def refused(path, words=".", **further):
    """Check that reading is an error of one line."""
    with pytest.raises(EutelyError, match=words) as caught:
        read(path, **further)
    assert len(str(caught.value).splitlines()) == 1


# --- point 2: corrupted NRRD, missing chunks


@pytest.mark.parametrize("encoding", ["gzip", "bzip2"])
def test_a_flipped_bit_of_compressed_nrrd_is_never_read_as_other_nuclei(tmp_path, encoding):
    path = tmp_path / "worm.nrrd"
    header = {"encoding": encoding, "spacings": list(SIZE), "units": ["um"] * 3}
    nrrd.write(str(path), boxes(), header, index_order="C")
    good = path.read_bytes()
    start = good.index(b"\n\n") + 2
    random = np.random.default_rng(0)
    for at in random.integers(start, len(good), 150).tolist():
        data = bytearray(good)
        data[at] ^= 1 << int(random.integers(8))
        path.write_bytes(data)
        try:
            np.testing.assert_array_equal(contents(path), boxes())
        except ReadError:
            continue
    for cut in range(1, 41):
        path.write_bytes(good[:-cut])
        refused(path)
    path.write_bytes(good + b"more")
    refused(path)


def test_surplus_or_missing_data_of_raw_nrrd(tmp_path):
    path = tmp_path / "worm.nrrd"
    data = boxes().tobytes()
    path.write_bytes(HEADER.encode() + b"\n" + data)
    np.testing.assert_array_equal(contents(path), boxes())
    for wrong in (data + b"x", data[:-1], b""):
        path.write_bytes(HEADER.encode() + b"\n" + wrong)
        refused(path, "bytes of data, the header declares")
    packed = HEADER.replace("raw", "gzip").encode() + b"\n"
    path.write_bytes(packed + gzip.compress(data[:100]) + gzip.compress(data[100:]))
    np.testing.assert_array_equal(contents(path), boxes())
    path.write_bytes(packed + gzip.compress(data + b"x"))
    refused(path, "more data than the header declares")
    path.write_bytes(packed.replace(b"gzip", b"bzip2") + bz2.compress(data) + b"x")
    refused(path)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("endian: middle", "expected little or big"),
        ("line skip: 1000000000000", "line skip"),
        ("byte skip: 1000000000000", "byte skip"),
        ("byte skip: -7", "byte skip -7"),
        ("line skip: 2000000", "fewer than 2000000 lines|bytes of data"),
        ("sizes: 100000 100000 100000", "memory|declares"),
        ("sizes: 0 0 0", "sizes"),
        ("sizes: 40 30", "sizes"),
        ("type: block", "damaged"),
        ("spacings: inf 1 1", "header says inf|unknown voxel size"),
        ("spacings: 1e300 1 1", "check the unit"),
        ("data file: /etc/passwd", "outside its folder"),
        ("data file: ../secret.raw", "outside its folder"),
        ("data file: link.raw", "outside its folder"),
        ("data file: /dev/zero", "outside its folder"),
        ("data file: pipe", "not an ordinary file"),
        ("data file: absent.raw", "No such file"),
        ("encoding: gzip", "damaged"),
        ("# " + "x" * 2**21, "no blank line"),
    ],
)
def test_headers_of_nrrd(tmp_path, field, words):
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "secret.raw").write_bytes(boxes().tobytes())
    (folder / "link.raw").symlink_to(tmp_path / "secret.raw")
    os.mkfifo(folder / "pipe")
    key = field.split(":")[0]
    lines = [line for line in HEADER.splitlines() if not line.startswith(f"{key}:")]
    header = "\n".join([*lines, field]) + "\n\n"
    (folder / "worm.nrrd").write_bytes(header.encode() + boxes().tobytes())
    refused(folder / "worm.nrrd", words)


def test_a_missing_chunk_of_zarr_is_said(tmp_path, caplog):
    ours, other = tmp_path / "ours.ome.zarr", tmp_path / "other.zarr"
    write_volume(boxes(), ours, SIZE)
    next(file for file in (ours / "0" / "c").rglob("*") if file.is_file()).unlink()
    refused(ours, "1 of 1 chunks are missing")
    zarr.create_array(other, data=boxes(), chunks=(7, 15, 20))
    (other / "c/0/0/0").unlink()
    read(other, voxel_size=1)
    assert "of 8 chunks are not there and count as background" in caplog.text


def test_planes_of_a_volume_with_absent_chunks(tmp_path):
    array = zarr.create_array(
        tmp_path / "worm.zarr", shape=(40, 10, 10), chunks=(5, 5, 5), dtype="u1"
    )
    array[12:14, 6:9, 1:4] = 3
    with open_volume(tmp_path / "worm.zarr", SIZE) as volume:
        planes = np.stack(list(volume.planes()))
    np.testing.assert_array_equal(planes, array[:])


# --- point 14: codecs that can run code


@pytest.mark.parametrize("where", ["compressor", "filters"])
def test_pickled_chunks_are_refused(tmp_path, where):
    path = tmp_path / "worm.zarr"
    zarr.create_array(path, data=boxes(), zarr_format=2)
    about = json.loads((path / ".zarray").read_text())
    about[where] = {"id": "pickle"} if where == "compressor" else [{"id": "pickle"}]
    (path / ".zarray").write_text(json.dumps(about))
    refused(path)


@pytest.mark.parametrize(
    "metadata",
    [
        {"filters": [{"id": "pickle"}], "compressor": None},
        {"filters": None, "compressor": {"id": "msgpack2"}},
        {"codecs": ({"name": "numcodecs.pickle"},)},
        {"codecs": ({"name": "sharding_indexed", "configuration": {"codecs": ["pickle"]}},)},
    ],
)
def test_only_known_codecs_run_whatever_the_version_of_zarr(metadata):
    array = SimpleNamespace(metadata=SimpleNamespace(to_dict=lambda: metadata))
    with pytest.raises(ReadError, match="is not one that eutely reads"):
        check_codecs("worm.zarr", array)


# --- point 15: links out of the file


def virtual(file):
    layout = h5py.VirtualLayout((8, 8, 8), "u2")
    layout[...] = h5py.VirtualSource(".", "labels", (8, 8, 8))
    file.create_virtual_dataset("labels", layout)


def external(file):
    file.create_dataset("labels", (8, 8, 8), "u1", external=[("/etc/passwd", 0, 512)])


def linked(file):
    file["labels"] = h5py.ExternalLink("/etc/passwd", "/x")


def circle(file):
    file["labels"] = h5py.SoftLink("/labels")


def empty(file):
    file.create_dataset("labels", (10_000,) * 3, "u2", chunks=(100, 100, 100))


def unwritten(file):
    file.create_dataset("labels", (10_000,) * 3, "u2")


def scalar(file):
    file["labels"] = 7


def wide_chunks(file):
    file.create_dataset("labels", (64, 30_000, 30_000), "u2", chunks=(64, 30_000, 30_000))


def tags(text):
    def write(file):
        file["labels"] = np.ones((4, 4, 4), "u2")
        file["labels"].attrs["axistags"] = text

    return write


def size(value):
    def write(file):
        file["labels"] = np.ones((4, 4, 4), "u2")
        file["labels"].attrs["element_size_um"] = value

    return write


@pytest.mark.parametrize(
    "write",
    [
        virtual, external, linked, circle, empty, unwritten, scalar, wide_chunks,
        tags('{"axes": [{"key": "zz"}, {"key": "y"}, {"key": "y"}]}'), tags("{"),
        tags("[" * 5000 + "]" * 5000), tags('{"axes": [1, 2, 3]}'),
        size([np.inf] * 3), size([1e300] * 3), size("x"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("named", [False, True])
def test_datasets_of_hdf5(tmp_path, monkeypatch, write, named):
    monkeypatch.setenv(VARIABLE, "1GB")
    path = tmp_path / "worm.h5"
    with h5py.File(path, "w") as file:
        write(file)
    refused(f"{path}:labels" if named else path)


def test_a_heap_of_texts_in_which_hdf5_runs_in_a_circle(tmp_path):
    path = tmp_path / "worm.h5"
    with h5py.File(path, "w") as file:
        tags('{"axes": [{"key": "z"}, {"key": "y"}, {"key": "x"}]}')(file)
        file["labels"].attrs["element_size_um"] = SIZE[::-1]
    data = bytearray(path.read_bytes())
    heap = data.index(b"GCOL")
    size = int.from_bytes(data[heap + 24 : heap + 32], "little")
    rest = heap + 32 + -(-size // 8) * 8
    assert data[rest : rest + 2] == b"\0\0", "what is left of the heap"
    data[rest + 8 : rest + 16] = bytes(8)
    path.write_bytes(data)
    refused(path, "texts in a heap")


def test_links_of_zarr(tmp_path):
    for number, make in enumerate((lambda p: p.symlink_to("/etc/hostname"), os.mkfifo)):
        path = tmp_path / f"{number}.zarr"
        zarr.create_array(path, data=boxes(), chunks=(7, 15, 20))
        (path / "c/0/0/0").unlink()
        make(path / "c/0/0/0")
        refused(path, "link out of the folder|not an ordinary file")


# --- point 16: small files, large cost; point 17: tracebacks


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("shape", [10**30] * 3), ("shape", [10_000] * 3), ("shape", [-1, 2, 2]), ("shape", []),
        ("chunks", [0, 7, 7]), ("chunks", [30_000, 30_000, 30]), ("chunks", [1.5, 2, 2]),
        ("dtype", "|O"), ("fill_value", 3),
    ],
)  # fmt: skip
def test_metadata_of_zarr(tmp_path, monkeypatch, change, value):
    monkeypatch.setenv(VARIABLE, "1GB")
    path = tmp_path / "worm.zarr"
    zarr.create_array(path, data=boxes(), zarr_format=2, chunks=(7, 15, 20))
    about = json.loads((path / ".zarray").read_text())
    (path / ".zarray").write_text(json.dumps(about | {change: value}))
    for chunk in path.glob("[0-9]*"):
        chunk.unlink()
    refused(path, voxel_size=1)


@pytest.mark.parametrize("codec", ["zlib", "bz2", "lzma", "zstd", "blosc", "lz4"])
def test_bombs_in_chunks_of_zarr(tmp_path, monkeypatch, codec):
    import numcodecs

    monkeypatch.setenv(VARIABLE, "50MB")
    path = tmp_path / "worm.zarr"
    compressor = numcodecs.get_codec({"id": codec})
    array = zarr.create_array(
        path, shape=(32,) * 3, chunks=(32,) * 3, dtype="u1", zarr_format=2, compressors=compressor
    )
    array[4:9, 4:9, 4:9] = 5
    with open_volume(path, SIZE) as volume:
        assert sum(int((block == 5).sum()) for block, _ in volume.blocks()) == 125
    (path / "0.0.0").write_bytes(compressor.encode(bytes(200_000_000)))
    with pytest.raises(ReadError, match=r"memory|declares"):
        read(path, voxel_size=1)


def test_a_bomb_in_a_chunk_of_hdf5(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "50MB")
    with h5py.File(tmp_path / "worm.h5", "w") as file:
        chunks = (32, 32, 32)
        dataset = file.create_dataset("labels", chunks, "u1", chunks=chunks, compression="gzip")
        dataset.id.write_direct_chunk((0, 0, 0), zlib.compress(bytes(200_000_000)))
    with pytest.raises(ReadError, match="a chunk takes"):
        read(tmp_path / "worm.h5", voxel_size=1)


@pytest.mark.parametrize("noise", [0, 255], ids=["smooth", "rough"])
def test_the_size_of_lzf_streams(noise):
    random = np.random.default_rng(noise)
    plain = (
        np.repeat(random.integers(0, 9, 300), 40) + random.integers(0, noise + 1, 12_000)
    ) % 256
    packed = np.frombuffer(imagecodecs.lzf_encode(plain.astype(np.uint8).tobytes()), np.uint8)
    assert unpacked_size(packed) == 12_000
    for cut in (1, 2, 3, len(packed) // 2):
        assert unpacked_size(packed[:-cut]) != 12_000
    assert unpacked_size(np.array([32, 0], np.uint8)) == -1  # repeats what is not there
    assert unpacked_size(np.array([255], np.uint8)) == -1


def test_a_damaged_lzf_chunk_of_hdf5(tmp_path):
    labels = np.zeros((8, 16, 16), np.uint8)
    labels[:, :4, :4], labels[2:5, 3:9, 5:9], labels[6:, 10:, 10:], labels[0, 12:, 2:] = 1, 2, 3, 4
    rough = np.random.default_rng(0).integers(0, 255, (8, 16, 16), np.uint8)
    for name, data in {"worm": labels, "rough": rough}.items():
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.create_dataset("labels", data=data, chunks=data.shape, compression="lzf")
    assert len(read(tmp_path / "worm.h5", voxel_size=1)[0]) == 4
    with open_volume(tmp_path / "rough.h5", (1.0, 1.0, 1.0), None) as volume:  # stored as it is
        np.testing.assert_array_equal(np.concatenate([part for part, _ in volume.blocks()]), rough)
    with h5py.File(tmp_path / "worm.h5", "r+") as file:
        chunk = file["labels"].id
        packed = chunk.read_direct_chunk((0, 0, 0))[1]
        damaged = [packed[:-3], packed[:2] + packed[4:], packed + b"\x00\x01", b"\xff" + packed[1:]]
    for number, data in enumerate(damaged):
        with h5py.File(tmp_path / "worm.h5", "r+") as file:
            file["labels"].id.write_direct_chunk((0, 0, 0), data)
        with pytest.raises(ReadError, match="damaged or cut off") as refusal:
            read(tmp_path / "worm.h5", voxel_size=1)
        assert str(refusal.value).count("\n") == 0, number


@pytest.mark.parametrize("side", [30_000, 100_000, 2**31 - 1])
def test_pages_of_tiff_that_are_not_there(tmp_path, monkeypatch, side):
    monkeypatch.setenv(VARIABLE, "1GB")
    path = tmp_path / "worm.tif"
    tifffile.imwrite(path, np.ones((2, 8, 8), np.uint8), compression="zlib", metadata=None)
    with tifffile.TiffFile(path, mode="r+") as file:
        for tag in ("ImageWidth", "ImageLength"):
            for page in file.pages:
                page.tags[tag].overwrite(side)
    with pytest.raises(ReadError, match="worm"):
        read(path, voxel_size=1)


PIXELS = 'SizeX="8" SizeY="8" SizeZ="4" SizeC="1" SizeT="1" Type="uint8" DimensionOrder="XYZCT"'
LAUGHS = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        ("<OME><Image></OME>", "malformed OME"),
        (f'<!DOCTYPE x [<!ENTITY a0 "ha">{LAUGHS}]><OME>&a9;</OME>', "DTD"),
        ('<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><OME>&f;</OME>', "DTD"),
        ("<OME>" + "<a>" * 20_000 + "</a>" * 20_000 + "</OME>", "nested more"),
        (f'<OME><Pixels {PIXELS}><TiffData NumPlanes="99999999999"/></Pixels></OME>', "NumPlanes"),
        (
            f'<OME><Pixels {PIXELS}><UUID FileName="../../x.tif">u</UUID></Pixels></OME>',
            "outside the folder",
        ),
        (f"<OME><Pixels {PIXELS.replace('4', '1e30')}/></OME>", "damaged"),
        (
            f'<OME><Image><Pixels {PIXELS} PhysicalSizeX="inf" PhysicalSizeY="1" '
            'PhysicalSizeZ="1"/></Image></OME>',
            "check the unit",
        ),
    ],
)
def test_metadata_of_ome(tmp_path, xml, words):
    path = tmp_path / "worm.ome.tif"
    tifffile.imwrite(
        path, np.ones((4, 8, 8), np.uint8), photometric="minisblack", description=xml, metadata=None
    )
    refused(path, words)


def test_pages_with_lossy_compression_are_refused(tmp_path):
    image = boxes().astype("u1")
    tifffile.imwrite(tmp_path / "worm.tif", image, compression="jpeg", photometric="minisblack")
    with pytest.raises(ReadError, match=re.compile("without loss", re.IGNORECASE)):
        read(tmp_path / "worm.tif", voxel_size=1)


def test_a_chunk_that_the_index_of_hdf5_does_not_find(tmp_path):
    """HDF5 reads background there without a word."""
    labels = np.zeros((14, 30, 40), np.uint16)
    labels[2:5, 3:9, 5:9], labels[8:, 2:9, 3:9], labels[9:, 20:27, 25:33] = 1, 2, 3
    labels[1:4, 20:25, 8:13], labels[1:5, 19:27, 25:33] = 4, 5
    path = tmp_path / "worm.h5"
    with h5py.File(path, "w") as file:
        options = {"chunks": (7, 15, 40), "compression": "gzip", "fletcher32": True}
        file.create_dataset("labels", data=labels, **options)
        at = file["labels"].id.get_chunk_info(2).byte_offset
    assert read(path, voxel_size=1)[0].ids.tolist() == [1, 2, 3, 4, 5]
    data = path.read_bytes()
    at = data.index(at.to_bytes(8, "little"))  # behind the place of the chunk, in the index
    path.write_bytes(data[: at - 4] + b"\xff" * 4 + data[at:])
    with h5py.File(path) as file:
        assert not file["labels"][7:, :15].any()
    with pytest.raises(ReadError, match=r"damaged \(chunk \(7, 0, 0\) is not found"):
        read(path, voxel_size=1)
