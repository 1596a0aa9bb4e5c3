"""Cells that were split in two: one half of the specimens has the one, the rest has the other.

Specimens that were first matched with different nuclei of one cell, or that lie a little off, can
leave two cells where the animal has one. Hardly any specimen has both, and they lie close to each
other. They become one cell where that makes the specimens likelier.
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.estimate import Gaussians, robust_gaussians
from eutely.features import discriminating_scores
from eutely.fit.rates import START, Background, student_constant
from eutely.geometry import median_places
from eutely.solver.softassign import centres_of, squared_distances

log = logging.getLogger("eutely")

REACH = 1.5
"""Distance of two cells, in typical distances of neighbours, up to which they may be one."""

RARELY = 0.15
"""Share of the specimens with the rarer cell that may have both."""

FREE = 4
"""Parameters of a cell: its place, and how often it is there."""


def merged(cells: Cells, settings: Estimate) -> Cells:
    """Merge pairs of cells that are hardly ever in one specimen, where one cell is likelier.

    Two cells i, j in N specimens become one if that lowers the cost

        - sum log f(x) - sum log P(present or not) + FREE / 2 log N  for each cell,

    where f is the density of places (Student-t) and of scores (Gaussian). A specimen that has both
    cells keeps the nucleus of the more frequent one, the other is a spurious nucleus.
    """
    pairs = _rarely_together(cells)
    if not len(pairs):
        return cells
    gains = _gains(cells, pairs, settings)
    table = np.array(cells.nuclei)
    gone = np.zeros(cells.count, bool)
    used = np.zeros(cells.count, bool)
    for number in np.argsort(-gains, kind="stable"):
        first, second = pairs[number]
        if gains[number] > 0 and not used[first] and not used[second]:
            used[[first, second]] = True
            gone[second] = True
            table[:, first] = _united(table[:, first], table[:, second])
    if gone.any():
        log.info("cells: %d merged with another one", int(gone.sum()))
    return cells.with_nuclei(table[:, ~gone])


def _united(first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return (N,), the nuclei of two cells; of the first one where a specimen has both."""
    return np.where(first >= 0, first, second)


def _rarely_together(cells: Cells) -> NDArray[np.int64]:
    """Return (p, 2), close cells that hardly any specimen has both of, the more frequent first."""
    seen = np.array(cells.nuclei) >= 0
    counts = seen.sum(axis=0)
    there = np.flatnonzero(counts > 0)
    means = median_places(cells.places()[:, there])
    near = KDTree(means).query_pairs(REACH * cells.body.spacing, output_type="ndarray")
    pairs = there[near.astype(np.int64)]
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    fewer = counts[pairs[:, 0]] < counts[pairs[:, 1]]
    pairs[fewer] = pairs[fewer, ::-1]
    together = (seen[:, pairs[:, 0]] & seen[:, pairs[:, 1]]).sum(axis=0)
    return np.asarray(pairs[together <= RARELY * counts[pairs[:, 1]]])


def _gains(cells: Cells, pairs: NDArray[np.int64], settings: Estimate) -> NDArray[np.float64]:
    """Return (p,), by how much merging each pair lowers the cost; see `merged`."""
    table, m = np.array(cells.nuclei), cells.count
    both = (table[:, pairs] >= 0).all(axis=2).sum(axis=0)
    united = np.stack([_united(*table[:, pair].T) for pair in pairs], axis=1)
    everything = cells.with_nuclei(np.concatenate([table, united], axis=1).astype(np.int32))
    places = everything.places()
    gaussians = robust_gaussians(places, settings)
    costs = _place_costs(places, gaussians, settings.freedom)
    shown = cells.shown().sum(axis=0)
    of_either = np.maximum(shown[pairs[:, 0]], shown[pairs[:, 1]])
    costs += _presence_costs(everything.seen(), np.concatenate([shown, of_either]))
    costs += _score_costs(cells, pairs)
    density = Background.of(gaussians.means[:m]).density
    spurious = -np.log(START) - density + student_constant(settings.freedom)
    apart = costs[pairs[:, 0]] + costs[pairs[:, 1]] + FREE / 2 * np.log(len(cells))
    return np.asarray(apart - costs[m:] - both * spurious)


def _place_costs(
    places: NDArray[np.float64], gaussians: Gaussians, freedom: float
) -> NDArray[np.float64]:
    """Return (m,), minus the log-density of the places (N, m, 3) of each cell, in all specimens."""
    centres = centres_of(gaussians.covariances)
    total = np.zeros(places.shape[1])
    for row in places:
        seen = np.isfinite(row[:, 0])
        squared = squared_distances(gaussians.means[seen], centres.whitening[seen], row[seen])
        total[seen] += 0.5 * (freedom + 3) * np.log1p(squared / freedom) - centres.heights[seen]
    return total


def _presence_costs(seen: NDArray[np.int64], shown: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (m,), minus the log-probability that so many of those who show a cell have it."""
    possible = np.maximum(shown, seen)
    share = (seen + 0.5) / (possible + 1)
    return np.asarray(-seen * np.log(share) - (possible - seen) * np.log(1 - share))


def _score_costs(cells: Cells, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return (m + p,), half the squared deviations of scores in each cell and each pair of them."""
    values = discriminating_scores(cells.cell_scores())
    seen = np.array(cells.nuclei) >= 0
    values = np.where(seen[:, :, None], np.nan_to_num(values), 0.0)
    count, total, squares = seen.sum(axis=0), values.sum(axis=0), (values**2).sum(axis=(0, 2))
    first, second = pairs.T
    count = np.concatenate([count, count[first] + count[second]])
    total = np.concatenate([total, total[first] + total[second]])
    squares = np.concatenate([squares, squares[first] + squares[second]])
    return np.asarray(0.5 * (squares - (total**2).sum(axis=1) / np.maximum(count, 1)))
