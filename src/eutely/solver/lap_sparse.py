"""Linear assignment on candidate lists: bidding, then shortest augmenting paths with a heap.

Every row may stay unassigned at cost 0. Prices have the same meaning as in `lap_dense`, and those
of one solution start the next: when costs have changed little, most rows then find their column at
once. Old prices may be too low for a column that no row takes any more; such columns look for a row
by the same augmenting path as rows for a column, with the two sides exchanged.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import transpose as transpose  # callers of lap_sparse need it
from eutely.kernel import bare, inner, kernel

BIDS = 6
"""Mean bids per row before the rows still without a column are left to augmenting paths."""

SAME = 1e-12
"""Relative difference up to which two costs count as equal."""


def lap_sparse(
    starts: NDArray[np.int32],
    labels: NDArray[np.int32],
    owners: NDArray[np.int32],
    column_starts: NDArray[np.int32],
    column_items: NDArray[np.int32],
    costs: NDArray[np.float64],
    v: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the cheapest assignment; prices ``v`` are the start and are written back.

    Parameters
    ----------
    starts, labels, owners, column_starts, column_items
        int32, candidate lists of rows and of columns, see `transpose`.
    costs
        (c,) float64, cost of each candidate.
    v
        (m,) float64, column prices <= 0: zeros, or those of a similar problem.

    Returns
    -------
    chosen
        (n,) int32, the candidate of each row, or -1.
    u
        (n,) float64, prices of rows.
    """
    chosen = np.full(len(starts) - 1, -1, dtype=np.int32)
    u = lap_again(starts, labels, owners, column_starts, column_items, costs, v, chosen)
    return chosen, u


@kernel
def lap_again(
    starts: Any,
    labels: Any,
    owners: Any,
    column_starts: Any,
    column_items: Any,
    costs: Any,
    v: Any,
    chosen: Any,
) -> Any:
    """Change ``chosen`` from the assignment of a similar problem to the cheapest; return ``u``.

    Parameters: see `lap_sparse`. Rows keep their candidate if it is still the best: prices do not
    determine it, since at good prices most rows have several candidates that are equally cheap.
    """
    n, m = len(starts) - 1, len(column_starts) - 1
    taken = np.full(m, -1, dtype=np.int32)
    free, count = bid(starts, labels, owners, costs, v, chosen, taken)
    longest = max(n, m)
    distance = np.empty(longest)
    for i in range(longest):
        distance[i] = np.inf
    before = np.empty(longest, dtype=np.int32)
    touched = np.empty(longest, dtype=np.int32)
    done = np.zeros(longest, dtype=np.bool_)
    keys = np.empty(len(labels) + 1)
    nodes = np.empty(len(labels) + 1, dtype=np.int32)
    rows = np.empty(len(labels) if count else 0, dtype=np.int32)
    for k in range(len(rows)):
        rows[k] = k
    work = (distance, before, touched, done, keys, nodes)
    for k in range(count):
        augment(starts, rows, owners, labels, costs, chosen, taken, v, np.int64(free[k]), work)
    u = np.zeros(n)
    for i in range(n):
        if chosen[i] >= 0:
            u[i] = costs[chosen[i]] - v[labels[chosen[i]]]
    too_low = False
    for j in range(m):
        if taken[j] < 0 and v[j] < 0.0:
            too_low = True
            augment(column_starts, column_items, labels, owners, costs, taken, chosen, u, j, work)
    if too_low:
        for j in range(m):
            v[j] = costs[taken[j]] - u[owners[taken[j]]] if taken[j] >= 0 else 0.0
    return u


@inner
def bid(starts: Any, labels: Any, owners: Any, costs: Any, v: Any, chosen: Any, taken: Any) -> Any:
    """Let each row outbid the owner of its best column by the margin to its second best.

    Rows whose candidate in ``chosen`` is still the best begin with it. Returns the rows that are
    left to augmenting paths, and their number.
    """
    n = len(starts) - 1
    waiting = np.empty(n, dtype=np.int32)
    free = np.empty(n, dtype=np.int32)
    count, frees = 0, 0
    for i in range(n - 1, -1, -1):
        a = chosen[i]
        if a >= 0:
            value = costs[a] - v[labels[a]]
            least = value - SAME * abs(value)
            beaten = least > 0.0
            # Unsigned indices throughout: the compiler sees that none counts from the end.
            for k in range(np.uint64(starts[i]), np.uint64(starts[i + 1])):
                if costs[k] - v[np.uint32(labels[k])] < least:
                    beaten = True
                    break
            if not beaten:
                taken[labels[a]] = a
                continue
            chosen[i] = -1
        waiting[count] = i
        count += 1
    bids = BIDS * n
    while count > 0:
        count -= 1
        i = waiting[count]
        best, second = np.inf, 0.0
        at: Any = np.uint64(0)
        for k in range(np.uint64(starts[i]), np.uint64(starts[i + 1])):
            # Selections, not branches: which candidate is best cannot be predicted.
            value = costs[k] - v[np.uint32(labels[k])]
            higher = best if value < best else value
            at = k if value < best else at
            best = value if value < best else best
            second = higher if higher < second else second
        if not best < 0.0:
            continue
        j = np.uint32(labels[at])
        rival = taken[j]
        bids -= 1
        if rival >= 0 and (bids < 0 or second <= best):
            free[frees] = i
            frees += 1
            continue
        if rival >= 0:  # a price that falls needlessly would have to be raised again later
            v[j] += best - second
        chosen[i] = at
        taken[j] = at
        if rival >= 0:
            chosen[owners[rival]] = -1
            waiting[count] = owners[rival]
            count += 1
    return free, frees


@bare
def augment(
    starts: Any,
    items: Any,
    here: Any,
    there: Any,
    costs: Any,
    mine: Any,
    theirs: Any,
    prices: Any,
    source: Any,
    work: Any,
) -> None:
    """Give ``source`` a partner, or none at cost 0, along the shortest alternating path.

    Parameters
    ----------
    starts, items
        candidates of the nodes on the side of ``source``.
    here, there
        (c,) int32, node of each candidate on that side and on the other.
    costs
        (c,) float64.
    mine, theirs
        int32, chosen candidate of each node on that side and on the other, or -1; changed.
    prices
        float64, of the nodes on the other side; changed.
    source
        a node without a partner.
    work
        buffers, clean before and after.
    """
    distance, before, touched, done, keys, nodes = work
    count = 0  # nodes on the other side whose distance is known
    size = 0  # of the heap
    idle, idle_at = 0.0, source  # cheapest path that ends in a node that stays without a partner
    limit = 0.0  # length of the shortest complete path so far
    node, shift = source, 0.0
    final, end = 0.0, -1
    while True:
        for k in range(np.uint64(starts[node]), np.uint64(starts[node + 1])):
            a = np.uint32(items[k])
            j = np.uint32(there[a])
            value = costs[a] - prices[j] + shift
            if value < limit and value < distance[j] and not done[j]:
                if distance[j] == np.inf:
                    touched[count] = j
                    count += 1
                distance[j] = value
                before[j] = a
                size = _push(keys, nodes, size, value, int(j))
                if theirs[j] < 0:
                    limit = value
        end = -1
        while size > 0:
            nearest, j = keys[0], np.uint32(nodes[0])
            size = _pop(keys, nodes, size)
            if not done[j] and nearest == distance[j]:
                end = int(j)
                break
        if end < 0 or distance[end] >= idle:
            final, end = idle, -1
            break
        final = distance[end]
        a = theirs[end]
        if a < 0:
            break
        done[end] = True
        node = here[a]
        shift = final - (costs[a] - prices[end])
        if shift < idle:
            idle, idle_at = shift, node
            limit = min(limit, idle)
    for k in range(count):
        j = touched[k]
        if done[j]:
            prices[j] += min(distance[j] - final, 0.0)
            done[j] = False
        distance[j] = np.inf
    if end < 0:
        if idle_at == source:
            return
        a = mine[idle_at]
        mine[idle_at] = -1
        end = there[a]
    while True:
        a = before[end]
        node = here[a]
        theirs[end] = a
        last = mine[node]
        mine[node] = a
        if node == source:
            return
        end = there[last]


@bare
def _push(keys: Any, nodes: Any, size: int, key: float, node: int) -> int:
    """Add to a binary heap, which must have room; return the new size."""
    at = size
    while at > 0:
        up = (at - 1) >> 1
        if keys[up] <= key:
            break
        keys[at] = keys[up]
        nodes[at] = nodes[up]
        at = up
    keys[at] = key
    nodes[at] = node
    return size + 1


@bare
def _pop(keys: Any, nodes: Any, size: int) -> int:
    """Remove the smallest key of a binary heap; return the new size."""
    size -= 1
    key, node = keys[size], nodes[size]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= size:
            break
        if down + 1 < size and keys[down + 1] < keys[down]:
            down += 1
        if keys[down] >= key:
            break
        keys[at] = keys[down]
        nodes[at] = nodes[down]
        at = down
    keys[at] = key
    nodes[at] = node
    return size
