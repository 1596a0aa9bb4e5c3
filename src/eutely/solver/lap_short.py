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
from eutely.kernel import kernel
from eutely.solver.lap_sparse import lap_sparse

SHORT = 16
"""Candidates of a row at first."""

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
    size = 0
    for i in range(n):
        known = 0
        bar = 0.0
        for j in range(m):
            cost = costs[i, j]
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
