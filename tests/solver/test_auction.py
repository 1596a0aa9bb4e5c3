"""Prices of the auction: valid for any candidates, and no matter for what is cheapest."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eutely.arrays import transpose
from eutely.solver.assignment import first_prices
from eutely.solver.lap_sparse import lap_sparse


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 30),
    st.integers(1, 30),
    st.floats(0.05, 1.0),
    st.sampled_from([0.5, 5.0, 1e4]),
)
def test_assignment_from_its_prices_is_the_cheapest(
    seed: int, n: int, m: int, share: float, scale: float
) -> None:
    random = np.random.default_rng(seed)
    listed = random.random((n, m)) < share
    starts = np.concatenate([[0], listed.sum(axis=1).cumsum()]).astype(np.int32)
    labels = np.nonzero(listed)[1].astype(np.int32)
    costs = scale * random.normal(size=len(labels)) - scale
    table = transpose(starts, labels, m)
    begin, prices = np.zeros(m), first_prices(starts, labels, costs, m)
    assert (prices <= 0).all()
    assert np.isfinite(prices).all()
    chosen, _ = lap_sparse(starts, labels, *table, costs, begin)
    again, u = lap_sparse(starts, labels, *table, costs, prices)
    assert np.isclose(costs[again[again >= 0]].sum(), costs[chosen[chosen >= 0]].sum(), rtol=1e-9)
    assert (u[table[0]] + prices[labels] <= costs + 1e-9 * scale).all()


def test_equal_rows_that_want_the_same_columns_end() -> None:
    starts = np.arange(0, 31, 3).astype(np.int32)
    labels = np.tile(np.arange(3, dtype=np.int32), 10)
    prices = first_prices(starts, labels, np.full(30, -1e4), 3)
    assert (prices < 0).any()
    table = transpose(starts, labels, 3)
    chosen, _ = lap_sparse(starts, labels, *table, np.full(30, -1e4), prices)
    assert (chosen >= 0).sum() == 3
