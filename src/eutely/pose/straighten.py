"""Bent bodies made straight along their centre line, which follows from the nuclei alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import KDTree

from eutely.pose.pose import body
from eutely.specimen import Specimen

FEWEST_TO_BEND = 100
"""Nuclei needed to distinguish a bend from the scatter of the nuclei."""

BENT = 250.0
"""Angle between two parts of the body, in degrees, times its elongation (see `LONG`) from which it
is made straight: of two bodies with the same bend, the middle of the longer one is farther off, and
its direction is better known. Straight worms have up to 90, their halves 150, shorter parts 230; a
worm bent by 16 degrees has 250. The warp copes with smaller bends."""

LONG = 8.0
"""Ratio of the standard deviations along and across the centre line from which a body has one.
Worms have 17 and more; heads (3 to 6) are deformed rather than bent, and in a round embryo the line
winds (at most 5)."""

NEIGHBOURS = 6
"""Neighbours of each nucleus in the graph of paths along the body; more where it has gaps."""

COARSE, FINE = (5, 0.1), (12, 0.02)
"""Pieces of the cubic splines of the centre line, and weight of their second differences relative
to that of the nuclei of a piece: coarse to detect a bend, fine to straighten the body."""

POINTS = 401
"""Points by which the line is represented."""

ENDS = 20
"""Points at each end that do not count as a bend: few nuclei determine the direction there."""

ROUNDS = 10
"""Fits of the line at most; each uses the positions of nuclei along the line before."""

SETTLED = 1e-3
"""Change of the positions along the line, in body lengths, below which the fits end."""

TINY = 1e-12
"""Shortest step along the line, and lowest relative variance across it: avoids a division by
zero."""


class Line(NamedTuple):
    """A centre line: its points, their arc lengths, and the axes of its cross-sections.

    ``points`` (k, 3), ``along`` (k,), ``axes`` (k, 3, 3): the rows point forward and in two
    directions across, which rotate about the line no more than its course requires.
    """

    points: NDArray[np.float64]
    along: NDArray[np.float64]
    axes: NDArray[np.float64]


def straighten(specimen: Specimen) -> Specimen:
    """Return ``specimen`` with its centre line made straight; unchanged unless it is bent.

    A nucleus moves from its position along and across the centre line to the same position along
    and across the x axis, and its ellipsoid rotates with it. The line is a smooth curve through the
    middle of the nuclei, derived from the shortest paths between neighbours; so a body may lie in
    curves, even in a circle, but must not touch itself. A round body has no centre line and stays
    unchanged.

    Parameters
    ----------
    specimen
        in any pose. Its names, ids, radii and the order of its nuclei do not matter.
    """
    if len(specimen) < FEWEST_TO_BEND:
        return specimen
    points = body(specimen)
    if len(points) < FEWEST_TO_BEND:
        return specimen
    line = _centre_line(points, _along(points), *COARSE)
    straight = _unrolled(line, points)[1]
    if (long := _elongation(straight)) < LONG or _angle(line) * long < BENT:
        return specimen
    line = _centre_line(points, straight[:, 0], *FINE)
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
    """Fit the line to nuclei (n, 3), from their approximate positions ``along`` it, (n,)."""
    for _ in range(ROUNDS):
        line = _fitted(along, points, pieces, stiffness)
        before, along = along, _unrolled(line, points)[1][:, 0]
        if np.ptp(along - before) < SETTLED * line.along[-1]:
            break
    return line


def _along(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n,), the position of each nucleus along the body, by shortest paths in a graph."""
    count, reach = len(points), NEIGHBOURS
    while True:
        distances, nearest = map(np.asarray, KDTree(points).query(points, range(2, reach + 2)))
        starts = np.arange(0, count * reach + 1, reach, dtype=np.int32)
        columns = nearest.ravel().astype(np.int32)  # as the lowest SciPy wants them
        graph = csr_array((distances.ravel(), columns, starts), (count, count))
        if connected_components(graph, directed=False)[0] == 1:
            break
        reach = min(2 * reach, count - 1)

    def lengths_from(nucleus: np.intp) -> NDArray[np.float64]:
        lengths = dijkstra(graph, directed=False, indices=np.array([nucleus]))
        return np.asarray(lengths, dtype=np.float64).ravel()

    first_end = lengths_from(np.intp(0)).argmax()
    from_first = lengths_from(first_end)
    return (from_first - lengths_from(from_first.argmax())) / 2


def _fitted(
    along: NDArray[np.float64], points: NDArray[np.float64], pieces: int, stiffness: float
) -> Line:
    """Fit smooth splines to nuclei (n, 3) as functions of their positions ``along`` the body."""
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
    across = _carried(forward)
    axes = np.stack([forward, across, np.cross(forward, across)], axis=1)
    return Line(line, np.concatenate([[0.0], np.cumsum(steps)]), axes)


def _carried(forward: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (k, 3), unit vectors across the directions (k, 3) of a line, without twist."""
    x, y, z = np.eye(3)[np.abs(forward[0]).argmin()].tolist()
    across = []
    for ahead in forward.tolist():  # plain numbers: each vector follows from the one before
        part = x * ahead[0] + y * ahead[1] + z * ahead[2]
        x, y, z = x - part * ahead[0], y - part * ahead[1], z - part * ahead[2]
        length = math.sqrt(x * x + y * y + z * z)
        x, y, z = x / length, y / length, z / length
        across.append((x, y, z))
    return np.array(across)


def _unrolled(
    line: Line, points: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the nearest line point of each nucleus, (n,), and its straight position, (n, 3)."""
    near = np.asarray(KDTree(line.points).query(points)[1])
    away = points - line.points[near]
    straight = np.einsum("nij,nj->ni", line.axes[near], away)
    straight[:, 0] += line.along[near]
    return near, straight


def _angle(line: Line) -> float:
    """Return the largest angle between two parts of the line, in degrees, without its ends."""
    forward = line.axes[ENDS:-ENDS, 0]
    return float(np.degrees(np.arccos(np.clip((forward @ forward.T).min(), -1.0, 1.0))))


def _elongation(straight: NDArray[np.float64]) -> float:
    """Return the ratio of the standard deviations of nuclei (n, 3) along and across the line."""
    variances = straight.var(axis=0)
    across = max(float(variances[1:].mean()), TINY * float(variances[0]), TINY)
    return float(np.sqrt(variances[0] / across))
