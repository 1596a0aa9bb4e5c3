"""Matching of cells that predict each other's places: a mean field with decreasing temperature.

The neighbours of a cell predict its place, and it is assigned softly to the nuclei near there; the
mean of these nuclei is its place in the predictions for its neighbours. Cooling from broad to exact
costs lets a whole region settle together, where moving single nuclei would get stuck.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.candidates import PairCosts
from eutely.costs.near import grid_or_none
from eutely.kernel import kernel
from eutely.solver.assignment import assign
from eutely.solver.softassign import Centres, Rules, Shares, mean_points, soft_assign_on

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


class Relaxed(NamedTuple):
    """Result of the mean field.

    Attributes
    ----------
    expected
        (m, 3), the expected place of each cell.
    shares
        the soft assignment.
    rules
        that the assignment follows, with the costs of crowded nuclei.
    """

    expected: NDArray[np.float64]
    shares: Shares
    rules: Rules


class Settled(NamedTuple):
    """Result of the mean field, and the cheapest assignment by it.

    Attributes
    ----------
    nuclei
        (m,) int32, the nucleus of each cell, or -1.
    cost
        of this assignment: minus the log-density of the nuclei given the other cells.
    expected, shares, rules
        see `Relaxed`.
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
    """Match nuclei with cells by the mean field; parameters: see `relax`."""
    relaxed = relax(field, points, start, rules, cooling=cooling, crowd=crowd)
    nuclei, cost = assign(relaxed.expected, field.centres, points, relaxed.rules)
    return Settled(nuclei, cost, *relaxed)


def relax(
    field: Field,
    points: NDArray[np.float64],
    start: NDArray[np.float64],
    rules: Rules,
    *,
    cooling: tuple[float, ...] = COOLING,
    crowd: Crowd | None = None,
) -> Relaxed:
    """Share nuclei at ``points`` (n, 3) among the cells of ``field``.

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
    places, grid = np.array(start), grid_or_none(points)
    crowded, taken = rules, np.ones(len(points))
    if crowd is not None:
        cooling = (*cooling, *LINGERING)
        crowded = _against(rules, crowd, taken)
    for temperature in cooling:
        expected = predict(field.means, field.neighbours, field.predictors, places)
        shares = soft_assign_on(grid, expected, field.centres, crowded, temperature=temperature)
        places *= INERTIA
        places += (1 - INERTIA) * mean_points(shares, points, expected)
        if crowd is not None:
            shared = np.bincount(shares.points, shares.values, len(points))
            taken = (taken + np.minimum(shared, 1.0)) / 2
            crowded = _against(rules, crowd, taken)
    return Relaxed(expected, shares, crowded)


def _against(rules: Rules, crowd: Crowd, taken: NDArray[np.float64]) -> Rules:
    """Return the rules with the costs of nuclei next to those that are ``taken`` (n,)."""
    costs = PairCosts.of_points(crowd.against(taken))
    return rules._replace(extra=costs if rules.extra is None else rules.extra + costs)


@kernel
def predict(means: Any, neighbours: Any, predictors: Any, places: Any) -> Any:
    """Return (m, 3), the expected place of each cell when all others are at ``places``."""
    expected = np.empty((len(means), 3))
    for i in range(len(means)):
        for a in range(3):
            expected[i, a] = means[i, a]
        for k in range(neighbours.shape[1]):
            j = neighbours[i, k]
            if j < 0:
                break
            for a in range(3):
                for b in range(3):
                    expected[i, a] += predictors[i, k, a, b] * (places[j, b] - means[j, b])
    return expected
