"""Linear assignment on a dense cost matrix: shortest augmenting paths after Jonker and Volgenant.

Every row may stay unassigned at cost 0, so only negative costs are ever taken: subtract the cost
of leaving a row unassigned from all costs first. The matrix may have any shape.

Prices u of rows and v of columns, all <= 0, prove the result optimal: u[i] + v[j] <= costs[i, j]
everywhere, with equality where row i has column j, and 0 where a row or a column is free. So
sum(u) + sum(v) is the cost of the assignment.
"""

from typing import Any

import numpy as np

from eutely.kernel import inner, kernel

BIDS = 6
"""Mean bids per row before the rows still without a column are left to augmenting paths."""


@kernel
def lap_dense(costs: Any) -> Any:
    """Return the cheapest assignment and the prices that prove it.

    Parameters
    ----------
    costs
        (n, m) float64 or float32, C-contiguous, finite; +inf forbids.

    Returns
    -------
    columns
        (n,) int32, column of each row, or -1.
    u, v
        (n,), (m,) float64, prices.
    """
    n, m = costs.shape
    u = np.zeros(n)
    v = np.zeros(m)
    columns = np.full(n, -1, dtype=np.int32)
    rows = np.full(m, -1, dtype=np.int32)
    if n == 0 or m == 0:
        return columns, u, v
    free, count = _bid(costs, v, columns, rows)
    distance = np.empty(m)
    bound = np.empty(m)
    before = np.empty(m, dtype=np.int32)
    scanned = np.empty(m, dtype=np.int32)
    for k in range(count):
        _augment(costs, v, columns, rows, free[k], distance, bound, before, scanned)
    for i in range(n):
        if columns[i] >= 0:
            u[i] = costs[i, columns[i]] - v[columns[i]]
    return columns, u, v


@inner
def _bid(costs: Any, v: Any, columns: Any, rows: Any) -> Any:
    """Let each row outbid the owner of its best column by the margin to its second best.

    Returns the rows that are left to augmenting paths, and their number.
    """
    n, m = costs.shape
    waiting = np.empty(n, dtype=np.int32)
    for i in range(n):
        waiting[i] = n - 1 - i
    free = np.empty(n, dtype=np.int32)
    count, frees = n, 0
    bids = BIDS * n
    while count > 0:
        count -= 1
        i = waiting[count]
        best, second, at = np.inf, 0.0, -1
        for j in range(m):
            value = costs[i, j] - v[j]
            if value < second:
                if value < best:
                    second = min(best, 0.0)
                    best = value
                    at = j
                else:
                    second = value
        if at < 0:
            continue  # no negative cost: prices only fall, so this row stays unassigned
        owner = rows[at]
        bids -= 1
        if owner >= 0 and (bids < 0 or second <= best):
            free[frees] = i
            frees += 1
            continue
        v[at] += best - second
        columns[i] = at
        rows[at] = i
        if owner >= 0:
            columns[owner] = -1
            waiting[count] = owner
            count += 1
    return free, frees


@inner
def _augment(
    costs: Any,
    v: Any,
    columns: Any,
    rows: Any,
    source: int,
    distance: Any,
    bound: Any,
    before: Any,
    scanned: Any,
) -> None:
    """Assign ``source``, or leave it out, along the shortest alternating path (no heap)."""
    m = costs.shape[1]
    # bound is the distance of columns still open and -inf of scanned ones, so that the inner loop
    # needs no second test.
    nearest, at = np.inf, -1
    for j in range(m):
        value = costs[source, j] - v[j]
        distance[j] = value
        bound[j] = value
        before[j] = source
        if value < nearest:
            nearest, at = value, j
    count = 0
    idle, idle_at = 0.0, source  # cheapest path that ends in a row that stays unassigned
    while nearest < idle and rows[at] >= 0:
        scanned[count] = at
        count += 1
        i = rows[at]
        shift = nearest - (costs[i, at] - v[at])
        bound[at] = -np.inf
        if shift < idle:
            idle, idle_at = shift, i
        nearest, at = np.inf, -1
        for j in range(m):
            value = costs[i, j] - v[j] + shift
            if value < bound[j]:
                distance[j] = value
                bound[j] = value
                before[j] = i
            if -np.inf < bound[j] < nearest:
                nearest, at = bound[j], j
    final = min(nearest, idle)
    for k in range(count):
        v[scanned[k]] += distance[scanned[k]] - final
    if nearest < idle:
        j = at
    else:
        i = idle_at
        j = columns[i]
        columns[i] = -1
        if i == source:
            return
    while True:
        i = before[j]
        rows[j] = i
        j, columns[i] = columns[i], j
        if i == source:
            return
