"""Points near centres, by a grid: all that work on candidates starts from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import longer
from eutely.candidates import Candidates
from eutely.costs.grid import Grid, grid_of
from eutely.kernel import bare, kernel

FREE, NOBODYS = -1, -2
"""Pins of points that any centre may have, and of points that no centre may have."""

ROOM = 16
"""Pairs per centre for which memory is taken at first."""


def grid_or_none(points: NDArray[np.float64]) -> Grid | None:
    """Return the grid of points (n, 3); None where there are none."""
    return grid_of(points) if len(points) else None


def within(
    places: NDArray[np.float64],
    whitening: NDArray[np.float64],
    limits: NDArray[np.float64],
    grid: Grid | None,
    pins: NDArray[np.int32] | None = None,
) -> tuple[Candidates, NDArray[np.float64]]:
    """Return the points near each centre, and their squared Mahalanobis distances: (c,).

    Parameters
    ----------
    places
        (m, 3), the centres.
    whitening
        (m, 3, 3) lower triangles, W with W S W' = 1 for the covariance S of a centre.
    limits
        (m,), largest squared distance of each centre; inf for all points, below 0 for none.
    grid
        of the points, from `grid_or_none`.
    pins
        (n,), the centre that must have each point, `FREE` or `NOBODYS`; or None. A pinned centre
        has its point as the only candidate, wherever it lies.
    """
    if grid is None:
        return Candidates(np.zeros(len(places) + 1, np.int32), np.zeros(0, np.int32)), np.zeros(0)
    if pins is None:
        pins = np.full(len(grid.points), FREE, np.int32)
    starts, points, squares, _ = pairs_within(
        np.array(places, order="C"), whitening, np.array(limits), grid, np.array(pins)
    )
    return Candidates(starts, points), squares


@kernel
def pairs_within(places: Any, whitening: Any, limits: Any, grid: Any, pins: Any) -> Any:
    """Return starts, points and squared distances of near pairs, and how many were looked at."""
    m, n = len(places), len(grid.points)
    starts = np.zeros(m + 1, np.int32)
    items = np.empty(ROOM * m + n + 1, np.int32)
    squares = np.empty(ROOM * m + n + 1)
    pinned = np.full(m, -1, np.int32)
    for j in range(n):
        if pins[j] >= 0:
            pinned[pins[j]] = j
    low, high = np.empty(3, np.int64), np.empty(3, np.int64)
    end, looked_at = 0, 0
    for i in range(m):
        w = whitening[i]
        a, b, c = w[0, 0], w[1, 0], w[1, 1]
        d, e, f = w[2, 0], w[2, 1], w[2, 2]
        px, py, pz = places[i, 0], places[i, 1], places[i, 2]
        if end + n >= len(items):
            room = 2 * len(items) + n + 1
            items, squares = longer(items, end, room), longer(squares, end, room)
        if pinned[i] >= 0:
            q = grid.points[pinned[i]]
            x, y, z = q[0] - px, q[1] - py, q[2] - pz
            u, v = a * x, b * x + c * y
            t = d * x + e * y + f * z
            items[end] = pinned[i]
            squares[end] = u * u + v * v + t * t
            end += 1
            starts[i + 1] = end
            continue
        limit = limits[i]
        if not limit >= 0:
            starts[i + 1] = end
            continue
        box(places[i], w, np.sqrt(limit), grid, low, high)
        for gx in range(low[0], high[0] + 1):
            for gy in range(low[1], high[1] + 1):
                if high[2] < low[2]:
                    continue
                row = (gx * np.int64(grid.shape[1]) + gy) * grid.shape[2]
                begin, stop = grid.starts[row + low[2]], grid.starts[row + high[2] + 1]
                looked_at += stop - begin
                for j in grid.order[begin:stop]:
                    at = np.uint32(j)  # unsigned, so that it is not compared with 0
                    x = grid.points[at, 0] - px
                    y = grid.points[at, 1] - py
                    z = grid.points[at, 2] - pz
                    u, v = a * x, b * x + c * y
                    t = d * x + e * y + f * z
                    square = u * u + v * v + t * t
                    # Written in any case: whether a point is near enough cannot be predicted.
                    items[end] = j
                    squares[end] = square
                    end += (square <= limit) & (pins[at] == FREE)
        starts[i + 1] = end
    return starts, longer(items, end, end), longer(squares, end, end), looked_at


@bare
def box(place: Any, whitening: Any, reach: float, grid: Any, low: Any, high: Any) -> None:
    """Write the first and last cells of a grid, along each axis, that an ellipsoid may touch.

    ``reach`` is its size in standard deviations; ``whitening`` see `within`.
    """
    a, b, c = whitening[0, 0], whitening[1, 0], whitening[1, 1]
    d, e, f = whitening[2, 0], whitening[2, 1], whitening[2, 2]
    # Half the widths of the box around the ellipsoid: rows of the inverse of the triangle.
    ia, ic, ig = 1.0 / a, 1.0 / c, 1.0 / f
    ib = -b * ia * ic
    ie = -e * ic * ig
    ih = -(d * ia + e * ib) * ig
    spread = (abs(ia), np.sqrt(ib * ib + ic * ic), np.sqrt(ih * ih + ie * ie + ig * ig))
    for k in range(3):
        half = reach * spread[k] * (1.0 + 1e-9)
        first = (place[k] - half - grid.corner[k]) / grid.size[0]
        last = (place[k] + half - grid.corner[k]) / grid.size[0]
        most = np.float64(grid.shape[k] - 1)
        low[k] = np.int64(np.floor(max(min(first, most + 1.0), 0.0)))
        high[k] = np.int64(np.floor(max(min(last, most), -1.0)))


@kernel
def nearest_squares(grid: Any, points: Any) -> Any:
    """Return (n,) float64, squared distances of points (n, 3) to the nearest point of a grid."""
    squares = np.empty(len(points))
    low, high = np.empty(3, np.int64), np.empty(3, np.int64)
    size = grid.size[0]
    for i in range(len(points)):
        best, width = np.inf, 0.5 * size
        while True:
            # All points within this width lie in the box; cells along its last axis are one run.
            whole = True
            for k in range(3):
                first = np.floor((points[i, k] - width - grid.corner[k]) / size)
                last = np.floor((points[i, k] + width - grid.corner[k]) / size)
                most = np.float64(grid.shape[k] - 1)
                whole &= first <= 0.0 and last >= most
                low[k] = np.int64(max(min(first, most), 0.0))
                high[k] = np.int64(max(min(last, most), 0.0))
            for gx in range(low[0], high[0] + 1):
                for gy in range(low[1], high[1] + 1):
                    row = (gx * np.int64(grid.shape[1]) + gy) * grid.shape[2]
                    for j in grid.order[grid.starts[row + low[2]] : grid.starts[row + high[2] + 1]]:
                        at = np.uint32(j)
                        x = grid.points[at, 0] - points[i, 0]
                        y = grid.points[at, 1] - points[i, 1]
                        z = grid.points[at, 2] - points[i, 2]
                        square = x * x + y * y + z * z
                        best = square if square < best else best
            if whole or best <= width * width:
                break
            width = 2.0 * width if best == np.inf else np.sqrt(best) * (1.0 + 1e-9)
        squares[i] = best
    return squares
