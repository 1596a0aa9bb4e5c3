"""Scores of features as if one microscope had measured all specimens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.features import FEWEST_MATCHES, GRADIENT, PRIOR
from eutely.frame import Points

ROUNDS = 10
"""Rounds of fitting specimens to the means of cells."""

OFTEN = 3
"""Specimens that must have a cell to show what its features usually are."""


def harmonised(
    scores: Sequence[Points], nuclei: Sequence[NDArray[np.int32]], places: Sequence[Points]
) -> tuple[Points, ...]:
    """Return the scores of all specimens without what differs between microscopes.

    Gains, offsets and cross-talk between channels are an affine map of scores; deeper nuclei are
    dimmer, which is a gradient. Both are fitted to the means of cells, in turn with the means. The
    gradient that all specimens share belongs to the cells.

    Parameters
    ----------
    scores
        for each specimen (n, d); NaN where not known.
    nuclei
        for each specimen (m,), the nucleus of each cell, or -1.
    places
        for each specimen (n, 3), its nuclei in the common frame.
    """
    even = [np.array(values) for values in scores]
    if not even or not even[0].size:
        return tuple(even)
    size = np.concatenate(list(places)).std(axis=0) + 1e-9
    scaled = [points / size for points in places]
    for _ in range(ROUNDS):
        table = np.full((len(even), len(nuclei[0]), even[0].shape[1]), np.nan)
        for row, values, cells in zip(table, even, nuclei, strict=True):
            row[cells >= 0] = values[cells[cells >= 0]]
        known = np.isfinite(table)
        counts = known.sum(axis=0)
        means = np.where(known, table, 0.0).sum(axis=0) / np.maximum(counts, 1)
        often = (counts >= OFTEN).all(axis=1)
        if often.sum() < FEWEST_MATCHES:
            return tuple(even)
        means = (means - means[often].mean(axis=0)) / (means[often].std(axis=0) + 1e-9)
        means[~often] = np.nan
        fits = [_to_means(*row, means) for row in zip(scores, nuclei, scaled, strict=True)]
        shared = np.mean([gradient for _, gradient in fits], axis=0)
        even = [values - points @ shared for (values, _), points in zip(fits, scaled, strict=True)]
    return tuple(even)


def _to_means(
    scores: Points, nuclei: NDArray[np.int32], places: Points, means: Points
) -> tuple[Points, NDArray[np.float64]]:
    """Map the scores (n, d) of one specimen to the means (m, d) of its cells; and the gradient.

    Without enough cells of known means its scores are not known.
    """
    d = scores.shape[1]
    cells = np.flatnonzero((nuclei >= 0) & np.isfinite(means).all(axis=1))
    cells = cells[np.isfinite(scores[nuclei[cells]]).all(axis=1)]
    if len(cells) < FEWEST_MATCHES:
        return np.full_like(scores, np.nan), np.zeros((3, d))
    here, goal, there = scores[nuclei[cells]], means[cells], places[nuclei[cells]]
    centre, target, middle = here.mean(axis=0), goal.mean(axis=0), there.mean(axis=0)
    gain = goal.std(axis=0) / np.maximum(here.std(axis=0), 1e-9)
    design = np.column_stack([gain * (here - centre), there - middle])
    weight = PRIOR * design[:, :d].var(axis=0).mean()
    prior = np.diag([weight] * d + [GRADIENT] * 3)
    mixing = np.linalg.solve(design.T @ design + prior, design.T @ (goal - target) + prior[:, :d])
    every = np.column_stack([gain * (scores - centre), places - middle])
    return np.asarray(every @ mixing + target), np.asarray(mixing[d:])
