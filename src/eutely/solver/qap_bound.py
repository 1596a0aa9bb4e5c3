"""Lower bounds of quadratic assignments that take milliseconds: no matching costs less.

They are far from tight (often by 10 to 40%): they say that a solution is near the optimum only
where the problem is easy.
"""

import numpy as np
from numpy.typing import NDArray

from eutely.quadratic import QuadraticAssignment
from eutely.solver.qap_relaxation import cheapest
from eutely.solver.qap_swaps import Matrices, matrices_of

ROUNDING = 1e-9
"""Allowance for rounding errors, relative to the largest terms."""


def assignment_bound(problem: QuadraticAssignment) -> float:
    """Return the best of the lower bounds; a whole number if all costs are."""
    if len(problem) < 2:
        return problem.objective(np.arange(len(problem)))
    m = matrices_of(problem)
    bounds = [_gilmore_lawler(m.flows, m.distances, m.linear)]
    if m.asymmetric:
        bounds.append(_gilmore_lawler(m.flows.T, m.distances.T, m.linear))
    else:
        bounds.append(_projection(m))
    return float(np.ceil(max(bounds)) if problem.whole else max(bounds))


def _gilmore_lawler(
    flows: NDArray[np.float64], distances: NDArray[np.float64], linear: NDArray[np.float64]
) -> float:
    """Return the bound of Gilmore and Lawler.

    Object i at place k costs at least the product of its flows in rising and its distances in
    falling order; the bound is the cheapest assignment by these costs.
    """
    n = len(flows)
    others = ~np.eye(n, dtype=bool)
    rising = np.sort(flows[others].reshape(n, n - 1), axis=1)
    falling = -np.sort(-distances[others].reshape(n, n - 1), axis=1)
    costs = rising @ falling.T + linear
    terms = np.abs(rising) @ np.abs(falling.T) + np.abs(linear)
    return _least(costs) - ROUNDING * n * float(terms.max())


def _projection(m: Matrices) -> float:
    """Return the projection bound of Hadley, Rendl and Wolkowicz, for symmetric matrices.

    A permutation is the mean of all, plus an orthogonal matrix on what is orthogonal to the vector
    of ones. There, the quadratic cost is at least the product of the eigenvalues of one matrix in
    rising and of the other in falling order; what remains is linear.
    """
    n = len(m.flows)
    basis = np.vstack([np.full(n - 1, -1 / np.sqrt(n)), np.eye(n - 1) - 1 / (n + np.sqrt(n))])
    rising, falling = (
        np.linalg.eigvalsh(basis.T @ matrix @ basis) for matrix in (m.flows, m.distances)
    )
    quadratic = float(rising @ falling[::-1])
    out, far = m.flows.sum(axis=1), m.distances.sum(axis=1)
    costs = 2 / n * np.outer(out, far) + m.linear
    both = float(out.sum() * far.sum()) / n**2
    largest = float(np.abs(m.flows).max()) * float(np.abs(m.distances).max())
    terms = n * n * largest + n * float(np.abs(costs).max())
    return quadratic + _least(costs) - both - ROUNDING * terms


def _least(costs: NDArray[np.float64]) -> float:
    """Return the least linear cost of a permutation."""
    return float(costs[np.arange(len(costs)), cheapest(costs)].sum())
