"""Which cells a specimen that shows a part of the body has in view."""

from dataclasses import replace

import numpy as np

from eutely.cells import Cells
from eutely.config import Config
from eutely.fit.model import model_of_cells
from eutely.geometry import between_ends
from toy_frames import cells_on_a_line


def cut(cells: Cells, number: int, last: int) -> Cells:
    """Return the cells with one specimen cut behind the cell ``last``."""
    kept = np.arange(last + 1)
    order = cells.nuclei[number][kept]
    posed, warped, scores = (list(values) for values in (cells.posed, cells.warped, cells.scores))
    for values in (posed, warped, scores):
        values[number] = values[number][order]
    nuclei = np.array(cells.nuclei)
    nuclei[number] = -1
    nuclei[number, kept] = kept
    parts = tuple(one == number for one in range(len(cells)))
    return replace(
        cells,
        posed=tuple(posed),
        warped=tuple(warped),
        scores=tuple(scores),
        nuclei=tuple(nuclei),
        parts=parts,
    )


def test_cells_beyond_a_cut_are_out_of_view_and_those_before_it_are_not() -> None:
    cells = cut(cells_on_a_line(20, 24), 3, 15)
    shown = cells.shown()
    assert (shown[3, 1:15] > 0.9).all()  # the first one lies at the end itself
    assert (shown[3, 17:] < 0.1).all()
    assert (np.delete(shown, 3, axis=0) == 1).all()


def test_a_cell_that_is_often_cut_off_is_not_often_missing() -> None:
    cells = cut(cells_on_a_line(20, 24), 3, 15)
    often = cells.often()
    assert (often[:15] > 0.97 * len(cells)).all()
    np.testing.assert_allclose(often[17:], len(cells), rtol=0.01)


def test_ends_are_soft_by_half_a_spacing() -> None:
    means = np.column_stack([[-2.0, 0.0, 5.0, 10.25, 12.0], np.zeros((5, 2))])
    points = np.array([[0.0, 0.0, 0.0], [10.0, 0.0, 0.0]])
    np.testing.assert_allclose(between_ends(means, points, 1.0), [0.02, 0.5, 1.0, 0.25, 0.02])


def test_what_most_specimens_with_parts_have_is_always_there_while_cells_are_found() -> None:
    whole = cells_on_a_line(20, 24)
    nuclei = np.array(whole.nuclei)
    nuclei[:8, 5] = -1  # there in 12 of 20
    nuclei[:16, 7] = -1  # in 4 of 20
    lacking = replace(whole, nuclei=tuple(nuclei))
    settings = Config().estimate
    rare, common = model_of_cells(lacking, settings).background.presence[[7, 5]]
    assert rare < common < 0.7
    partial = cut(lacking, 19, 22)
    rare_of_parts, common_of_parts = model_of_cells(partial, settings).background.presence[[7, 5]]
    assert common_of_parts == 1.0
    assert rare_of_parts < 0.3


def test_parts_have_no_spurious_nuclei_while_hardly_a_nucleus_is_left_over() -> None:
    partial = cut(cells_on_a_line(20, 24), 3, 15)
    uneven = cut(partial, 4, 20)  # some that were taken for whole ones lack an end
    settings = Config().estimate
    assert model_of_cells(uneven, settings).background.most == 0
