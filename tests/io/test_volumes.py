import json
import logging

import h5py
import nrrd
import numpy as np
import pytest
import tifffile
import zarr

from eutely import read
from eutely.errors import ReadError, WriteError
from eutely.io.volumes import open_volume, write_volume
from eutely.io.volumes.volume import in_micrometres

SIZE = (0.1, 0.2, 0.5)
WRITTEN = [".tif", ".ome.tiff", ".zarr", ".ome.zarr", ".h5", ".hdf5", ".nrrd"]


def staircase(dtype=np.uint16, labels=(7, 3, 900, 12, 255)):
    """Boxes of 2 x 3 x 4 voxels on a rising diagonal, z, y, x; values that fit the dtype."""
    volume = np.zeros((12, 18, 70), dtype=dtype)
    for step, label in enumerate(labels):
        volume[2 * step : 2 * step + 2, 3 * step : 3 * step + 3, 4 * step : 4 * step + 4] = min(
            label, np.iinfo(dtype).max - step
        )
    return volume


def contents(path, **further):
    """Return labels, voxel size and file types, after putting the blocks together again."""
    with open_volume(path, **further) as volume:
        labels = np.full(volume.shape, -1, dtype=np.int64)
        for block, (z, y, x) in volume.blocks():
            depth, height, width = block.shape
            labels[z : z + depth, y : y + height, x : x + width] = block
        return labels, volume.voxel_size


@pytest.mark.parametrize("suffix", WRITTEN)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int16, np.int64])
def test_what_is_written_is_read_again(tmp_path, suffix, dtype):
    path = tmp_path / f"worm{suffix}"
    write_volume(staircase(dtype), path, SIZE)
    labels, size = contents(path)
    np.testing.assert_array_equal(labels, staircase(dtype))
    assert size == SIZE
    (worm,) = read(path)
    assert worm.name == "worm"
    assert set(worm.ids) == set(np.unique(staircase(dtype))) - {0}
    assert worm.centroids[worm.ids == 3].tolist() == [[5.5 * 0.1, 4 * 0.2, 2.5 * 0.5]]


@pytest.mark.parametrize("suffix", [".zarr", ".h5", ".nrrd"])
def test_labels_of_64_bits(tmp_path, suffix):
    path = tmp_path / f"worm{suffix}"
    volume = staircase(np.uint64, (2**62, 2**40, 5, 4, 3))
    write_volume(volume, path, 1)
    assert read(path)[0].ids.tolist() == [3, 4, 5, 2**40, 2**62]
    with pytest.raises(WriteError, match=r"holds labels up to 4294967295"):
        write_volume(volume, tmp_path / "worm.tif", 1)
    assert not (tmp_path / "worm.tif").exists()


def test_only_label_volumes_are_written(tmp_path):
    with pytest.raises(WriteError, match="float64"):
        write_volume(np.zeros((3, 3, 3)), tmp_path / "worm.tif", 1)
    with pytest.raises(WriteError, match="expected a name"):
        write_volume(staircase(), tmp_path / "worm.png", 1)
    assert not list(tmp_path.iterdir())


# --- TIFF

Z = {"spacing": 0.5, "axes": "ZYX"}


@pytest.mark.parametrize(
    "how",
    [
        {"imagej": True, "resolution": (10, 5), "metadata": {**Z, "unit": "um"}},
        {"imagej": True, "resolution": (10, 5), "metadata": {**Z, "unit": "\\u00B5m"}},
        {
            "imagej": True,
            "resolution": (1e4, 5e3),
            "metadata": {"spacing": 5e-4, "unit": "mm", "axes": "ZYX"},
            "compression": "zlib",
        },
        {"ome": True, "bigtiff": True, "tile": (16, 16), "metadata": "nm"},
        {"ome": True, "byteorder": ">", "compression": "lzw", "metadata": "nm"},
        {"ome": True, "byteorder": ">", "metadata": "nm"},
    ],
    ids=["imagej", "imagej-escaped", "imagej-mm-zlib", "ome-tiled-big", "ome-lzw", "ome-swapped"],
)
def test_kinds_of_tiff(tmp_path, how):
    if how.get("metadata") == "nm":
        sides = {"X": 100, "Y": 200, "Z": 500}
        metadata = {"axes": "ZYX"}
        for axis, side in sides.items():
            metadata |= {f"PhysicalSize{axis}": side, f"PhysicalSize{axis}Unit": "nm"}
        how = {**how, "metadata": metadata}
    tifffile.imwrite(tmp_path / "worm.tif", staircase(), **how)
    labels, size = contents(tmp_path / "worm.tif")
    np.testing.assert_array_equal(labels, staircase())
    np.testing.assert_allclose(size, SIZE)


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_a_plain_stack_of_pages_needs_the_voxel_size(tmp_path, compression):
    path = tmp_path / "worm.tif"
    with tifffile.TiffWriter(path) as file:
        for page in staircase():
            file.write(page, contiguous=False, compression=compression, metadata=None)
    with pytest.raises(ReadError, match=r"unknown voxel size .*--voxel-size"):
        contents(path)
    labels, size = contents(path, voxel_size=SIZE)
    np.testing.assert_array_equal(labels, staircase())
    assert size == SIZE


def test_single_channels_and_times_go_real_ones_are_refused(tmp_path):
    path = tmp_path / "worm.ome.tif"
    metadata = {"PhysicalSizeX": 1, "PhysicalSizeY": 1, "PhysicalSizeZ": 1}
    image = staircase()[None, :, None]
    tifffile.imwrite(path, image, ome=True, metadata={"axes": "TZCYX", **metadata})
    np.testing.assert_array_equal(contents(path)[0], staircase())
    tifffile.imwrite(path, np.repeat(image, 2, 0), ome=True, metadata={"axes": "TZCYX", **metadata})
    with pytest.raises(ReadError, match=r"axis t \(time\) has 2 entries.*worm.ome.tif:t=0"):
        contents(path)


def test_the_argument_takes_precedence_with_a_warning(tmp_path, caplog):
    write_volume(staircase(), tmp_path / "worm.tif", SIZE)
    with caplog.at_level(logging.WARNING, "eutely"):
        assert contents(tmp_path / "worm.tif", voxel_size=SIZE)[1] == SIZE
        assert not caplog.text
        assert contents(tmp_path / "worm.tif", voxel_size=(1, 1, 1))[1] == (1, 1, 1)
    assert "has voxels of 0.1 x 0.2 x 0.5 um, using 1 x 1 x 1 um" in caplog.text


# --- OME-Zarr


def write_ome(path, version, axes="zyx", scale=(0.5, 0.2, 0.1), unit="micrometer", data=None):
    data = staircase() if data is None else data
    group = zarr.create_group(path, zarr_format=2 if version == "0.4" else 3)
    metadata = [{"name": axis, "type": "space" if axis in "xyz" else "other"} for axis in axes]
    for axis in metadata:
        if unit and axis["type"] == "space":
            axis["unit"] = unit
    transformation = {"type": "scale", "scale": list(scale)}
    image = {
        "axes": metadata,
        "datasets": [{"path": "s0", "coordinateTransformations": [transformation]}],
    }
    if version == "0.4":
        group.attrs["multiscales"] = [{"version": "0.4", **image}]
    else:
        group.attrs["ome"] = {"version": "0.5", "multiscales": [image]}
    group.create_array("s0", data=data, chunks=tuple(min(7, n) for n in data.shape))
    return group


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_versions_of_ome_zarr(tmp_path, version):
    write_ome(tmp_path / "worm.zarr", version, scale=(500, 200, 100), unit="nanometer")
    labels, size = contents(tmp_path / "worm.zarr")
    np.testing.assert_array_equal(labels, staircase())
    np.testing.assert_allclose(size, SIZE)


def test_axes_in_any_order_and_single_channels(tmp_path):
    data = staircase().transpose(2, 0, 1)[:, None]
    write_ome(tmp_path / "worm.zarr", "0.5", "xczy", (0.1, 1, 0.5, 0.2), data=data)
    labels, size = contents(tmp_path / "worm.zarr")
    np.testing.assert_array_equal(labels, staircase())
    assert size == SIZE


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_labels_below_an_image_are_what_is_read(tmp_path, version):
    path = tmp_path / "worm.zarr"
    write_ome(path, version, data=np.random.default_rng(0).random((4, 5, 6)))
    zarr.open_group(path, mode="r+").create_group("labels")
    write_ome(path / "labels" / "nuclei", version)
    np.testing.assert_array_equal(contents(path)[0], staircase())
    write_ome(path / "labels" / "cells", version)
    with pytest.raises(ReadError, match=r"several label images \(cells, nuclei\); name one"):
        contents(path)
    assert read(path / "labels" / "nuclei")[0].name == "nuclei"


def test_the_first_image_of_a_converted_file_is_found(tmp_path):
    zarr.create_group(tmp_path / "worm.zarr").attrs["ome"] = {"bioformats2raw.layout": 3}
    write_ome(tmp_path / "worm.zarr" / "0", "0.5")
    np.testing.assert_array_equal(contents(tmp_path / "worm.zarr")[0], staircase())


def test_a_scale_without_a_unit_is_no_voxel_size(tmp_path):
    write_ome(tmp_path / "worm.zarr", "0.5", unit=None)
    with pytest.raises(ReadError, match="without units"):
        contents(tmp_path / "worm.zarr")
    assert contents(tmp_path / "worm.zarr", voxel_size=SIZE)[1] == SIZE


def test_a_bare_array_and_a_bare_group(tmp_path):
    zarr.create_array(tmp_path / "bare.zarr", data=staircase(), chunks=(5, 5, 5))
    np.testing.assert_array_equal(contents(tmp_path / "bare.zarr", voxel_size=SIZE)[0], staircase())
    zarr.create_group(tmp_path / "group.zarr")
    with pytest.raises(ReadError, match="without OME metadata"):
        contents(tmp_path / "group.zarr")


def test_a_zarr_folder_is_a_specimen_and_a_folder_of_them_is_a_cohort(tmp_path):
    for name in ("b", "a"):
        write_volume(staircase(), tmp_path / f"{name}.ome.zarr", SIZE)
    assert [specimen.name for specimen in read(tmp_path)] == ["a", "b"]


# --- HDF5


def test_the_only_volume_of_integers_is_found_or_named(tmp_path):
    path = tmp_path / "worm.h5"
    with h5py.File(path, "w") as file:
        file["raw"] = np.zeros((3, 4, 5))
        file["profile"] = np.arange(10)
        file["seg/labels"] = staircase()
        file["seg/labels"].attrs["element_size_um"] = [0.5, 0.2, 0.1]
    labels, size = contents(path)
    np.testing.assert_array_equal(labels, staircase())
    assert size == SIZE
    with h5py.File(path, "a") as file:
        file["other"] = staircase()[:, :, ::-1]
    with pytest.raises(ReadError, match=r"several datasets \(other, seg/labels\); name one"):
        contents(path)
    (worm,) = read(f"{path}:seg/labels")
    assert worm.name == "worm"
    with pytest.raises(ReadError, match="no dataset 'nothing'"):
        read(f"{path}:nothing")


def test_axes_as_ilastik_tells_them(tmp_path):
    path = tmp_path / "worm.h5"
    with h5py.File(path, "w") as file:
        file["exported_data"] = staircase().transpose(2, 1, 0)[None, ..., None]
        tags = [{"key": key, "typeFlags": 2} for key in "txyzc"]
        file["exported_data"].attrs["axistags"] = json.dumps({"axes": tags})
        file["exported_data"].attrs["element_size_um"] = [0.5, 0.2, 0.1]
    np.testing.assert_array_equal(contents(path)[0], staircase())
    with h5py.File(path, "a") as file:
        del file["exported_data"].attrs["axistags"]
        del file["exported_data"]
        file["t0/channel0"] = staircase()[None, None]
    labels, size = contents(path, voxel_size=SIZE)
    np.testing.assert_array_equal(labels, staircase())
    assert size == SIZE


# --- NRRD


@pytest.mark.parametrize("encoding", ["raw", "gzip", "bzip2"])
@pytest.mark.parametrize("apart", [False, True])
def test_kinds_of_nrrd(tmp_path, encoding, apart):
    path = tmp_path / ("worm.nhdr" if apart else "worm.nrrd")
    header = {"encoding": encoding, "spacings": [1e-4, 2e-4, 5e-4], "units": ["mm"] * 3}
    nrrd.write(str(path), staircase(), header, detached_header=apart, index_order="C")
    labels, size = contents(path)
    np.testing.assert_array_equal(labels, staircase())
    np.testing.assert_allclose(size, SIZE)
    assert [specimen.name for specimen in read(tmp_path)] == ["worm"]


def test_nrrd_without_units_needs_the_voxel_size(tmp_path):
    path = tmp_path / "worm.nrrd"
    nrrd.write(str(path), staircase()[None], {"spacings": [1, 1, 1, 1]}, index_order="C")
    with pytest.raises(ReadError, match="without units of length"):
        contents(path)
    np.testing.assert_array_equal(contents(path, voxel_size=SIZE)[0], staircase())
    nrrd.write(str(path), staircase(), {"encoding": "ascii"}, index_order="C")
    with pytest.raises(ReadError, match="encoding ascii; expected raw"):
        contents(path, voxel_size=SIZE)


# --- all


@pytest.mark.parametrize("suffix", [".tif", ".zarr", ".h5", ".nrrd"])
def test_a_file_that_is_cut_off_is_one_clear_error(tmp_path, suffix):
    path = tmp_path / f"worm{suffix}"
    random = np.random.default_rng(0).integers(0, 60_000, (20, 30, 40), dtype=np.uint16)
    write_volume(random, path, SIZE)  # noise does not compress away
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
    for file in files:
        kept = file.read_bytes()
        for share in (0, 0.03, 0.5, 0.9):
            file.write_bytes(kept[: int(share * len(kept))])
            with pytest.raises(ReadError, match="worm"):
                contents(path)
        file.write_bytes(kept)


@pytest.mark.parametrize("suffix", [".tif", ".zarr", ".h5", ".nrrd"])
def test_floats_and_pictures_are_refused(tmp_path, suffix):
    path = tmp_path / f"worm{suffix}"
    for data, words in [
        (staircase() * np.float32(0.7), "voxels are .?float32, expected whole numbers"),
        (staircase()[0], "a 2D image"),
        (staircase()[:1], "a 2D image"),
    ]:
        if suffix == ".tif":
            tifffile.imwrite(path, data, photometric="minisblack")
        elif suffix == ".zarr":
            zarr.create_array(path, data=data, overwrite=True)
        elif suffix == ".h5":
            with h5py.File(path, "w") as file:
                file["data"] = data
        else:
            nrrd.write(str(path), data, index_order="C")
        with pytest.raises(ReadError, match=words):
            contents(path, voxel_size=SIZE)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_whole_numbers_of_floating_point_are_labels(tmp_path, dtype):
    path = tmp_path / "worm.tif"
    tifffile.imwrite(path, staircase().astype(dtype), photometric="minisblack")
    labels, _ = contents(path, voxel_size=SIZE)
    np.testing.assert_array_equal(labels, staircase())
    assert read(path, voxel_size=SIZE)[0].ids.tolist() == [3, 7, 12, 255, 900]


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf, 2.0**24 + 2])
def test_floating_point_that_is_no_label_is_refused(tmp_path, value):
    volume = staircase().astype(np.float32)
    volume[4, 5, 6] = value
    tifffile.imwrite(tmp_path / "worm.tif", volume, photometric="minisblack")
    with pytest.raises(ReadError, match=r"worm.tif: voxels are float32.*give it by --image"):
        read(tmp_path / "worm.tif", voxel_size=SIZE)


@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u4", "<i8", "<f4", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_files(tmp_path, dtype, order):
    path = tmp_path / "worm.npy"
    labels = (7, 3, 200, 12, 255)
    np.save(path, staircase(labels=labels).astype(dtype, order=order))
    found, _ = contents(path, voxel_size=SIZE)
    np.testing.assert_array_equal(found, staircase(labels=labels))
    assert read(path, voxel_size=SIZE)[0].name == "worm"
    with pytest.raises(ReadError, match=r"unknown voxel size \(.npy files have none\)"):
        read(path)


def test_numpy_files_that_are_refused(tmp_path):
    path = tmp_path / "worm.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ReadError, match="array of object"):
        contents(path, voxel_size=SIZE)
    for array, words in [
        (staircase()[0], "2D image"),
        (staircase()[None, None], r"axes '\?+' for 5 dimensions|axis"),
        (np.zeros((3, 12, 18, 70), int), "axis c .* has 3 entries"),
        (staircase() > 0, "voxels are bool"),
        (staircase() * 1j, "voxels are complex"),
    ]:
        np.save(path, array)
        with pytest.raises(ReadError, match=words):
            contents(path, voxel_size=SIZE)
    np.save(path, staircase())
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole + b"0", whole[:40], b"", whole.replace(b"18", b"99")):
        path.write_bytes(damaged)
        with pytest.raises(ReadError, match="damaged or cut off"):
            contents(path, voxel_size=SIZE)


def test_an_image_in_a_numpy_file_has_channels(tmp_path):
    write_volume(staircase(), tmp_path / "worm.h5", SIZE)
    image = np.stack([staircase(), staircase() * 2.0])
    np.save(tmp_path / "raw.npy", np.moveaxis(image, 0, -1))  # the labels say which axis it is
    (worm,) = read(tmp_path / "worm.h5", image=tmp_path / "raw.npy", channels=["a", "b"])
    assert worm.features["a_mean"].tolist() == worm.ids.tolist()
    assert worm.features["b_mean"].tolist() == (2 * worm.ids).tolist()


@pytest.mark.parametrize(
    ("unit", "micrometres"),
    [
        ("um", 1), ("µm", 1), ("μm", 1), ("\\u00B5m", 1), ("micron", 1), ("microns", 1),
        ("micrometer", 1), ("Micrometre", 1), ('"microns"', 1), ("nm", 1e-3), ("nanometer", 1e-3),
        ("mm", 1e3), ("millimetres", 1e3), ("cm", 1e4), ("m", 1e6), ("meter", 1e6),
        ("angstrom", 1e-4), ("pixel", None), ("", None), (None, None), ("inch", None), ("s", None),
    ],
)  # fmt: skip
def test_units(unit, micrometres):
    assert in_micrometres(unit) == micrometres
