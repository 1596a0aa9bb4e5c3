"""Volumes with more than three axes, as Fiji and tifffile write them; sizes that are missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile

import eutely
from eutely.errors import ReadError
from eutely.io.volumes import open_volume

SIZE = (1.0, 1.0, 2.0)
IMAGEJ = {"imagej": True, "resolution": (1.0, 1.0)}


def labels(seed: int) -> np.ndarray:
    """Volume of nine cubes with other numbers for each seed, (z, y, x)."""
    volume = np.zeros((6, 14, 15), np.uint16)
    numbers = np.random.default_rng(seed).permutation(9) + 1 + 10 * seed
    for at, number in enumerate(numbers):
        y, x = divmod(at, 3)
        volume[1 + at % 3 : 3 + at % 3, 4 * y : 4 * y + 3, 5 * x : 5 * x + 3] = number
    return volume


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two volumes as time points, as channels, and along an axis without a name."""
    both = np.stack([labels(0), labels(1)])
    known = {"spacing": 2.0, "unit": "micron"}
    tifffile.imwrite(tmp_path / "times.tif", both, metadata={"axes": "TZYX", **known}, **IMAGEJ)
    channels = np.moveaxis(both, 0, 1)
    tifffile.imwrite(tmp_path / "channels.tif", channels, metadata={"axes": "ZCYX", **known},
                     **IMAGEJ)  # fmt: skip
    tifffile.imwrite(tmp_path / "plain.tif", both)
    tifffile.imwrite(tmp_path / "packed.tif", both, compression="zlib")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("times.tif", "axis t (time) has 2 entries; expected a volume with axes z, y, x; choose "
                      "one, counted from 0: times.tif:t=0"),
        ("channels.tif", "axis c (channels) has 2 entries; expected a volume with axes z, y, x; "
                         "choose one, counted from 0: channels.tif:c=0"),
        ("plain.tif", "axis q has 2 entries; expected a volume with axes z, y, x; choose one, "
                      "counted from 0: plain.tif:q=0"),
    ],
)  # fmt: skip
def test_a_4d_file_says_which_axis_and_how_to_choose(folder: Path, name: str, words: str) -> None:
    with pytest.raises(ReadError) as caught:
        eutely.read(folder / name, voxel_size=SIZE)
    assert str(caught.value) == f"{folder / name}: {words}"


@pytest.mark.parametrize(
    ("part", "name", "seed"),
    [
        ("times.tif:t=0", "times_t0", 0),
        ("times.tif:1", "times_t1", 1),
        ("channels.tif:c=1", "channels", 1),
        ("plain.tif:q=0", "plain_q0", 0),
        ("packed.tif:q=1", "packed_q1", 1),
    ],
)
def test_an_entry_is_chosen_behind_a_colon(folder: Path, part: str, name: str, seed: int) -> None:
    [specimen] = eutely.read(f"{folder / part}", voxel_size=SIZE)
    assert specimen.name == name
    assert sorted(specimen.ids) == list(range(1 + 10 * seed, 10 + 10 * seed))
    path, _, entry = part.partition(":")
    with open_volume(folder / path, SIZE, entry) as volume:
        np.testing.assert_array_equal(np.stack(list(volume.planes())), labels(seed))


def test_two_time_points_are_two_specimens(folder: Path) -> None:
    parts = [f"{folder / 'times.tif'}:t={time}" for time in (0, 1)]
    assert [specimen.name for specimen in eutely.read(*parts)] == ["times_t0", "times_t1"]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("times.tif:t=2", "axis t has 2 entries; choose t=0 to t=1"),
        ("times.tif:c=0", "c is no axis besides z, y, x"),
        ("times.tif:z=1", "z is no axis besides z, y, x"),
        ("times.tif:0-1", "0-1 is no channel or time point; expected"),
    ],
)
def test_what_cannot_be_chosen_is_one_line(folder: Path, part: str, words: str) -> None:
    with pytest.raises(ReadError, match=words) as caught:
        eutely.read(f"{folder / part}", voxel_size=SIZE)
    assert "\n" not in str(caught.value)


def test_a_colour_picture_has_no_labels(tmp_path: Path) -> None:
    picture = np.zeros((6, 14, 15, 3), np.uint8)
    tifffile.imwrite(tmp_path / "rgb.tif", picture, photometric="rgb")
    with pytest.raises(ReadError, match=r"axis s .colours. has 3 entries.*save the numbers"):
        eutely.read(tmp_path / "rgb.tif", voxel_size=SIZE)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"unit": "micron"}, "the z spacing is missing: ImageJ metadata say 1 x 1 um and no depth"),
        ({"spacing": 2.0}, "ImageJ metadata without a unit"),
        ({"unit": "pixel", "spacing": 2.0}, "ImageJ unit 'pixel'"),
    ],
)
def test_imagej_without_a_size_says_what_is_missing(
    tmp_path: Path, metadata: dict[str, object], words: str
) -> None:
    path = tmp_path / "worm.tif"
    tifffile.imwrite(path, labels(0), metadata={"axes": "ZYX", **metadata}, **IMAGEJ)
    with pytest.raises(ReadError) as caught:
        eutely.read(path)
    assert words in str(caught.value)
    assert str(caught.value).endswith("give --voxel-size X,Y,Z in micrometres")
