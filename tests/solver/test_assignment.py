"""The assignment by candidates, against the one of all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eutely.candidates import Candidates, PairCosts
from eutely.costs.near import FREE, NOBODYS, grid_or_none, within
from eutely.solver.assignment import assign_sparse, proved
from eutely.solver.lap_dense import lap_dense
from eutely.solver.softassign import Centres, Rules, centres_of, square_of, student_costs

PRICED = 1e-7
"""Rounding of prices, relative to costs of up to 1e4."""


def spread(random: np.random.Generator, m: int) -> Centres:
    """Return centres of about unit variance, in all directions."""
    roots = np.tril(random.normal(size=(m, 3, 3))) + 1.5 * np.eye(3)
    return centres_of(roots @ roots.transpose(0, 2, 1))


def all_squares(
    places: NDArray[np.float64], centres: Centres, points: NDArray[np.float64]
) -> NDArray[np.float64]:
    away = np.einsum("mij,mnj->mni", centres.whitening, points[None] - places[:, None])
    return np.asarray((away**2).sum(axis=2))


@pytest.mark.parametrize("c0", [2.0, 12.0, 1e4])
@pytest.mark.parametrize("freedom", [3.0, 20.0, np.inf])
@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 40), st.booleans())
def test_no_other_pair_would_be_better(
    freedom: float, c0: float, seed: int, m: int, n: int, features: bool
) -> None:
    random = np.random.default_rng(seed)
    places, points = 8 * random.random((m, 3)), 8 * random.random((n, 3))
    centres = spread(random, m)
    extra = PairCosts.of_table(random.normal(size=(m, n))) if features else None
    each = c0 + random.random(m)
    result = proved(places, centres, points, Rules(freedom, each, None, extra))
    costs = student_costs(all_squares(places, centres, points), centres.heights[:, None], freedom)
    if extra is not None:
        costs += extra.on(Candidates.every(m, n)).reshape(m, n)
    gains = np.ascontiguousarray(costs - each[:, None])
    # The prices prove it for every pair, and add up to the cost of the assignment.
    assert (result.u[:, None] + result.v[None] <= gains + PRICED).all()
    rows = np.flatnonzero(result.partners >= 0)
    total = gains[rows, result.partners[rows]].sum()
    assert result.u.sum() + result.v.sum() == pytest.approx(total, rel=1e-9, abs=PRICED)
    dense = lap_dense(gains)[0]
    kept = np.flatnonzero(dense >= 0)
    assert gains[kept, dense[kept]].sum() == pytest.approx(total, rel=1e-9, abs=PRICED)


def test_pins_hold_wherever_they_are() -> None:
    places = 10.0 * np.arange(5)[:, None] * np.array([1.0, 0.0, 0.0])
    centres = centres_of(np.array([np.eye(3)] * 5))
    pins = np.array([4, FREE, NOBODYS, FREE, FREE], np.int32)
    result = proved(places, centres, places + 0.1, Rules(8.0, 10.0, pins))
    assert list(result.partners) == [-1, 1, -1, 3, 0]


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(0, 60), st.floats(0.0, 30.0))
def test_all_points_within_reach_are_listed(seed: int, m: int, n: int, limit: float) -> None:
    random = np.random.default_rng(seed)
    # Lines, planes and bodies; some points far from all centres.
    points = 10 * random.normal(size=(n, 3)) * random.integers(0, 2, 3)
    places, centres = 10 * random.normal(size=(m, 3)), spread(random, m)
    near, squares = within(places, centres.whitening, np.full(m, limit), grid_or_none(points))
    expected = all_squares(places, centres, points)
    listed = np.zeros((m, n), bool)
    listed[near.centres, near.points] = True
    assert len(near.points) == listed.sum()
    clear = np.abs(expected - limit) > 1e-9 * (1 + limit)
    np.testing.assert_array_equal(listed[clear], (expected <= limit)[clear])
    np.testing.assert_allclose(squares, expected[near.centres, near.points], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("freedom", [0.5, 8.0, np.inf])
def test_a_distance_and_its_cost(freedom: float) -> None:
    squares = np.array([0.0, 0.3, 7.0, 1e3])
    costs = student_costs(squares, np.zeros(4), freedom)
    np.testing.assert_allclose(square_of(costs, freedom), squares, rtol=1e-8)
    assert (square_of(costs, freedom) >= squares).all()


def test_the_cheapest_of_given_pairs() -> None:
    pairs = Candidates(np.array([0, 2, 3, 3], np.int32), np.array([0, 1, 0], np.int32))
    partners = assign_sparse(pairs, np.array([-3.0, -2.0, -2.0]), 2)
    assert list(partners) == [1, 0, -1]
