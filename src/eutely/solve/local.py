"""Local search: each node moves, drops, swaps or ejects, again only when something near changed.

All moves change one left node, or two of which the first takes the right node of the second. The
change of the objective is the sum of the marginal costs' differences and, when the two are
neighbours, the quadratic costs of their four candidates with one another.
"""

from typing import Any

import numpy as np

from eutely.arrays import block
from eutely.kernel import kernel
from eutely.solve.state import add_row, change

TOLERANCE = 1e-7
"""Smallest improvement that counts, relative to the costs compared."""


@kernel
def local_search(p: Any, state: Any, queue: Any, waiting: Any, count: int) -> None:
    """Improve ``state`` until no move of any node does.

    Parameters
    ----------
    p
        arrays of the problem.
    state
        changed in place.
    queue, waiting
        (n_left,) int32, bool: the ``count`` first in ``queue`` are the nodes to look at, and
        exactly they are marked in ``waiting``; all are done on return.
    """
    n = len(queue)
    widest = 0
    # With quadratic costs >= 0, a candidate never costs less than its linear cost.
    floors = np.full(n, 0.0 if p.lowest[0] >= 0.0 else -np.inf)
    for node in range(n):
        widest = max(widest, p.starts[node + 1] - p.starts[node])
        for a in range(p.starts[node], p.starts[node + 1]):
            floors[node] = min(floors[node], p.linear[a])
    edge_to = np.full(n, -1, dtype=np.int32)
    own = np.zeros(len(p.labels))
    new = np.empty(widest)
    head, size = 0, count
    while size > 0:
        i = np.int64(queue[head])  # one integer type in all calls: compiled once
        head = head + 1 if head + 1 < n else 0
        size -= 1
        waiting[i] = False
        b, k, d = _best_move(p, state, i, floors, edge_to, own, new)
        if b == -2:
            continue
        old = np.int64(state.chosen[i])
        if k >= 0:
            away = np.int64(state.chosen[k])
            change(p, state, k, -1)
            change(p, state, i, b)
            if d >= 0:
                change(p, state, k, d)
            size = _wake(p, k, away, queue, waiting, head, size)
        else:
            change(p, state, i, b)
        size = _wake(p, i, old, queue, waiting, head, size)


@kernel
def _wake(p: Any, i: Any, a: Any, queue: Any, waiting: Any, head: int, size: int) -> int:
    """Queue node ``i``, its neighbours, and who else could use the right node of ``a``."""
    n = len(queue)
    if not waiting[i]:
        waiting[i] = True
        queue[(head + size) % n] = i
        size += 1
    for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
        j = p.edge_ends[e]
        if not waiting[j]:
            waiting[j] = True
            queue[(head + size) % n] = j
            size += 1
    if a >= 0:
        s = p.labels[a]
        for k in range(p.column_starts[s], p.column_starts[s + 1]):
            j = p.owners[p.column_items[k]]
            if not waiting[j]:
                waiting[j] = True
                queue[(head + size) % n] = j
                size += 1
    return size


@kernel
def _best_move(p: Any, state: Any, i: Any, floors: Any, edge_to: Any, own: Any, new: Any) -> Any:
    """Return (candidate for i or -1, node k it is taken from or -1, candidate for k or -1).

    The first is -2 when no move improves. Buffers: ``edge_to`` (n_left,) int32 is -1 everywhere
    and ``own`` (c,) 0 everywhere, before and after; ``new`` has room for one node's candidates.
    """
    marginal, taken = state.marginal, state.taken
    a = state.chosen[i]
    now = marginal[a] if a >= 0 else 0.0
    label = p.labels[a] if a >= 0 else -1
    best = -TOLERANCE * (1.0 + abs(now))
    move_b, move_d = -2, -1
    move_k: Any = -1
    if -now < best:
        best, move_b = -now, -1
    prepared = False
    for b in range(p.starts[i], p.starts[i + 1]):
        if b == a:
            continue
        gain = marginal[b] - now
        c = taken[p.labels[b]]
        if c < 0:
            if gain < best:
                best, move_b, move_k, move_d = gain, b, -1, -1
            continue
        k = np.int64(p.owners[c])
        if gain - marginal[c] + floors[k] >= best:
            continue  # most moves end here, after a few look-ups
        if not prepared:
            prepared = True
            for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
                edge_to[p.edge_ends[e]] = e
            if a >= 0:
                add_row(p, np.int64(a), 1.0, own)
        e = edge_to[k]
        if e < 0 and gain >= best:
            continue  # k alone gains nothing by leaving c, or finds that move itself
        # b and c share a right node, so they have no quadratic cost.
        gain += own[c] - marginal[c]
        if gain < best:
            best, move_b, move_k, move_d = gain, b, k, -1
        loaded = e < 0
        lowest = 0.0 if loaded else p.lowest[0]
        first = p.starts[k]
        for d in range(first, p.starts[k + 1]):
            total = gain + marginal[d] - own[d]
            if total + lowest >= best:
                continue
            s = p.labels[d]
            if (taken[s] < 0 or s == label) and d != c:
                if e >= 0:
                    # Only here the tables are read again: most moves were out of reach before.
                    if not loaded:
                        block(p, b, np.int64(e), new)
                        loaded = True
                    total += new[d - first]
                if total < best:
                    best, move_b, move_k, move_d = total, b, k, d
    if prepared:
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            j = p.edge_ends[e]
            edge_to[j] = -1
            for b in range(p.starts[j], p.starts[j + 1]):
                own[b] = 0.0
    return move_b, move_k, move_d


@kernel
def search_around(p: Any, state: Any, changed: Any, count: int, queue: Any, waiting: Any) -> None:
    """Run the local search from nodes that changed; neighbours follow when one moves again."""
    for k in range(count):
        queue[k] = changed[k]
        waiting[changed[k]] = True
    local_search(p, state, queue, waiting, count)
