"""Fusing two solutions takes each region from the better one."""

from dataclasses import replace

import numpy as np
import pytest

from eutely.config.model import Estimate
from eutely.execute import open_executor
from eutely.cells import Cohort
from eutely.find.refine.fuse import fuse

COUNT, CELLS = 20, 24


def cohort(seed: int = 0) -> Cohort:
    """Cells on a line, 10 apart, in 20 specimens whose nuclei are in the order of the cells."""
    random = np.random.default_rng(seed)
    means = np.zeros((CELLS, 3))
    means[:, 0] = 10.0 * np.arange(CELLS)
    points = tuple(means + random.normal(size=means.shape) for _ in range(COUNT))
    nuclei = tuple(np.arange(CELLS, dtype=np.int32) for _ in range(COUNT))
    return Cohort(points, points, nuclei, np.array([70.0, 1.0]), 10.0)


def exchanged(before: Cohort, first: int, second: int, every: int) -> Cohort:
    """Let two cells have each other's nucleus in every so manieth specimen."""
    nuclei = [own.copy() for own in before.nuclei]
    for own in nuclei[::every]:
        own[[first, second]] = own[[second, first]]
    return replace(before, nuclei=tuple(nuclei))


def test_each_region_comes_from_the_better_solution() -> None:
    truth = cohort()
    first, second = exchanged(truth, 3, 4, 3), exchanged(truth, 15, 16, 3)
    # The second solution counts its cells from the other end.
    turned = replace(second, nuclei=tuple(own[::-1].copy() for own in second.nuclei))
    with open_executor(1) as executor:
        found, taken = fuse(first, turned, Estimate(), executor, folds=4)
    assert taken == 1
    np.testing.assert_array_equal(found.nuclei, truth.nuclei)


def test_a_cell_that_the_first_solution_lacks_is_added() -> None:
    truth = cohort()
    lacking = replace(truth, nuclei=tuple(np.delete(own, 7) for own in truth.nuclei))
    with open_executor(1) as executor:
        found, taken = fuse(lacking, truth, Estimate(), executor, folds=4)
        same, none = fuse(truth, lacking, Estimate(), executor, folds=4)
    assert (taken, none) == (1, 0)
    np.testing.assert_array_equal(np.sort(found.nuclei, axis=1), truth.nuclei)
    np.testing.assert_array_equal(same.nuclei, truth.nuclei)


def test_a_cell_gets_its_nuclei_back_from_wherever_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cell 7 is lacking; in each specimen its nucleus has gone to another cell."""
    monkeypatch.setattr("eutely.find.refine.fuse.EXCHANGED", 0.2)
    truth = cohort()
    strayed = []
    for number, own in enumerate(truth.nuclei):
        row = np.delete(own, 7)
        row[number] = 7
        strayed.append(row)
    with open_executor(1) as executor:
        found, taken = fuse(
            replace(truth, nuclei=tuple(strayed)), truth, Estimate(), executor, folds=4
        )
    assert taken == 1
    assert all(own[-1] == 7 for own in found.nuclei)
    assert all((own == 7).sum() == 1 for own in found.nuclei)
