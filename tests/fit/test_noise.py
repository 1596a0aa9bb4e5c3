"""The error of coordinates is told from matched nuclei, and counted on."""

import numpy as np
import pytest

from eutely.fit.rates import likeliest_error, loosened
from eutely.solver.softassign import centres_of

CELLS = 400


def covariances(seed: int) -> np.ndarray:
    roots = np.random.default_rng(seed).normal(size=(CELLS, 3, 3))
    return roots @ roots.transpose(0, 2, 1) + 0.2 * np.eye(3)


@pytest.mark.parametrize("error", [0.0, 1.5, 3.0])
def test_the_error_is_found(error: float) -> None:
    random = np.random.default_rng(1)
    spreads = covariances(2)
    off = np.einsum("nij,nj->ni", np.linalg.cholesky(spreads), random.normal(size=(CELLS, 3)))
    points = off + error * random.normal(size=(CELLS, 3))
    found = likeliest_error(
        np.zeros((CELLS, 3)), centres_of(spreads), points, freedom=30.0, spacing=10.0
    )
    assert found == pytest.approx(error, abs=0.51)


def test_centres_widen_by_the_error() -> None:
    spreads = covariances(3)
    wider, goal = loosened(centres_of(spreads), 2.0), centres_of(spreads + 4 * np.eye(3))
    np.testing.assert_allclose(wider.heights, goal.heights)
    same = centres_of(spreads)
    assert loosened(same, 0.0) is same
