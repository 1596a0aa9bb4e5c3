"""The built-in atlas names real worms."""

from pathlib import Path

import numpy as np
import pytest

import eutely
from eutely.io.atlas import open_atlas


def test_worms_of_the_test_set_are_named(data: Path) -> None:
    worms = eutely.read(data / "rapcat" / "test2")[:4]
    assert eutely.evaluate(open_atlas("celegans-l1"), worms).mean > 0.93


@pytest.mark.parametrize(
    "worm", ["ceh-24_XIL0707_20141022_0001_S1", "swsn-7_SD1588_20140428_0002_S1"]
)
def test_features_of_another_channel_do_not_decide_handedness(data: Path, worm: str) -> None:
    [specimen] = eutely.read(data / "rapcat" / "test2" / f"{worm}.ano.ano.txt")
    image = specimen.mapped(np.diag([1.0, 1.0, -1.0]), np.zeros(3))
    atlas = eutely.Atlas.load("celegans-l1")
    [as_is], [mirrored] = (eutely.annotate(atlas, [one], workers=1) for one in (specimen, image))
    assert not as_is.mirrored
    assert mirrored.mirrored
    np.testing.assert_array_equal(as_is.cells, mirrored.cells)
