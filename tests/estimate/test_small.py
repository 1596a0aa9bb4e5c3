"""Small linear algebra in loops, beside that of NumPy."""

import numpy as np
import pytest

from eutely.estimate.small import solve_positive, whiten


@pytest.mark.parametrize("size", [1, 2, 4, 5, 8, 12, 31])
def test_positive_systems_are_solved_from_their_upper_half(size):
    random = np.random.default_rng(size)
    points, columns = random.normal(size=(size + 5, size)), random.normal(size=(size, 3))
    matrix = points.T @ points
    upper, solution = np.triu(matrix), columns.copy()
    solve_positive(upper, solution)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, columns), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("size", [1, 3, 9])
def test_whitening_is_the_inverse_of_the_root(size):
    points = np.random.default_rng(size).normal(size=(size + 5, size))
    covariance = points.T @ points
    white = np.zeros((size, size))
    whiten(np.tril(covariance), white)
    expected = np.linalg.inv(np.linalg.cholesky(covariance))
    np.testing.assert_allclose(white, expected, rtol=1e-9, atol=1e-12)
