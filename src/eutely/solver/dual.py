"""A lower bound by dual ascent: quadratic costs move to the nodes, then one linear assignment.

Every edge (i, j) lends each of its nodes a part of its costs, m_i(a) + m_j(b) <= cost(a, b) for all
candidates and for 'unmatched', whose quadratic costs are 0. The costs that remain in the edges are
>= 0 and are dropped, so the linear assignment with the nodes' costs is a lower bound. Ascent goes
edge by edge: reduced by the prices of the assignment, the nodes' costs are >= 0; an edge collects
them and returns its min-marginals, half to the first node, all that is left to the second, and the
rest to the first (the handshake of MPLP++). Prices stay valid, so the bound never falls.
"""

from typing import Any

import numpy as np

from eutely.arrays import Arrays
from eutely.kernel import inner, kernel
from eutely.solver.dual_tables import NEVER, Tables
from eutely.solver.lap_sparse import lap_sparse


def lower_bound(p: Arrays, sweeps: int) -> float:
    """Return a lower bound of the objective.

    Parameters
    ----------
    p
        arrays of the problem.
    sweeps
        over all edges. Without a sweep quadratic costs do not count; so there is at least one sweep
        if some are negative.
    """
    if p.lowest[0] < 0.0:
        sweeps = max(sweeps, 1)
    costs = p.linear.copy()  # of candidates, with the costs lent by edges
    idle = np.zeros(len(p.starts) - 1)  # the same for 'unmatched'
    # The edge j, i of each edge i, j: first nodes ascend, as in the list of j.
    back = np.argsort(p.edge_ends, kind="stable").astype(np.int32)
    edges = Tables(p, back) if len(p.row_items) == 0 else _Lists(p, back)
    v = np.zeros(len(p.column_starts) - 1)
    best = -np.inf
    for sweep in range(sweeps + 1):
        relative = costs - idle[p.owners]
        _, u = lap_sparse(
            p.starts, p.labels, p.owners, p.column_starts, p.column_items, relative, v
        )
        # Before the first sweep, negative costs in the edges make the bound invalid.
        if sweep > 0 or p.lowest[0] >= 0.0:
            best = max(best, float(idle.sum() + u.sum() + v.sum()))
        if sweep < sweeps:
            edges.sweep(costs, idle, u + idle, v, sweep % 2 == 0)
    return best


class _Lists:
    """What sweeps over a problem need where few pairs of candidates have quadratic costs."""

    def __init__(self, p: Arrays, back: Any) -> None:
        self.p, self.back = p, back
        self.lent, self.places, self.begins = _places(p)

    def sweep(self, costs: Any, idle: Any, u: Any, v: Any, forward: bool) -> None:
        """Make one handshake across every edge, by ascending or descending left nodes."""
        edges = self.lent, self.places, self.begins
        _sweep(self.p, self.back, costs, idle, u, v, *edges, forward)


@kernel
def _sweep(
    p: Any,
    back: Any,
    costs: Any,
    idle: Any,
    u: Any,
    v: Any,
    lent: Any,
    places: Any,
    begins: Any,
    forward: bool,
) -> None:
    """Make one handshake across every edge, by ascending or descending left nodes."""
    n = len(p.starts) - 1
    widest = 1
    for i in range(n):
        widest = max(widest, p.starts[i + 1] - p.starts[i] + 1)
    table = np.empty((widest, widest))
    work = table, np.empty(widest), np.empty(widest), np.empty(widest), np.empty(widest)
    for turn in range(n):
        i = turn if forward else n - 1 - turn
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            if (p.edge_ends[e] > i) == forward:
                _handshake(
                    p, i, e, np.int64(back[e]), costs, idle, u, v, lent, places, begins, work
                )


@kernel
def _places(p: Any) -> Any:
    """Return zeros for the costs that each directed edge lends its first node, and two tables.

    They say where the costs of each edge start in the first, and where the quadratic costs of each
    candidate of its first node with those of its second start in ``p.values``.
    """
    places = np.empty(len(p.edge_ends) + 1, dtype=np.int64)
    total = 0
    for i in range(len(p.starts) - 1):
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            places[e] = total
            total += p.starts[i + 1] - p.starts[i] + 1
    places[len(places) - 1] = total
    begins = np.zeros(total, dtype=np.int64)
    for i in range(len(p.starts) - 1):
        first, count = p.starts[i], p.starts[i + 1] - p.starts[i]
        for a in range(count):
            at = p.row_starts[first + a]
            for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
                end = p.row_starts[first + a + 1]
                while at < end and p.row_items[at] < p.starts[p.edge_ends[e]]:
                    at += 1
                begins[places[e] + a] = at
    return np.zeros(total), places, begins


@inner
def _handshake(
    p: Any,
    i: Any,
    e: Any,
    f: Any,
    costs: Any,
    idle: Any,
    u: Any,
    v: Any,
    lent: Any,
    places: Any,
    begins: Any,
    work: Any,
) -> None:
    """Let the edge i, j collect the reduced costs of its nodes and return its min-marginals.

    All loops go along slices of one row, in which the compiler sees that no index is negative and
    that several entries can be handled at a time.
    """
    table, left, right, spare, least = work
    j = p.edge_ends[e]
    first, second = p.starts[i], p.starts[j]
    n, m = p.starts[i + 1] - first, p.starts[j + 1] - second
    mine, theirs = lent[places[e] : places[e] + n + 1], lent[places[f] : places[f] + m + 1]
    begin = begins[places[e] : places[e] + n]
    # The last row and column stand for 'unmatched'.
    width = m + 1
    left, right, spare, least = left[: n + 1], right[:width], spare[:width], least[:width]
    for a in range(n):
        left[a] = costs[first + a] - u[i] - v[p.labels[first + a]]
    left[n] = idle[i] - u[i]
    for b in range(m):
        right[b] = costs[second + b] - u[j] - v[p.labels[second + b]]
    right[m] = idle[j] - u[j]
    for b in range(width):
        spare[b] = right[b] - theirs[b]
        least[b] = np.inf
    shared = 0
    for a in range(n + 1):
        mean = left[a] - mine[a]
        row = table[a, :width]
        for b in range(width):
            row[b] = mean + spare[b]
        if a < n:
            at, end = begin[a], p.row_starts[first + a + 1]
            while at < end and p.row_items[at] < second + m:
                b = p.row_items[at] - second
                row[b] = p.values[at] + mean + spare[b]
                at += 1
            while shared < m and p.labels[second + shared] < p.labels[first + a]:
                shared += 1
            if shared < m and p.labels[second + shared] == p.labels[first + a]:
                row[shared] = NEVER
        lowest = np.inf
        for b in range(width):
            lowest = row[b] if row[b] < lowest else lowest
        half = 0.5 * lowest
        for b in range(width):
            rest = row[b] - half
            least[b] = rest if rest < least[b] else least[b]
    for b in range(width):
        change = least[b] - right[b]
        theirs[b] += change
        if b < m:
            costs[second + b] += change
        else:
            idle[j] += change
    for a in range(n + 1):
        row = table[a, :width]
        lowest = np.inf
        for b in range(width):
            rest = row[b] - least[b]
            lowest = rest if rest < lowest else lowest
        change = lowest - left[a]
        mine[a] += change
        if a < n:
            costs[first + a] += change
        else:
            idle[i] += change
