"""The built-in atlas names real worms."""

from pathlib import Path

import eutely
from eutely.io.atlas import open_atlas


def test_worms_of_the_test_set_are_named(data: Path) -> None:
    worms = eutely.read(data / "rapcat" / "test2")[:4]
    assert eutely.evaluate(open_atlas("celegans-l1"), worms).mean > 0.93
