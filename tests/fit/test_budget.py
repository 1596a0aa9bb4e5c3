"""Work is counted, not timed: pairs looked at must not grow with the square of the cells."""

from typing import Any

import pytest

import eutely
from eutely.costs import near
from eutely.estimate import joint
from eutely.solver import beyond

FEW, MANY = 200, 600
"""Cells; the second number is three times the first."""

GROWTH = {"matching": 5.5, "proving": 6.0, "predicting": 5.5}
"""Factors by which pairs may grow with three times the cells: 3 if work were linear at every size,
more since small bodies hold less than what is within reach of a cell; 9 for all pairs."""

KERNELS = {
    "matching": (near, "pairs_within", 3),
    "proving": (beyond, "pairs_beyond", 3),
    "predicting": (joint, "_predictive", 4),
}
"""Kernels that look at pairs of nucleus and cell, or of two cells, and which of their results is
the number of pairs."""


def looked_at(cells: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Build from three simulated specimens by default; return the pairs that kernels looked at."""
    counts = dict.fromkeys(KERNELS, 0)

    def counting(name: str, kernel: Any, result: int) -> Any:
        def counted(*given: Any) -> Any:
            results = kernel(*given)
            counts[name] += int(results[result])
            return results

        return counted

    with monkeypatch.context() as patch:
        for name, (module, kernel, result) in KERNELS.items():
            patch.setattr(module, kernel, counting(name, getattr(module, kernel), result))
        built = eutely.build(eutely.simulate(3, cells=cells, seed=1), workers=1)
    assert abs(len(built.atlas) - cells) < 0.02 * cells
    return counts


def test_pairs_looked_at_grow_in_proportion_to_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (looked_at(cells, monkeypatch) for cells in (FEW, MANY))
    for name in KERNELS:
        assert few[name] > 10 * FEW, name
        assert many[name] < GROWTH[name] * few[name], (name, few, many)
