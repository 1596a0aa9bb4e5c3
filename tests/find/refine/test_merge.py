"""Cells that were split in two."""

import numpy as np

from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.find.refine.merge import merged
from toy_frames import cells_on_a_line

SPECIMENS, CELLS = 12, 10


def split(cells: Cells, cell: int, others: list[int]) -> Cells:
    """Give a cell of the specimens ``others`` a column of its own."""
    table = np.array(cells.nuclei)
    column = np.full((len(table), 1), -1, table.dtype)
    column[others, 0] = table[others, cell]
    table[others, cell] = -1
    return cells.with_nuclei(np.concatenate([table, column], axis=1))


def test_halves_of_a_cell_become_one() -> None:
    cells = cells_on_a_line(SPECIMENS, CELLS)
    again = merged(split(cells, 4, [1, 3, 6, 8, 11]), Estimate())
    np.testing.assert_array_equal(np.array(again.nuclei), np.array(cells.nuclei))


def test_cells_that_specimens_have_both_of_stay() -> None:
    cells = cells_on_a_line(SPECIMENS, CELLS)
    assert merged(cells, Estimate()) is cells


def test_neighbours_that_take_turns_stay_two() -> None:
    table = np.array(cells_on_a_line(SPECIMENS, CELLS).nuclei)
    table[::2, 4] = table[1::2, 5] = -1
    cells = cells_on_a_line(SPECIMENS, CELLS).with_nuclei(table)
    assert merged(cells, Estimate()).count == CELLS


def test_other_colours_are_other_cells() -> None:
    cells = cells_on_a_line(SPECIMENS, CELLS)
    halves = split(cells, 4, [1, 3, 6, 8, 11])
    random = np.random.default_rng(0)
    scores = tuple(random.normal(0, 0.1, (len(points), 1)) for points in halves.posed)
    for number in (1, 3, 6, 8, 11):
        scores[number][halves.nuclei[number][-1]] += 3.0
    coloured = Cells(halves.posed, halves.warped, halves.nuclei, scores, halves.body)
    assert merged(coloured, Estimate()).count == CELLS + 1
