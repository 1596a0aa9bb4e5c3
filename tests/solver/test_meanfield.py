"""Soft assignment and the mean field, against what is known exactly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eutely.solver.assignment import assign
from eutely.solver.meanfield import Crowd, Field, predict, settle
from eutely.solver.softassign import (
    Rules,
    centres_of,
    mean_places,
    soft_assign,
)

RULES = Rules(freedom=8.0, c0=1e4)


def chain(count: int, pull: float) -> Field:
    """Cells in a row, 10 apart, each expected to move by ``pull`` of its neighbours' mean."""
    means = np.zeros((count, 3))
    means[:, 0] = 10.0 * np.arange(count)
    neighbours = np.array([[i - 1, i + 1] for i in range(count)], dtype=np.int32)
    neighbours[0], neighbours[-1] = [1, -1], [count - 2, -1]
    predictors = np.zeros((count, 2, 3, 3))
    for i in range(count):
        have = neighbours[i] >= 0
        predictors[i, have] = pull * np.eye(3) / have.sum()
    return Field(means, neighbours, predictors, centres_of(np.array([np.eye(3)] * count)))


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 8.0))
def test_nobody_has_more_than_one(seed: int, temperature: float) -> None:
    random = np.random.default_rng(seed)
    places, points = random.normal(size=(2, 12, 3))
    centres = centres_of(np.array([np.eye(3)] * 12))
    shares = soft_assign(places, centres, points, Rules(freedom=5.0), temperature=temperature)
    rows = np.add.reduceat(shares.values, shares.starts[:-1])
    _, columns = mean_places(shares, places, 12)
    assert (columns <= 1 + 1e-9).all()
    # Columns are balanced last, so rows may be over by what one more sweep would take.
    assert (rows <= 1.5).all()
    assert shares.values.sum() > 10


@given(st.permutations(range(6)))
def test_assignment_is_that_of_the_nearest(order: list[int]) -> None:
    field = chain(6, 0.0)
    nuclei, _ = assign(field.means, field.centres, field.means[order] + 0.1, RULES)
    assert list(np.asarray(order)[nuclei]) == list(range(6))


def test_neighbours_predict_a_common_shift() -> None:
    field = chain(5, 1.0)
    moved = field.means + [3.0, -1.0, 2.0]
    expected = predict(field.means, field.neighbours, field.predictors, moved)
    np.testing.assert_allclose(expected, moved)


def test_a_region_settles_together() -> None:
    """A shift by 6 of 10: a single cell prefers its neighbour's nucleus, all together do not."""
    field = chain(20, 0.95)
    points = field.means + [6.0, 0.0, 0.0]
    points[0] = field.means[0] + [1.0, 0, 0]
    start = points.copy()
    settled = settle(field, points, start, RULES)
    assert list(settled.nuclei) == list(range(20))
    assert settled.shares.values.max() <= 1 + 1e-9


def test_a_cell_without_a_nucleus_stays_unmatched() -> None:
    field = chain(4, 0.5)
    settled = settle(field, field.means[[0, 1, 3]], field.means, RULES)
    assert list(settled.nuclei) == [0, 1, -1, 2]


def test_leaving_out_depends_on_its_cost() -> None:
    """Two nuclei near one cell, none near the other: c0 decides whether that cell is matched."""
    field = chain(2, 0.0)
    points = field.means[[0, 0]] + [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    for c0, second in ((5.0, -1), (1e4, 1)):
        nuclei, _ = assign(field.means, field.centres, points, Rules(8.0, np.full(2, c0)))
        assert list(nuclei) == [0, second]
    low, high = (soft_assign(field.means, field.centres, points, Rules(8.0, c0)) for c0 in (1, 5))
    assert low.values.sum() < high.values.sum()


def test_of_two_nuclei_that_crowd_each_other_one_is_left_out() -> None:
    """Cell 3 is missing; the spurious nucleus lies between its place and that of cell 2."""
    field = chain(6, 0.0)
    points = field.means.copy()
    points[3, 0] -= 8.0
    rules = Rules(freedom=3.0, c0=20.0)
    free = settle(field, points, field.means, rules)
    assert free.nuclei[3] == 3
    crowd = Crowd(np.array([[2, 3]]), np.array([15.0]))
    crowded = settle(field, points, field.means, rules, crowd=crowd)
    assert list(crowded.nuclei) == [0, 1, 2, -1, 4, 5]
