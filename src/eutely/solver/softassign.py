"""Soft one-to-one assignment of points to Gaussian or Student-t centres, by balancing (Sinkhorn).

Only points within reach of a centre take part, taken from a window of the points sorted along x, so
that the work is proportional to the number of centres times their few neighbours.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import kernel

REACH, FAR_REACH = 40.0, 400.0
"""Squared distance, in variances times temperature, beyond which a point has no share."""

SLACK = 1e-4
"""Smallest weight of having no partner, for a centre and for a point."""

FREE, NOBODYS = -1, -2
"""Pins of points that any centre may have, and of points that no centre may have."""

NOTHING = np.zeros((0, 0))
"""Stands for no additional costs."""

CERTAIN = 1e9
"""Weight of a pinned point."""

SWEEPS, MOST_SWEEPS = 8, 300
"""Sweeps of balancing rows and columns: on the way to a matching, and at most for probabilities."""

SETTLED = 1e-4
"""Relative change of the scale of rows below which more than ``SWEEPS`` sweeps end."""


class Centres(NamedTuple):
    """Covariances of centres, in the form that kernels take.

    Attributes
    ----------
    whitening
        (m, 3, 3) float64, W with W S W' = 1 for the covariance S.
    heights
        (m,) float64, logarithm of the determinant of W.
    spreads
        (m,) float64, standard deviation along x.
    """

    whitening: NDArray[np.float64]
    heights: NDArray[np.float64]
    spreads: NDArray[np.float64]


class Shares(NamedTuple):
    """Shares of points that centres have: sparse rows, one per centre.

    Attributes
    ----------
    starts
        (m + 1,) int64, where the entries of each centre start.
    points
        (s,) int32, the point of each entry.
    values
        (s,) float64; rows and columns sum to at most 1.
    """

    starts: NDArray[np.int64]
    points: NDArray[np.int32]
    values: NDArray[np.float64]


def centres_of(covariances: NDArray[np.float64]) -> Centres:
    """Prepare covariances (m, 3, 3), positive definite."""
    whitening = np.ascontiguousarray(np.linalg.inv(np.linalg.cholesky(covariances)))
    return Centres(
        whitening,
        np.log(np.diagonal(whitening, axis1=1, axis2=2)).sum(axis=1),
        np.sqrt(covariances[:, 0, 0]),
    )


class Rules(NamedTuple):
    """What an assignment depends on apart from places.

    Attributes
    ----------
    freedom
        degrees of freedom of the Student-t costs; inf for Gaussian ones.
    c0
        cost of leaving a centre and a point without partners, on the scale of `student_costs`; one
        value, or one per centre.
    pins
        (n,), the centre that must have each point, `FREE` or `NOBODYS`; or None.
    extra
        (m, n), added to the costs of places; or None.
    """

    freedom: float = np.inf
    c0: float | NDArray[np.float64] = np.inf
    pins: NDArray[np.int32] | None = None
    extra: NDArray[np.float64] | None = None


def soft_assign(
    places: NDArray[np.float64],
    centres: Centres,
    points: NDArray[np.float64],
    rules: Rules,
    *,
    temperature: float = 1.0,
    converged: bool = False,
) -> Shares:
    """Share the points (n, 3) among centres at ``places`` (m, 3), at most one point per centre.

    Parameters
    ----------
    places, centres, points
        where the centres are, their covariances, and the points.
    rules
        costs apart from those of places.
    temperature
        factor on all covariances.
    converged
        balance until nothing changes, and give shares to points farther off as well: probabilities
        instead of a step on the way to them.
    """
    order = np.argsort(points[:, 0], kind="stable")
    mean = centres.heights.mean()
    # At high temperature places may be far off, so that hardly any point stays unmatched.
    odds = -temperature * (np.asarray(rules.c0, dtype=np.float64) + mean)
    spare = np.broadcast_to(np.exp(np.minimum(odds, 0.0)), len(places))
    return Shares(
        *_shares(
            np.ascontiguousarray(places),
            centres.whitening,
            centres.heights - mean,
            centres.spreads,
            np.maximum(spare, SLACK**2),
            np.full(len(points), FREE, np.int32) if rules.pins is None else rules.pins,
            np.ascontiguousarray(points),
            points[order, 0].copy(),
            order,
            NOTHING if rules.extra is None else rules.extra,
            float(temperature),
            float(rules.freedom),
            FAR_REACH if converged else REACH,
            MOST_SWEEPS if converged else SWEEPS,
        )
    )


@kernel
def _shares(
    places: Any,
    whitening: Any,
    heights: Any,
    spreads: Any,
    spare: Any,
    pins: Any,
    points: Any,
    sorted_x: Any,
    order: Any,
    extra: Any,
    temperature: float,
    freedom: float,
    farthest: float,
    sweeps: int,
) -> Any:
    m, n = len(places), len(points)
    starts = np.zeros(m + 1, np.int64)
    items = np.empty(64 * m, np.int32)
    values = np.empty(64 * m)
    end = 0
    pinned = np.full(m, -1, np.int32)
    for j in range(n):
        if pins[j] >= 0:
            pinned[pins[j]] = j
    for i in range(m):
        if pinned[i] >= 0:
            if end == len(items):
                items = np.concatenate((items, np.empty(end, np.int32)))
                values = np.concatenate((values, np.empty(end)))
            items[end] = pinned[i]
            values[end] = CERTAIN
            end += 1
            starts[i + 1] = end
            continue
        reach = spreads[i] * np.sqrt(temperature * farthest)
        low = np.searchsorted(sorted_x, places[i, 0] - reach)
        high = np.searchsorted(sorted_x, places[i, 0] + reach)
        for at in range(low, high):
            j = order[at]
            if pins[j] != FREE:
                continue
            distance = _squared(whitening[i], places[i], points[j]) / temperature
            if distance > farthest:
                continue
            if end == len(items):
                items = np.concatenate((items, np.empty(end, np.int32)))
                values = np.concatenate((values, np.empty(end)))
            items[end] = j
            cost = student(distance, freedom) - heights[i]
            if len(extra):
                cost += extra[i, j] / temperature
            values[end] = np.exp(-cost)
            end += 1
        starts[i + 1] = end
    balance(starts, items[:end], values[:end], spare, n, sweeps)
    for i in range(m):
        if pinned[i] >= 0:
            values[starts[i]] = 1.0
    return starts, items[:end].copy(), values[:end].copy()


@kernel
def balance(starts: Any, items: Any, values: Any, spare: Any, count: int, sweeps: int) -> None:
    """Scale ``values`` in place until rows and columns sum to at most 1 (Sinkhorn).

    Row i has the entries ``starts[i]`` to ``starts[i + 1]``, each of a column ``items``;
    ``spare`` (m,) is the weight of a row and a column without partners, ``count`` the number of
    columns. Only the product of the two weights matters, so both get the same share of it. Ends
    after ``sweeps``, or when rows have settled after more than `SWEEPS`.
    """
    m = len(starts) - 1
    slack = np.sqrt(spare.mean()) if m else 1.0
    left = np.ones(m)
    right = np.ones(count)
    for sweep in range(sweeps):
        change = 0.0
        for i in range(m):
            total = spare[i] / slack
            for at in range(starts[i], starts[i + 1]):
                total += values[at] * right[items[at]]
            change = max(change, abs(1 / total - left[i]) * total)
            left[i] = 1 / total
        right[:] = slack
        for i in range(m):
            for at in range(starts[i], starts[i + 1]):
                right[items[at]] += values[at] * left[i]
        for j in range(count):
            right[j] = 1 / right[j]
        if sweep >= SWEEPS and change < SETTLED:
            break
    for i in range(m):
        for at in range(starts[i], starts[i + 1]):
            values[at] *= left[i] * right[items[at]]


@kernel
def student(distance: float, freedom: float) -> float:
    """Return minus the log-density, up to a constant, at a squared Mahalanobis distance in 3D."""
    if freedom == np.inf:
        return 0.5 * distance
    return float(0.5 * (freedom + 3) * np.log1p(distance / freedom))


@kernel
def _squared(whitening: Any, place: Any, point: Any) -> float:
    total = 0.0
    for a in range(3):
        part = 0.0
        for b in range(3):
            part += whitening[a, b] * (point[b] - place[b])
        total += part * part
    return total


@kernel
def student_costs(places: Any, whitening: Any, heights: Any, points: Any, freedom: float) -> Any:
    """Return (m, n) float64: minus the log-density of each point under each centre.

    For finite ``freedom`` the logarithm is a polynomial, exact to 1e-8, which the compiler turns
    into code for several points at once: all pairs of 558 cost 1 ms instead of 11.
    """
    m, n = len(places), len(points)
    costs = np.empty((m, n))
    x, y, z = points[:, 0].copy(), points[:, 1].copy(), points[:, 2].copy()
    row = np.empty(n)
    bits = row.view(np.int64)
    exponents = np.empty(n)
    fractions = np.empty(n, np.int64)
    mantissas = fractions.view(np.float64)
    factor = 0.5 * (freedom + 3)
    for i in range(m):
        w = whitening[i]
        px, py, pz = places[i, 0], places[i, 1], places[i, 2]
        for j in range(n):
            dx, dy, dz = x[j] - px, y[j] - py, z[j] - pz
            a = w[0, 0] * dx + w[0, 1] * dy + w[0, 2] * dz
            b = w[1, 0] * dx + w[1, 1] * dy + w[1, 2] * dz
            c = w[2, 0] * dx + w[2, 1] * dy + w[2, 2] * dz
            row[j] = a * a + b * b + c * c
        if freedom == np.inf:
            for j in range(n):
                costs[i, j] = 0.5 * row[j] - heights[i]
            continue
        for j in range(n):
            row[j] = 1.0 + row[j] / freedom
        for j in range(n):
            exponents[j] = (bits[j] >> 52) - 1023
            fractions[j] = (bits[j] & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000
        for j in range(n):
            s = (mantissas[j] - 1.0) / (mantissas[j] + 1.0)
            t = s * s
            series = 1 / 11 + t * (1 / 13 + t / 15)
            series = 1 / 3 + t * (1 / 5 + t * (1 / 7 + t * (1 / 9 + t * series)))
            logarithm = exponents[j] * 0.6931471805599453 + 2.0 * s * (1.0 + t * series)
            costs[i, j] = factor * logarithm - heights[i]
    return costs


@kernel
def squared_distances(places: Any, whitening: Any, points: Any) -> Any:
    """Return (m,) float64: the squared Mahalanobis distance of point i to centre i."""
    squares = np.empty(len(places))
    for i in range(len(places)):
        squares[i] = _squared(whitening[i], places[i], points[i])
    return squares


@kernel
def mean_points(shares: Any, points: Any, places: Any) -> Any:
    """Return (m, 3): the mean point of each centre; its place stands for the share it lacks."""
    means = np.empty((len(places), 3))
    for i in range(len(places)):
        total = 0.0
        mean = np.zeros(3)
        for at in range(shares.starts[i], shares.starts[i + 1]):
            total += shares.values[at]
            mean += shares.values[at] * points[shares.points[at]]
        lack = max(0.0, 1 - total)
        means[i] = (mean + lack * places[i]) / (total + lack)
    return means


@kernel
def mean_places(shares: Any, places: Any, count: int) -> Any:
    """Return (n, 3) and (n,): the mean place of the centres of each point, and its weight."""
    means = np.zeros((count, 3))
    weights = np.zeros(count)
    for i in range(len(places)):
        for at in range(shares.starts[i], shares.starts[i + 1]):
            weights[shares.points[at]] += shares.values[at]
            means[shares.points[at]] += shares.values[at] * places[i]
    for j in range(count):
        if weights[j] > 0:
            means[j] /= weights[j]
    return means, weights
