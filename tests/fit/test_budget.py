"""Work is counted, not timed: pairs looked at must not grow with the square of the cells."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.costs import near
from eutely.estimate import joint
from eutely.fit.model import model_of_cells
from eutely.fit.place import place
from eutely.frame import Body, Posed
from eutely.geometry import spacing

FEW, MANY = 600, 2400
"""Cells; the second number is four times the first."""

GROWTH, GROWTH_PREDICTING = 6.0, 9.0
"""Factors by which work may grow with four times the cells: 4 if it were linear at every size, more
since most cells of small bodies lie at the surface, with fewer neighbours; 16 for all pairs."""


class Pairs(NamedTuple):
    """Pairs of nucleus and cell that a match looked at, and pairs of cells that an estimate did."""

    matching: int
    predicting: int


def looked_at(count: int, monkeypatch: pytest.MonkeyPatch) -> Pairs:
    """Estimate cells of one density from five specimens, and match one of them in two poses."""
    random = np.random.default_rng(2)
    means = (random.random((count, 3)) - 0.5) * [6.0, 1.0, 1.0] * (count / 6) ** (1 / 3)
    points = tuple(means + 0.1 * random.normal(size=means.shape) for _ in range(5))
    size = np.array([means[:, 0].std(), means[:, 1:].std()])
    scores = tuple(np.zeros((count, 0)) for _ in points)
    nuclei = (np.arange(count, dtype=np.int32),) * len(points)
    cells = Cells(points, points, nuclei, scores, Body(size, spacing(means)))
    counts = {"matching": 0, "predicting": 0}
    within, predictive = near.pairs_within, joint._predictive

    def counting_within(*given: Any) -> Any:
        result = within(*given)
        counts["matching"] += int(result[3])
        return result

    def counting_predictive(*given: Any) -> Any:
        result = predictive(*given)
        counts["predicting"] += int(result[4])
        return result

    with monkeypatch.context() as patch:
        patch.setattr(near, "pairs_within", counting_within)
        patch.setattr(joint, "_predictive", counting_predictive)
        poses = (points[0], points[0] * [1.0, -1.0, -1.0])
        specimen = Posed(poses, np.full((count, 3), np.nan), scores[0])
        fit = place(model_of_cells(cells, Estimate()), specimen)
    assert (fit.nuclei == nuclei[0]).mean() > 0.95
    return Pairs(**counts)


def test_pairs_looked_at_grow_in_proportion_to_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (looked_at(count, monkeypatch) for count in (FEW, MANY))
    assert few.matching > 100 * FEW
    assert few.predicting > 10 * FEW
    assert many.matching < GROWTH * few.matching
    assert many.predicting < GROWTH_PREDICTING * few.predicting
