"""Local search: each node moves, drops, swaps or ejects; again only after a change nearby.

All moves change one left node, or two of which the first takes the right node of the second. The
change of the objective is the sum of the differences of marginal costs and, if the two are
neighbours, of the quadratic costs between their four candidates.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import Arrays, block
from eutely.kernel import bare, inlined, kernel
from eutely.solver.state import change

TOLERANCE = 1e-7
"""Smallest improvement that counts, relative to the costs compared."""


class Buffers(NamedTuple):
    """Memory of the local search: made once, since each kernel would compile making it again.

    Attributes
    ----------
    floors
        (n_left,) float64, see `floors_of`.
    queue, waiting
        (n_left,) int32 and bool, nodes to examine, and whether a node is among them.
    edge_to
        (n_left,) int32, -1 everywhere, before and after.
    old_costs, new_costs
        float64, with room for the candidates of one node.
    """

    floors: NDArray[np.float64]
    queue: NDArray[np.int32]
    waiting: NDArray[np.bool_]
    edge_to: NDArray[np.int32]
    old_costs: NDArray[np.float64]
    new_costs: NDArray[np.float64]


def buffers_of(p: Arrays) -> Buffers:
    """Return the memory of local searches in a problem."""
    n = len(p.starts) - 1
    widest = int(np.diff(p.starts).max(initial=0))
    return Buffers(
        floors_of(p),
        np.empty(n, dtype=np.int32),
        np.zeros(n, dtype=np.bool_),
        np.full(n, -1, dtype=np.int32),
        np.empty(widest),
        np.empty(widest),
    )


def floors_of(p: Arrays) -> NDArray[np.float64]:
    """Return (n_left,), a lower bound of the cost of each node, given any others.

    With quadratic costs >= 0, a candidate never costs less than its linear cost.
    """
    if p.lowest[0] < 0.0:
        return np.full(len(p.starts) - 1, -np.inf)
    floors = np.zeros(len(p.starts) - 1)
    some = np.flatnonzero(np.diff(p.starts))  # nodes with candidates
    if len(some):
        floors[some] = np.minimum(np.minimum.reduceat(p.linear, p.starts[some]), 0.0)
    return floors


@bare
def local_search(p: Any, state: Any, buffers: Any, count: int) -> None:
    """Improve ``state`` until no move of any node improves it.

    Parameters
    ----------
    p
        arrays of the problem.
    state
        changed in place.
    buffers
        see `Buffers`: the first ``count`` entries of ``queue`` are the nodes to examine; exactly
        these are marked in ``waiting``; all are done on return.
    """
    floors, queue, waiting, edge_to, old_costs, new_costs = buffers
    n = len(queue)
    head, size = 0, count
    while size > 0:
        i = np.int64(queue[head])  # one integer type in all calls: compiled once
        head = head + 1 if head + 1 < n else 0
        size -= 1
        waiting[i] = False
        b, k, d = _best_move(p, state, i, floors, edge_to, old_costs, new_costs)
        if b == -2:
            continue
        old = np.int64(state.chosen[i])
        if k >= 0:
            change(p, state, k, np.int64(-1))
            change(p, state, i, b)
            if d >= 0:
                change(p, state, k, d)
            size = _wake(p, k, np.int64(-1), queue, waiting, head, size)
        else:
            change(p, state, i, b)
        if old >= 0 and state.taken[p.labels[old]] >= 0:
            old = np.int64(-1)  # no right node became free
        size = _wake(p, i, old, queue, waiting, head, size)


@bare
def _wake(p: Any, i: Any, a: Any, queue: Any, waiting: Any, head: int, size: int) -> int:
    """Queue node ``i``, its neighbours, and all nodes with the right node of ``a`` unless -1."""
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


@inlined
def _best_move(p: Any, state: Any, i: Any, floors: Any, edge_to: Any, old: Any, new: Any) -> Any:
    """Return (candidate for i or -1, node k it is taken from or -1, candidate for k or -1).

    The first is -2 when no move improves. For ``floors``, ``edge_to``, ``old`` and ``new`` see
    `Buffers`.
    """
    a = np.int64(state.chosen[i])
    now = state.marginal[a] if a >= 0 else 0.0
    label = p.labels[a] if a >= 0 else -1
    best = -TOLERANCE * (1.0 + abs(now))
    move_d = -1
    move_b: Any = -2
    move_k: Any = -1
    if -now < best:
        best, move_b = -now, -1
    marked = False
    for at in range(np.uint64(p.starts[i]), np.uint64(p.starts[i + 1])):
        b = np.int64(at)
        if b == a:
            continue
        gain = state.marginal[at] - now
        c = state.taken[np.uint32(p.labels[at])]
        if c < 0:
            if gain < best:
                best, move_b, move_k, move_d = gain, b, -1, -1
            continue
        k = np.int64(p.owners[np.uint32(c)])
        if gain - state.marginal[np.uint32(c)] + floors[k] >= best:
            continue  # most moves end here, after a few look-ups
        if not marked:
            marked = True
            for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
                edge_to[p.edge_ends[e]] = e
        edge = np.int64(edge_to[k])
        if edge < 0 and gain >= best:
            continue  # k gains nothing by just leaving c, or finds that move itself
        # b and c share a right node, so they have no quadratic cost.
        first = p.starts[k]
        count = p.starts[k + 1] - first
        near = edge >= 0 and a >= 0
        if near:
            block(p, a, edge, old)
        gain += (old[c - first] if near else 0.0) - state.marginal[c]
        if gain < best:
            best, move_b, move_k, move_d = gain, b, k, -1
        loaded = bool(edge < 0)
        lowest = 0.0 if loaded else p.lowest[0]
        for d in range(count):
            total = gain + state.marginal[np.uint32(first + d)]
            if near:
                total -= old[np.uint32(d)]
            if total + lowest >= best:
                continue
            s = p.labels[first + d]
            if (state.taken[s] < 0 or s == label) and first + d != c:
                if edge >= 0:
                    # Tables are read again only here: most moves were excluded before.
                    if not loaded:
                        block(p, b, edge, new)
                        loaded = True
                    total += new[d]
                if total < best:
                    best, move_b, move_k, move_d = total, b, k, first + d
    if marked:
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            edge_to[p.edge_ends[e]] = -1
    return move_b, move_k, move_d


@kernel
def search_around(p: Any, state: Any, changed: Any, count: int, buffers: Any) -> None:
    """Run the local search from the ``count`` first nodes in ``changed``."""
    for k in range(count):
        buffers.queue[k] = changed[k]
        buffers.waiting[changed[k]] = True
    local_search(p, state, buffers, count)
