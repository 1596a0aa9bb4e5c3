"""Affine maps fitted to matches: by least squares, or robustly where some matches are wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Map = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Matrix (3, 3) and shift (3,) of an affine map ``matrix @ point + shift``."""

FEWEST_MATCHES = 4
"""Matches that determine an affine map."""

REWEIGHTINGS = 5
"""Rounds of re-weighting; the weights settle in three or four."""


def least_squares(points: NDArray[np.float64], targets: NDArray[np.float64]) -> Map:
    """Fit an affine map of points (n, 3) to targets (n, 3) by least squares; n >= 4."""
    design = np.column_stack([points, np.ones(len(points))])
    solution = np.linalg.lstsq(design, targets, rcond=None)[0]
    return np.ascontiguousarray(solution[:3].T), solution[3]


def growth(points: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    """Return the logarithm of the volume of targets (n, 3), relative to that of points."""
    return float(np.log(max(abs(np.linalg.det(least_squares(points, targets)[0])), 1e-12)))


def fit_affine(
    points: NDArray[np.float64],
    targets: NDArray[np.float64],
    *,
    stretch: float = 1.5,
    freedom: float = 4.0,
) -> Map:
    """Fit an affine map of points to targets robustly.

    Matches far off weigh less, as under a Student-t distribution. Singular values of the matrix
    are kept within ``1 / stretch .. stretch``, and its determinant positive: unconstrained least
    squares under a wrong pose shrinks or mirrors a specimen until its cost looks good.

    Parameters
    ----------
    points, targets
        (n, 3) each, n >= 4 not in one plane.
    stretch
        largest factor by which lengths may change along any axis.
    freedom
        degrees of freedom of the weights; larger ones trust outliers more.

    Returns
    -------
    matrix, shift
        (3, 3) and (3,).
    """
    weights = np.ones(len(points))
    matrix, shift = np.eye(3), np.zeros(3)
    for _ in range(REWEIGHTINGS):
        total = weights.sum()
        centre = weights @ points / total
        goal = weights @ targets / total
        inside = points - centre
        moments = inside.T @ (weights[:, None] * inside)
        moments += 1e-12 * np.trace(moments) * np.eye(3)
        mixed = inside.T @ (weights[:, None] * (targets - goal))
        matrix = _bounded(np.linalg.solve(moments, mixed).T, stretch)
        shift = goal - matrix @ centre
        residual = targets - points @ matrix.T - shift
        # Scaled by the median, so that the unit does not matter.
        squared = (residual / np.maximum(np.median(np.abs(residual), axis=0), 1e-12)) ** 2
        weights = (freedom + 3) / (freedom + squared.sum(axis=1))
    return matrix, shift


def _bounded(matrix: NDArray[np.float64], stretch: float) -> NDArray[np.float64]:
    """Return the nearest matrix with bounded singular values and a positive determinant."""
    left, values, right = np.linalg.svd(matrix)
    values = np.clip(values, 1 / stretch, stretch)
    if np.linalg.det(left @ right) < 0:
        left = left * np.array([1.0, 1.0, -1.0])
    return np.asarray((left * values) @ right, dtype=np.float64)
