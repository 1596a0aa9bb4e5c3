"""Cells that come and go."""

import numpy as np

from eutely.config.model import Estimate
from eutely.find.refine.grow import grown, pruned
from eutely.cells import Cohort


def cohort(lacking: list[int], count: int = 10, cells: int = 12) -> Cohort:
    """Cells on a line, 10 apart; those in ``lacking`` have nuclei but are not known."""
    random = np.random.default_rng(0)
    means = np.zeros((cells, 3))
    means[:, 0] = 10.0 * np.arange(cells)
    points = tuple(means + random.normal(size=means.shape) for _ in range(count))
    known = np.setdiff1d(np.arange(cells), lacking).astype(np.int32)
    return Cohort(points, points, tuple(known for _ in points), np.array([35.0, 1.0]), 10.0)


def test_places_with_lone_nuclei_become_cells() -> None:
    found, added = grown(cohort([3, 8]), Estimate(), 0.5)
    assert added == 2
    table = np.array(found.nuclei)
    assert sorted(table[0].tolist()) == list(range(12))
    # Each new cell has the same nucleus everywhere: that of one of the lacking cells.
    assert (table == table[0]).mean() > 0.95


def test_nothing_grows_where_all_have_cells() -> None:
    found, added = grown(cohort([]), Estimate(), 0.5)
    assert added == 0
    assert len(found.nuclei[0]) == 12


def test_a_nucleus_of_few_specimens_is_no_cell() -> None:
    before = cohort([5])
    nuclei = [
        own if number < 2 else np.arange(12, dtype=np.int32)
        for number, own in enumerate(before.nuclei)
    ]
    assert nuclei[0].shape != nuclei[5].shape
    table = [
        np.concatenate([own, [-1]])[:12].astype(np.int32) if len(own) == 11 else own
        for own in nuclei
    ]
    some = Cohort(before.posed, before.warped, tuple(table), before.size, before.spacing)
    _, added = grown(some, Estimate(), 0.5)
    assert added == 0


def test_cells_of_few_specimens_go() -> None:
    before = cohort([])
    table = np.array(before.nuclei)
    table[1:, 4] = -1
    few = Cohort(before.posed, before.warped, tuple(table), before.size, before.spacing)
    found, removed = pruned(few, 0.25)
    assert removed == 1
    np.testing.assert_array_equal(found.nuclei[0], np.delete(np.arange(12), 4))
