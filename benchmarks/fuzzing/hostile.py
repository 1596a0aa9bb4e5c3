"""Hostile structures of each format: what no flipped bit makes, but a stranger might."""

import json
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing import others

Random = np.random.Generator


def hostile(kind: str, path: Path, random: Random) -> str:
    """Replace a good file by a hostile one of the same format; return how."""
    makers = MAKERS[kind]
    maker = makers[int(random.integers(len(makers)))]
    maker(path, random)
    return maker.__name__.strip("_")


def _huge_pages(path: Path, random: Random) -> None:
    import tifffile

    side = int(random.choice([30_000, 100_000, 2**31 - 1]))
    tifffile.imwrite(path, np.ones((8, 8), np.uint8), compression="zlib", metadata=None)
    with tifffile.TiffFile(path, mode="r+") as file:
        for tag in ("ImageWidth", "ImageLength"):
            file.pages[0].tags[tag].overwrite(side)


def _odd_xml(path: Path, random: Random) -> None:
    import tifffile

    laughs = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
    size = 'SizeX="8" SizeY="8" SizeZ="4" SizeC="1" SizeT="1" Type="uint8" DimensionOrder="XYZCT"'
    texts = [
        "<OME><Image></OME>",
        f'<!DOCTYPE x [<!ENTITY a0 "ha">{laughs}]><OME>&a9;</OME>',
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><OME>&f;</OME>',
        "<OME>" + "<a>" * 20_000 + "</a>" * 20_000 + "</OME>",
        f'<OME><Image><Pixels {size}><TiffData NumPlanes="99999999999"/></Pixels></Image></OME>',
        f'<OME><Image><Pixels {size}><TiffData><UUID FileName="../../x.tif">u</UUID></TiffData>'
        "</Pixels></Image></OME>",
        f"<OME><Image><Pixels {size.replace('4', '1e30')}/></Image></OME>",
        f'<OME><Image><Pixels {size} PhysicalSizeX="inf" PhysicalSizeY="1" PhysicalSizeZ="1"/>'
        "</Image></OME>",
    ]
    text = texts[int(random.integers(len(texts)))]
    tifffile.imwrite(
        path,
        np.ones((4, 8, 8), np.uint8),
        photometric="minisblack",
        description=text,
        metadata=None,
    )


def _array_metadata(path: Path, random: Random) -> None:
    folder = path / "0"
    file = next(f for f in (folder / "zarr.json", folder / ".zarray") if f.exists())
    about = json.loads(file.read_text())
    key = str(random.choice(["shape", "chunks", "codec", "dtype", "fill", "deep"]))
    values: list[Any] = [[10**30] * 3, [10_000] * 3, [0, 7, 7], [30_000, 30_000, 1], [-1, 2, 2],
                         [4, 4], "x", None, [2**31] * 3, [1.5, 2, 2], []]  # fmt: skip
    value = values[int(random.integers(len(values)))]
    if key == "shape":
        about["shape"] = value
    elif key == "chunks" and "chunks" in about:
        about["chunks"] = value
    elif key == "chunks":
        about["chunk_grid"]["configuration"]["chunk_shape"] = value
    elif key == "codec":
        name = str(random.choice(["pickle", "json2", "msgpack2", "vlen-utf8", "zfpy", "nothing"]))
        about |= {"compressor": {"id": name}} if "chunks" in about else {}
        about |= {"codecs": [{"name": f"numcodecs.{name}"}]} if "codecs" in about else {}
    elif key == "dtype":
        about["dtype" if "dtype" in about else "data_type"] = str(random.choice(["|O", "U9", "q"]))
    elif key == "fill":
        about["fill_value"] = int(random.integers(1, 9))
        _lost_chunk(path, random)
    else:
        file.write_text("[" * 5000 + "]" * 5000)
        return
    file.write_text(json.dumps(about))


def _lost_chunk(path: Path, random: Random) -> None:
    chunks = sorted(file for file in (path / "0").rglob("*") if file.name[-1].isdigit()
                    and file.is_file())  # fmt: skip
    chunks[int(random.integers(len(chunks)))].unlink()


def _bomb_in_chunk(path: Path, random: Random) -> None:
    import zarr

    _lost_chunk(path, random)
    shape = (64, 64, 64)
    for file in sorted(path.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    path.rmdir()
    options: dict[str, Any] = {"compressors": {"id": "zlib"}, "zarr_format": 2}
    if random.random() < 0.5:
        options = {"compressors": {"name": "gzip", "configuration": {"level": 9}}}
    array = zarr.create_array(path, shape=shape, chunks=shape, dtype="u2", **options)
    array[:] = 1
    chunk = next(f for f in path.rglob("*") if f.is_file() and f.name[-1].isdigit())
    chunk.write_bytes(_deflated(31 if "zarr_format" not in options else 15))


@cache
def _deflated(wbits: int) -> bytes:
    """Return a stream that unpacks to 3 GB."""
    packed = zlib.compressobj(1, wbits=wbits)
    return b"".join(packed.compress(bytes(2**24)) for _ in range(200)) + packed.flush()


@cache
def _comment() -> bytes:
    """Return a comment of 1 GB, by xz."""
    return lzma.compress(b"c " + b"x" * 2**30, preset=0)


def _odd_chunk_file(path: Path, random: Random) -> None:
    _lost_chunk(path, random)
    folder = path / "0"
    wanted = folder / ("c/0/0/0" if (folder / "c").exists() else "0.0.0")
    wanted.unlink(missing_ok=True)
    if random.random() < 0.5:
        wanted.symlink_to("/etc/hostname")
    else:
        os.mkfifo(wanted)


def _odd_dataset(path: Path, random: Random) -> None:
    import h5py

    how = int(random.integers(8))
    with h5py.File(path, "w") as file:
        if how == 0:  # refers to itself
            layout = h5py.VirtualLayout((8, 8, 8), "u2")
            layout[...] = h5py.VirtualSource(".", "labels", (8, 8, 8))
            file.create_virtual_dataset("labels", layout)
        elif how == 1:
            file.create_dataset("labels", (8, 8, 8), "u1", external=[("/etc/passwd", 0, 512)])
        elif how == 2:
            file["labels"] = h5py.ExternalLink("/etc/passwd", "/x")
        elif how == 3:
            file.create_dataset("labels", (10_000,) * 3, "u2", chunks=(100, 100, 100))
        elif how == 4:
            file["labels"] = 7
        elif how == 5:
            file["labels"] = np.ones((4, 4, 4), "u2")
            tags = ['{"axes": [{"key": "zz"}, {"key": "y"}, {"key": "y"}]}', "{", "[" * 5000,
                    '{"axes": [1, 2, 3]}', '{"axes": {}}', '{"axes": [{}, {}, {}]}']  # fmt: skip
            file["labels"].attrs["axistags"] = tags[int(random.integers(len(tags)))]
        elif how == 6:
            file["labels"] = np.ones((4, 4, 4), "u2")
            size = [[np.inf] * 3, [0, 1, 1], [np.nan] * 3, "x", [1e300] * 3][random.integers(5)]
            file["labels"].attrs["element_size_um"] = size
        else:
            file.create_dataset("labels", (64, 30_000, 30_000), "u2", chunks=(64, 30_000, 30_000))


def _odd_header(path: Path, random: Random) -> None:
    (path.parent / "fifo").exists() or os.mkfifo(path.parent / "fifo")
    lines = ["NRRD0004", "type: uint16", "dimension: 3", "sizes: 40 30 14", "encoding: raw",
             "endian: little", "spacings: 0.1 0.2 0.5", 'units: "um" "um" "um"']  # fmt: skip
    changes = ["data file: /etc/passwd", "data file: ../../etc/passwd", "data file: /dev/zero",
               "data file: fifo", "line skip: 1000000000000", "byte skip: 1000000000000",
               "byte skip: -99", "sizes: 100000 100000 100000", "sizes: 0 0 0", "endian: middle",
               "type: block", "spacings: inf inf inf", "spacings: 1e300 1 1", "dimension: 9",
               "data file: LIST", "data file: a%d.raw 1 99999999999 1", "sizes: 40 30 -14",
               "encoding: gzip", "encoding: hex", "# " + "x" * 3_000_000]  # fmt: skip
    change = changes[int(random.integers(len(changes)))]
    field = change.split(":")[0]
    lines = [line for line in lines if not line.startswith(field + ":")] + [change]
    path.write_bytes("\n".join(lines).encode() + b"\n\n" + bytes(40 * 30 * 14 * 2))


def _odd_problem(path: Path, random: Random) -> None:
    texts = [
        "p 100000000000 2 1 0\na 0 0 0 -1\n",
        "p 2 100000000000 1 0\na 0 0 0 -1\n",
        "p 2 2 99999999999 0\na 0 0 0 -1\n",
        "gm 0 1\np 1 1 1 0\na 0 0 0 -1\ngm 0 1\np 1 1 1 0\na 0 0 0 -1\n",
        "gm 0 1\np 1 1 1 0\na 0 0 0 -1\ngm 1 0\np 1 1 1 0\na 0 0 0 -1\n",
        "gm 3 3\np 1 1 1 0\na 0 0 0 -1\n",
        "gm 0 999999999999\np 1 1 1 0\na 0 0 0 -1\n",
        "p 1 1 1 0\na 0 0 0 " + "9" * 100_000 + "\n",
        "p 500000 400000 0 0\n" * 2000,
        "p 0 0 0 0\n",
        "c " + "x" * 1_000_000,
    ]
    data = texts[int(random.integers(len(texts)))].encode()
    if path.suffix == ".xz":
        bomb = random.random() < 0.3
        data = _comment() if bomb else lzma.compress(data, preset=0)
    path.write_bytes(data)


def _odd_assignment(path: Path, random: Random) -> None:
    texts = [
        "1000000000 5 5\n0 1\n",
        "9" * 100_000 + "\n0\n",
        "1e300\n0\n",
        "-2 1 1\n0 0 0 0 0 0 0 0\n",
        "2 nan inf\n0 0 0 0 0 0 0 0\n",
        "2 5 5\n0 1e308 1e308 0 0 1e308 1e308 0\n",
        "2 5 5\n0 1 1 0 0 " + "9" * 100_000 + " 1 0\n",
        "2 5 5\n" + "0 " * 5_000_000,
        "\n" * 5_000_000,
        "3000 5 5\n" + "1 " * 1000,
        "2 5 5 0 1 1 0 0 1 1 0",
        "0\n",
    ]
    data = texts[int(random.integers(len(texts)))].encode()
    if path.suffix == ".xz":
        bomb = random.random() < 0.3
        data = _comment() if bomb else lzma.compress(data, preset=0)
    path.write_bytes(data)


def _odd_atlas(path: Path, random: Random) -> None:
    import h5py

    values = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, -1, 0, 2**31 - 1, 10**6]
    with h5py.File(path, "r+") as file:
        names = [name for name in file if file[name].size]
        name = names[int(random.integers(len(names)))]
        how = int(random.integers(6))
        kind = file[name].dtype
        if how <= 1 and kind.kind in "fiu":
            data = file[name][()]
            with np.errstate(all="ignore"):
                value = np.array(values[int(random.integers(len(values)))]).astype(kind)
            data.flat[int(random.integers(data.size))] = value
            file[name][...] = data
        elif how == 2:
            shape = (2_000_000_000, *file[name].shape[1:])
            del file[name]
            file.create_dataset(name, shape, kind, chunks=(1, *shape[1:]) if shape[1:] else (9,))
        elif how == 3:
            del file[name]
            odd = [np.float64(3), np.zeros((0, 3)), np.zeros((7, 3)), b"text", np.zeros((3, 3, 3))]
            file[name] = odd[int(random.integers(len(odd)))]
        elif how == 4:
            key = list(file.attrs)[int(random.integers(len(file.attrs)))]
            odd = [np.nan, np.inf, -1, 0, 1e308, "word", [1, 2, 3], 2**62, "[" * 5000]
            file.attrs[key] = odd[int(random.integers(len(odd)))]
        else:
            del file[name]
            links: list[Any] = [h5py.SoftLink(f"/{name}"), h5py.ExternalLink("/etc/passwd", "/x")]
            file[name] = links[int(random.integers(2))]


def _odd_table(path: Path, random: Random) -> None:
    many = ",".join(f"f{i}" for i in range(20_000))
    texts = [
        f"x,y,z,{many}\n" + "\n".join(",".join(["1"] * 20_003) for _ in range(5)) + "\n",
        "x,y,z\n" + "1e154,1,1\n2,2,2\n3,1,2\n4,4,1\n",
        "x,y,z\n" + "1e308,1,1\n2,2,2\n3,1,2\n4,4,1\n",
        "specimen,x,y,z\n" + "a\0b,1,1,1\na\0b,2,2,2\na\0b,3,1,2\na\0b,4,4,1\n",
        "x,y,z\n" + "1,1,1\n" * 8,
        'x,y,z\n"' + "1" * 300_000 + '",1,1\n',
        "x,y,z\n1,2\n",
        "id,x,y,z\n9007199254740993.0,1,1,1\n2,2,2,2\n3,3,1,2\n4,4,4,1\n",
        "",
        "\ufeff\n",
    ]
    path.write_text(texts[int(random.integers(len(texts)))], encoding="utf-8")


def _odd_columns(path: Path, random: Random) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = {axis: pa.array([1.0, 2.0, 3.0, 5.0]) for axis in "xyz"}
    odd: list[Any] = [
        {"id": pa.array([[1], [2], [3], [4]])},
        {"id": pa.array([1, None, 2, 3])},
        {"x": pa.array([None, 1.0, 2.0, 3.0])},
        {"x": pa.array([1e300, 1.0, 2.0, 3.0])},
        {"name": pa.array([b"\xff\xfe", b"a", b"b", b"c"])},
        {"z": pa.array([{"a": 1}] * 4)},
        {"y": pa.array(["1", "two", "3", "4"])},
        {"specimen": pa.array(["a\0"] * 4)},
        {f"f{i}": pa.array([0.5] * 4) for i in range(3000)},
    ]
    pq.write_table(pa.table(place | odd[int(random.integers(len(odd)))]), path)


def _odd_points(path: Path, random: Random) -> None:
    row = "1, 1, a,, 1, 2, 3, 200, 90, 3, 100, 9000"
    texts = ["", "#\n#\n", row.replace("2", "1e300") + "\n" + row, (row + "\n") * 8,
             row.replace("a", "\0") + "\n", "1" * 500_000, ",".join("1" * 100_000),
             row.replace("100", "-5"), row.replace("100", "nan")]  # fmt: skip
    path.write_text(texts[int(random.integers(len(texts)))], encoding="utf-8")


def _odd_record(path: Path, random: Random) -> None:
    how = int(random.integers(5))
    (file,) = (path / "stages").glob("*.npz")
    if how == 0:  # a bomb
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("metadata.json", bytes(2**28))
    elif how == 1:  # declares 2e9 rows
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("metadata.json", '{"digest": "", "metadata": {}}')
            head = "{'descr': '<f8', 'fortran_order': False, 'shape': (2000000000,), }".ljust(117)
            archive.writestr("a.npy", b"\x93NUMPY\x01\x00v\x00" + head.encode() + b"\n")
    elif how == 2:
        (path / "eutely-run.json").write_text("[" * 5000 + "]" * 5000)
    elif how == 3:
        text = str(random.choice(["[" * 5000, "[1]", '"x"', "null", "{}"])).encode()
        line = b"%08x %s\n" % (zlib.crc32(text), text)
        (path / "timings.jsonl").write_bytes(line)
        (path / "stages" / "learn-0123456789abcdef.jsonl").write_bytes(line)
    else:
        file.unlink()
        os.mkfifo(file)


Maker = Callable[[Path, Random], None]


def _odd_program(path: Path, random: Random) -> None:
    """Replace the content by what its program never writes: bombs, depth, absurd numbers."""
    if path.is_dir():
        odd = ['{"geff": {"axes": [1, 2]}}', '{"geff": {"axes": null}}', '{"geff": ' + "[" * 5000,
               '{"geff": {"sphere": "../x", "axes": []}}']  # fmt: skip
        (path / ".zattrs").write_text(odd[int(random.integers(len(odd)))])
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("nuclei/t001-nuclei", b"1, 1, -1," * 30_000_000)
    elif path.suffix == ".xml":
        laughs = '<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><TrackMate>&c;</TrackMate>'
        texts = [laughs, "<TrackMate>" + "<Model>" * 9000, "<TrackMate><Model/></TrackMate>"]
        path.write_text(texts[int(random.integers(len(texts)))])
    else:
        values = ["1e400", "nan", "-1e308", "9" * 400, '"' * 7, "0x1p3", "\x00"]
        text = path.read_text(encoding="utf-8", errors="replace")
        path.write_text(text.replace("5", values[int(random.integers(len(values)))]))


def _odd_image(path: Path, random: Random) -> None:
    """Write an image with absurd shapes, types or axes, in the format of the seed."""
    import h5py
    import tifffile

    shapes = [(2, 14, 30, 41), (14, 30, 40), (2, 2, 14, 30, 40), (1,) * 6 + (14, 30, 40), (2, 14)]
    shape = shapes[int(random.integers(len(shapes)))]
    kind = str(random.choice(["u2", "f8", "c16", "?", "i8"]))
    if path.suffix == ".h5":
        path.unlink()
        with h5py.File(path, "w") as file:
            huge = (2**20, 2**20, 2**10, 2)
            chunks = (2**14, 2**14, 1, 1) if random.random() < 0.5 else None
            if random.random() < 0.4:
                file.create_dataset("raw", shape=huge, dtype="u2", chunks=chunks or (8, 8, 8, 2))
            else:
                file["raw"] = np.zeros(shape, kind)
    elif path.suffix == ".tif":
        if random.random() < 0.5:
            _odd_xml(path, random)
        else:
            options = {"metadata": {"axes": "QWERTYUIOPASD"[: len(shape)]}}
            values = np.zeros(shape, "u2" if kind in {"c16", "?"} else kind)
            tifffile.imwrite(path, values, ome=False, photometric="minisblack", **options)
    elif path.suffix == ".zarr":
        _array_metadata(path, random)
    else:
        _odd_header(path, random)


def _odd_nwb(path: Path, random: Random) -> None:
    """Columns of a segmentation, names, spacing and image that do not fit each other."""
    import h5py

    with h5py.File(path, "r+") as file:
        table = file["processing/NeuroPAL/NeuroPALSegmentation/NeuroPALNeurons"]
        kind = int(random.integers(9))
        if kind in (4, 7) and "acquisition/NeuroPALImageRaw" not in file:
            kind = 5
        if kind == 0:
            table["voxel_mask_index"][int(random.integers(6))] = int(random.integers(256))
        elif kind == 1:
            del table["ID_labels"]
            table["ID_labels"] = np.arange(int(random.integers(1, 40)))
        elif kind == 2:
            spacing = file["general/optophysiology/NeuroPALImVol/grid_spacing"]
            spacing[0] = float(random.choice([0.0, -1.0, np.nan, np.inf, 1e30, 1e-30]))
        elif kind == 3:
            del table["id"]
            table.create_dataset("id", shape=(2**40,), dtype="i8", chunks=(2**20,))
        elif kind == 4:
            image = file["acquisition/NeuroPALImageRaw"]
            del image["data"]
            image.create_dataset(
                "data", shape=(2**16,) * 3 + (5,), dtype="u2", chunks=(64,) * 3 + (5,)
            )
        elif kind == 5:
            del table["voxel_mask"]
            table["voxel_mask"] = h5py.SoftLink("/processing/nowhere")
        elif kind == 6:
            del table["imaging_plane"]
            table["imaging_plane"] = h5py.ExternalLink("/etc/passwd", "/")
        elif kind == 7:
            colours = file["acquisition/NeuroPALImageRaw/RGBW_channels"]
            colours[int(random.integers(4))] = int(random.integers(-128, 127))
        else:
            table["again"] = h5py.SoftLink("/processing")


MAKERS: dict[str, tuple[Maker, ...]] = {
    "tiff": (_huge_pages, _odd_xml, _odd_xml),
    "zarr": (_array_metadata, _array_metadata, _lost_chunk, _bomb_in_chunk, _odd_chunk_file),
    "hdf5": (_odd_dataset,),
    "nrrd": (_odd_header,),
    "dd": (_odd_problem,),
    "qap": (_odd_assignment,),
    "atlas": (_odd_atlas,),
    "csv": (_odd_table,),
    "parquet": (_odd_columns,),
    "points": (_odd_points,),
    "image": (_odd_image,),
    "nwb": (_odd_nwb,),
    "programs": (_odd_program,),
    "run": (_odd_record,),
    **others.HOSTILE,
}
"""Ways to make a hostile file, by format."""
