"""Bent bodies made straight: along their centre line, which is found from the nuclei alone."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import KDTree

from eutely.pose.body import body
from eutely.specimen import Specimen

FEWEST_NUCLEI = 100
"""Nuclei that a bend needs to be told from their scatter."""

BENT = 20.0
"""Angle between two parts of the body, in degrees, from which it is made straight: a warp follows
smaller bends by itself."""

LONG = 8.0
"""Spread along the centre line, in spreads across it, that a body needs to have one. Worms have 17
and more; heads (3 to 6) are deformed rather than bent, and in a round embryo the line winds (at
most 5)."""

NEIGHBOURS = 6
"""Nearest nuclei to which the way along the body may lead on; more where it has gaps."""

COARSE, FINE = (5, 0.1), (12, 0.02)
"""Pieces of the cubic splines of the centre line, and the weight of their second differences
relative to that of the nuclei of a piece: to tell a bend, and to straighten the body."""

POINTS = 401
"""Points that stand for the line."""

ENDS = 20
"""Points at each end where few nuclei tell the direction, so that it does not count as a bend."""

ROUNDS = 10
"""Fits of the line at most; each takes nuclei where the last one passes them."""

SETTLED = 1e-3
"""Change of the nuclei's places along the line, in lengths of the body, that ends the fits."""


TINY = 1e-12
"""Length of a step of a line that stands still."""


class Line(NamedTuple):
    """A centre line: its points, how far along it they lie, and the axes of its cross-sections.

    ``points`` (k, 3), ``along`` (k,), ``axes`` (k, 3, 3): rows forward and two across, which turn
    no more about the line than it forces them to.
    """

    points: NDArray[np.float64]
    along: NDArray[np.float64]
    axes: NDArray[np.float64]


def straighten(specimen: Specimen) -> Specimen:
    """Return ``specimen`` with its centre line made straight, or as it is unless it is bent.

    A nucleus goes from its place along and across the centre line to the same place of the x axis,
    and its ellipsoid turns along. The line is a smooth curve through the middle of the nuclei,
    found from the shortest ways between neighbours; so a body may lie in curves, even in a circle,
    but must not touch itself. A round body has no centre line and stays as it is.

    Parameters
    ----------
    specimen
        in any pose. Its names, ids, radii and order do not matter.
    """
    if len(specimen) < FEWEST_NUCLEI:
        return specimen
    points = body(specimen)
    if len(points) < FEWEST_NUCLEI:
        return specimen
    line = _centre_line(points, _way(points), *COARSE)
    along = _unrolled(line, points)[1]
    if _angle(line) < BENT or _length(along) < LONG:
        return specimen
    line = _centre_line(points, along[:, 0], *FINE)
    near, straight = _unrolled(line, specimen.centroids)
    turns = line.axes[near].transpose(0, 2, 1)
    return replace(
        specimen,
        centroids=straight,
        axes=None if specimen.axes is None else specimen.axes @ turns,
    )


def _centre_line(
    points: NDArray[np.float64], along: NDArray[np.float64], pieces: int, stiffness: float
) -> Line:
    """Fit the line to the nuclei of a body, told about how far along it they lie: (n,)."""
    for _ in range(ROUNDS):
        line = _fitted(along, points, pieces, stiffness)
        before, along = along, _unrolled(line, points)[1][:, 0]
        if np.ptp(along - before) < SETTLED * line.along[-1]:
            break
    return line


def _way(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n,), how far along the body nuclei lie, by shortest ways between neighbours."""
    count, reach = len(points), NEIGHBOURS
    while True:
        distances, nearest = map(np.asarray, KDTree(points).query(points, range(2, reach + 2)))
        rows = np.repeat(np.arange(count), reach)
        ways = csr_array((distances.ravel(), (rows, nearest.ravel())), (count, count))
        if connected_components(ways, directed=False)[0] == 1:
            break
        reach = min(2 * reach, count - 1)

    def ways_from(nucleus: np.intp) -> NDArray[np.float64]:
        found = dijkstra(ways, directed=False, indices=np.array([nucleus]))
        return np.asarray(found, dtype=np.float64).ravel()

    one = ways_from(np.intp(0)).argmax()
    other = ways_from(one).argmax()
    return (ways_from(one) - ways_from(other)) / 2


def _fitted(
    along: NDArray[np.float64], points: NDArray[np.float64], pieces: int, stiffness: float
) -> Line:
    """Fit smooth splines to the coordinates of nuclei, told how far along the body they lie."""
    low, high = along.min(), along.max()
    knots = np.concatenate([[low] * 3, np.linspace(low, high, pieces + 1), [high] * 3])
    basis = BSpline.design_matrix(along, knots, 3).toarray()
    bends = np.diff(np.eye(basis.shape[1]), 2, axis=0)
    weight = stiffness * len(points) / basis.shape[1]
    fit = np.linalg.solve(basis.T @ basis + weight * bends.T @ bends, basis.T @ points)
    line = BSpline(knots, fit, 3)(np.linspace(low, high, POINTS))
    steps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    forward = np.gradient(line, axis=0)
    forward /= np.maximum(np.linalg.norm(forward, axis=1, keepdims=True), TINY)
    across = np.empty_like(forward)
    last = np.eye(3)[np.abs(forward[0]).argmin()]
    for at, ahead in enumerate(forward):
        last = last - (last @ ahead) * ahead
        last /= np.linalg.norm(last)
        across[at] = last
    axes = np.stack([forward, across, np.cross(forward, across)], axis=1)
    return Line(line, np.concatenate([[0.0], np.cumsum(steps)]), axes)


def _unrolled(
    line: Line, points: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the nearest point of the line for each nucleus, and its place along and across."""
    near = np.asarray(KDTree(line.points).query(points)[1])
    away = points - line.points[near]
    straight = np.einsum("nij,nj->ni", line.axes[near], away)
    straight[:, 0] += line.along[near]
    return near, straight


def _angle(line: Line) -> float:
    """Return the largest angle between two parts of the line, in degrees, its ends left out."""
    forward = line.axes[ENDS:-ENDS, 0]
    return float(np.degrees(np.arccos(np.clip((forward @ forward.T).min(), -1.0, 1.0))))


def _length(along: NDArray[np.float64]) -> float:
    """Return the spread of nuclei along the line in spreads across it, from their places (n, 3)."""
    spread = along.var(axis=0)
    return float(np.sqrt(spread[0] / spread[1:].mean()))
