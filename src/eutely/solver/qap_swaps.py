"""Tabu search over exchanges of two places, each evaluated in advance and kept up to date.

With b the distances in the order of the matching, and zero diagonals, let

    slopes[u, v] = linear[u, p[v]] + sum over k of flows[u, k] b[v, k] + flows[k, u] b[k, v],

what object u would cost at the place of object v. Exchanging the places of u and v then changes the
objective by

    slopes[u, v] + slopes[v, u] - slopes[u, u] - slopes[v, v]
    + (flows[u, v] + flows[v, u]) (b[u, v] + b[v, u]).

An exchange adds to ``slopes`` the product of a column and a row (two, if both matrices are
asymmetric) and exchanges two of its columns. So all n (n - 1) / 2 changes follow in O(n^2) time,
a few operations for each, in loops over consecutive numbers.

The search always makes the best exchange, even if that costs something, but no object returns for
some time to where it was (E. Taillard, Robust taboo search for the quadratic assignment problem,
Parallel Computing 17, 1991).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import bare
from eutely.quadratic import QuadraticAssignment
from eutely.solver.state import uniform

SHORTEST, LONGEST = 0.9, 1.1
"""For how many exchanges an object may not return to a place, in objects."""

TOLERANCE = 1e-9
"""Smallest improvement that counts, relative to the objective."""


class Matrices(NamedTuple):
    """A problem with zero diagonals, in the form that kernels take.

    Attributes
    ----------
    flows, distances
        (n, n) float64. Both are symmetric, or neither is: where one is, the other counts only in
        the mean of its two halves.
    both
        (n, n) float64, flows plus their transpose.
    linear
        (n, n) float64, with what the diagonals cost.
    asymmetric
        whether the matrices are.
    """

    flows: NDArray[np.float64]
    distances: NDArray[np.float64]
    both: NDArray[np.float64]
    linear: NDArray[np.float64]
    asymmetric: bool


class Tables(NamedTuple):
    """Memory of the search: made once.

    Attributes
    ----------
    crossed, both
        (n, n) float64, distances in the order of the matching, and these plus their transpose.
    slopes, changes
        (n, n) float64, see above; ``changes`` holds exchanges of u < v at ``[u, v]``.
    lowest
        (n,) float64, no change in column v is lower than ``lowest[v]``.
    barred
        (n, n) int64, the number of the exchange before which an object may not return to a place.
    vectors
        (4, n) float64, differences of flows and of distances between the two that are exchanged.
    """

    crossed: NDArray[np.float64]
    both: NDArray[np.float64]
    slopes: NDArray[np.float64]
    changes: NDArray[np.float64]
    lowest: NDArray[np.float64]
    barred: NDArray[np.int64]
    vectors: NDArray[np.float64]


def matrices_of(problem: QuadraticAssignment) -> Matrices:
    """Return the arrays of a problem, symmetric where that is possible."""
    flows, distances = problem.flows.copy(), problem.distances.copy()
    linear = problem.linear + np.outer(np.diag(flows), np.diag(distances))
    np.fill_diagonal(flows, 0.0)
    np.fill_diagonal(distances, 0.0)
    asymmetric = False
    if np.array_equal(flows, flows.T):
        distances = (distances + distances.T) / 2
    elif np.array_equal(distances, distances.T):
        flows = (flows + flows.T) / 2
    else:
        asymmetric = True
    return Matrices(flows, distances, flows + flows.T, linear, asymmetric)


def tables_of(n: int) -> Tables:
    """Return the memory of searches in a problem of n objects."""
    crossed, both, slopes, changes = np.zeros((4, n, n))
    barred = np.zeros((n, n), np.int64)
    return Tables(crossed, both, slopes, changes, np.zeros(n), barred, np.zeros((4, n)))


@bare
def copy(values: Any, out: Any) -> None:
    """Write ``values`` into ``out``; the assignment of a slice would count references."""
    for k in range(len(values)):
        out[k] = values[k]


@bare
def place_all(m: Any, t: Any, places: Any) -> float:
    """Fill the tables for a matching, (n,) int64, and return its objective."""
    n = len(places)
    for u in range(n):
        for v in range(n):
            t.crossed[u, v] = m.distances[places[u], places[v]]
            t.slopes[u, v] = m.linear[u, places[v]]
    for u in range(n):
        for v in range(n):
            t.both[u, v] = t.crossed[u, v] + t.crossed[v, u]
    for u in range(n):
        slopes = t.slopes[u]
        for k in range(n):
            # Symmetric: both sums are equal.
            out = m.flows[u, k] if m.asymmetric else 0.0
            back = m.flows[k, u] if m.asymmetric else m.both[u, k]
            if back != 0.0:
                row = t.crossed[k]
                for v in range(n):
                    slopes[v] += back * row[v]
            if out != 0.0:
                for v in range(n):
                    slopes[v] += out * t.crossed[v, k]
    cost = 0.0
    for u in range(n):
        # Every pair counts at both of its ends, the linear costs once.
        cost += 0.5 * (t.slopes[u, u] + m.linear[u, places[u]])
        t.lowest[u] = np.inf
    for u in range(n):
        for v in range(u + 1, n):
            _evaluate(m, t, u, v)
    return cost


@bare
def _evaluate(m: Any, t: Any, u: Any, v: Any) -> None:
    """Compute the change by one exchange, u < v."""
    change = t.slopes[u, v] + t.slopes[v, u] - t.slopes[u, u] - t.slopes[v, v]
    change += m.both[u, v] * t.both[u, v]
    t.changes[u, v] = change
    t.lowest[v] = min(t.lowest[v], change)


@bare
def exchange(m: Any, t: Any, places: Any, r: Any, s: Any) -> None:
    """Exchange the places of the objects r and s."""
    n = len(places)
    x, y, x_back, y_back = t.vectors[0], t.vectors[1], t.vectors[2], t.vectors[3]
    ours, theirs, mine, yours = m.flows[r], m.flows[s], t.crossed[r], t.crossed[s]
    for v in range(n):
        x[v] = ours[v] - theirs[v]
        y[v] = yours[v] - mine[v]
        t.lowest[v] = np.inf
    if m.asymmetric:
        for v in range(n):
            x_back[v] = m.flows[v, r] - m.flows[v, s]
            y_back[v] = t.crossed[v, s] - t.crossed[v, r]
    else:
        for v in range(n):
            x[v] *= 2.0
    for u in range(n):
        slopes = t.slopes[u]
        factor = x[u]
        if factor != 0.0:
            for v in range(n):
                slopes[v] += factor * y[v]
        if m.asymmetric and x_back[u] != 0.0:
            factor = x_back[u]
            for v in range(n):
                slopes[v] += factor * y_back[v]
        slopes[r], slopes[s] = slopes[s], slopes[r]
    _exchange_both(t.crossed, r, s)
    _exchange_both(t.both, r, s)
    places[r], places[s] = places[s], places[r]
    for u in range(n - 1):
        # Slices: the compiler sees that no index counts from the end.
        changes, lowest = t.changes[u, u + 1 :], t.lowest[u + 1 :]
        xs, ys, x_u, y_u = x[u + 1 :], y[u + 1 :], x[u], y[u]
        if m.asymmetric:
            xs_back, ys_back, xb, yb = x_back[u + 1 :], y_back[u + 1 :], x_back[u], y_back[u]
            for v in range(len(changes)):
                changes[v] += (xs_back[v] - xb) * (yb - ys_back[v])
        for v in range(len(changes)):
            change = changes[v] + (xs[v] - x_u) * (y_u - ys[v])
            changes[v] = change
            lowest[v] = change if change < lowest[v] else lowest[v]
    # What was added for pairs with r or s is wrong; ``lowest`` may only be too low by that.
    for v in range(n):
        if v != r:
            _evaluate(m, t, min(r, v), max(r, v))
        if v not in (r, s):
            _evaluate(m, t, min(s, v), max(s, v))


@bare
def _exchange_both(matrix: Any, r: Any, s: Any) -> None:
    """Exchange two rows and the same two columns."""
    ours, theirs = matrix[r], matrix[s]
    for v in range(len(matrix)):
        ours[v], theirs[v] = theirs[v], ours[v]
    for v in range(len(matrix)):
        row = matrix[v]
        row[r], row[s] = row[s], row[r]


@bare
def tabu_search(m: Any, t: Any, places: Any, best: Any, steps: int, random: Any) -> float:
    """Make ``steps`` exchanges; return the lowest objective on the way.

    Parameters
    ----------
    m, t
        problem and memory, see `Matrices` and `Tables`.
    places
        (n,) int64, where to start; the last matching on return.
    best
        (n,) int64, the matching with the lowest objective on return.
    steps
        number of exchanges.
    random
        state of the random numbers.
    """
    n = len(places)
    now = place_all(m, t, places)
    lowest = now
    copy(places, best)
    for u in range(n):
        for v in range(n):
            t.barred[u, v] = 0
    little = TOLERANCE * abs(now)
    for step in range(1, steps + 1):
        r, s = _best_exchange(t, places, step, lowest - little - now, random)
        if r < 0:  # all are barred
            s = 1 + int(uniform(random) * (n - 1))
            r = int(uniform(random) * s)
        now += t.changes[r, s]
        for u in (r, s):
            span = SHORTEST + (LONGEST - SHORTEST) * uniform(random)
            t.barred[u, places[u]] = step + 1 + int(span * n)
        exchange(m, t, places, r, s)
        if now < lowest - little:
            lowest = now
            copy(places, best)
    return lowest


@bare
def _best_exchange(t: Any, places: Any, step: int, enough: float, random: Any) -> Any:
    """Return the two objects of the best exchange that is not barred, or -1 twice.

    One that lowers the objective by more than ``enough``, to the lowest so far, is never barred.
    Columns come in an order that begins anywhere, so that equal exchanges are equally likely.
    """
    n = len(places)
    first = 0
    for v in range(n):
        if t.lowest[v] < t.lowest[first]:
            first = v
    offset = int(uniform(random) * n)
    least, r, s = np.inf, -1, -1
    for k in range(-1, n):
        v = first if k < 0 else (k + offset) % n
        if t.lowest[v] >= least:
            continue
        for u in range(v):
            change = t.changes[u, v]
            if change < least and (
                t.barred[u, places[v]] <= step or t.barred[v, places[u]] <= step or change < enough
            ):
                least, r, s = change, u, v
    return r, s
