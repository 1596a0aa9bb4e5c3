"""The cheapest one-to-one assignment of points to centres, by candidates that are proved enough.

Candidates are the points within some distance of each centre. The prices u of centres and v of
points that come with the cheapest assignment of candidates (see `eutely.solver.lap_dense`) tell
what else could improve it: a pair with cost - c0 < u + v. Costs grow with the distance, so that
such a pair lies within a distance that follows from u and the highest v. Where candidates reach
less far, all pairs up to there are looked at. If one would be better, candidates are extended and
the assignment starts again from its prices; in the end it is the cheapest of all pairs, although
hardly any of them was looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.candidates import Candidates
from eutely.costs.grid import Grid
from eutely.costs.near import grid_or_none, within
from eutely.solver.lap_sparse import lap_sparse, transpose
from eutely.solver.softassign import CERTAIN, Centres, Rules, square_of, student_costs

FIRST = 28.0
"""Candidates of a centre at first, where points are as dense as anywhere in the body. With fewer,
they are extended more often, which takes longer."""

WIDER = 20.0
"""Factor by which squared distances are extended at most: the next prices may ask for less."""

ROUNDING = 1e-10
"""Rounding of prices, which must not pass for a better pair."""


class Assigned(NamedTuple):
    """The cheapest assignment, and what proves it.

    Attributes
    ----------
    partners
        (m,) int32, the point of each centre, or -1.
    cost
        of the pairs; an unmatched centre adds its c0, where there are more centres than points only
        those in excess of the number that must stay unmatched.
    u, v
        (m,), (n,) float64, prices of centres and points, all <= 0: cost - c0 >= u + v for every
        pair, with equality for pairs of the assignment.
    """

    partners: NDArray[np.int32]
    cost: float
    u: NDArray[np.float64]
    v: NDArray[np.float64]


class _Priced(NamedTuple):
    """Candidates, the centre and the squared distance of each, its cost, and its cost less c0."""

    near: Candidates
    owners: NDArray[np.int32]
    squares: NDArray[np.float64]
    costs: NDArray[np.float64]
    gains: NDArray[np.float64]


def assign(
    places: NDArray[np.float64],
    centres: Centres,
    points: NDArray[np.float64],
    rules: Rules,
) -> tuple[NDArray[np.int32], float]:
    """Return the cheapest assignment (m,) of points to centres, -1 for none, and its cost.

    Parameters: see `proved`, which returns the proof as well.
    """
    assigned = proved(places, centres, points, rules)
    return assigned.partners, assigned.cost


def proved(
    places: NDArray[np.float64],
    centres: Centres,
    points: NDArray[np.float64],
    rules: Rules,
) -> Assigned:
    """Return the cheapest assignment of points (n, 3) to centres at ``places`` (m, 3).

    Parameters
    ----------
    places, centres, points
        where the centres are, their covariances, and the points.
    rules
        costs apart from those of places.
    """
    m, n = len(places), len(points)
    grid = grid_or_none(points)
    c0 = np.broadcast_to(np.asarray(rules.c0, dtype=np.float64), m)
    least = 0.0 if rules.extra is None else rules.extra.least
    # By how much the cost of a place may exceed the height of the centre before no match pays.
    most = c0 + centres.heights - least
    free = np.ones(m, bool)
    if rules.pins is not None:
        free[rules.pins[rules.pins >= 0]] = False

    def priced(limits: NDArray[np.float64]) -> _Priced:
        near, squares = within(places, centres.whitening, limits, grid, rules.pins)
        owners = near.centres
        costs = student_costs(squares, centres.heights[owners], rules.freedom)
        if rules.extra is not None:
            costs += rules.extra.on(near)
        gains = np.where(free[owners], costs - c0[owners], -CERTAIN)
        return _Priced(near, owners, squares, costs, gains)

    limits = np.minimum(square_of(most, rules.freedom), _first(centres, grid))
    v = np.zeros(n)
    while True:
        pairs = priced(limits)
        near = pairs.near
        owners, columns, items = transpose(near.starts, near.points, n)
        chosen, u = lap_sparse(near.starts, near.points, owners, columns, items, pairs.gains, v)
        highest = float(v.max(initial=-np.inf))
        needed = square_of(most + u + highest, rules.freedom)
        short = free & (needed > limits)
        if not n or not short.any():
            break
        others = priced(np.where(short, needed, -1.0))
        prices = u[others.owners] + v[others.near.points]
        better = others.gains < prices - ROUNDING * (1 + np.abs(prices))
        if not (better & (others.squares > limits[others.owners])).any():
            break
        limits = np.where(short, np.minimum(needed, WIDER * limits), limits)
    matched = chosen >= 0
    partners = np.full(m, -1, np.int32)
    partners[matched] = near.points[chosen[matched]]
    spare = np.sort(c0[~matched])[max(m - n, 0) :]
    return Assigned(partners, float(pairs.costs[chosen[matched]].sum() + spare.sum()), u, v)


def _first(centres: Centres, grid: Grid | None) -> NDArray[np.float64]:
    """Return (m,), the squared distances within which about `FIRST` points are expected."""
    if grid is None:
        return np.zeros(len(centres.heights))
    occupied = int(np.count_nonzero(np.diff(grid.starts)))
    density = len(grid.points) / (occupied * float(grid.size[0]) ** 3)
    volumes = 4 / 3 * np.pi * np.exp(-centres.heights)
    return np.asarray((FIRST / (density * volumes)) ** (2 / 3))


def assign_sparse(pairs: Candidates, gains: NDArray[np.float64], count: int) -> NDArray[np.int32]:
    """Return the cheapest assignment (m,) of candidates, -1 for none.

    Parameters
    ----------
    pairs
        of m centres and ``count`` points; no others are possible.
    gains
        (c,), their costs relative to leaving both unmatched.
    count
        number of points.
    """
    owners, columns, items = transpose(pairs.starts, pairs.points, count)
    chosen, _ = lap_sparse(
        pairs.starts, pairs.points, owners, columns, items, gains, np.zeros(count)
    )
    partners = np.full(len(pairs.starts) - 1, -1, np.int32)
    partners[chosen >= 0] = pairs.points[chosen[chosen >= 0]]
    return partners
