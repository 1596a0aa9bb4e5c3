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

from eutely.arrays import Arrays, block
from eutely.kernel import kernel
from eutely.solver.lap_sparse import lap_sparse

NEVER = 1e30
"""Cost of two candidates that share a right node."""


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
    lent, places = _places(p)
    back = _reverse(p)
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
            _sweep(p, back, costs, idle, u + idle, v, lent, places, sweep % 2 == 0)
    return best


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
    forward: bool,
) -> None:
    """Make one handshake across every edge, by ascending or descending left nodes."""
    n = len(p.starts) - 1
    widest = 1
    for i in range(n):
        widest = max(widest, p.starts[i + 1] - p.starts[i] + 1)
    table = np.empty((widest, widest))
    work = (table, np.empty(widest), np.empty(widest), np.empty(widest))
    for turn in range(n):
        i = turn if forward else n - 1 - turn
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            if (p.edge_ends[e] > i) == forward:
                _handshake(p, i, e, back[e], costs, idle, u, v, lent, places, work)


@kernel
def _places(p: Any) -> Any:
    """Return zeros for the costs that each directed edge lends its first node, and their starts."""
    places = np.empty(len(p.edge_ends) + 1, dtype=np.int64)
    at = 0
    for i in range(len(p.starts) - 1):
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            places[e] = at
            at += p.starts[i + 1] - p.starts[i] + 1
    places[-1] = at
    return np.zeros(at), places


@kernel
def _reverse(p: Any) -> Any:
    """Return the edge j, i of each edge i, j: (e,) int32."""
    back = np.empty(len(p.edge_ends), dtype=np.int32)
    fill = p.edge_starts.copy()
    for i in range(len(p.starts) - 1):
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            j = p.edge_ends[e]
            back[fill[j]] = e  # first nodes come in ascending order, as in the list of j
            fill[j] += 1
    return back


@kernel
def _handshake(
    p: Any,
    i: int,
    e: int,
    f: int,
    costs: Any,
    idle: Any,
    u: Any,
    v: Any,
    lent: Any,
    places: Any,
    work: Any,
) -> None:
    """Let the edge i, j collect the reduced costs of its nodes and return its min-marginals."""
    table, row, left, right = work
    j = p.edge_ends[e]
    first, second = p.starts[i], p.starts[j]
    n, m = p.starts[i + 1] - first, p.starts[j + 1] - second
    mine, theirs = lent[places[e] : places[e] + n + 1], lent[places[f] : places[f] + m + 1]
    # The last row and column stand for 'unmatched'.
    for a in range(n):
        left[a] = costs[first + a] - u[i] - v[p.labels[first + a]]
    left[n] = idle[i] - u[i]
    for b in range(m):
        right[b] = costs[second + b] - u[j] - v[p.labels[second + b]]
    right[m] = idle[j] - u[j]
    for a in range(n + 1):
        if a < n:
            block(p, first + a, e, row)
            row[m] = 0.0
        else:
            row[: m + 1] = 0.0
        for b in range(m + 1):
            table[a, b] = row[b] + (left[a] - mine[a]) + (right[b] - theirs[b])
    b = 0
    for a in range(n):
        while b < m and p.labels[second + b] < p.labels[first + a]:
            b += 1
        if b < m and p.labels[second + b] == p.labels[first + a]:
            table[a, b] = NEVER
    for a in range(n + 1):
        least = np.inf
        for b in range(m + 1):
            least = min(least, table[a, b])
        row[a] = 0.5 * least
    for b in range(m + 1):
        least = np.inf
        for a in range(n + 1):
            least = min(least, table[a, b] - row[a])
        change = least - right[b]
        theirs[b] += change
        if b < m:
            costs[second + b] += change
        else:
            idle[j] += change
        right[b] = least
    for a in range(n + 1):
        least = np.inf
        for b in range(m + 1):
            least = min(least, table[a, b] - right[b])
        change = least - left[a]
        mine[a] += change
        if a < n:
            costs[first + a] += change
        else:
            idle[i] += change
