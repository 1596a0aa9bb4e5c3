"""Distances to the nearest point by a grid, against all distances."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eutely.costs.grid import grid_of
from eutely.costs.near import nearest_squares


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(0, 60),
    st.sampled_from([0.0, 0.1, 1.0, 50.0]),
    st.sampled_from([0.5, 3.0, 1e4]),
)
def test_nearest_squares_are_the_lowest_of_all(
    seed: int, n: int, count: int, flat: float, far: float
) -> None:
    random = np.random.default_rng(seed)
    shape = np.array([10.0, 1.0, flat])
    points = random.normal(size=(n, 3)) * shape
    wanted = random.normal(size=(count, 3)) * far
    found = nearest_squares(grid_of(points), wanted)
    table = ((wanted[:, None] - points[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, table.min(axis=1), rtol=1e-12)
