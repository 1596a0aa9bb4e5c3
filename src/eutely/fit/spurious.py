"""Signs that a nucleus is spurious: it crowds others, or it looks like none of them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.atlas import BINS
from eutely.features import RIDGE, SHARED
from eutely.kernel import kernel
from eutely.solver.meanfield import Crowd

WIDTH = 0.1
"""Width of the bins of distances that may be too close, in typical distances of neighbours."""

USUAL = (10, 20)
"""Bins, counted on, of distances at which pairs of cells are as frequent as anywhere."""

CLUSTERED = 1.5
"""Power of how much rarer close pairs of cells are than chance would have it: fragments of nuclei
and doubled ones lie nearer to nuclei than chance would have it, too."""

NARROW, MIDDLE, WIDE = 0.25, 0.7, 1.5
"""Widths of the kernels with which features spread, in standard deviations: of usual nuclei, of
spurious ones known already, and of what may look like anything."""

CROWDED = 2.0
"""Nuclei without a cell that so much speaks against are spurious for sure: their looks are typical
of spurious nuclei."""

PRIOR = 10.0
"""Spurious nuclei for which it counts that they may look like anything."""

DOUBT = 0.1
"""Share of usual nuclei that may look like anything."""

BENEFIT = 0.5
"""What speaks for every nucleus beforehand: to leave a true one out does more harm than to name a
spurious one."""

TINY = 1e-12
"""Density of what looks like nothing at all."""


def crowding(places: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """Return (BINS,), how much speaks against two nuclei so close to each other being both cells.

    Minus the logarithm of how many times rarer pairs of cells at this distance are than chance
    would have it, as far as they are rarer.

    Parameters
    ----------
    places
        (N, m, 3), where each specimen has each cell; NaN where it has not.
    spacing
        typical distance of neighbouring cells.
    """
    edges = WIDTH * spacing * np.arange(USUAL[1] + 1)
    counts = np.zeros(USUAL[1])
    for one in places:
        there = KDTree(one[np.isfinite(one[:, 0])])
        counts += np.diff(there.count_neighbors(there, edges, cumulative=True)) / 2
    volumes = np.diff((WIDTH * np.arange(USUAL[1] + 1)) ** 3)
    density = counts[slice(*USUAL)].sum() / volumes[slice(*USUAL)].sum()
    # One pair more than seen and expected: few specimens cannot tell how rare a pair is.
    rarer = np.log((density * volumes + 1) / (counts + 1))[:BINS]
    return CLUSTERED * np.maximum.accumulate(np.maximum(rarer, 0.0)[::-1])[::-1]


def crowd(points: NDArray[np.float64], spacing: float, costs: NDArray[np.float64]) -> Crowd | None:
    """Return the pairs of ``points`` (n, 3) that ``costs``, from `crowding`, speak against."""
    if not costs.any():
        return None
    reach = WIDTH * spacing * np.count_nonzero(costs)
    pairs = KDTree(points).query_pairs(reach, output_type="ndarray")
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    apart = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    middles = WIDTH * spacing * (np.arange(BINS) + 0.5)
    return Crowd(pairs, np.interp(apart, middles, costs))


def oddity(
    features: NDArray[np.float64], nuclei: NDArray[np.int32], close: Crowd | None
) -> NDArray[np.float64]:
    """Return (n,), how much the looks of each nucleus speak for its being spurious.

    The logarithm of how many times likelier its scores are for a spurious nucleus than for one
    like the others of the specimen that are cells. What spurious nuclei look like is learned from
    those that crowd cells; they may look like anything besides. Two features at a time are
    compared; all pairs together count as much as the features would if they were independent.

    Parameters
    ----------
    features
        (n, d), scores as of `eutely.features`; NaN where not known.
    nuclei
        (m,), a first matching: the nucleus of each cell, or -1.
    close
        from `crowd`.
    """
    known = np.isfinite(features)
    columns = _different(features, np.flatnonzero(known.mean(axis=0) > SHARED))
    matched = np.zeros(len(features), dtype=bool)
    matched[nuclei[nuclei >= 0]] = True
    crowded = np.zeros(len(features), dtype=bool)
    if close is not None:
        crowded = ~matched & (close.against(matched.astype(np.float64)) > CROWDED)
    found = np.zeros(len(features))
    for own in combinations(columns, 2) if len(columns) > 1 else [tuple(columns)] * len(columns):
        rows = np.flatnonzero(known[:, own].all(axis=1))
        if len(rows) < 2:
            continue
        values = features[rows][:, own]
        spread = np.cov(values.T).reshape(len(own), len(own)) + RIDGE * np.eye(len(own))
        white = np.linalg.solve(np.linalg.cholesky(spread), values.T)
        found[rows] += _oddity(np.ascontiguousarray(white.T), matched[rows], crowded[rows])
    return found / max(len(columns) - 1, 1)


def _different(features: NDArray[np.float64], columns: NDArray[np.intp]) -> list[int]:
    """Return the columns that are no copies of others, as the radii of spheres are."""
    found: list[int] = []
    for column in columns.tolist():
        own = features[:, column]
        if not any(np.array_equal(own, features[:, other], equal_nan=True) for other in found):
            found.append(column)
    return found


@kernel
def _oddity(values: Any, matched: Any, crowded: Any) -> Any:
    """Return (n,) from white scores (n, d), told which nuclei are cells and which surely none."""
    n, d = values.shape
    found = np.zeros(n)
    for j in range(n):
        usual = anything = known = 0.0
        cells = spurious = 0
        for i in range(n):
            if i == j or not (matched[i] or crowded[i]):
                continue
            apart = 0.0
            for k in range(d):
                apart += (values[j, k] - values[i, k]) ** 2
            if matched[i]:
                cells += 1
                usual += np.exp(-0.5 * apart / NARROW**2)
                anything += np.exp(-0.5 * apart / WIDE**2)
            else:
                spurious += 1
                known += np.exp(-0.5 * apart / MIDDLE**2)
        usual /= max(cells, 1) * NARROW**d
        odd = PRIOR * (anything / (max(cells, 1) * WIDE**d) + TINY) + known / MIDDLE**d
        odd /= PRIOR + spurious
        found[j] = np.log(odd / ((1 - DOUBT) * usual + DOUBT * odd))
    return found
