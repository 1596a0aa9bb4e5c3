"""The cheapest one-to-one assignment of points to centres, by candidates that are proved enough.

Candidates are the points within some distance of each centre. The prices u of centres and v of
points that come with the cheapest assignment of candidates (see `eutely.solver.lap_dense`) tell
what else could improve it: a pair with cost - c0 < u + v. Costs grow with the distance, so that
such a pair lies within a distance that follows from u and v. Pairs up to there are looked at; those
that would be better become candidates, and the assignment starts again from its prices. In the end
it is the cheapest of all pairs, although hardly any of them was looked at. In large bodies a pair
has an end: a point beyond the `NEAREST` ones of a centre is never its match.

Prices from which a linear assignment starts, by an auction that ends near the cheapest one.

Where many rows want the same columns, as in a wrong pose, shortest augmenting paths are long. Bids
that exceed what a column is worth by a fixed step settle most of this competition in a third of the
time; the assignment then only corrects what the step has left open.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.candidates import Candidates
from eutely.costs.grid import Grid, grid_of
from eutely.costs.near import FREE, within
from eutely.kernel import kernel
from eutely.solver.beyond import Search, risen
from eutely.solver.lap_sparse import lap_sparse, transpose
from eutely.solver.softassign import CERTAIN, Centres, Rules, square_of, student_costs

STEP = 0.2
"""Cost by which a bid exceeds its worth. Half of it or twice as much takes as long; without any,
two rows that want two equal columns would never stop."""

BIDS = 20
"""Mean bids per row at most; an auction in a wrong pose takes 7 to 10."""


@kernel
def first_prices(starts: Any, labels: Any, costs: Any, width: int) -> Any:
    """Return (width,) float64, prices <= 0 of columns, to start `lap_sparse` from.

    Parameters
    ----------
    starts, labels
        (n + 1,) and (c,) int32, the candidates of each row, and the column of each.
    costs
        (c,) float64, cost of each candidate; a row may stay unassigned at cost 0.
    width
        number of columns.
    """
    n = len(starts) - 1
    v = np.zeros(width)
    owners = np.full(width, -1, np.int32)
    waiting = np.empty(n, np.int32)
    for i in range(n):
        waiting[i] = n - 1 - i
    count, bids = n, BIDS * n
    while count > 0 and bids > 0:
        bids -= 1
        count -= 1
        row = waiting[count]
        first, last = starts[row], starts[row + 1]
        prices, columns = costs[first:last], labels[first:last]
        best, second, at = np.inf, 0.0, 0
        for k in range(len(columns)):
            # Selections, not branches: which candidate is best cannot be predicted.
            value = prices[k] - v[np.uint32(columns[k])]
            higher = best if value < best else value
            at = k if value < best else at
            best = value if value < best else best
            second = higher if higher < second else second
        if not best < 0.0:
            continue
        j = np.uint32(columns[at])
        if owners[j] >= 0:
            v[j] += best - second - STEP
            waiting[count] = owners[j]
            count += 1
        owners[j] = row
    return v


FIRST = 20.0
"""Candidates of a centre at first, where points are as dense as anywhere in the body. With fewer,
they are extended more often, which takes longer."""

NEAREST = 1000
"""Points around a centre, about, that may be its match; all in bodies of no more."""

CLOSE = 1.0
"""Cost by which further candidates of a centre may be worse than its best, once one is better."""

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
    """Pairs, the centre and the squared distance of each, its cost, and its cost less c0."""

    near: Candidates
    owners: NDArray[np.int32]
    squares: NDArray[np.float64]
    costs: NDArray[np.float64]
    gains: NDArray[np.float64]

    def extended(self, more: list[_Priced]) -> _Priced:
        """Return these and more pairs of the same centres."""
        every = [self, *more]
        owners = np.concatenate([pairs.owners for pairs in every])
        order = np.argsort(owners, kind="stable")
        points = np.concatenate([pairs.near.points for pairs in every])[order]
        starts = np.asarray(sum(pairs.near.starts for pairs in every), dtype=np.int32)
        columns = zip(*(pairs[2:] for pairs in every), strict=True)
        rest = [np.concatenate(values)[order] for values in columns]
        return _Priced(Candidates(starts, points), owners[order], *rest)

    def subset(self, kept: NDArray[np.bool_]) -> _Priced:
        """Return the pairs that are ``kept`` (c,)."""
        counts = np.concatenate([[0], np.cumsum(kept)]).astype(np.int32)
        near = Candidates(counts[self.near.starts], self.near.points[kept])
        squares, costs, gains = self.squares[kept], self.costs[kept], self.gains[kept]
        return _Priced(near, self.owners[kept], squares, costs, gains)


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
    if not n:
        return Assigned(np.full(m, -1, np.int32), 0.0, np.zeros(m), np.zeros(n))
    grid = grid_of(points)
    c0 = np.broadcast_to(np.asarray(rules.c0, dtype=np.float64), m)
    least = np.zeros(n) if rules.extra is None else np.broadcast_to(rules.extra.least, n)
    free, pinned = np.ones(m, bool), np.zeros(n, bool)
    if rules.pins is not None:
        free[rules.pins[rules.pins >= 0]] = False
        pinned = rules.pins != FREE

    def priced(near: Candidates, squares: NDArray[np.float64]) -> _Priced:
        owners = near.centres
        costs = student_costs(squares, centres.heights[owners], rules.freedom)
        if rules.extra is not None:
            costs += rules.extra.on(near)
        gains = costs - c0[owners]
        if rules.pins is not None:
            gains[~free[owners]] = -CERTAIN
        return _Priced(near, owners, squares, costs, gains)

    most = square_of(c0 + centres.heights - float(least.min()), rules.freedom)
    first = np.minimum(_expected(FIRST, centres, grid), most)
    end = _expected(NEAREST, centres, grid) if n > NEAREST else np.full(m, np.inf)
    pairs = priced(*within(places, centres.whitening, first, grid, rules.pins))
    search = Search(places, centres, grid, pinned, rules.freedom, end, CLOSE)
    v = first_prices(pairs.near.starts, pairs.near.points, pairs.gains, n)
    last_spare, last_values = np.full(m, -np.inf), np.full(n, -np.inf)
    while True:
        near = pairs.near
        owners, columns, items = transpose(near.starts, near.points, n)
        chosen, u = lap_sparse(near.starts, near.points, owners, columns, items, pairs.gains, v)
        # By how much the cost of a place may exceed the height of the centre for a better pair.
        spare, values = np.where(free, c0 + centres.heights + u, -np.inf), v - least
        better = []
        for more in risen(search, (last_spare, last_values), (spare, values), near):
            others = priced(*more)
            excess = others.gains - u[others.owners] - v[others.near.points]
            worth = np.zeros(m, bool)
            worth[others.owners[excess < -ROUNDING * (1 + np.abs(others.gains))]] = True
            if worth.any():
                better.append(others.subset(worth[others.owners] & (excess < CLOSE)))
        if not better:
            break
        pairs = pairs.extended(better)
        last_spare, last_values = spare, values
    matched = chosen >= 0
    partners = np.full(m, -1, np.int32)
    partners[matched] = near.points[chosen[matched]]
    spare = np.sort(c0[~matched])[max(m - n, 0) :]
    return Assigned(partners, float(pairs.costs[chosen[matched]].sum() + spare.sum()), u, v)


def _expected(count: float, centres: Centres, grid: Grid) -> NDArray[np.float64]:
    """Return (m,), the squared distances within which about ``count`` points are expected."""
    occupied = int(np.count_nonzero(grid.starts[1:] != grid.starts[:-1]))
    density = len(grid.points) / (occupied * float(grid.size[0]) ** 3)
    volumes = 4 / 3 * np.pi * np.exp(-centres.heights)
    return np.asarray((count / (density * volumes)) ** (2 / 3))


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
