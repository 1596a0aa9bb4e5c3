"""Cells that come and go."""

from dataclasses import replace

import numpy as np
import pytest

from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.find.refine.grow import grown, pruned
from toy_frames import cells_on_a_line


def cohort(lacking: list[int]) -> Cells:
    """Twelve cells in ten specimens; those in ``lacking`` have nuclei but are not known."""
    cells = cells_on_a_line(10, 12)
    return cells.with_nuclei(np.delete(np.array(cells.nuclei), lacking, axis=1))


def test_places_of_unmatched_nuclei_become_cells() -> None:
    found = grown(cohort([3, 8]), Estimate(), 0.5)
    assert found.count == 12
    table = np.array(found.nuclei)
    assert sorted(table[0].tolist()) == list(range(12))
    # Each new cell has the same nucleus everywhere: that of one of the lacking cells.
    assert (table == table[0]).mean() > 0.95


def test_nothing_grows_where_all_have_cells() -> None:
    assert grown(cohort([]), Estimate(), 0.5).count == 12


def test_a_nucleus_of_few_specimens_is_no_cell() -> None:
    before = cohort([])
    table = np.array(before.nuclei)
    table[:2, 5] = -1
    assert grown(before.with_nuclei(table), Estimate(), 0.5).count == 12


def test_cells_of_few_specimens_go() -> None:
    before = cohort([])
    table = np.array(before.nuclei)
    table[1:, 4] = -1
    found = pruned(before.with_nuclei(table), 0.25)
    np.testing.assert_array_equal(found.nuclei[0], np.delete(np.arange(12), 4))


def test_parts_that_lie_a_little_off_make_no_cell_twice() -> None:
    before = cohort([])
    table = np.array(before.nuclei)
    table[:5, 6] = -1  # these five have a nucleus near the cell, which they lack
    whole = before.with_nuclei(table)
    assert grown(whole, Estimate(), 0.3).count == 13
    parts = replace(whole, parts=(True,) * len(whole))
    assert grown(parts, Estimate(), 0.3).count == 12


@pytest.mark.parametrize(("sharing", "count"), [(2, 12), (8, 13)])
def test_a_new_cell_of_a_cohort_with_parts_takes_a_share_of_the_specimens(
    sharing: int, count: int
) -> None:
    """A nucleus far from all cells, in some specimens; every second one is a part."""
    before = cohort([])
    far = [np.concatenate([one, [[55.0, 80.0, 0.0]]]) for one in before.posed]
    places = tuple(one[: len(one) - (number >= sharing)] for number, one in enumerate(far))
    scores = tuple(np.zeros((len(one), 0)) for one in places)
    parts = tuple(number % 2 == 1 for number in range(len(before)))
    spare = replace(before, posed=places, warped=places, scores=scores, parts=parts)
    assert grown(spare, Estimate(), 0.3).count == count


def test_specimens_that_do_not_reach_a_new_cell_do_not_count() -> None:
    """Two of four specimens that show the front end have a nucleus there without a cell."""
    before = cohort([])
    front = [np.concatenate([one, [[150.0, 0.0, 0.0]]]) for one in before.posed]
    places = tuple(one[: len(one) - (number >= 2)] for number, one in enumerate(front))
    scores = tuple(np.zeros((len(one), 0)) for one in places)
    parts = tuple(number >= 4 for number in range(len(before)))
    spare = replace(before, posed=places, warped=places, scores=scores, parts=parts)
    assert grown(spare, Estimate(), 0.4).count == 13
    assert grown(replace(spare, parts=()), Estimate(), 0.4).count == 12
