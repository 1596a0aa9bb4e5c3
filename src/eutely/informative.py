"""Which of many features say something about cells; the others must not count.

Among hundreds of features some follow the cells by chance, and covariances of more features than
there are nuclei cannot be estimated. So of many features those are used that follow cells more than
chance explains, as matchings by places show; names are not needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

MANY = 8
"""Features up to which all are weighed together. Of more, those that chance explains are left out
first: among many, some follow the cells by chance."""

BY_CHANCE = 0.1
"""Features, of many that are noise, that pass the tests of being informative."""

MATCHES_PER_FEATURE = 10
"""Matches needed for each feature beyond `MANY` that is weighed: their covariance is estimated."""

LEAST = 0.01
"""Variance of scores within cells at least: no feature is known better than that."""

REPEATED = ("_median", "_total", "_sd", "_background")
"""Endings of columns that say little more about a channel than its mean (``<channel>_mean``)."""


def repeats(name: str, names: Sequence[str]) -> bool:
    """Return whether a column is a statistic of a channel of which the mean is there as well."""
    channel, _, _ = name.rpartition("_")
    return name.endswith(REPEATED) and f"{channel}_mean" in names


def informative(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return (d,), which of many scores (N, m, d) differ between cells more than by chance.

    By the F-ratio of the variance between cells to that within them, at the level
    `BY_CHANCE` / d. All where there are not `MANY`.
    """
    d = values.shape[2]
    if d <= MANY or len(values) < 2:
        return np.ones(d, bool)
    known = np.isfinite(values)
    counts = known.sum(axis=0)
    filled = np.where(known, values, 0.0)
    total, n = filled.sum(axis=0), counts.sum(axis=0)
    cells = (counts > 0).sum(axis=0)
    of_cells = (total**2 / np.maximum(counts, 1)).sum(axis=0)
    between = of_cells - total.sum(axis=0) ** 2 / np.maximum(n, 1)
    within = (filled**2).sum(axis=(0, 1)) - of_cells
    above, below = np.maximum(cells - 1, 1), np.maximum(n - cells, 1)
    ratio = (between / above) / np.maximum(within / below, LEAST)
    chance = stats.f.isf(BY_CHANCE / d, above, below)
    return np.asarray((ratio > chance) & (n > cells))


def following(cell_scores: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return (d,), which of many scores (n, d) follow those (n, d) of cells more than by chance.

    The correlation of noise is 0 +- 1 / sqrt(n); the level is `BY_CHANCE` / d. Only the most
    significant are taken where there are few matches for all.
    """
    known = np.isfinite(scores)
    counts = np.maximum(known.sum(axis=0), 1)
    d = scores.shape[1]

    def centred(table: NDArray[np.float64]) -> NDArray[np.float64]:
        filled = np.where(known, table, 0.0)
        return np.where(known, filled - filled.sum(axis=0) / counts, 0.0)

    x, y = centred(cell_scores), centred(scores)
    spread = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    strength = np.sqrt(counts) * (x * y).sum(axis=0) / np.maximum(spread, 1e-9)
    most = max(MANY, len(scores) // MATCHES_PER_FEATURE)
    follows = np.zeros(d, bool)
    follows[np.argsort(-strength, kind="stable")[:most]] = True
    return np.asarray(follows & (strength > stats.norm.isf(BY_CHANCE / d)))
