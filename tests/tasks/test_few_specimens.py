"""The smallest cohorts, and cells that vanish on the way."""

from __future__ import annotations

import numpy as np
import pytest

import eutely
from eutely.cells import Cells
from eutely.config import Config, resolve
from eutely.frame import Body

FEW_TRIALS = {f"learn.trials_{stage}": 2 for stage in ("linear", "sparsity", "offsets")}
CONFIGS = {
    "refine": resolve(overrides={"refine.joint_rounds": 2}),
    "learn": resolve(preset="paper", overrides=FEW_TRIALS),
    "named": resolve(overrides={"method": "named"}),
}


@pytest.mark.parametrize("method", CONFIGS)
def test_two_specimens_are_enough(method: str) -> None:
    config: Config = CONFIGS[method]
    cohort = eutely.simulate(specimens=2, cells=40, seed=3, variation=0.5)
    built = eutely.build(cohort, config=config, workers=1)
    assert len(built.atlas) == 40
    assert built.consistency().min() > 0.9
    assert not built.outliers


def test_cells_that_no_specimen_has_are_dropped() -> None:
    points = np.arange(12.0).reshape(4, 3)
    nuclei = (np.array([0, -1, 2], np.int32), np.array([1, -1, -1], np.int32))
    scores = np.zeros((4, 0))
    body = Body(np.array([3.0, 1.0]), 1.0)
    cells = Cells((points, points), (points, points), nuclei, (scores, scores), body)
    assert cells.seen().tolist() == [2, 0, 1]
    assert [row.tolist() for row in cells.present().nuclei] == [[0, 2], [1, -1]]


def test_one_specimen_does_not_show_how_cells_vary() -> None:
    points = np.arange(12.0).reshape(4, 3)
    nuclei = (np.array([0, 1], np.int32),) * 3
    scores = np.zeros((4, 0))
    cells = Cells((points,) * 3, (points,) * 3, nuclei, (scores,) * 3, Body(np.ones(2), 1.0))
    assert cells.enough(np.array([True, False, False])).all()
    assert cells.enough(np.array([True, True, False])).tolist() == [True, True, False]
