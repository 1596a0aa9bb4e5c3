"""Pins are kept, others make room, and wrong tables are reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import eutely
from eutely.cells import Cells
from eutely.config import resolve
from eutely.errors import AtlasError, EutelyError, ReadError
from eutely.frame import Body
from eutely.io.pins import read_pins
from eutely.specimen import Specimen
from eutely.tasks.build import Built
from eutely.tasks.pins import pinned_nuclei, pins_of_specimens, with_pins


def cohort(*rows: list[int]) -> Cells:
    """Specimens of five nuclei; row: the nucleus of each cell."""
    points = np.arange(15.0).reshape(5, 3)
    return Cells(
        (points,) * len(rows),
        (points,) * len(rows),
        tuple(np.array(row, np.int32) for row in rows),
        (points[:, :0],) * len(rows),
        Body(np.ones(2), 1.0),
    )


def test_whoever_is_in_the_way_changes_places() -> None:
    before = cohort([0, 1, 2], [0, 1, 2], [1, 0, 2])
    after = with_pins(before, [{0: "A"}, {0: "a"}, {0: "A"}])
    assert [row.tolist() for row in after.nuclei] == [[0, 1, 2], [0, 1, 2], [0, 1, 2]]


def test_a_name_in_no_cell_gets_a_new_one_and_no_name_leaves_its_cell() -> None:
    after = with_pins(cohort([0, 1, 2], [0, 1, 2]), [{4: "NEW", 2: ""}, {3: "NEW", 2: ""}])
    assert [row.tolist() for row in after.nuclei] == [[0, 1, 4], [0, 1, 3]]


def test_two_nuclei_of_one_specimen_cannot_share_a_name() -> None:
    with pytest.raises(EutelyError, match="same name"):
        with_pins(cohort([0, 1, 2]), [{0: "A", 1: "A"}])
    with pytest.raises(EutelyError, match="pin names"):
        with_pins(cohort([0, 1, 2]), [{0: 1}])


@pytest.fixture(scope="module")
def built() -> Built:
    settings = resolve(overrides={"refine.folds": 2})
    train = eutely.simulate(specimens=5, cells=60, variation=0.5)
    return eutely.build(train, config=settings, supervised=True, workers=1)


def test_pins_of_an_annotation_are_kept(built: Built) -> None:
    new = eutely.simulate(specimens=2, cells=60, variation=0.5, seed=3)
    plain = eutely.annotate(built.atlas, new, workers=1)
    first = new[0]
    far = int(np.argmax(np.abs(plain[0].cells - plain[0].cells[0])))
    pins: dict[tuple[str, int], str | int] = {
        (first.name, int(first.ids[0])): built.atlas.names[plain[0].cells[far]].lower(),
        (first.name, int(first.ids[7])): "",
    }
    moved, other = eutely.annotate(built.atlas, new, pins=pins, workers=1)
    assert moved.cells[0] == plain[0].cells[far]
    assert moved.cells[far] != plain[0].cells[far]
    assert moved.cells[7] == -1
    np.testing.assert_array_equal(other.cells, plain[1].cells)
    (adapted, _) = eutely.annotate(built.atlas, new, pins=pins, adapt=True, workers=1)
    assert adapted.cells[0] == plain[0].cells[far]


def test_wrong_pins_are_reported(built: Built, tmp_path: Path) -> None:
    (one,) = eutely.simulate(specimens=1, cells=60)
    with pytest.raises(EutelyError, match="no nucleus with id 999999"):
        pins_of_specimens({(one.name, 999999): "A"}, [one])
    with pytest.raises(EutelyError, match="no cell called nobody"):
        pinned_nuclei(built.atlas, one, {0: "nobody"}, np.arange(len(one)))
    path = tmp_path / "pins.csv"
    path.write_text("specimen,id,name\nworm001,1,A\nworm001,x,B\n")
    with pytest.raises(ReadError, match="line 3"):
        read_pins(path)
    path.write_text("")
    with pytest.raises(ReadError, match="found: none"):
        read_pins(path)
    path.write_text("specimen,id,cell\nworm001,1,12\nworm001,2,\n")
    assert read_pins(path) == {("worm001", 1): 12, ("worm001", 2): ""}


def test_pins_of_specimens_that_are_not_there(caplog: pytest.LogCaptureFixture) -> None:
    one = Specimen.from_arrays("here", np.eye(4)[:, :3])
    assert pins_of_specimens({("gone", 1): "A", ("here", 2): "B"}, [one]) == [{2: "B"}]
    assert "gone" in caplog.text


@pytest.mark.parametrize(
    ("pins", "words"),
    [({0: 99}, "cells 0 to 59"), ({0: 1, 2: 1}, "two nuclei are pinned to cell 1")],
)
def test_impossible_pins_are_refused(built: Built, pins: dict[int, int], words: str) -> None:
    (one,) = eutely.simulate(specimens=1, cells=60)
    given = {(one.name, int(one.ids[row])): cell for row, cell in pins.items()}
    with pytest.raises(AtlasError, match=words):
        eutely.annotate(built.atlas, [one], pins=given, workers=1)
