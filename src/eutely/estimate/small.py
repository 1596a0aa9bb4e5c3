"""Small linear algebra inside kernels: loops, since `np.linalg` takes seconds to compile there."""

from typing import Any

import numpy as np

from eutely.kernel import inner

PIVOTS = 4
"""Rows that are subtracted from all others at a time: each of those is read and written once."""


@inner
def solve_positive(matrix: Any, columns: Any) -> None:
    """Solve ``matrix @ x = columns`` for a positive definite matrix, in place.

    Gaussian elimination of the upper half, without pivoting, which positive definite matrices do
    not need.

    Parameters
    ----------
    matrix
        (n, n) float64, of which the upper half is read; destroyed.
    columns
        (n, k) float64; the solution on return.
    """
    n, k = columns.shape
    whole = n - n % PIVOTS
    for first in range(0, whole, PIVOTS):
        last = first + PIVOTS
        for c in range(first, last):
            _subtract(matrix, columns, c, last)
        row0, row1, row2, row3 = (
            matrix[first], matrix[first + 1], matrix[first + 2], matrix[first + 3]
        )  # fmt: skip
        pivot0, pivot1 = 1.0 / row0[first], 1.0 / row1[first + 1]
        pivot2, pivot3 = 1.0 / row2[first + 2], 1.0 / row3[first + 3]
        for r in range(last, n):
            row = matrix[r]
            f0, f1, f2, f3 = row0[r] * pivot0, row1[r] * pivot1, row2[r] * pivot2, row3[r] * pivot3
            for a in range(r, n):
                row[a] -= f0 * row0[a] + f1 * row1[a] + f2 * row2[a] + f3 * row3[a]
            for a in range(k):
                columns[r, a] -= (
                    f0 * columns[first, a]
                    + f1 * columns[first + 1, a]
                    + f2 * columns[first + 2, a]
                    + f3 * columns[first + 3, a]
                )
    for c in range(whole, n):
        _subtract(matrix, columns, c, n)
    for c in range(n - 1, -1, -1):
        for a in range(k):
            columns[c, a] /= matrix[c, c]
        for b in range(c):
            for a in range(k):
                columns[b, a] -= matrix[b, c] * columns[c, a]


@inner
def _subtract(matrix: Any, columns: Any, c: Any, last: Any) -> None:
    """Subtract multiples of row ``c`` from the rows after it up to ``last``, in the upper half."""
    for r in range(c + 1, last):
        factor = matrix[c, r] / matrix[c, c]
        for a in range(r, len(matrix)):
            matrix[r, a] -= factor * matrix[c, a]
        for a in range(columns.shape[1]):
            columns[r, a] -= factor * columns[c, a]


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
