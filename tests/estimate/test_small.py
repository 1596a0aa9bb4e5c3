"""Small linear algebra in loops, beside that of NumPy."""

import numpy as np
import pytest

from eutely.estimate.small import eliminate, whiten


@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_elimination_solves_any_regular_system(size):
    random = np.random.default_rng(size)
    matrix, columns = random.normal(size=(size, size)), random.normal(size=(size, 3))
    matrix[0, 0] = 0.0 if size > 1 else 1.0  # needs a pivot
    solution = columns.copy()
    eliminate(matrix.copy(), solution)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, columns), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1, 3, 9])
def test_whitening_is_the_inverse_of_the_root(size):
    points = np.random.default_rng(size).normal(size=(size + 5, size))
    covariance = points.T @ points
    white = np.zeros((size, size))
    whiten(np.tril(covariance), white)
    expected = np.linalg.inv(np.linalg.cholesky(covariance))
    np.testing.assert_allclose(white, expected, rtol=1e-9, atol=1e-12)
