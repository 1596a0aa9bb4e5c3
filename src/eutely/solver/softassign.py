"""Soft one-to-one assignment of points to Gaussian or Student-t centres, by balancing (Sinkhorn).

Only points within reach of a centre take part, found by a grid, so that the work is proportional to
the number of centres times their few neighbours.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.candidates import PairCosts
from eutely.costs.grid import Grid
from eutely.costs.near import grid_or_none, within
from eutely.kernel import bare, kernel

REACH, FAR_REACH = 40.0, 400.0
"""Squared distance, in variances times temperature, beyond which a point has no share."""

SLACK = 1e-4
"""Smallest weight of having no partner, for a centre and for a point."""

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
    covariances
        (m, 3, 3) float64, S.
    """

    whitening: NDArray[np.float64]
    heights: NDArray[np.float64]
    covariances: NDArray[np.float64]


class Shares(NamedTuple):
    """Shares of points that centres have: sparse rows, one per centre.

    Attributes
    ----------
    starts, points
        (m + 1,) and (s,) int32, pairs as in `eutely.candidates.Candidates`.
    values
        (s,) float64; rows and columns sum to at most 1.
    """

    starts: NDArray[np.int32]
    points: NDArray[np.int32]
    values: NDArray[np.float64]


def centres_of(covariances: NDArray[np.float64]) -> Centres:
    """Prepare covariances (m, 3, 3), positive definite."""
    spread = np.array(covariances, dtype=np.float64, order="C")
    whitening, heights = _whitened(spread)
    if not np.isfinite(heights).all():
        raise np.linalg.LinAlgError("covariances are not positive definite")
    return Centres(whitening, heights, spread)


@kernel
def _whitened(covariances: Any) -> Any:
    """Return the inverse Cholesky factors (m, 3, 3) and their log-determinants (m,)."""
    m = len(covariances)
    whitening = np.zeros((m, 3, 3))
    heights = np.empty(m)
    for i in range(m):
        s = covariances[i]
        a = np.sqrt(s[0, 0])
        b, d = s[1, 0] / a, s[2, 0] / a
        c = np.sqrt(s[1, 1] - b * b)
        e = (s[2, 1] - b * d) / c
        f = np.sqrt(s[2, 2] - d * d - e * e)
        w = whitening[i]
        w[0, 0], w[1, 1], w[2, 2] = 1 / a, 1 / c, 1 / f
        w[1, 0] = -b * w[0, 0] * w[1, 1]
        w[2, 1] = -e * w[1, 1] * w[2, 2]
        w[2, 0] = -(d * w[0, 0] + e * w[1, 0]) * w[2, 2]
        heights[i] = -np.log(a * c * f)
    return whitening, heights


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
        (n,), the centre that must have each point, or one of the values in `eutely.costs.near`; or
        None.
    extra
        added to the costs of places; or None.
    """

    freedom: float = np.inf
    c0: float | NDArray[np.float64] = np.inf
    pins: NDArray[np.int32] | None = None
    extra: PairCosts | None = None


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
    return soft_assign_on(
        grid_or_none(points), places, centres, rules, temperature=temperature, converged=converged
    )


def soft_assign_on(
    grid: Grid | None,
    places: NDArray[np.float64],
    centres: Centres,
    rules: Rules,
    *,
    temperature: float = 1.0,
    converged: bool = False,
) -> Shares:
    """Share points whose grid is known already; parameters: see `soft_assign`."""
    m, n = len(places), 0 if grid is None else len(grid.points)
    mean = centres.heights.mean() if m else 0.0
    # At high temperature places may be far off, so that hardly any point stays unmatched.
    odds = -temperature * (np.asarray(rules.c0, dtype=np.float64) + mean)
    spare = np.maximum(np.broadcast_to(np.exp(np.minimum(odds, 0.0)), m), SLACK**2)
    reach = temperature * (FAR_REACH if converged else REACH)
    near, squares = within(places, centres.whitening, np.full(m, reach), grid, rules.pins)
    extra = np.zeros(len(squares)) if rules.extra is None else rules.extra.on(near)
    values = _shared(
        near.starts,
        near.points,
        squares,
        extra,
        centres.heights - mean,
        _pinned(rules.pins, m),
        spare,
        n,
        float(temperature),
        float(rules.freedom),
        MOST_SWEEPS if converged else SWEEPS,
    )
    return Shares(near.starts, near.points, values)


def _pinned(pins: NDArray[np.int32] | None, m: int) -> NDArray[np.bool_]:
    """Return (m,), whether a point is pinned to each centre."""
    pinned = np.zeros(m, bool)
    if pins is not None:
        pinned[pins[pins >= 0]] = True
    return pinned


@kernel
def _shared(
    starts: Any,
    items: Any,
    squares: Any,
    extra: Any,
    heights: Any,
    pinned: Any,
    spare: Any,
    count: int,
    temperature: float,
    freedom: float,
    sweeps: int,
) -> Any:
    values = np.empty(len(items))
    for i in range(len(starts) - 1):
        for at in range(starts[i], starts[i + 1]):
            cost = student(squares[at] / temperature, freedom) - heights[i]
            values[at] = np.exp(-cost - extra[at] / temperature)
        if pinned[i]:
            values[starts[i]] = CERTAIN
    balance(starts, items, values, spare, count, sweeps)
    for i in range(len(starts) - 1):
        if pinned[i]:
            values[starts[i]] = 1.0
    return values


@kernel
def balance(starts: Any, items: Any, values: Any, spare: Any, count: int, sweeps: int) -> None:
    """Scale ``values`` in place until rows and columns sum to at most 1 (Sinkhorn).

    Row i has the entries ``starts[i]`` to ``starts[i + 1]``, each of a column ``items``;
    ``spare`` (m,) is the weight of a row and a column without partners, ``count`` the number of
    columns. Only the product of the two weights matters, so both get the same share of it. Ends
    after ``sweeps``, or when rows have settled after more than `SWEEPS`. Columns are unsigned where
    they are an index: otherwise each of them would be compared with 0, which takes as long again.
    """
    m = len(starts) - 1
    slack = 1.0
    if m > 0:
        total = 0.0
        for i in range(m):
            total += spare[i]
        slack = np.sqrt(total / m)
    left = np.empty(m)
    for i in range(m):
        left[i] = 1.0
    right = np.empty(count)
    for j in range(count):
        right[j] = 1.0
    last = np.empty(count)
    one, two, three = np.uint32(1), np.uint32(2), np.uint32(3)
    for sweep in range(sweeps):
        change = 0.0
        for j in range(count):
            last[j] = right[j]
            right[j] = slack
        # Rows and columns in one go: what a row adds to its columns depends on this row alone.
        for i in range(m):
            row, columns = values[starts[i] : starts[i + 1]], items[starts[i] : starts[i + 1]]
            # Four sums side by side: additions to one and the same wait for each other.
            a, b, c, d = spare[i] / slack, 0.0, 0.0, 0.0
            for quarter in range(len(row) >> 2):
                k = np.uint32(quarter << 2)
                a += row[k] * last[np.uint32(columns[k])]
                b += row[k + one] * last[np.uint32(columns[k + one])]
                c += row[k + two] * last[np.uint32(columns[k + two])]
                d += row[k + three] * last[np.uint32(columns[k + three])]
            for rest in range(len(row) & ~3, len(row)):
                k = np.uint32(rest)
                a += row[k] * last[np.uint32(columns[k])]
            total = (a + b) + (c + d)
            scale = 1 / total
            change = max(change, abs(scale - left[i]) * total)
            left[i] = scale
            for quarter in range(len(row) >> 2):
                k = np.uint32(quarter << 2)
                right[np.uint32(columns[k])] += row[k] * scale
                right[np.uint32(columns[k + one])] += row[k + one] * scale
                right[np.uint32(columns[k + two])] += row[k + two] * scale
                right[np.uint32(columns[k + three])] += row[k + three] * scale
            for rest in range(len(row) & ~3, len(row)):
                k = np.uint32(rest)
                right[np.uint32(columns[k])] += row[k] * scale
        for j in range(count):
            right[j] = 1 / right[j]
        if sweep >= SWEEPS and change < SETTLED:
            break
    for i in range(m):
        for at in range(starts[i], starts[i + 1]):
            values[at] *= left[i] * right[items[at]]


@bare
def student(distance: float, freedom: float) -> float:
    """Return minus the log-density, up to a constant, at a squared Mahalanobis distance in 3D."""
    if freedom == np.inf:
        return 0.5 * distance
    return float(0.5 * (freedom + 3) * np.log1p(distance / freedom))


@bare
def _squared(whitening: Any, place: Any, point: Any) -> float:
    total = 0.0
    for a in range(3):
        part = 0.0
        for b in range(3):
            part += whitening[a, b] * (point[b] - place[b])
        total += part * part
    return total


def student_costs(
    squares: NDArray[np.float64], heights: NDArray[np.float64], freedom: float
) -> NDArray[np.float64]:
    """Return minus the log-density, up to a constant, at squared distances of centres."""
    if np.isinf(freedom):
        return 0.5 * squares - heights
    return np.asarray(0.5 * (freedom + 3) * np.log1p(squares / freedom) - heights)


def square_of(costs: NDArray[np.float64], freedom: float) -> NDArray[np.float64]:
    """Return the squared distances, rounded up, at which `student_costs` without heights are so."""
    if np.isinf(freedom):
        squares = 2.0 * costs
    else:
        squares = freedom * np.expm1(np.minimum(2.0 * costs / (freedom + 3), 700.0))
    return np.asarray(np.maximum(squares, 0.0) * (1 + 1e-9))


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
    means = np.zeros((len(places), 3))
    for i in range(len(places)):
        total = 0.0
        for at in range(shares.starts[i], shares.starts[i + 1]):
            total += shares.values[at]
            for a in range(3):
                means[i, a] += shares.values[at] * points[shares.points[at], a]
        lack = max(0.0, 1 - total)
        for a in range(3):
            means[i, a] = (means[i, a] + lack * places[i, a]) / (total + lack)
    return means


@kernel
def mean_places(shares: Any, places: Any, count: int) -> Any:
    """Return (n, 3) and (n,): the mean place of the centres of each point, and its weight."""
    means = np.zeros((count, 3))
    weights = np.zeros(count)
    for i in range(len(places)):
        for at in range(shares.starts[i], shares.starts[i + 1]):
            j = shares.points[at]
            weights[j] += shares.values[at]
            for a in range(3):
                means[j, a] += shares.values[at] * places[i, a]
    for j in range(count):
        for a in range(3):
            if weights[j] > 0:
                means[j, a] /= weights[j]
    return means, weights
