"""Errors of one specimen: missing cells, spurious nuclei, coordinates; and the c0 of each cell.

A specimen has cell i with probability p_i, and spurious nuclei anywhere in the body with density b.
A nucleus at x that is cell i is explained by p_i f_i(x), both unmatched by (1 - p_i) b. So a match
pays while its cost, minus the log-density f_i, stays below c0_i = log p_i / (1 - p_i) - log b. Both
rates are those of the specimen, estimated from its matching: in a complete and clean specimen c0 is
so high that all nuclei are matched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.special import gammaln

from eutely.estimate.origins import presence
from eutely.solver.softassign import Centres, centres_of, squared_distances

AROUND = 6
"""Neighbours whose distance tells how dense cells are."""

LOWEST_RATE, HIGHEST_RATE = 1e-5, 0.9
"""Range of the rates, and of how often a cell may be missing."""

STRAYING = 0.01
"""Share of the cells that may be farther off than expected without being taken for missing."""

START = 0.05
"""Both rates, before anything is known about a specimen."""

SPREAD = 3.0
"""Pairs of a missing cell and a spurious nucleus in a specimen, per variance of the counts."""

COMPLETE = 0.005
"""Share of the cells by which a specimen may have more or less nuclei to count as complete. Then
three times as many may stray: as many spurious nuclei as missing cells would be a rare chance."""


LEVELS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
"""Errors that are compared, in typical distances of neighbours: standard deviations of each
coordinate. Below the first ones a specimen is as good as those of the atlas."""


class Rates(NamedTuple):
    """Of one specimen.

    Attributes
    ----------
    missing
        share of its cells that have no nucleus.
    spurious
        nuclei that are no cell, per cell.
    """

    missing: float
    spurious: float


def most_pairs(counts: NDArray[np.int64]) -> float:
    """Return how many pairs of a missing cell and a spurious nucleus a specimen may have.

    Chance makes their numbers vary, and with them the numbers of nuclei: where all specimens have
    as many nuclei as each other, none is missing and none is spurious.
    """
    apart = np.abs(counts - np.median(counts))
    # 1.4826 turns the median deviation of a Gaussian into its standard deviation.
    return float(SPREAD * (1.4826 * np.median(apart)) ** 2)


class Background(NamedTuple):
    """What the rates of all specimens have in common.

    Attributes
    ----------
    density
        logarithm of the cells per volume, the mean over all cells.
    presence
        (m,) float64 in 0 .. 1, how often each cell is seen, compared with the usual one.
    most
        pairs of a missing cell and a spurious nucleus that a specimen can have.
    partial
        whether specimens may show parts of the body: then the number of nuclei does not show
        whether one is complete.
    """

    density: float
    presence: NDArray[np.float64]
    most: float = np.inf
    partial: bool = False

    @classmethod
    def of(
        cls,
        means: NDArray[np.float64],
        seen: NDArray[np.float64] | NDArray[np.int64] | None = None,
        most: float = np.inf,
    ) -> Background:
        """Take cells at ``means`` (m, 3) that were seen in so many specimens: (m,)."""
        m = len(means)
        count = min(AROUND, m - 1)
        density = 0.0
        if count:
            distances, _ = KDTree(means).query(means, [count + 1])
            reach = np.maximum(np.asarray(distances)[:, 0], 1e-9)
            density = float(np.log(count / (4 / 3 * np.pi)) - 3 * np.log(reach).mean())
        return cls(density, np.ones(m) if seen is None else presence(seen), most)

    def start(self, count: int) -> Rates:
        """Return the rates to start with for a specimen of ``count`` nuclei."""
        return self._rates(START * float(self.presence.sum()), count)

    def c0(self, rates: Rates, freedom: float) -> NDArray[np.float64]:
        """Return (m,), the cost of leaving each cell and a nucleus unmatched.

        It compares with `eutely.solver.softassign.student_costs`, which lack the constant of the
        density.
        """
        present = np.clip(self.presence * (1 - rates.missing), LOWEST_RATE, 1 - LOWEST_RATE)
        odds = np.log(present / (1 - present))
        costs = odds - np.log(rates.spurious) - self.density + student_constant(freedom)
        return np.asarray(costs, dtype=np.float64)

    def rates(self, nuclei: NDArray[np.int32], count: int) -> Rates:
        """Estimate the rates of a specimen of ``count`` nuclei from those of its cells: (m,).

        A cell that lies far off leaves a cell and a nucleus unmatched, just as a missing cell and a
        spurious nucleus do together; a few such pairs mean nothing, twice as many are believed.
        """
        usual = max(float(self.presence.sum()), 1.0)
        matched = float((nuclei >= 0).sum())
        apart, straying = max(min(usual, count) - matched, 0.0), STRAYING * usual
        if self.partial or abs(count - usual) <= COMPLETE * usual:
            straying *= 3
        return self._rates(apart * min(max(apart / straying - 1, 0.0), 1.0), count)

    def _rates(self, pairs: float, count: int) -> Rates:
        usual, pairs = max(float(self.presence.sum()), 1.0), min(pairs, self.most)
        lacking, surplus = max(usual - count, 0.0), max(count - usual, 0.0)
        if self.partial:  # how many cells are in view is not known that well
            surplus = min(surplus, self.most)
        return Rates(
            float(np.clip((lacking + pairs) / usual, LOWEST_RATE, HIGHEST_RATE)),
            float(np.clip((surplus + pairs) / usual, LOWEST_RATE, HIGHEST_RATE)),
        )


def student_constant(freedom: float) -> float:
    """Return the logarithm of the Student-t density in 3D at its centre, for unit covariance."""
    if np.isinf(freedom):
        return float(-1.5 * np.log(2 * np.pi))
    return float(gammaln((freedom + 3) / 2) - gammaln(freedom / 2) - 1.5 * np.log(freedom * np.pi))


def loosened(centres: Centres, error: float) -> Centres:
    """Return centres of nuclei with an error of that standard deviation in each coordinate."""
    if not error:
        return centres
    return centres_of(centres.covariances + error**2 * np.eye(3))


def likeliest_error(
    places: NDArray[np.float64],
    centres: Centres,
    points: NDArray[np.float64],
    *,
    freedom: float,
    spacing: float,
) -> float:
    """Return the error for which matched nuclei are likeliest where they are.

    Parameters
    ----------
    places, centres
        (m, 3), where cells are expected, and how exactly.
    points
        (m, 3), their nuclei.
    freedom
        of the Student-t costs.
    spacing
        typical distance of neighbouring cells.
    """
    costs = []
    for level in LEVELS:
        wider = loosened(centres, level * spacing)
        distances = squared_distances(places, wider.whitening, points)
        costs.append((0.5 * (freedom + 3) * np.log1p(distances / freedom) - wider.heights).sum())
    return spacing * LEVELS[int(np.argmin(costs))]
