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
from eutely.kernel import inlined, kernel
from eutely.solver.dual_tables import NEVER, Tables
from eutely.solver.lap_sparse import lap_sparse

FOUR = 4
"""Number of entries of a row that are compared side by side."""


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
    room = widest + FOUR
    table = np.empty(widest * room)
    work = table, np.empty(room), np.empty(room), np.empty(room), np.empty(room)
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


@inlined
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

    Indices are unsigned, so that the compiler sees that none counts from the end. The least of a
    row is taken as the least of four, so that no comparison waits for the one before; rows are
    padded for that.
    """
    table, left, right, spare, least = work
    j = p.edge_ends[e]
    first, second = p.starts[i], p.starts[j]
    n, m = p.starts[i + 1] - first, p.starts[j + 1] - second
    mine, theirs, begin = np.uint64(places[e]), np.uint64(places[f]), np.uint64(places[e])
    # The last row and column stand for 'unmatched'.
    rows, width = np.uint64(n + 1), np.uint64(m + 1)
    padded = np.uint64((m + FOUR) // FOUR * FOUR)
    for a in range(np.uint64(n)):
        at = np.uint64(first) + a
        left[a] = costs[at] - u[i] - v[np.uint32(p.labels[at])]
    left[np.uint64(n)] = idle[i] - u[i]
    for b in range(np.uint64(m)):
        at = np.uint64(second) + b
        right[b] = costs[at] - u[j] - v[np.uint32(p.labels[at])]
    right[np.uint64(m)] = idle[j] - u[j]
    for b in range(width):
        spare[b] = right[b] - lent[theirs + b]
    for b in range(width, padded):
        spare[b] = NEVER
    for b in range(padded):
        least[b] = np.inf
    shared = 0
    row = np.uint64(0)
    for a in range(rows):
        mean = left[a] - lent[mine + a]
        for b in range(padded):
            table[row + b] = mean + spare[b]
        if a < np.uint64(n):
            label = p.labels[np.uint64(first) + a]
            at, end = begins[begin + a], p.row_starts[np.uint64(first) + a + np.uint64(1)]
            while at < end and p.row_items[at] < second + m:
                to = np.uint64(p.row_items[at] - second)
                table[row + to] = p.values[at] + mean + spare[to]
                at += 1
            while shared < m and p.labels[second + shared] < label:
                shared += 1
            if shared < m and p.labels[second + shared] == label:
                table[row + np.uint64(shared)] = NEVER
        w = x = y = z = np.inf
        for b in range(np.uint64(0), padded, np.uint64(4)):
            at0 = row + b
            w = min(w, table[at0])
            x = min(x, table[at0 + np.uint64(1)])
            y = min(y, table[at0 + np.uint64(2)])
            z = min(z, table[at0 + np.uint64(3)])
        half = 0.5 * min(min(w, x), min(y, z))
        for b in range(padded):
            rest = table[row + b] - half
            least[b] = rest if rest < least[b] else least[b]
        row += padded
    for b in range(width):
        change = least[b] - right[b]
        lent[theirs + b] += change
        if b < np.uint64(m):
            costs[np.uint64(second) + b] += change
        else:
            idle[j] += change
    for b in range(width, padded):
        least[b] = 0.0
    row = np.uint64(0)
    for a in range(rows):
        w = x = y = z = np.inf
        for b in range(np.uint64(0), padded, np.uint64(4)):
            at0 = row + b
            w = min(w, table[at0] - least[b])
            x = min(x, table[at0 + np.uint64(1)] - least[b + np.uint64(1)])
            y = min(y, table[at0 + np.uint64(2)] - least[b + np.uint64(2)])
            z = min(z, table[at0 + np.uint64(3)] - least[b + np.uint64(3)])
        change = min(min(w, x), min(y, z)) - left[a]
        lent[mine + a] += change
        if a < np.uint64(n):
            costs[np.uint64(first) + a] += change
        else:
            idle[i] += change
        row += padded
