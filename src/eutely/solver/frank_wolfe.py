"""Frank-Wolfe on the relaxed problem: follow linear assignments of the gradient, then round.

The relaxed objective linear x + x Q x / 2 is lowered along the direction to the best assignment
for its gradient, with the exact step. Prices of one assignment start the next, and the quadratic
costs of the assignment are updated only where it changed.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import Arrays
from eutely.kernel import bare, inner, kernel
from eutely.solver.lap_sparse import lap_again
from eutely.solver.state import shift_rows

PULL = 0.03
"""Preference of rounding for a candidate with the whole share of its node, in typical costs."""


def barycentre(p: Arrays) -> NDArray[np.float64]:
    """Return a point (c,) with equal shares of all candidates, at most 1 per node on both sides."""
    rows, columns = np.diff(p.starts)[p.owners], np.diff(p.column_starts)[p.labels]
    return np.asarray(1.0 / np.maximum(rows, columns))


@kernel
def product_of(p: Any, x: Any) -> Any:
    """Return Q x (c,)."""
    product = np.zeros(len(x))
    if len(p.row_items):
        for a in range(len(x)):
            for k in range(p.row_starts[a], p.row_starts[a + 1]):
                product[p.row_items[k]] += x[a] * p.values[k]
        return product
    widest = 0
    for a in range(len(x)):
        widest = max(widest, p.row_starts[a + 1] - p.row_starts[a])
    total = np.empty(widest)
    for i in range(len(p.starts) - 1):
        # The rows of a node's candidates hold the same neighbours: long sums, then short ones.
        width = 0
        for a in range(p.starts[i], p.starts[i + 1]):
            row = p.values[p.row_starts[a] : p.row_starts[a + 1]]
            if a == p.starts[i]:
                width = len(row)
                for k in range(width):
                    total[k] = 0.0
            for k in range(len(row)):
                total[k] += x[a] * row[k]
        at = 0
        for e in range(p.edge_starts[i], p.edge_starts[i + 1] if width else p.edge_starts[i]):
            j = p.edge_ends[e]
            for b in range(p.starts[j], p.starts[j + 1]):
                product[b] += total[at]
                at += 1
    return product


@inner
def frank_wolfe(
    p: Any,
    linear: Any,
    x: Any,
    product: Any,
    corner: Any,
    corner_product: Any,
    v: Any,
    steps: int,
) -> Any:
    """Return the matching reached from the point ``x``: (n_left,) int32, the candidate or -1.

    Parameters
    ----------
    p
        arrays of the problem.
    linear
        (c,) float64, linear costs to use instead of those of the problem.
    x, product
        (c,) float64, starting point, and Q x; the end point on return.
    corner, corner_product
        (n_left,) int32, any matching, best near the first assignment, and (c,) Q times it; the
        last assignment on return.
    v
        (n_right,) float64, column prices, read and written.
    steps
        number of steps at most.
    """
    count = len(x)
    gradient = np.empty(count)
    # The linear and the quadratic cost of x, kept up to date step by step.
    plain, bent = 0.0, 0.0
    for a in range(count):
        gradient[a] = linear[a] + product[a]
        if x[a] != 0.0:
            plain += linear[a] * x[a]
            bent += product[a] * x[a]
    chosen = np.empty(len(corner), dtype=np.int32)
    for i in range(len(corner)):
        chosen[i] = corner[i]
    for _ in range(steps):
        lap_again(
            p.starts, p.labels, p.owners, p.column_starts, p.column_items, gradient, v, chosen
        )
        shift_rows(p, corner, chosen, corner_product)
        # The same of the assignment, and the quadratic cost between the two.
        goal_plain, goal_bent, between = 0.0, 0.0, 0.0
        for i in range(len(chosen)):
            if chosen[i] >= 0:
                goal_plain += linear[chosen[i]]
                goal_bent += corner_product[chosen[i]]
                between += product[chosen[i]]
        slope = goal_plain + between - plain - bent
        if slope >= -1e-9 * (abs(plain) + abs(bent)):
            break
        bend = goal_bent - 2.0 * between + bent
        step = 1.0
        if bend > -slope:
            step = -slope / bend
        rest = 1.0 - step
        for a in range(count):
            x[a] *= rest
            product[a] += step * (corner_product[a] - product[a])
            gradient[a] = linear[a] + product[a]
        for i in range(len(chosen)):
            if chosen[i] >= 0:
                x[chosen[i]] += step
        plain += step * (goal_plain - plain)
        bent = rest * rest * bent + 2.0 * rest * step * between + step * step * goal_bent
    pull = PULL * _spread(p, gradient)
    for a in range(count):
        gradient[a] -= pull * x[a]
    lap_again(p.starts, p.labels, p.owners, p.column_starts, p.column_items, gradient, v, chosen)
    return chosen


@bare
def _spread(p: Any, costs: Any) -> float:
    """Return the mean difference between a candidate's cost and the cheapest of its node."""
    total = 0.0
    for i in range(len(p.starts) - 1):
        least = np.inf
        for a in range(p.starts[i], p.starts[i + 1]):
            least = min(least, costs[a])
        for a in range(p.starts[i], p.starts[i + 1]):
            total += costs[a] - least
    return total / max(len(costs), 1)
