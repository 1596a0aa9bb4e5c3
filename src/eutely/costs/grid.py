"""Points in cubic cells, so that near points are found without examining all."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import bare, kernel

CROWD, FULL = 4.0, 3.0
"""Mean number of points per cell of a box that they fill evenly, and per cell that has any."""

ROOMY = 16
"""Cells per point at most: a body need not fill its box."""


class Grid(NamedTuple):
    """Points sorted by cell.

    Attributes
    ----------
    points
        (n, 3) float64.
    order
        (n,) int32, indices of the points, cell by cell.
    starts
        (cells + 1,) int32, where each cell starts in ``order``.
    corner
        (3,) float64, lowest corner of the first cell.
    size
        (1,) float64, edge length of a cell.
    shape
        (3,) int32, number of cells along each axis.
    """

    points: NDArray[np.float64]
    order: NDArray[np.int32]
    starts: NDArray[np.int32]
    corner: NDArray[np.float64]
    size: NDArray[np.float64]
    shape: NDArray[np.int32]


@kernel
def _cells(points: Any, corner: Any, span: Any) -> Any:
    """Sort points into cells of about ``CROWD`` points in the box ``corner`` + ``span``."""
    n = len(points)
    longest = max(span[0], max(span[1], span[2]))
    # Along axes that are thinner than a cell there is only one cell, so they do not count.
    size = longest
    for _ in range(4):
        volume, axes = 1.0, 0
        for k in range(3):
            if span[k] >= size:
                volume *= span[k]
                axes += 1
        if axes:
            size = (volume * CROWD / n) ** (1.0 / axes)
    if not size > 0.0:
        size = 1.0
    shape = np.empty(3, dtype=np.int32)
    cell = np.empty(n, dtype=np.int32)
    starts = np.zeros(1, dtype=np.int32)
    for attempt in range(4):
        for k in range(3):
            shape[k] = min(int(span[k] / size) + 1, 1 << 20)
        starts = np.zeros(np.int64(shape[0]) * shape[1] * shape[2] + 1, dtype=np.int32)
        occupied = 0
        for i in range(n):
            at = 0
            for k in range(3):
                at = at * shape[k] + min(int((points[i, k] - corner[k]) / size), shape[k] - 1)
            cell[i] = at
            occupied += starts[at + 1] == 0
            starts[at + 1] += 1
        # Smaller cells where points fill a part of the box only, but not too many of them.
        factor = max((FULL * occupied / n) ** (1.0 / 3.0), 0.5)
        cells = 1.0
        for k in range(3):
            cells *= np.floor(span[k] / (factor * size)) + 1.0
        if attempt == 3 or factor > 0.9 or cells > ROOMY * n + 64:
            break
        size *= factor
    for at in range(len(starts) - 1):
        starts[at + 1] += starts[at]
    order = np.empty(n, dtype=np.int32)
    fill = np.empty(len(starts), dtype=np.int32)
    for at in range(len(starts)):
        fill[at] = starts[at]
    for i in range(n):
        order[fill[cell[i]]] = i
        fill[cell[i]] += 1
    sizes = np.empty(1)
    sizes[0] = size
    return order, starts, sizes, shape


def grid_of(points: NDArray[np.float64]) -> Grid:
    """Return the grid of (n, 3) points, n > 0."""
    points = np.array(points, dtype=np.float64, order="C")  # writable: one type for kernels
    corner = points.min(axis=0)
    order, starts, size, shape = _cells(points, corner, points.max(axis=0) - corner)
    return Grid(points, order, starts, corner, size, shape)


@bare
def shell(grid: Any, point: Any, radius: int, out: Any) -> Any:
    """Write to ``out`` the indices of points in cells at Chebyshev distance ``radius``.

    Returns
    -------
    count
        number of points.
    reach
        distance within which all points lie in shells up to this one; inf if no shell is left.
    """
    size = grid.size[0]
    home = (
        int(np.floor((point[0] - grid.corner[0]) / size)),
        int(np.floor((point[1] - grid.corner[1]) / size)),
        int(np.floor((point[2] - grid.corner[2]) / size)),
    )
    count = 0
    reach = np.inf
    for k in range(3):
        low = point[k] - (grid.corner[k] + (home[k] - radius) * size)
        high = grid.corner[k] + (home[k] + radius + 1) * size - point[k]
        if home[k] - radius > 0:
            reach = min(reach, low)
        if home[k] + radius < grid.shape[k] - 1:
            reach = min(reach, high)
    first = max(home[0] - radius, 0)
    last = min(home[0] + radius, grid.shape[0] - 1)
    for x in range(first, last + 1):
        face = abs(x - home[0]) == radius
        for y in range(max(home[1] - radius, 0), min(home[1] + radius, grid.shape[1] - 1) + 1):
            whole = face or abs(y - home[1]) == radius
            step = 1 if whole or radius == 0 else 2 * radius
            z = home[2] - radius
            if step == 1:
                z = max(z, 0)
            while z <= min(home[2] + radius, grid.shape[2] - 1):
                if z >= 0:
                    cell = (x * grid.shape[1] + y) * grid.shape[2] + z
                    for k in range(grid.starts[cell], grid.starts[cell + 1]):
                        out[count] = grid.order[k]
                        count += 1
                z += step
    return count, reach


@kernel
def _nearest(grid: Any, wanted: int) -> Any:
    """Return (n, wanted) int32, the nearest other points of each point, -1 for none."""
    n = len(grid.points)
    nearest = np.full((n, wanted), -1, dtype=np.int32)
    distances = np.empty(wanted)
    others = np.empty(n, dtype=np.int32)
    for i in range(n):
        for k in range(wanted):
            distances[k] = np.inf
        radius = 0
        while True:
            count, reach = shell(grid, grid.points[i], radius, others)
            for k in range(count):
                j = others[k]
                square = 0.0
                for axis in range(3):
                    square += (grid.points[i, axis] - grid.points[j, axis]) ** 2
                if j != i and square < distances[wanted - 1]:
                    at = wanted - 1
                    while at > 0 and distances[at - 1] > square:
                        distances[at] = distances[at - 1]
                        nearest[i, at] = nearest[i, at - 1]
                        at -= 1
                    distances[at] = square
                    nearest[i, at] = j
            if reach == np.inf or reach * reach >= distances[wanted - 1]:
                break
            radius += 1
    return nearest


@kernel
def _symmetric(nearest: Any) -> Any:
    """Return starts and ends of the graph that joins i and j if either lists the other."""
    n, wanted = nearest.shape
    starts = np.zeros(n + 1, dtype=np.int32)
    for i in range(n):
        for k in range(wanted):
            j = np.int64(nearest[i, k])
            if j >= 0:
                starts[i + 1] += 1
                if not _lists(nearest, j, i):
                    starts[j + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    ends = np.empty(starts[n], dtype=np.int32)
    fill = np.empty(n + 1, dtype=np.int32)
    for i in range(n + 1):
        fill[i] = starts[i]
    for i in range(n):
        for k in range(wanted):
            j = np.int64(nearest[i, k])
            if j >= 0:
                _insert(ends, starts[i], fill, i, j)
                if not _lists(nearest, j, i):
                    _insert(ends, starts[j], fill, j, i)
    return starts, ends


@bare
def _lists(nearest: Any, i: Any, j: Any) -> bool:
    listed = False
    for k in range(nearest.shape[1]):
        listed |= nearest[i, k] == j
    return listed


@bare
def _insert(ends: Any, first: Any, fill: Any, i: Any, j: Any) -> None:
    """Insert j into the ascending list of i."""
    at = fill[i]
    while at > first and ends[at - 1] > j:
        ends[at] = ends[at - 1]
        at -= 1
    ends[at] = j
    fill[i] += 1


def neighbour_graph(
    points: NDArray[np.float64], neighbours: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the symmetric graph of nearest neighbours.

    Parameters
    ----------
    points
        (n, 3).
    neighbours
        number of nearest points to which each point is joined.

    Returns
    -------
    starts, ends
        (n + 1,), (e,) int32, the neighbours of each point, ascending.
    """
    wanted = min(neighbours, len(points) - 1)
    if wanted <= 0:
        return np.zeros(len(points) + 1, dtype=np.int32), np.empty(0, dtype=np.int32)
    starts, ends = _symmetric(_nearest(grid_of(points), wanted))
    return starts, ends
