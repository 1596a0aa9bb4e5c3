"""A smooth warp along the body: shift, stretch, twist and shear that change slowly along x."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.estimate.gaussians import robust_gaussians
from eutely.frame import Body
from eutely.kernel import kernel
from eutely.solver.softassign import Centres, centres_of, squared_distances

INTERVALS = 5
"""Pieces of the cubic splines along x."""

RIDGE = 1.0
"""Weight of the squared coefficients, in matches: keeps ends with few nuclei where they are."""

FREEDOM = 4.0
"""Degrees of freedom of the weights of matches."""

MARGIN = 0.05
"""By how much, in units of the body's length, the splines reach beyond the cells."""


class Span(NamedTuple):
    """Where the splines of a warp live.

    Attributes
    ----------
    low, high
        ends of the body along x; points beyond are moved like the end.
    width
        about the spread of y and z.
    smooth
        whether the body may bend, twist and stretch; otherwise warps are affine maps.
    """

    low: float
    high: float
    width: float
    smooth: bool = True


def span_of(means: NDArray[np.float64], body: Body) -> Span:
    """Return the span of cells at ``means`` (m, 3)."""
    length, width = body.size.tolist()
    low, high = means[:, 0].min() - MARGIN * length, means[:, 0].max() + MARGIN * length
    return Span(float(low), float(high), width, body.smooth)


@dataclass(frozen=True, eq=False)
class Warp:
    """The map ``x + basis(x) @ coefficients``: a cubic spline along x, or 1 and x, times 1, y, z.

    Attributes
    ----------
    span
        that the basis functions cover.
    coefficients
        (k, 3), a displacement in the unit of the points for each basis function.
    """

    span: Span
    coefficients: NDArray[np.float64]

    def __call__(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the points (n, 3) where the warp moves them."""
        return points + _basis(points, self.span) @ self.coefficients


def fit_warp(
    points: NDArray[np.float64],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    span: Span,
) -> Warp:
    """Fit the warp that brings points to targets by weighted least squares with a small ridge.

    Parameters
    ----------
    points, targets, weights
        (n, 3), (n, 3), (n,).
    span
        of the body.
    """
    if not len(points):  # nothing pulls, nothing moves
        points = targets = np.array([[span.low, 0.0, 0.0]])
        weights = np.ones(1)
    basis = _basis(points, span)
    weighted = basis * weights[:, None]
    normal = basis.T @ weighted
    normal[np.diag_indices_from(normal)] += RIDGE
    coefficients = np.linalg.solve(normal, weighted.T @ (targets - points))
    return Warp(span, np.asarray(coefficients, dtype=np.float64))


class Goal(NamedTuple):
    """Where cells are expected: (m, 3), how exactly, and the span of the body."""

    means: NDArray[np.float64]
    centres: Centres
    span: Span


def rewarp(
    posed: NDArray[np.float64],
    warped: NDArray[np.float64],
    nuclei: NDArray[np.int32],
    goal: Goal,
) -> NDArray[np.float64]:
    """Warp a specimen to its matched cells; matches weigh less the farther off they are.

    Parameters
    ----------
    posed, warped
        (n, 3), its nuclei before any warp, and after the last one.
    nuclei
        (m,), the nucleus of each cell, or -1.
    goal
        where cells are expected.
    """
    cells = np.flatnonzero(nuclei >= 0)
    matched = nuclei[cells]
    means = goal.means[cells]
    squared = squared_distances(means, goal.centres.whitening[cells], warped[matched])
    weights = (FREEDOM + 3) / (FREEDOM + squared)
    return fit_warp(posed[matched], means, weights, goal.span)(posed)


def warped_to_mean(cells: Cells, settings: Estimate) -> Cells:
    """Return cells with every specimen warped to the mean of all, in the frame of the poses."""
    mean = robust_gaussians(cells.places(), settings)
    goal = Goal(mean.means, centres_of(mean.covariances), span_of(mean.means, cells.body))
    rows = zip(cells.posed, cells.warped, cells.nuclei, strict=True)
    return centred(replace(cells, warped=tuple(rewarp(*row, goal) for row in rows)))


def centred(cells: Cells) -> Cells:
    """Return cells without the mean warp.

    Fits to noisy places shrink specimens a little towards the mean in every round. Taking the mean
    warp out again keeps the frame of the atlas that of the poses.
    """
    seen = cells.seen() > 0
    means = np.nanmean(cells.places()[:, seen], axis=0)
    goal = np.nanmean(cells.places(posed=True)[:, seen], axis=0)
    back = fit_warp(means, goal, np.ones(len(means)), span_of(means, cells.body))
    return replace(cells, warped=tuple(back(points) for points in cells.warped))


def _basis(points: NDArray[np.float64], span: Span) -> NDArray[np.float64]:
    low, high = span.low, span.high
    if not span.smooth:
        across = points[:, 1:] / span.width
        along = 2 * (points[:, :1] - low) / (high - low) - 1
        return np.concatenate([np.ones_like(along), along, across], axis=1)
    return np.asarray(_spline_basis(np.ascontiguousarray(points), low, high, span.width))


@kernel
def _spline_basis(points: Any, low: float, high: float, width: float) -> Any:
    """Return (n, 3 k): the k cubic B-splines at x, times 1, y / width, z / width.

    The knots are even, those at the ends four times; points beyond are taken to the end. The four
    splines that are not 0 follow from each other by de Boor's recursion.
    """
    k = INTERVALS + 3
    basis = np.zeros((len(points), 3 * k))
    step = (high - low) / INTERVALS
    values, left, right = np.empty(4), np.empty(4), np.empty(4)
    for n in range(len(points)):
        x = min(max(points[n, 0], low), high)
        piece = min(int((x - low) / step), INTERVALS - 1)
        values[0] = 1.0
        for degree in range(1, 4):
            left[degree] = x - (low + step * max(piece + 1 - degree, 0))
            right[degree] = low + step * min(piece + degree, INTERVALS) - x
            saved = 0.0
            for r in range(degree):
                part = values[r] / (right[r + 1] + left[degree - r])
                values[r] = saved + right[r + 1] * part
                saved = left[degree - r] * part
            values[degree] = saved
        y, z = points[n, 1] / width, points[n, 2] / width
        for r in range(4):
            basis[n, piece + r] = values[r]
            basis[n, k + piece + r] = values[r] * y
            basis[n, 2 * k + piece + r] = values[r] * z
    return basis
