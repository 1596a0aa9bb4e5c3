"""Frank-Wolfe on doubly stochastic matrices, from their barycentre: the first start.

Instead of a permutation, X is any matrix whose rows and columns add up to 1. The objective falls
along the direction to the best assignment for its gradient, with the exact step; the last X is
rounded by one more assignment (J. T. Vogelstein et al., Fast approximate quadratic programming for
graph matching, PLOS ONE 10, 2015).
"""

import numpy as np
from numpy.typing import NDArray

from eutely.solver.lap_dense import lap_dense
from eutely.solver.qap_swaps import Matrices

STEPS = 30
"""Largest number of steps."""

LITTLE = 1e-9
"""Fall along a direction at which to stop, relative to the objective."""


def cheapest(costs: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the permutation of least linear cost: (n,), the column of each row of (n, n) costs."""
    highest = costs.max()
    spread = highest - costs.min()
    if not spread > 0:
        return np.arange(len(costs), dtype=np.int32)
    # Only negative costs are taken, so that all are made negative; whole costs stay whole.
    negative = costs - highest - spread - min(spread, 1.0)
    columns: NDArray[np.int32] = lap_dense(np.ascontiguousarray(negative))[0]
    return columns


def relaxed_start(m: Matrices) -> NDArray[np.int64]:
    """Return a good matching, (n,) int64, of a problem of two or more objects."""
    n = len(m.flows)
    x = np.full((n, n), 1.0 / n)

    def product(point: NDArray[np.float64]) -> NDArray[np.float64]:
        forth = m.flows @ point @ m.distances.T
        return forth + (m.flows.T @ point @ m.distances if m.asymmetric else forth)

    quadratic = product(x)
    for _ in range(STEPS):
        gradient = quadratic + m.linear
        corner = np.zeros((n, n))
        corner[np.arange(n), cheapest(gradient)] = 1.0
        way = corner - x
        slope = float((gradient * way).sum())
        if slope >= -LITTLE * abs(float((gradient * x).sum())):
            break
        ahead = product(way)
        bend = float((ahead * way).sum()) / 2
        step = min(1.0, -slope / (2 * bend)) if bend > 0 else 1.0
        x = x + step * way
        quadratic = quadratic + step * ahead
    return cheapest(-x).astype(np.int64)
