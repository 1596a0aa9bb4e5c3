"""Dense linear assignment by short lists of candidates that are proved enough.

The cheapest assignment hardly ever uses any but the cheapest few columns of a row. So each row
begins with a short list; prices u of rows and v of columns of the cheapest assignment of these
candidates prove it the cheapest of all if cost >= u + v for every pair. Where a pair is cheaper, it
joins the lists, and the assignment starts again from its prices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import longer, transpose
from eutely.kernel import inner, kernel
from eutely.solver.lap_sparse import lap_sparse

SHORT = 16
"""Candidates of a row at first."""

GROUPS = 32
"""Groups of columns whose lowest costs show which columns are among the cheapest of a row."""

EQUAL = 1e-11
"""Relative difference up to which a cost counts as that of its prices."""


def lap_short(costs: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the cheapest assignment: the column of each row, or -1 for none, at cost 0.

    Parameters
    ----------
    costs
        (n, m) float64, contiguous; only negative costs attract.
    """
    n, m = costs.shape
    partners = np.full(n, -1, np.int32)
    if not n or not m:
        return partners
    starts, labels = _cheapest(costs, min(SHORT, m))
    v = np.zeros(m)
    while True:
        owners, column_starts, column_items = transpose(starts, labels, m)
        linear = costs[owners, labels]
        chosen, u = lap_sparse(starts, labels, owners, column_starts, column_items, linear, v)
        starts, more = _with_cheaper(costs, u, v, starts, labels)
        if len(more) == len(labels):
            break
        labels = more
    matched = chosen >= 0
    partners[matched] = labels[chosen[matched]]
    return partners


@kernel
def _cheapest(costs: Any, most: int) -> Any:
    """Return starts (n + 1,) and columns (c,) of the cheapest negative costs, at most so many."""
    n, m = costs.shape
    starts = np.zeros(n + 1, np.int32)
    labels = np.empty(n * most, np.int32)
    best = np.empty(most)
    few = np.empty(m + 1, np.int32)
    lowest = np.empty(GROUPS)
    size = 0
    for i in range(n):
        row = costs[i]
        # Every so many columns make a group. The cheapest columns cost no more than the lowest
        # costs of as many groups, and hardly any others do.
        for k in range(GROUPS):
            lowest[k] = 0.0
        for first in range(0, m, GROUPS):
            some = row[first : min(first + GROUPS, m)]
            for k in range(len(some)):
                lowest[k] = some[k] if some[k] < lowest[k] else lowest[k]
        highest = _ranked(lowest, most)
        count = 0
        for j in range(m):
            few[count] = j
            count += row[j] <= highest
        known = 0
        bar = 0.0
        for j in few[:count]:
            cost = row[np.uint32(j)]
            if cost < bar:
                at = min(known, most - 1)
                known = at + 1
                while at > 0 and best[at - 1] > cost:
                    best[at] = best[at - 1]
                    labels[size + at] = labels[size + at - 1]
                    at -= 1
                best[at] = cost
                labels[size + at] = j
                if known == most:
                    bar = best[most - 1]
        for k in range(1, known):  # in the order of columns
            column, at = labels[size + k], k
            while at > 0 and labels[size + at - 1] > column:
                labels[size + at] = labels[size + at - 1]
                at -= 1
            labels[size + at] = column
        size += known
        starts[i + 1] = size
    return starts, longer(labels, size, size)


@inner
def _ranked(values: Any, rank: int) -> float:
    """Sort ``values`` in place, and return the one of this rank, 1 for the lowest; or 0."""
    for k in range(1, len(values)):
        value, at = values[k], k
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value
    return float(values[rank - 1]) if rank <= len(values) else 0.0


@kernel
def _with_cheaper(costs: Any, u: Any, v: Any, starts: Any, labels: Any) -> Any:
    """Return starts and columns of lists that hold all pairs that cost less than their prices."""
    n, m = costs.shape
    more_starts = np.zeros(n + 1, np.int32)
    more = np.empty(2 * len(labels) + m, np.int32)
    size = 0
    for i in range(n):
        if size + m > len(more):
            more = longer(more, size, 2 * size + m)
        bar = u[i] - EQUAL * abs(u[i])
        cheaper = 0
        for j in range(m):
            cheaper += costs[i, j] - v[j] < bar
        if cheaper == 0:
            for at in range(starts[i], starts[i + 1]):
                more[size] = labels[at]
                size += 1
        else:
            at = starts[i]
            for j in range(m):
                listed = at < starts[i + 1] and labels[at] == j
                at += listed
                if listed or costs[i, j] - v[j] < bar:
                    more[size] = j
                    size += 1
        more_starts[i + 1] = size
    return more_starts, longer(more, size, size)
