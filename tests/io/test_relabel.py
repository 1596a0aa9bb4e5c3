"""Copies of label volumes with the numbers of cells, as OME-Zarr with names for viewers."""

import json

import numpy as np
import pytest
import zarr

from eutely.annotation import Annotation
from eutely.errors import WriteError
from eutely.io.relabel import write_relabelled
from eutely.io.volumes import open_volume, write_volume

NAMES = ("AVAL", "AVAR", "", "RIS", "ASHL")


def labels():
    volume = np.zeros((140, 9, 20), np.uint32)
    for number, label in enumerate((900, 7, 12, 30)):
        volume[30 * number : 30 * number + 20, 2:5, 4 * number : 4 * number + 3] = label
    return volume


def annotated():
    return Annotation(
        "worm",
        np.array([7, 12, 30, 900]),
        np.array([3, -1, 2, 0], np.int32),
        ("RIS", "", "", "AVAL"),
        np.array([0.91234567, np.nan, 0.5, 1.0]),
        ((), (), (), ()),
        1.0,
        np.zeros((4, 3)),
    )


@pytest.fixture
def copy(tmp_path):
    write_volume(labels(), tmp_path / "worm.ome.zarr", (0.1, 0.2, 0.5))
    with open_volume(tmp_path / "worm.ome.zarr") as volume:
        write_relabelled(volume, tmp_path / "labels" / "worm.ome.zarr", annotated(), NAMES)
    return tmp_path / "labels" / "worm.ome.zarr"


def test_every_voxel_has_the_number_of_its_cell(copy):
    expected = np.select([labels() == 7, labels() == 30, labels() == 900], [4, 3, 1], 0)
    np.testing.assert_array_equal(zarr.open(copy)["0"][:], expected)
    with open_volume(copy) as volume:
        np.testing.assert_array_equal(list(volume.planes()), expected)
        assert volume.size == (0.1, 0.2, 0.5)
    assert {path.name for path in copy.parent.iterdir()} == {"worm.ome.zarr", ".written.json"}


def test_metadata_tell_viewers_cell_name_and_colour(copy):
    ome = json.loads((copy / "zarr.json").read_text())["attributes"]["ome"]
    assert ome["version"] == "0.5"
    about = ome["image-label"]
    assert about["properties"] == [
        {"label-value": 1, "cell": 0, "name": "AVAL", "id": 900, "confidence": 1.0},
        {"label-value": 3, "cell": 2, "name": "", "id": 30, "confidence": 0.5},
        {"label-value": 4, "cell": 3, "name": "RIS", "id": 7, "confidence": 0.9123},
    ]
    assert [row["label-value"] for row in about["colors"]] == [1, 3, 4]
    for row in about["colors"]:
        assert len(row["rgba"]) == 4
        assert all(0 <= value <= 255 and isinstance(value, int) for value in row["rgba"])
    level = ome["multiscales"][0]["datasets"][0]
    assert level["coordinateTransformations"] == [{"type": "scale", "scale": [0.5, 0.2, 0.1]}]


def test_too_many_cells_for_16_bits_write_nothing(tmp_path):
    write_volume(labels(), tmp_path / "worm.ome.zarr", 1)
    with (
        open_volume(tmp_path / "worm.ome.zarr") as volume,
        pytest.raises(WriteError, match="16 bits"),
    ):
        write_relabelled(volume, tmp_path / "out.ome.zarr", annotated(), ("x",) * 70_000)
    assert not (tmp_path / "out.ome.zarr").exists()
