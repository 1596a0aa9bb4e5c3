"""Slices through images that come with the nuclei, and through none."""

import lzma
from pathlib import Path

import numpy as np
import pytest

from eutely.curate.slices import Slicer
from eutely.io.read import read
from eutely.io.sources import Files

PACKED = Path(__file__).parents[1] / "io" / "neuropal.nwb.xz"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A file as laboratories publish it: an image of five channels, six neurons."""
    path = tmp_path / "worm.nwb"
    path.write_bytes(lzma.decompress(PACKED.read_bytes()))
    return path


def test_nwb_shows_the_image_that_is_in_it(published: Path) -> None:
    (worm,) = read(published)
    slicer = Slicer(Files(others={"worm": ("nwb", str(published), "")}))
    assert slicer.has("worm") == {"labels": False, "image": True}
    found = slicer.through("worm", worm.ids, worm.centroids[0], 5.0)
    names = [channel["name"] for channel in found["channels"]]
    assert names == ["mTagBFP2", "CyOFP1", "GFP", "mNeptune_2.5", "Tag_RFP"]
    assert len(found["planes"]) == 3
    assert all(len(plane["images"]) == 5 for plane in found["planes"])
    assert len({image for plane in found["planes"] for image in plane["images"]}) == 15


def test_an_image_that_a_person_gave_counts_first(published: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw.npy"
    np.save(raw, np.zeros((3, 4, 5), np.uint16))
    files = Files(
        images={"worm": str(raw)}, others={"worm": ("nwb", str(published), "")}, channels=("GFP",),
        sizes={"worm": (1.0, 1.0, 1.0)},
    )  # fmt: skip
    slicer = Slicer(files)
    assert slicer.has("worm")["image"]
    found = slicer.through("worm", np.array([1]), np.zeros(3), 5.0)
    assert [channel["name"] for channel in found["channels"]] == ["GFP"]


def test_nwb_that_is_gone_has_no_image(published: Path) -> None:
    slicer = Slicer(Files(others={"worm": ("nwb", str(published), "")}))
    published.unlink()
    assert slicer.has("worm") == {"labels": False, "image": False}
    assert slicer.why_not("worm", known=True).startswith("No slices")
