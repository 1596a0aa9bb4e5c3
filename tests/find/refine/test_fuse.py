"""Fusing two solutions takes each region from the better one."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.execute import open_executor
from eutely.find.refine.fuse import _exceptional, from_target, fuse
from toy_frames import cells_on_a_line


def cohort() -> Cells:
    return cells_on_a_line(20, 24)


def exchanged(before: Cells, first: int, second: int, step: int) -> Cells:
    """Let two cells have each other's nucleus in one specimen out of ``step``."""
    nuclei = np.array(before.nuclei)
    nuclei[::step, [first, second]] = nuclei[::step, [second, first]]
    return before.with_nuclei(nuclei)


def test_each_region_comes_from_the_better_solution() -> None:
    truth = cohort()
    first, second = exchanged(truth, 3, 4, 3), exchanged(truth, 15, 16, 3)
    # The second solution counts its cells from the other end.
    turned = replace(second, nuclei=tuple(row[::-1].copy() for row in second.nuclei))
    with open_executor(1) as executor:
        found, taken = fuse(first, turned, Estimate(), executor, parts=4)
    assert taken == 1
    np.testing.assert_array_equal(found.nuclei, truth.nuclei)


def test_a_cell_that_the_first_solution_lacks_is_added() -> None:
    truth = cohort()
    lacking = replace(truth, nuclei=tuple(np.delete(row, 7) for row in truth.nuclei))
    with open_executor(1) as executor:
        found, taken = fuse(lacking, truth, Estimate(), executor, parts=4)
        same, none = fuse(truth, lacking, Estimate(), executor, parts=4)
    assert (taken, none) == (1, 0)
    np.testing.assert_array_equal(np.sort(found.nuclei, axis=1), truth.nuclei)
    np.testing.assert_array_equal(same.nuclei, truth.nuclei)


def test_a_cell_gets_its_nuclei_back_from_wherever_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cell 7 is lacking; in each specimen its nucleus has gone to another cell."""
    monkeypatch.setattr(sys.modules["eutely.find.refine.fuse"], "EXCHANGED", 0.2)
    truth = cohort()
    strayed = []
    for number, nuclei in enumerate(truth.nuclei):
        row = np.delete(nuclei, 7)
        row[number] = 7
        strayed.append(row)
    with open_executor(1) as executor:
        found, taken = fuse(
            replace(truth, nuclei=tuple(strayed)), truth, Estimate(), executor, parts=4
        )
    assert taken == 1
    assert all(row[-1] == 7 for row in found.nuclei)
    assert all((row == 7).sum() == 1 for row in found.nuclei)


def test_a_cell_that_is_missing_as_often_as_others_is_no_exception() -> None:
    seen, shown = np.array([400, 392, 20]), np.array([400.0, 400.0, 20.0])
    costs = _exceptional(seen, shown, (seen + 0.5) / (shown + 1), 0.02)
    assert costs[0] < np.log(3) + 1e-9
    assert costs[1] < 0.05


def test_a_cell_that_many_lack_costs_more_but_not_without_limit() -> None:
    shown = np.full(100, 20.0)
    seen = np.array([20] * 98 + [19, 10])
    costs = _exceptional(seen, shown, (seen + 0.5) / (shown + 1), 0.002)
    assert (costs[:98] < 0.2).all()
    assert 0.2 < costs[98] < costs[99]
    np.testing.assert_allclose(costs[99], np.log(100))


@pytest.mark.parametrize("parts", [(), (True,) * 20])
def test_a_target_is_not_asked_for_a_cell_that_many_parts_lack(parts: tuple[bool, ...]) -> None:
    truth = cohort()
    nuclei = np.array(truth.nuclei)
    nuclei[::2, 10] = -1
    cells = replace(truth.with_nuclei(nuclei), parts=parts)
    with open_executor(1) as executor:
        found = from_target(cells, 0, Estimate(), executor)
    # The nucleus that was the cell is a cell of its own; only whole targets get one more.
    assert found.count == truth.count + (0 if parts else 1)
