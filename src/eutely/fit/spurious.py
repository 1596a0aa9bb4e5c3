"""Signs that a nucleus is spurious: it crowds others, or its features are like none of theirs."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.agreement import RIDGE
from eutely.atlas import BIN_WIDTH, BINS
from eutely.features import SHARED
from eutely.kernel import kernel
from eutely.solver.meanfield import Crowd

NARROW, MIDDLE, WIDE = 0.25, 0.7, 1.5
"""Widths of the kernels with which features spread, in standard deviations: of usual nuclei, of
spurious ones known already, and of what may look like anything."""

NARROWER = round((WIDE / NARROW) ** 2)
"""Power that turns the widest kernel into the narrowest."""

TYPICAL = 1000
"""Nuclei that are cells with which each nucleus is compared, at most; spread over the body."""

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


def crowd(points: NDArray[np.float64], spacing: float, costs: NDArray[np.float64]) -> Crowd:
    """Return the pairs of ``points`` (n, 3) that are hardly both cells.

    Parameters
    ----------
    points
        nuclei in the frame of the atlas.
    spacing
        typical distance of neighbouring cells.
    costs
        (10,) of pairs by their distance, `eutely.atlas.Atlas.crowding`; not all 0.
    """
    reach = BIN_WIDTH * spacing * np.count_nonzero(costs)
    pairs = KDTree(points).query_pairs(reach, output_type="ndarray")
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    apart = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    middles = BIN_WIDTH * spacing * (np.arange(BINS) + 0.5)
    return Crowd(pairs, np.interp(apart, middles, costs))


def oddity(
    scores: NDArray[np.float64], nuclei: NDArray[np.int32], close: Crowd
) -> NDArray[np.float64]:
    """Return (n,), how much the features of each nucleus speak for its being spurious.

    The logarithm of how many times likelier its scores are for a spurious nucleus than for one
    like the others of the specimen that are cells. What spurious nuclei look like is learned from
    those that crowd cells; they may look like anything besides. Two features at a time are
    compared; all pairs together count as much as the features would if they were independent.

    Parameters
    ----------
    scores
        (n, d), see `eutely.features`; NaN where not known.
    nuclei
        (m,), a first matching: the nucleus of each cell, or -1.
    close
        from `crowd`.
    """
    known = np.isfinite(scores)
    columns = _different(scores, np.flatnonzero(known.mean(axis=0) > SHARED))
    matched = np.zeros(len(scores), dtype=bool)
    matched[nuclei[nuclei >= 0]] = True
    crowded = ~matched & (close.against(matched.astype(np.float64)) > CROWDED)
    total = np.zeros(len(scores))
    for pair in combinations(columns, 2) if len(columns) > 1 else [tuple(columns)] * len(columns):
        rows = np.flatnonzero(known[:, pair].all(axis=1))
        if len(rows) < 2:
            continue
        values = scores[rows][:, pair]
        spread = np.cov(values.T).reshape(len(pair), len(pair)) + RIDGE * np.eye(len(pair))
        white = np.linalg.solve(np.linalg.cholesky(spread), values.T)
        total[rows] += _oddity(
            np.ascontiguousarray(white.T), _sample(matched[rows], TYPICAL), crowded[rows]
        )
    return total / max(len(columns) - 1, 1)


def _sample(chosen: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Return every k-th of the ``chosen`` rows (n,), so that at most ``most`` are left."""
    rows = np.flatnonzero(chosen)
    some = np.zeros(len(chosen), bool)
    some[rows[:: max(-(-len(rows) // most), 1)]] = True
    return some


def _different(scores: NDArray[np.float64], columns: NDArray[np.intp]) -> list[int]:
    """Return the columns without copies of others, such as the three radii of spheres."""
    different: list[int] = []
    for column in columns.tolist():
        values = scores[:, column]
        if not any(np.array_equal(values, scores[:, k], equal_nan=True) for k in different):
            different.append(column)
    return different


@kernel
def _oddity(values: Any, matched: Any, crowded: Any) -> Any:
    """Return (n,) from white scores (n, d), given typical cells and nuclei that are surely none."""
    n, d = values.shape
    odds = np.zeros(n)
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
                near = np.exp(-0.5 * apart / WIDE**2)
                anything += near
                usual += near**NARROWER
            else:
                spurious += 1
                known += np.exp(-0.5 * apart / MIDDLE**2)
        usual /= max(cells, 1) * NARROW**d
        odd = PRIOR * (anything / (max(cells, 1) * WIDE**d) + TINY) + known / MIDDLE**d
        odd /= PRIOR + spurious
        odds[j] = np.log(odd / ((1 - DOUBT) * usual + DOUBT * odd))
    return odds
