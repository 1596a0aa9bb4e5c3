"""Pairs beyond the candidates of an assignment that may be better, by prices.

With prices u of centres and v of points, a pair of an assignment with cost - c0 < u + v would be
better. Costs grow with the distance, so that such a pair lies the nearer the lower v is. Points are
therefore looked at in layers: hardly any has a high price, and those are looked for far off; the
many others lie near.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import longer
from eutely.candidates import Candidates
from eutely.costs.grid import Grid, grid_of
from eutely.costs.near import box
from eutely.kernel import kernel
from eutely.solver.softassign import Centres, student

LAYERS = (0.02, 0.1, 0.4)
"""Shares of the points, those of the highest prices first, that make the layers."""

FEW = 700
"""Points that make one layer in any case."""


LARGEST = 600.0
"""Exponent up to which powers stand for sums of levels: far from the largest number there is."""

RISEN = 1e-9
"""Rise of a price that counts."""

Levels = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Of the centres (m,) and of the points (n,): a pair may be better if the cost of its distance is
below the sum of the two."""


class Search(NamedTuple):
    """What is the same for all prices.

    Attributes
    ----------
    places, centres
        (m, 3), and their covariances.
    grid, pinned
        of all points, and (n,), those that are pinned: no other pair may have them.
    freedom
        of the Student-t costs.
    end
        (m,), the largest squared distance of a pair.
    close
        cost by which pairs may be worse than a better one to be listed as well.
    """

    places: NDArray[np.float64]
    centres: Centres
    grid: Grid
    pinned: NDArray[np.bool_]
    freedom: float
    end: NDArray[np.float64]
    close: float


def risen(
    search: Search, before: Levels, levels: Levels, candidates: Candidates
) -> Iterator[tuple[Candidates, NDArray[np.float64]]]:
    """Yield pairs that are no candidates and may be better, and their squared distances.

    Only pairs of which a level has risen since ``before``: others were looked at then.
    """
    spare, values = levels
    rows, columns = (now > last + RISEN for last, now in zip(before, levels, strict=True))
    if rows.any():
        yield from _beyond(search, np.where(rows, spare, -np.inf), values, candidates)
    if columns.any() and not rows.all():
        fewer = search._replace(pinned=search.pinned | ~columns)
        yield from _beyond(fewer, np.where(rows, -np.inf, spare), values, candidates)


def _beyond(
    search: Search, spare: NDArray[np.float64], values: NDArray[np.float64], candidates: Candidates
) -> Iterator[tuple[Candidates, NDArray[np.float64]]]:
    """Yield pairs of centres and points that are not pinned, layer by layer."""
    highest = spare.max(initial=-np.inf)
    for points, grid in _layers(search, values):
        if highest + values[points].max() <= 0:
            continue
        starts, near, squares, _ = pairs_beyond(
            np.array(search.places, order="C"),
            search.centres.whitening,
            spare,
            search.end,
            grid,
            points,
            values[points],
            candidates.starts,
            candidates.points,
            float(search.freedom),
            search.close,
            len(values),
        )
        yield Candidates(starts, near), squares


def _layers(
    search: Search, values: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.int32], Grid]]:
    """Yield points that are not pinned, those of the highest prices first, and their grids."""
    places = search.grid.points
    if len(places) <= FEW and not search.pinned.any():
        yield np.arange(len(places), dtype=np.int32), search.grid
        return
    order = np.argsort(-values, kind="stable").astype(np.int32)
    order = order[~search.pinned[order]]
    shares = LAYERS if len(order) > FEW else ()
    for points in np.split(order, [int(share * len(order)) for share in shares]):
        if len(points):
            yield points, grid_of(places[points])


@kernel
def pairs_beyond(
    places: Any,
    whitening: Any,
    spare: Any,
    end: Any,
    grid: Any,
    numbers: Any,
    values: Any,
    starts: Any,
    items: Any,
    freedom: float,
    close: float,
    count: int,
) -> Any:
    """Return starts, points and squared distances of pairs, and how many were looked at."""
    m, n = len(places), len(numbers)
    new_starts = np.zeros(m + 1, np.int32)
    points = np.empty(4 * n + 64, np.int32)
    squares = np.empty(4 * n + 64)
    listed = np.full(count, -1, np.int32)
    highest = -np.inf
    for k in range(n):
        highest = max(highest, values[k])
    # A cost below a sum of two levels is a square below a product of their powers, which takes no
    # logarithm for each pair.
    powers = np.empty(n)
    for k in range(n):
        powers[k] = np.exp(2.0 * (values[k] - highest) / (freedom + 3))
    low, high = np.empty(3, np.int64), np.empty(3, np.int64)
    found, looked_at = 0, 0
    for i in range(m):
        most = spare[i] + highest
        if most > 0:
            for at in range(starts[i], starts[i + 1]):
                listed[items[at]] = i
            if freedom == np.inf:
                limit = 2.0 * (most + close)
            else:
                limit = freedom * np.expm1(min(2.0 * (most + close) / (freedom + 3), 700.0))
            limit = min(limit, end[i])
            exponent = 2.0 * (most + close) / (freedom + 3)
            power = np.exp(min(exponent, LARGEST)) * (1.0 + 1e-9)
            if found + n > len(points):
                room = 2 * len(points) + n
                points, squares = longer(points, found, room), longer(squares, found, room)
            w = whitening[i]
            a, b, c = w[0, 0], w[1, 0], w[1, 1]
            d, e, f = w[2, 0], w[2, 1], w[2, 2]
            px, py, pz = places[i, 0], places[i, 1], places[i, 2]
            box(places[i], w, np.sqrt(limit), grid, low, high)
            for gx in range(low[0], high[0] + 1):
                for gy in range(low[1], high[1] + 1):
                    if high[2] < low[2]:
                        continue
                    row = (gx * np.int64(grid.shape[1]) + gy) * grid.shape[2]
                    begin, stop = grid.starts[row + low[2]], grid.starts[row + high[2] + 1]
                    looked_at += stop - begin
                    for at in grid.order[begin:stop]:
                        j = np.uint32(at)
                        x = grid.points[j, 0] - px
                        y = grid.points[j, 1] - py
                        z = grid.points[j, 2] - pz
                        u, v = a * x, b * x + c * y
                        t = d * x + e * y + f * z
                        square = u * u + v * v + t * t
                        if square > limit or listed[np.uint32(numbers[j])] == i:
                            continue
                        if freedom < np.inf and exponent < LARGEST:
                            near = 1.0 + square / freedom < power * powers[j]
                        else:
                            near = student(square, freedom) < spare[i] + values[j] + close
                        if near:
                            points[found] = numbers[j]
                            squares[found] = square
                            found += 1
        new_starts[i + 1] = found
    return new_starts, longer(points, found, found), longer(squares, found, found), looked_at
