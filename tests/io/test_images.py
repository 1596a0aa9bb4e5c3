"""Images of every format, channels anywhere: the same intensities; pairs; what is refused."""

import json
import logging
from dataclasses import replace

import h5py
import nrrd
import numpy as np
import pytest
import tifffile
import zarr

import eutely
from eutely import Specimen, read
from eutely.errors import EutelyError, ReadError
from eutely.io.images import Images, without_tail
from eutely.io.limits import VARIABLE
from eutely.io.tables import write_table
from eutely.io.volumes import bioio as by_bioio
from eutely.io.volumes import write_volume
from eutely.io.volumes.image import image_of

SIZE = (0.1, 0.2, 0.5)
SHAPE = (12, 18, 70)
NAMES = ("red", "green", "blue")


def labels():
    """Boxes of 2 x 3 x 4 voxels on a rising diagonal, z, y, x."""
    volume = np.zeros(SHAPE, np.uint16)
    for step, label in enumerate((7, 3, 900, 12, 255)):
        volume[2 * step : 2 * step + 2, 3 * step : 3 * step + 3, 4 * step : 4 * step + 4] = label
    return volume


def pixels(dtype=np.uint16):
    """Three channels, c, z, y, x."""
    return np.random.default_rng(0).integers(0, 4000, (3, *SHAPE)).astype(dtype)


def moved(order):
    """The pixels with their axes in another order, such as zcyx."""
    return np.ascontiguousarray(pixels().transpose(["czyx".index(axis) for axis in order]))


def imagej(path):
    metadata = {"axes": "ZCYX", "unit": "um", "spacing": 0.5}
    resolution = (10, 5)
    tifffile.imwrite(path, moved("zcyx"), imagej=True, metadata=metadata, resolution=resolution)


def ome(path, order="czyx", **options):
    about = {"axes": order.upper(), "Channel": {"Name": list(NAMES)}}
    for axis, side in zip("XYZ", SIZE, strict=True):
        about |= {f"PhysicalSize{axis}": side, f"PhysicalSize{axis}Unit": "µm"}
    tifffile.imwrite(
        path, moved(order), ome=True, metadata=about, photometric="minisblack", **options
    )


def rgb(path):
    tifffile.imwrite(path, moved("zyxc"), photometric="rgb", metadata={"axes": "ZYXS"})


def unnamed(path):
    tifffile.imwrite(path, moved("zcyx"), photometric="minisblack", metadata=None)
    with tifffile.TiffFile(path) as file:
        pages = len(file.pages)
    assert pages == 36


def plain(path):
    tifffile.imwrite(path, moved("zcyx"), photometric="minisblack")


def ome_zarr(path, order="czyx"):
    group = zarr.create_group(path, zarr_format=2)
    kinds = {"c": "channel"}
    axes = [
        {"name": axis, "type": kinds.get(axis, "space")}
        | ({} if axis == "c" else {"unit": "micrometer"})
        for axis in order
    ]
    scale = [dict(zip("xyz", SIZE, strict=True)).get(axis, 1.0) for axis in order]
    level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": scale}]}
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": [level]}]
    group.attrs["omero"] = {"channels": [{"label": name} for name in NAMES]}
    group.create_array("0", data=moved(order), chunks=(2, 7, 9, 20))


def ilastik(path, order="zyxc"):
    with h5py.File(path, "w") as file:
        data = file.create_dataset("exported_data", data=moved(order), chunks=True)
        tags = [{"key": key, "typeFlags": 1 if key == "c" else 2} for key in order]
        data.attrs["axistags"] = json.dumps({"axes": tags})


def bare_hdf5(path):
    with h5py.File(path, "w") as file:
        file["raw"] = moved("zyxc")


def slicer(path):
    header = {
        "kinds": ["list", "domain", "domain", "domain"],
        "spacings": [np.nan, *SIZE],
        "units": ["", "um", "um", "um"],
    }
    nrrd.write(str(path), moved("zyxc"), header, index_order="C")


def bare_nrrd(path):
    nrrd.write(str(path), moved("zyxc"), {"encoding": "raw"}, index_order="C")


WRITERS = {
    "imagej.tif": imagej,
    "contiguous.ome.tif": ome,
    "pages.ome.tif": lambda path: ome(path, "zcyx", compression="zlib"),
    "tiles.ome.tif": lambda path: ome(path, tile=(16, 32), compression="zlib"),
    "rgb.tif": rgb,
    "named.tif": plain,
    "image.ome.zarr": ome_zarr,
    "other.ome.zarr": lambda path: ome_zarr(path, "zcyx"),
    "ilastik.h5": ilastik,
    "ilastik2.h5": lambda path: ilastik(path, "xyzc"),
    "bare.h5": bare_hdf5,
    "slicer.nrrd": slicer,
    "bare.nrrd": bare_nrrd,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("images")
    write_volume(labels(), place / "worm.tif", SIZE)
    return place


def columns(channel=0, image=None, volume=None):
    """Return the statistics of a channel in each label, by NumPy."""
    image = pixels() if image is None else image
    volume = labels() if volume is None else volume
    values = [image[channel][volume == label].astype(float) for label in (3, 7, 12, 255, 900)]
    return {
        "mean": [v.mean() for v in values],
        "median": [np.median(v) for v in values],
        "total": [v.sum() for v in values],
        "sd": [v.std() for v in values],
    }


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_intensities(folder, name):
    WRITERS[name](folder / name)
    (worm,) = read(folder / "worm.tif", image=folder / name, channels=NAMES)
    for number, channel in enumerate(NAMES):
        for key, expected in columns(number).items():
            np.testing.assert_allclose(worm.features[f"{channel}_{key}"], expected, rtol=1e-12)
    (alone,) = read(folder / "worm.tif")
    assert replace(worm, features=dict(alone.features)) == alone  # nothing else changes


def test_pages_without_any_metadata_are_no_image_with_channels(folder):
    unnamed(folder / "pages.tif")
    with pytest.raises(ReadError, match=r"36 x 18 x 70 voxels .z, y, x., the labels 12 x 18 x 70"):
        read(folder / "worm.tif", image=folder / "pages.tif")


@pytest.mark.parametrize("name", ["contiguous.ome.tif", "image.ome.zarr"])
def test_names_of_channels_come_from_the_file(folder, tmp_path, name):
    WRITERS[name](tmp_path / name)
    (worm,) = read(folder / "worm.tif", image=tmp_path / name)
    assert {f"{channel}_mean" for channel in NAMES} <= set(worm.features)
    (worm,) = read(folder / "worm.tif", image=tmp_path / name, channels=("-", "gfp", ""))
    assert [key for key in worm.features if key.endswith("_mean")] == ["gfp_mean"]


def test_channels_without_names_are_counted(folder):
    imagej(folder / "imagej.tif")
    (worm,) = read(folder / "worm.tif", image=folder / "imagej.tif")
    assert [k for k in worm.features if k.endswith("_sd")] == [
        "channel1_sd", "channel2_sd", "channel3_sd",
    ]  # fmt: skip


def test_an_image_of_one_channel_and_float_voxels(folder, tmp_path):
    image = pixels(np.float32)[:1] / 7
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["raw"] = image[0]
    (worm,) = read(folder / "worm.tif", image=tmp_path / "a.h5", channels=["gfp"])
    np.testing.assert_allclose(worm.features["gfp_median"], columns(0, image)["median"])


def test_labels_and_image_in_one_zarr_or_hdf5(tmp_path):
    ome_zarr(tmp_path / "worm.zarr")
    group = zarr.open(tmp_path / "worm.zarr", mode="r+").create_group("labels")
    group.attrs["labels"] = ["nuclei"]
    nuclei = group.create_group("nuclei")
    scale = [{"type": "scale", "scale": SIZE[::-1]}]
    axes = [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
    level = {"path": "0", "coordinateTransformations": scale}
    nuclei.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": [level]}]
    nuclei.create_array("0", data=labels(), chunks=(5, 9, 30))
    (worm,) = read(tmp_path / "worm.zarr", image=tmp_path / "worm.zarr")
    np.testing.assert_allclose(worm.features["green_mean"], columns(1)["mean"])
    with h5py.File(tmp_path / "both.h5", "w") as file:
        file["labels"] = labels()
        file["raw"] = pixels()
    both = f"{tmp_path}/both.h5"
    (worm,) = read(f"{both}:labels", image=f"{both}:raw", voxel_size=SIZE)
    np.testing.assert_allclose(worm.features["channel2_mean"], columns(1)["mean"])
    with pytest.raises(ReadError, match="several datasets"):
        read(f"{both}:labels", image=both, voxel_size=SIZE)


def test_labels_without_a_voxel_size_take_that_of_the_image(tmp_path):
    tifffile.imwrite(tmp_path / "worm.tif", labels(), metadata={"axes": "ZYX"})
    ome(tmp_path / "raw.ome.tif")
    with pytest.raises(ReadError, match="unknown voxel size"):
        read(tmp_path / "worm.tif")
    (worm,) = read(tmp_path / "worm.tif", image=tmp_path / "raw.ome.tif")
    assert worm.centroids[0].tolist() == [5.5 * 0.1, 4 * 0.2, 2.5 * 0.5]


def test_background_is_the_median_around_each_nucleus(tmp_path):
    volume = np.zeros((30, 30, 60), np.uint16)
    volume[10:20, 10:20, 10:20] = 1
    volume[10:20, 10:20, 40:50] = 2
    volume[2:4, 2:4, 2:4] = 3
    volume[2:4, 2:4, 56:58] = 4
    image = np.where(np.arange(60) < 30, 100, 300) * np.ones(volume.shape, int)
    image[volume == 1] += 50
    image[volume == 2] += 50
    write_volume(volume, tmp_path / "worm.tif", 1)
    write_volume(image.astype(np.uint16), tmp_path / "raw.tif", 1)
    (worm,) = read(tmp_path / "worm.tif", image=tmp_path / "raw.tif", background=True)
    values = {key.partition("_")[2]: column for key, column in worm.features.items()}
    assert values["background"].tolist() == [100, 300, 100, 300]
    assert values["mean"].tolist() == [50, 50, 0, 0]
    assert values["median"].tolist() == [50, 50, 0, 0]
    assert values["total"].tolist() == [50_000, 50_000, 0, 0]
    assert values["sd"].tolist() == [0, 0, 0, 0]


def test_nuclei_without_free_voxels_around_them_have_the_usual_background(tmp_path, caplog):
    volume = np.full((8, 8, 40), 1, np.uint16)
    volume[:, :, 8:] = 0
    volume[2:5, 2:5, 20:23] = 2
    volume[2:5, 2:5, 30:33] = 3
    volume[3, 3, 3] = 4  # in the middle of 1
    write_volume(volume, tmp_path / "worm.tif", 1)
    write_volume(np.full(volume.shape, 9, np.uint8), tmp_path / "raw.tif", 1)
    with caplog.at_level(logging.WARNING, "eutely"):
        (worm,) = read(tmp_path / "worm.tif", image=tmp_path / "raw.tif", background=True)
    assert "no free voxel around" in caplog.text
    assert worm.features["channel1_background"].tolist() == [9, 9, 9, 9]


# --- points


def points(unit="um", radius=0.45):
    """The centres of the boxes, and a radius."""
    (worm,) = [
        Specimen.from_arrays(
            "worm",
            [[(4 * s + 1.5) * 0.1, (3 * s + 1) * 0.2, (2 * s + 0.5) * 0.5] for s in range(5)],
            radii=np.full(5, radius),
            unit=unit,
        )
    ]
    return worm


def test_points_with_radii_are_measured_in_an_image(tmp_path):
    ome(tmp_path / "raw.ome.tif")
    write_table(points(), tmp_path / "worm.csv")
    (worm,) = read(tmp_path / "worm.csv", image=tmp_path / "raw.ome.tif")
    z, y, x = np.meshgrid(*map(np.arange, SHAPE), indexing="ij")
    places = np.stack([x, y, z], axis=-1) * SIZE
    near = np.linalg.norm(places - points().centroids[1], axis=-1) <= 0.45 + 1e-9
    assert near.sum() > 20
    assert worm.features["green_mean"][1] == pytest.approx(pixels()[1][near].mean())
    assert worm.features["green_median"][1] == np.median(pixels()[1][near])


def test_points_in_voxels_need_no_voxel_size(tmp_path):
    bare_hdf5(tmp_path / "raw.h5")
    with h5py.File(tmp_path / "raw.h5", "r+") as file:
        del file["raw"]
        file["raw"] = pixels()
    one = replace(points("voxel", 0.2), centroids=np.round(points().centroids / SIZE))
    write_table(one, tmp_path / "worm.csv")
    (worm,) = read(tmp_path / "worm.csv", image=tmp_path / "raw.h5")
    x, y, z = one.centroids.astype(int).T
    assert worm.features["channel2_mean"].tolist() == pixels()[1][z, y, x].tolist()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": ""}, "coordinates in 'unit'"),
        ({"radii": np.full((5, 3), np.nan), "unit": "voxel"}, "without radii"),
        ({"centroids": points().centroids + 1e4}, "5 of 5 nuclei lie outside"),
    ],
)
def test_points_that_do_not_fit_their_image(tmp_path, change, words):
    ome(tmp_path / "raw.ome.tif")
    write_table(replace(points(), **change), tmp_path / "worm.csv")
    with pytest.raises(ReadError, match=words):
        read(tmp_path / "worm.csv", image=tmp_path / "raw.ome.tif")


# --- pairs


def cohort(place):
    (place / "labels").mkdir()
    (place / "raw").mkdir()
    for number in range(3):
        write_volume(labels(), place / "labels" / f"w{number}_cp_masks.tif", SIZE)
        image = (pixels() + number).astype(np.uint16)
        with h5py.File(place / "raw" / f"w{number}.h5", "w") as file:
            file["raw"] = image


def test_folders_are_paired_by_name(tmp_path):
    cohort(tmp_path)
    worms = read(tmp_path / "labels", image=tmp_path / "raw")
    first = columns()["mean"]
    for number, worm in enumerate(worms):
        np.testing.assert_allclose(worm.features["channel1_mean"], np.add(first, number))
    (tmp_path / "raw" / "w1.h5").rename(tmp_path / "raw" / "other.h5")
    with pytest.raises(ReadError, match=r"no image of w1_cp_masks .found: other.h5, w0.h5"):
        read(tmp_path / "labels", image=tmp_path / "raw")
    assert len(read(tmp_path / "labels", image=tmp_path / "raw", skip_bad=True)) == 2
    (tmp_path / "raw" / "w2_raw.h5").write_bytes((tmp_path / "raw" / "w2.h5").read_bytes())
    with pytest.raises(ReadError, match=r"several images of w2_cp_masks: w2.h5, w2_raw.h5"):
        Images(tmp_path / "raw").of("w2_cp_masks")


def test_specimens_of_a_table_are_paired_by_name(tmp_path):
    (tmp_path / "raw").mkdir()
    for name in ("a", "b"):
        ome(tmp_path / "raw" / f"{name}.ome.tif")
    both = [replace(points(), name=name) for name in ("a", "b")]
    lines = ["specimen,id,x,y,z,r,unit"]
    for worm in both:
        lines += [
            f"{worm.name},{i},{','.join(map(str, p))},0.45,um"
            for i, p in enumerate(worm.centroids.tolist())
        ]
    (tmp_path / "cohort.csv").write_text("\n".join(lines))
    found = read(tmp_path / "cohort.csv", image=tmp_path / "raw")
    assert [worm.name for worm in found] == ["a", "b"]
    assert "red_mean" in found[1].features
    with pytest.raises(ReadError, match="one image for 2 specimens"):
        read(tmp_path / "cohort.csv", image=tmp_path / "raw" / "a.ome.tif")


def test_words_that_say_what_a_file_is():
    assert [without_tail(n) for n in ("w1_raw", "w1.seg", "w1-labels", "labels")] == [
        "w1", "w1", "w1", "labels",
    ]  # fmt: skip


# --- what is refused


def series(path):
    tifffile.imwrite(path, np.stack([pixels()] * 2), imagej=False, metadata={"axes": "TCZYX"})


def other_shape(path):
    write_volume(pixels()[0][:, :, :-1], path, SIZE)


def other_size(path):
    write_volume(pixels()[0], path, (0.1, 0.2, 0.6))


def text(path):
    path.write_text("no image")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (series, "axis t has 2 entries"),
        (other_shape, "12 x 18 x 69 voxels"),
        (other_size, r"voxels of 0.1 x 0.2 x 0.6 um.*--voxel-size"),
        (text, "cannot read"),
    ],
)
def test_images_that_do_not_belong_to_the_labels_are_one_line(folder, tmp_path, write, words):
    write(tmp_path / "raw.tif")
    with pytest.raises(ReadError, match=words) as caught:
        read(folder / "worm.tif", image=tmp_path / "raw.tif")
    assert len(str(caught.value).splitlines()) == 1


def test_names_that_do_not_fit(folder):
    ome(folder / "a.ome.tif")
    with pytest.raises(ReadError, match=r"2 names .r, g. for the 3 channels"):
        read(folder / "worm.tif", image=folder / "a.ome.tif", channels=("r", "g"))
    with pytest.raises(ReadError, match="twice"):
        read(folder / "worm.tif", image=folder / "a.ome.tif", channels=("r", "r", "g"))
    with pytest.raises(ReadError, match="does not exist"):
        read(folder / "worm.tif", image=folder / "nothing.tif")


def test_axes_that_could_be_either_are_not_guessed(tmp_path):
    cube = np.zeros((6, 6, 30), np.uint8)
    cube[1:3, 1:3, ::6] = np.arange(1, 6)
    write_volume(cube, tmp_path / "worm.tif", 1)
    with h5py.File(tmp_path / "raw.h5", "w") as file:
        file["raw"] = np.zeros((6, 6, 6, 30), np.uint8)
    with pytest.raises(ReadError, match="fit in 3 ways"):
        read(tmp_path / "worm.tif", image=tmp_path / "raw.h5")


def test_memory_is_bounded(folder, monkeypatch):
    ome(folder / "b.ome.tif", compression="zlib")
    monkeypatch.setenv(VARIABLE, "4KB")
    with pytest.raises(ReadError, match="more than the limit"):
        read(folder / "worm.tif", image=folder / "b.ome.tif")


def test_columns_that_are_there_already_are_kept(tmp_path):
    ome(tmp_path / "raw.ome.tif")
    worm = replace(points(), features={"red_mean": np.arange(5.0)})
    write_table(worm, tmp_path / "worm.csv")
    with pytest.raises(ReadError, match="has a column red_mean already"):
        read(tmp_path / "worm.csv", image=tmp_path / "raw.ome.tif")


# --- files of microscopes


def test_files_of_microscopes_need_an_extra(folder, tmp_path, monkeypatch):
    import sys

    (tmp_path / "raw.czi").write_bytes(b"ZISRAWFILE")
    monkeypatch.setitem(sys.modules, "bioio", None)
    with pytest.raises(EutelyError, match=r"need bioio; run: pip install 'eutely\[images\]'") as no:
        read(folder / "worm.tif", image=tmp_path / "raw.czi")
    assert "pip install '.[images]'" in str(no.value)


class Sizes:
    X, Y, Z = SIZE


class OneScene:
    """What bioio gives for a file of a microscope, plane by plane."""

    scenes = ("Image:0",)
    physical_pixel_sizes = Sizes()
    channel_names = ("DAPI", "GFP", "mCherry")

    def get_image_dask_data(self, axes):
        import dask.array as da

        assert axes == "TCZYX"
        return da.from_array(pixels()[None], chunks=(1, 1, 1, *SHAPE[1:]))


def test_an_image_of_bioio_is_read_plane_by_plane(tmp_path):
    volume = by_bioio.volume_of(tmp_path / "a.czi", OneScene())
    image = image_of(volume, SHAPE)
    assert (image.channels, volume.voxel_size) == (OneScene.channel_names, SIZE)
    again = np.zeros((3, *SHAPE), np.uint16)
    for block in image.blocks():
        c, z, y, x = block.start
        assert block.shape == (1, 1, *SHAPE[1:])
        again[c, z, y:, x:] = block.array.reshape(SHAPE[1:])
    np.testing.assert_array_equal(again, pixels())
    scenes = OneScene()
    scenes.scenes = ("a", "b")
    with pytest.raises(ReadError, match="2 scenes"):
        by_bioio.volume_of(tmp_path / "a.czi", scenes)


# --- features of builds


def test_builds_use_the_mean_of_each_channel_unless_told_otherwise():
    from eutely.features import feature_names

    random = np.random.default_rng(1)
    worms = eutely.simulate(specimens=3, cells=20)
    keys = ("gfp_mean", "gfp_median", "gfp_total", "gfp_sd", "gfp_background", "other_sd")
    worms = [
        replace(worm, features={key: random.random(len(worm)) for key in keys}) for worm in worms
    ]
    chosen = set(feature_names(worms))
    assert {"gfp_mean", "other_sd"} <= chosen
    assert not chosen & {"gfp_median", "gfp_total", "gfp_sd", "gfp_background"}
    assert feature_names(worms, "gfp_sd") == ("gfp_sd",)


def test_points_without_radii_are_measured_around_their_centres(tmp_path, caplog):
    ome(tmp_path / "raw.ome.tif")
    bare = replace(points(), radii=np.full((5, 3), np.nan))
    write_table(bare, tmp_path / "bare.csv")
    write_table(replace(points(), radii=np.ones((5, 3)), axes=None), tmp_path / "balls.csv")
    with caplog.at_level("INFO", "eutely"):
        (worm,) = read(tmp_path / "bare.csv", image=tmp_path / "raw.ome.tif")
    assert "within 1 um of their centres" in caplog.text
    (same,) = read(tmp_path / "balls.csv", image=tmp_path / "raw.ome.tif")
    assert np.isnan(worm.radii).all()
    for key, values in same.features.items():
        np.testing.assert_array_equal(worm.features[key], values)
