"""Matching of cells that predict each other's places: a mean field with decreasing temperature.

The neighbours of a cell predict its place, and it is assigned softly to the nuclei near there; the
mean of these nuclei is its place in the predictions for its neighbours. Cooling from broad to exact
costs lets a whole region settle together, where moving single nuclei would get stuck.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import kernel
from eutely.solver.lap_dense import lap_dense
from eutely.solver.softassign import (
    CERTAIN,
    FREE,
    Centres,
    Rules,
    Shares,
    mean_points,
    soft_assign,
    student_costs,
)

COOLING = (4.0, 4.0, 2.0, 2.0, 1.4, 1.0, 1.0, 1.0, 1.0)
"""Temperatures without a good start; with a good start the first two are left out."""

LINGERING = (1.0,) * 5
"""Further temperatures where nuclei crowd each other, until it is settled which is spurious."""

INERTIA = 0.3
"""Share of the old places in the new places: prevents neighbours from oscillating."""


class Field(NamedTuple):
    """Gaussian distributions of cells given their neighbours.

    Attributes
    ----------
    means
        (m, 3) float64, mean places.
    neighbours
        (m, k) int32, -1 where there are fewer.
    predictors
        (m, k, 3, 3) float64, maps a neighbour's displacement to that of the expected place.
    centres
        conditional covariances.
    """

    means: NDArray[np.float64]
    neighbours: NDArray[np.int32]
    predictors: NDArray[np.float64]
    centres: Centres


class Crowd(NamedTuple):
    """Pairs of nuclei so close to each other that one of them may be spurious.

    Attributes
    ----------
    pairs
        (p, 2), indices of nuclei.
    costs
        (p,) float64, cost of both being cells.
    """

    pairs: NDArray[np.intp]
    costs: NDArray[np.float64]

    def against(self, taken: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (n,), the cost of each nucleus being a cell, given the shares ``taken`` (n,)."""
        first, second = self.pairs.T
        n = len(taken)
        costs = np.bincount(first, self.costs * taken[second], n)
        costs += np.bincount(second, self.costs * taken[first], n)
        return np.asarray(costs)


class Settled(NamedTuple):
    """Result of the mean field.

    Attributes
    ----------
    nuclei
        (m,) int32, the nucleus of each cell, or -1.
    cost
        of this assignment: minus the log-density of the nuclei given the other cells.
    expected
        (m, 3), the expected place of each cell.
    shares
        the soft assignment.
    rules
        that the assignment follows, with the costs of crowded nuclei.
    """

    nuclei: NDArray[np.int32]
    cost: float
    expected: NDArray[np.float64]
    shares: Shares
    rules: Rules


def settle(
    field: Field,
    points: NDArray[np.float64],
    start: NDArray[np.float64],
    rules: Rules,
    *,
    cooling: tuple[float, ...] = COOLING,
    crowd: Crowd | None = None,
) -> Settled:
    """Match nuclei at ``points`` (n, 3) with the cells of ``field``.

    Parameters
    ----------
    field, points
        in the same frame and unit.
    start
        (m, 3), the first places of the cells.
    rules
        costs apart from those of places.
    cooling
        temperatures, at least one.
    crowd
        pairs of nuclei that are unlikely to be both cells; or None.
    """
    places = np.array(start)
    costs, taken = rules.extra, np.ones(len(points))
    others = np.zeros((len(places), len(points))) if costs is None else costs
    if crowd is not None:
        cooling = (*cooling, *LINGERING)
        costs = others + crowd.against(taken)
    for temperature in cooling:
        expected = predict(field.means, field.neighbours, field.predictors, places)
        shares = soft_assign(
            expected,
            field.centres,
            points,
            rules._replace(extra=costs),
            temperature=temperature,
        )
        places *= INERTIA
        places += (1 - INERTIA) * mean_points(shares, points, expected)
        if crowd is not None:
            shared = np.bincount(shares.points, shares.values, len(points))
            taken = (taken + np.minimum(shared, 1.0)) / 2
            costs = others + crowd.against(taken)
    rules = rules._replace(extra=costs)
    nuclei, cost = assign(expected, field.centres, points, rules)
    return Settled(nuclei, cost, expected, shares, rules)


def assign(
    places: NDArray[np.float64],
    centres: Centres,
    points: NDArray[np.float64],
    rules: Rules,
) -> tuple[NDArray[np.int32], float]:
    """Return the cheapest assignment (m,) of points to centres, -1 for none, and its cost.

    An unmatched centre adds its c0; where there are more centres than points, only those in excess
    of the number that must stay unmatched.
    """
    costs = student_costs(
        np.ascontiguousarray(places),
        centres.whitening,
        centres.heights,
        np.ascontiguousarray(points),
        float(rules.freedom),
    )
    if rules.extra is not None:
        costs += rules.extra
    c0 = np.broadcast_to(np.asarray(rules.c0, dtype=np.float64), len(costs))
    gains = costs - c0[:, None]
    pins = rules.pins
    if pins is not None:
        pinned = np.flatnonzero(pins >= 0)
        gains[:, pins != FREE] = np.inf
        gains[pins[pinned]] = np.inf
        gains[pins[pinned], pinned] = -CERTAIN
    nuclei, _, _ = lap_dense(gains)
    rows = np.flatnonzero(nuclei >= 0)
    spare = np.sort(c0[nuclei < 0])[max(len(costs) - len(points), 0) :]
    return nuclei, float(costs[rows, nuclei[rows]].sum() + spare.sum())


@kernel
def predict(means: Any, neighbours: Any, predictors: Any, places: Any) -> Any:
    """Return (m, 3), the expected place of each cell when all others are at ``places``."""
    expected = means.copy()
    for i in range(len(means)):
        for k in range(neighbours.shape[1]):
            j = neighbours[i, k]
            if j < 0:
                break
            for a in range(3):
                for b in range(3):
                    expected[i, a] += predictors[i, k, a, b] * (places[j, b] - means[j, b])
    return expected
