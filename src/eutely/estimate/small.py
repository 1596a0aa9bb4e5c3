"""Small linear algebra inside kernels: loops, since `np.linalg` takes seconds to compile there."""

from typing import Any

import numpy as np

from eutely.kernel import inner


@inner
def eliminate(matrix: Any, columns: Any) -> None:
    """Solve ``matrix @ x = columns`` by Gaussian elimination with partial pivoting, in place.

    Parameters
    ----------
    matrix
        (n, n) float64; destroyed.
    columns
        (n, k) float64; the solution on return.
    """
    n, k = columns.shape
    for c in range(n):
        pivot = c
        for r in range(c + 1, n):
            if abs(matrix[r, c]) > abs(matrix[pivot, c]):
                pivot = r
        if pivot != c:
            for a in range(c, n):
                matrix[c, a], matrix[pivot, a] = matrix[pivot, a], matrix[c, a]
            for a in range(k):
                columns[c, a], columns[pivot, a] = columns[pivot, a], columns[c, a]
        for r in range(c + 1, n):
            factor = matrix[r, c] / matrix[c, c]
            if factor != 0.0:
                for a in range(c + 1, n):
                    matrix[r, a] -= factor * matrix[c, a]
                for a in range(k):
                    columns[r, a] -= factor * columns[c, a]
    for c in range(n - 1, -1, -1):
        for a in range(k):
            value = columns[c, a]
            for b in range(c + 1, n):
                value -= matrix[c, b] * columns[b, a]
            columns[c, a] = value / matrix[c, c]


@inner
def whiten(covariance: Any, white: Any) -> None:
    """Write the inverse of the Cholesky root of a covariance (n, n) to the lower half of ``white``.

    The lower half of ``covariance`` becomes the root.
    """
    n = len(covariance)
    for c in range(n):
        for r in range(c, n):
            value = covariance[r, c]
            for a in range(c):
                value -= covariance[r, a] * covariance[c, a]
            covariance[r, c] = np.sqrt(value) if r == c else value / covariance[c, c]
    for c in range(n):
        white[c, c] = 1.0 / covariance[c, c]
        for r in range(c + 1, n):
            value = 0.0
            for a in range(c, r):
                value -= covariance[r, a] * white[a, c]
            white[r, c] = value / covariance[r, r]
