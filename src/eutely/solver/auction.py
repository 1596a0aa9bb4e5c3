"""Prices from which a linear assignment starts, by an auction that ends near the cheapest one.

Where many rows want the same columns, as in a wrong pose, shortest augmenting paths are long. Bids
that exceed what a column is worth by a fixed step settle most of this competition in a third of the
time; the assignment then only corrects what the step has left open.
"""

from typing import Any

import numpy as np

from eutely.kernel import kernel

STEP = 0.2
"""Cost by which a bid exceeds its worth. Half of it or twice as much takes as long; without any,
two rows that want two equal columns would never stop."""

BIDS = 20
"""Mean bids per row at most; an auction in a wrong pose takes 7 to 10."""


@kernel
def first_prices(starts: Any, labels: Any, costs: Any, width: int) -> Any:
    """Return (width,) float64, prices <= 0 of columns, to start `lap_sparse` from.

    Parameters
    ----------
    starts, labels
        (n + 1,) and (c,) int32, the candidates of each row, and the column of each.
    costs
        (c,) float64, cost of each candidate; a row may stay unassigned at cost 0.
    width
        number of columns.
    """
    n = len(starts) - 1
    v = np.zeros(width)
    owners = np.full(width, -1, np.int32)
    waiting = np.empty(n, np.int32)
    for i in range(n):
        waiting[i] = n - 1 - i
    count, bids = n, BIDS * n
    while count > 0 and bids > 0:
        bids -= 1
        count -= 1
        row = waiting[count]
        first, last = starts[row], starts[row + 1]
        prices, columns = costs[first:last], labels[first:last]
        best, second, at = np.inf, 0.0, 0
        for k in range(len(columns)):
            # Selections, not branches: which candidate is best cannot be predicted.
            value = prices[k] - v[np.uint32(columns[k])]
            higher = best if value < best else value
            at = k if value < best else at
            best = value if value < best else best
            second = higher if higher < second else second
        if not best < 0.0:
            continue
        j = np.uint32(columns[at])
        if owners[j] >= 0:
            v[j] += best - second - STEP
            waiting[count] = owners[j]
            count += 1
        owners[j] = row
    return v
