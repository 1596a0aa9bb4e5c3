"""Confusable cells are split again: into what they are, and only where that is much likelier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.execute import Executor, open_executor
from eutely.find.refine.resplit import resplit
from eutely.find.refine.rounds import joint_round
from eutely.frame import Body

COUNT, CELLS = 24, 18
FIRST, SECOND = 8, 9
"""Two cells that lie closer to each other than others do."""


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with open_executor(1) as opened:
        yield opened


def close_pair(apart: float = 3.0, seed: int = 0) -> Cells:
    """Return cells along x in their true order; two of them are ``apart`` in y, at one x.

    Each specimen moves as a whole by about 2, which says nothing about which cell is which::

                            8
        0 --- 1 --- ... 7 --+-- 10 --- ... --- 17
                            9
    """
    random = np.random.default_rng(seed)
    means = np.zeros((CELLS, 3))
    means[:, 0] = 10.0 * np.arange(CELLS)
    means[SECOND] = means[FIRST] + [0, -apart / 2, 0]
    means[FIRST] += [0, apart / 2, 0]
    points = tuple(
        means + 2 * random.normal(size=3) + 0.4 * random.normal(size=means.shape)
        for _ in range(COUNT)
    )
    nuclei = tuple(np.arange(CELLS, dtype=np.int32) for _ in range(COUNT))
    scores = tuple(np.zeros((CELLS, 0)) for _ in range(COUNT))
    return Cells(points, points, nuclei, scores, Body(np.array([60.0, 3.0]), 10.0))


def swapped(cells: Cells, specimens: NDArray[np.int64]) -> Cells:
    """Let the two cells have each other's nucleus in some specimens."""
    nuclei = np.array(cells.nuclei)
    nuclei[np.ix_(specimens, [FIRST, SECOND])] = nuclei[np.ix_(specimens, [SECOND, FIRST])]
    return cells.with_nuclei(nuclei)


def assert_split_right(cells: Cells) -> None:
    """All specimens agree on which of the two is which, and no other cell has changed."""
    table = np.array(cells.nuclei)
    others = np.setdiff1d(np.arange(CELLS), [FIRST, SECOND])
    np.testing.assert_array_equal(table[:, others], np.tile(others, (COUNT, 1)))
    assert (table[:, [FIRST, SECOND]] == table[0, [FIRST, SECOND]]).all()
    assert sorted(table[0]) == list(range(CELLS))


def assert_not_split_right(cells: Cells) -> None:
    with pytest.raises(AssertionError):
        assert_split_right(cells)


def half(seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(COUNT)[: COUNT // 2]


@pytest.mark.parametrize("seed", range(4))
def test_neighbours_swapped_in_half_of_the_specimens_are_put_right(
    executor: Executor, seed: int
) -> None:
    """With as many wrong as right the mean of both lies between them, and matching cannot help."""
    before = swapped(close_pair(), half(seed))
    stuck, _ = joint_round(before, Estimate(), executor, parts=2, afresh=False)
    assert_not_split_right(stuck)
    after, changed = resplit(before, Estimate(), executor, seed=1)
    assert changed == 1
    assert_split_right(after)


def test_neighbours_swapped_in_few_specimens_are_left_to_the_matching(executor: Executor) -> None:
    before = swapped(close_pair(), np.arange(4))
    after, changed = resplit(before, Estimate(), executor, seed=1)
    assert changed == 0
    matched, _ = joint_round(after, Estimate(), executor, parts=5, afresh=False)
    assert_split_right(matched)


def test_what_is_right_stays(executor: Executor) -> None:
    before = close_pair()
    after, changed = resplit(before, Estimate(), executor, seed=1)
    assert changed == 0
    np.testing.assert_array_equal(after.nuclei, before.nuclei)


def test_cells_far_apart_are_not_confusable(executor: Executor) -> None:
    """A swap of cells that nobody would confuse is left to the matching."""
    before = swapped(close_pair(apart=40.0), np.array([2]))
    after, changed = resplit(before, Estimate(), executor, seed=1)
    assert changed == 0
    np.testing.assert_array_equal(after.nuclei, before.nuclei)


def test_specimens_that_lack_a_cell_keep_their_order(executor: Executor) -> None:
    wrong = 2 + np.random.default_rng(4).permutation(COUNT - 2)[: COUNT // 2 - 1]
    nuclei = np.array(swapped(close_pair(), wrong).nuclei)
    nuclei[0, FIRST] = nuclei[1, SECOND] = -1
    before = close_pair().with_nuclei(nuclei)
    after, changed = resplit(before, Estimate(), executor, seed=1)
    assert changed == 1
    table = np.array(after.nuclei)
    np.testing.assert_array_equal(table[:2], nuclei[:2])
    assert (table[2:, [FIRST, SECOND]] == table[2, [FIRST, SECOND]]).all()


def test_features_tell_cells_apart_that_places_do_not(executor: Executor) -> None:
    """The two lie at one place; one is bright, the other is dark."""
    random = np.random.default_rng(5)
    bright = np.zeros(CELLS)
    bright[[FIRST, SECOND]] = [2.0, -2.0]
    bright[:FIRST] = random.normal(size=FIRST)
    cells = close_pair(apart=0.2)
    scores = tuple((bright + 0.2 * random.normal(size=CELLS))[:, None] for _ in range(COUNT))
    before = swapped(replace(cells, scores=scores), half(3))
    after, changed = resplit(before, Estimate(), executor, seed=1)
    assert changed == 1
    assert_split_right(after)
    without, _ = resplit(swapped(cells, half(3)), Estimate(), executor, seed=1)
    assert_not_split_right(without)


def test_workers_make_no_difference() -> None:
    before = swapped(close_pair(), half(2))
    results = []
    for workers in (1, 2):
        with open_executor(workers) as several:
            results.append(resplit(before, Estimate(), several, seed=1))
    assert results[0][1] == results[1][1]
    np.testing.assert_array_equal(results[0][0].nuclei, results[1][0].nuclei)
