"""What a person gave a run folder survives: names of cells, and pins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import eutely
from eutely.config import Config, resolve
from eutely.errors import EutelyError
from eutely.specimen import Specimen
from eutely.store.folder import open_run

CONFIG: Config = resolve(
    overrides={"refine.linear_rounds": 2, "refine.joint_rounds": 1, "refine.targets": 1}
)

OTHER: Config = resolve(overrides={"refine.linear_rounds": 3, "seed": 3, "refine.joint_rounds": 2})
"""Settings that lead to other cells."""


@pytest.fixture(scope="module")
def cohort() -> list[Specimen]:
    return eutely.simulate(specimens=5, cells=40, seed=2, variation=0.5)


@pytest.fixture
def run(tmp_path: Path, cohort: list[Specimen]) -> Path:
    """A run whose cells a person has named."""
    built = eutely.build(cohort, tmp_path / "run", config=CONFIG, workers=1)
    eutely.name(built.atlas, cohort[:3], workers=1).save(tmp_path / "run" / "atlas.h5")
    return tmp_path / "run"


def test_names_survive_the_same_build(run: Path, cohort: list[Specimen]) -> None:
    before = (run / "atlas.h5").read_bytes()
    built = eutely.build(cohort, run, config=CONFIG, workers=1)
    assert (run / "atlas.h5").read_bytes() == before
    assert built.atlas.names == eutely.Atlas.load(run).names
    assert all(built.atlas.names)


def test_names_follow_their_cells(run: Path, cohort: list[Specimen]) -> None:
    truth = eutely.evaluate(eutely.Atlas.load(run), cohort, workers=1).mean
    built = eutely.build(cohort, run, config=OTHER, workers=1)
    assert sum(map(bool, built.atlas.names)) == 40
    assert eutely.evaluate(built.atlas, cohort, workers=1).mean >= truth - 0.02


def test_no_name_is_dropped_without_force(run: Path, cohort: list[Specimen]) -> None:
    named = (run / "atlas.h5").read_bytes()
    renumbered = [replace(one, ids=one.ids + 100_000) for one in cohort]
    with pytest.raises(EutelyError, match=r"40 would be lost.*--force"):
        eutely.build(renumbered, run, config=OTHER, workers=1)
    assert (run / "atlas.h5").read_bytes() == named
    with open_run(run, force=True) as folder:
        eutely.build(renumbered, folder, config=OTHER, workers=1)
    assert not any(eutely.Atlas.load(run).names)
    assert (run / "atlas.h5.bak").read_bytes() == named


def test_pins_are_remembered_and_can_be_taken_back(tmp_path: Path, cohort: list[Specimen]) -> None:
    first, second = cohort[0], cohort[1]
    pins = {
        (first.name, int(first.ids[0])): "A",
        (second.name, int(second.ids[0])): "A",
        (first.name, int(first.ids[1])): "",
    }

    def cells(built: eutely.Built) -> tuple[int, int, int]:
        table = built.to_frame().set_index(["specimen", "id"])["cell"].fillna(-1)
        return tuple(int(table[key]) for key in pins)

    run = tmp_path / "run"
    pinned = cells(eutely.build(cohort, run, config=CONFIG, pins=pins, workers=1))
    assert pinned[0] == pinned[1] != -1
    assert pinned[2] == -1
    again = eutely.build(cohort, run, config=CONFIG, workers=1)
    assert cells(again) == pinned
    row = f"<td>{first.name}</td><td>{first.ids[0]}</td><td>A</td>"
    assert row in (run / "report.html").read_text(encoding="utf-8")
    without = eutely.build(cohort, run, config=CONFIG, pins={}, workers=1)
    assert cells(without)[2] != -1
    assert row not in (run / "report.html").read_text(encoding="utf-8")
    assert not (run / "pins.csv").exists()
    assert (run / "pins.csv.bak").exists()
    fresh = eutely.build(cohort, config=CONFIG, workers=1)
    np.testing.assert_array_equal(fresh.atlas.means, without.atlas.means)


def test_wrong_pins_are_not_remembered(tmp_path: Path, cohort: list[Specimen]) -> None:
    with pytest.raises(EutelyError, match="no nucleus with id"):
        eutely.build(
            cohort, tmp_path / "run", config=CONFIG, pins={(cohort[0].name, -5): "A"}, workers=1
        )
    assert not (tmp_path / "run" / "pins.csv").exists()
