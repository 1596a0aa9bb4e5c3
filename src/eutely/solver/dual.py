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
    lent, places, begins = _places(p)
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
            _sweep(p, back, costs, idle, u + idle, v, lent, places, begins, sweep % 2 == 0)
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
    begins: Any,
    forward: bool,
) -> None:
    """Make one handshake across every edge, by ascending or descending left nodes."""
    n = len(p.starts) - 1
    widest = 1
    for i in range(n):
        widest = max(widest, p.starts[i + 1] - p.starts[i] + 1)
    quads = widest // 4 + 1
    work = (
        np.empty((widest, quads, 4)),
        np.empty(widest),
        np.empty((quads, 4)),
        np.empty((quads, 4)),
        np.empty((quads, 4)),
    )
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
                if len(p.row_items) == 0:
                    begins[places[e] + a] = at + p.edge_offsets[e]
                    continue
                end = p.row_starts[first + a + 1]
                while at < end and p.row_items[at] < p.starts[p.edge_ends[e]]:
                    at += 1
                begins[places[e] + a] = at
    return np.zeros(total), places, begins


@kernel
def _reverse(p: Any) -> Any:
    """Return the edge j, i of each edge i, j: (e,) int32."""
    back = np.empty(len(p.edge_ends), dtype=np.int32)
    fill = np.empty(len(p.edge_starts), dtype=np.int32)
    for i in range(len(fill)):
        fill[i] = p.edge_starts[i]
    for i in range(len(p.starts) - 1):
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            j = p.edge_ends[e]
            back[fill[j]] = e  # first nodes come in ascending order, as in the list of j
            fill[j] += 1
    return back


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

    Rows of the table are padded with infinity to a multiple of four, and handled in four lanes: a
    processor does four entries at a time, and no comparison waits for the one before.
    """
    table, left, right, spare, least = work
    j = p.edge_ends[e]
    first, second = p.starts[i], p.starts[j]
    n, m = p.starts[i + 1] - first, p.starts[j + 1] - second
    mine, theirs = places[e], places[f]
    quads = m // 4 + 1
    full = len(p.row_items) == 0
    # The last row and column stand for 'unmatched'.
    for a in range(n):
        left[a] = costs[first + a] - u[i] - v[p.labels[first + a]]
    left[n] = idle[i] - u[i]
    for b in range(4 * quads):
        q, r = b >> 2, b & 3
        least[q, r] = np.inf
        if b < m:
            right[q, r] = costs[second + b] - u[j] - v[p.labels[second + b]]
        else:
            right[q, r] = idle[j] - u[j] if b == m else 0.0
        spare[q, r] = right[q, r] - lent[theirs + b] if b <= m else np.inf
    shared = 0
    for a in range(n + 1):
        mean = left[a] - lent[mine + a]
        at = begins[mine + a]
        whole = m >> 2 if full and a < n else 0
        k = np.uint64(at)  # unsigned: never counted from the end
        for q in range(whole):
            w, x = p.values[k], p.values[k + np.uint64(1)]
            y, z = p.values[k + np.uint64(2)], p.values[k + np.uint64(3)]
            table[a, q, 0], table[a, q, 1] = w + mean + spare[q, 0], x + mean + spare[q, 1]
            table[a, q, 2], table[a, q, 3] = y + mean + spare[q, 2], z + mean + spare[q, 3]
            k += np.uint64(4)
        for q in range(whole, quads):
            w, x, y, z = spare[q, 0], spare[q, 1], spare[q, 2], spare[q, 3]
            table[a, q, 0], table[a, q, 1] = mean + w, mean + x
            table[a, q, 2], table[a, q, 3] = mean + y, mean + z
        if a < n:
            if full:
                for r in range(m & 3):
                    table[a, whole, r] = p.values[k] + mean + spare[whole, r]
                    k += np.uint64(1)
            else:
                end = p.row_starts[first + a + 1]
                while at < end and p.row_items[at] < second + m:
                    b = p.row_items[at] - second
                    q, r = b >> 2, b & 3
                    table[a, q, r] = p.values[at] + mean + spare[q, r]
                    at += 1
            while shared < m and p.labels[second + shared] < p.labels[first + a]:
                shared += 1
            if shared < m and p.labels[second + shared] == p.labels[first + a]:
                table[a, shared >> 2, shared & 3] = NEVER
        one, two, three, four = np.inf, np.inf, np.inf, np.inf
        for q in range(quads):
            w, x, y, z = table[a, q, 0], table[a, q, 1], table[a, q, 2], table[a, q, 3]
            one = w if w < one else one
            two = x if x < two else two
            three = y if y < three else three
            four = z if z < four else four
        one = two if two < one else one
        three = four if four < three else three
        half = 0.5 * (three if three < one else one)
        for q in range(quads):
            w, x = table[a, q, 0] - half, table[a, q, 1] - half
            y, z = table[a, q, 2] - half, table[a, q, 3] - half
            one, two, three, four = least[q, 0], least[q, 1], least[q, 2], least[q, 3]
            least[q, 0] = w if w < one else one
            least[q, 1] = x if x < two else two
            least[q, 2] = y if y < three else three
            least[q, 3] = z if z < four else four
    for b in range(m + 1):
        q, r = b >> 2, b & 3
        change = least[q, r] - right[q, r]
        lent[theirs + b] += change
        if b < m:
            costs[second + b] += change
        else:
            idle[j] += change
        right[q, r] = least[q, r]
    for a in range(n + 1):
        one, two, three, four = np.inf, np.inf, np.inf, np.inf
        for q in range(quads):
            w, x = table[a, q, 0] - right[q, 0], table[a, q, 1] - right[q, 1]
            y, z = table[a, q, 2] - right[q, 2], table[a, q, 3] - right[q, 3]
            one = w if w < one else one
            two = x if x < two else two
            three = y if y < three else three
            four = z if z < four else four
        one = two if two < one else one
        three = four if four < three else three
        change = (three if three < one else one) - left[a]
        lent[mine + a] += change
        if a < n:
            costs[first + a] += change
        else:
            idle[i] += change
