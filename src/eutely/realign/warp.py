"""A smooth warp along the body: shift, stretch, twist and shear that change slowly along x."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

INTERVALS = 5
"""Pieces of the cubic splines along x."""

RIDGE = 1.0
"""Weight of the squared coefficients, in matches: keeps ends with few nuclei where they are."""

MARGIN = 0.05
"""By how much, in units of the body's length, the splines reach beyond the cells."""


@dataclass(frozen=True, eq=False)
class Warp:
    """The map ``x + basis(x) @ coefficients``, a cubic spline along x times 1, y and z.

    Attributes
    ----------
    low, high
        ends of the splines along x; points beyond are moved like the end.
    width
        by which y and z are divided in the basis.
    coefficients
        (3 (INTERVALS + 3), 3), a displacement in the unit of the points for each basis function.
    """

    low: float
    high: float
    width: float
    coefficients: NDArray[np.float64]

    def __call__(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the points (n, 3) where the warp moves them."""
        return points + _basis(points, self.low, self.high, self.width) @ self.coefficients


def fit_warp(
    points: NDArray[np.float64],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    span: tuple[float, float],
    width: float,
) -> Warp:
    """Fit the warp that brings points to targets by weighted least squares with a small ridge.

    Parameters
    ----------
    points, targets, weights
        (n, 3), (n, 3), (n,).
    span
        ends of the body along x.
    width
        of the body, about the spread of y and z.
    """
    if not len(points):  # nothing pulls, nothing moves
        return Warp(*span, width, np.zeros((3 * (INTERVALS + 3), 3)))
    basis = _basis(points, *span, width)
    weighted = basis * weights[:, None]
    normal = basis.T @ weighted
    normal[np.diag_indices_from(normal)] += RIDGE
    found = np.linalg.solve(normal, weighted.T @ (targets - points))
    return Warp(*span, width, np.asarray(found, dtype=np.float64))


def span_of(means: NDArray[np.float64], length: float) -> tuple[float, float]:
    """Return the ends of the splines for cells at ``means`` of a body of that length."""
    return (
        float(means[:, 0].min() - MARGIN * length),
        float(means[:, 0].max() + MARGIN * length),
    )


def recentred(
    means: NDArray[np.float64], goal: NDArray[np.float64], span: tuple[float, float], width: float
) -> Warp:
    """Return the warp from the mean of warped specimens back to that of the poses.

    Fits to noisy places shrink specimens a little towards the mean, every round anew. Taking the
    mean warp out again keeps the frame of the atlas that of the poses.
    """
    return fit_warp(means, goal, np.ones(len(means)), span, width)


def _basis(
    points: NDArray[np.float64], low: float, high: float, width: float
) -> NDArray[np.float64]:
    knots = np.concatenate([[low] * 3, np.linspace(low, high, INTERVALS + 1), [high] * 3])
    along = BSpline.design_matrix(np.clip(points[:, 0], low, high), knots, 3).toarray()
    across = points[:, 1:] / width
    return np.concatenate([along, along * across[:, :1], along * across[:, 1:]], axis=1)
