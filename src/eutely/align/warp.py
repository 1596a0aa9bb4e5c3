"""A smooth warp along the body: shift, stretch, twist and shear that change slowly along x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from eutely.solver.softassign import Centres, squared_distances

INTERVALS = 5
"""Pieces of the cubic splines along x."""

RIDGE = 1.0
"""Weight of the squared coefficients, in matches: keeps ends with few nuclei where they are."""

FREEDOM = 4.0
"""Degrees of freedom of the weights of matches."""

MARGIN = 0.05
"""By how much, in units of the body's length, the splines reach beyond the cells."""


class Body(NamedTuple):
    """What a warp must know about the body.

    Attributes
    ----------
    low, high
        its ends along x; points beyond are moved like the end.
    width
        about the spread of y and z.
    smooth
        whether it may bend, twist and stretch; otherwise warps are affine maps.
    """

    low: float
    high: float
    width: float
    smooth: bool = True

    @classmethod
    def of(
        cls, means: NDArray[np.float64], size: NDArray[np.float64], *, smooth: bool = True
    ) -> Body:
        """Take cells at ``means`` (m, 3) of a body of that length and width."""
        length, width = size.tolist()
        low, high = means[:, 0].min() - MARGIN * length, means[:, 0].max() + MARGIN * length
        return cls(float(low), float(high), width, smooth)


@dataclass(frozen=True, eq=False)
class Warp:
    """The map ``x + basis(x) @ coefficients``: a cubic spline along x, or 1 and x, times 1, y, z.

    Attributes
    ----------
    body
        that is warped.
    coefficients
        (k, 3), a displacement in the unit of the points for each basis function.
    """

    body: Body
    coefficients: NDArray[np.float64]

    def __call__(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the points (n, 3) where the warp moves them."""
        return points + _basis(points, self.body) @ self.coefficients


def fit_warp(
    points: NDArray[np.float64],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    body: Body,
) -> Warp:
    """Fit the warp that brings points to targets by weighted least squares with a small ridge.

    Parameters
    ----------
    points, targets, weights
        (n, 3), (n, 3), (n,).
    body
        that is warped.
    """
    if not len(points):  # nothing pulls, nothing moves
        points = targets = np.array([[body.low, 0.0, 0.0]])
        weights = np.ones(1)
    basis = _basis(points, body)
    weighted = basis * weights[:, None]
    normal = basis.T @ weighted
    normal[np.diag_indices_from(normal)] += RIDGE
    found = np.linalg.solve(normal, weighted.T @ (targets - points))
    return Warp(body, np.asarray(found, dtype=np.float64))


def rewarp(
    posed: NDArray[np.float64],
    warped: NDArray[np.float64],
    nuclei: NDArray[np.int32],
    means: NDArray[np.float64],
    centres: Centres,
    body: Body,
) -> NDArray[np.float64]:
    """Return a specimen warped anew, by matches that weigh less the farther off they are.

    Parameters
    ----------
    posed, warped
        (n, 3), its nuclei before any warp, and after the last one.
    nuclei
        (m,), the nucleus of each cell, or -1.
    means, centres
        (m, 3), where cells are expected, and how exactly.
    body
        that is warped.
    """
    cells = np.flatnonzero(nuclei >= 0)
    own = nuclei[cells]
    squared = squared_distances(means[cells], centres.whitening[cells], warped[own])
    weights = (FREEDOM + 3) / (FREEDOM + squared)
    return fit_warp(posed[own], means[cells], weights, body)(posed)


def recentred(means: NDArray[np.float64], goal: NDArray[np.float64], body: Body) -> Warp:
    """Return the warp from the mean of warped specimens back to that of the poses.

    Fits to noisy places shrink specimens a little towards the mean, every round anew. Taking the
    mean warp out again keeps the frame of the atlas that of the poses.
    """
    return fit_warp(means, goal, np.ones(len(means)), body)


def _basis(points: NDArray[np.float64], body: Body) -> NDArray[np.float64]:
    low, high = body.low, body.high
    across = points[:, 1:] / body.width
    if not body.smooth:
        along = 2 * (points[:, :1] - low) / (high - low) - 1
        return np.concatenate([np.ones_like(along), along, across], axis=1)
    knots = np.concatenate([[low] * 3, np.linspace(low, high, INTERVALS + 1), [high] * 3])
    along = BSpline.design_matrix(np.clip(points[:, 0], low, high), knots, 3).toarray()
    return np.concatenate([along, along * across[:, :1], along * across[:, 1:]], axis=1)
