"""Findings that disappear when names are exchanged between neighbours: they are none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.atlas import Atlas
from eutely.comparison.clusters import NEAREST, UNSURE, expected
from eutely.comparison.relative import Positions, relative

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

GIVEN = 0.99999
"""Confidence from which names are not exchanged: those that a person gave have it."""

ROUNDS = 3
"""Rounds of choosing nuclei and of finding the place that they have in common."""


def with_exchanged_names(
    atlas: Atlas, here: Positions, weights: Array, found: Mask, spacing: float
) -> Array:
    """Return (N, m, 3), displacements if names were exchanged in favour of "it did not move".

    A cell that is found to have moved takes, in each animal of whatever group, the nucleus that is
    nearest to its place: its own one, or that of a neighbour with which its name may be
    exchanged. That is a neighbour that is found to have moved as well (one of the two may have
    moved, and taken the name of the other), or one whose name is unsure in this animal, as is that
    of the cell. The place is that of the atlas at first, then the mean of the chosen nuclei.

    Parameters
    ----------
    atlas
        whose cells they are.
    here
        places of the animals.
    weights
        (N, m), confidences.
    found
        (m,), cells that are found to have moved; others keep their nuclei.
    spacing
        median distance of neighbouring cells.
    """
    cells = np.flatnonzero(found)
    count = min(NEAREST + 1, len(found))
    near = np.asarray(KDTree(here.means).query(here.means[cells], count)[1]).reshape(-1, count)
    places = here.displaced + here.means
    own = here.field[:, cells] + here.means[cells]
    candidates = places[:, near] - own[:, :, None]
    allowed = (weights[:, near] < UNSURE) & (weights[:, cells] < UNSURE)[:, :, None]
    allowed |= found[near]
    allowed &= (weights[:, near] < GIVEN) & (weights[:, cells] < GIVEN)[:, :, None]
    allowed |= near == cells[:, None]
    allowed &= np.isfinite(candidates[..., 0]) & (weights[:, cells] > 0)[:, :, None]
    candidates = np.nan_to_num(candidates)
    inverse = np.linalg.inv(expected(atlas, here, weights, spacing).spread[cells])
    centres = _of_atlas(atlas, here)[cells]
    for _ in range(ROUNDS):
        apart = candidates - centres[:, None]
        square = np.einsum("nckd,cde,ncke->nck", apart, inverse, apart)
        square = np.where(allowed, square, np.inf)
        nearest = square.argmin(axis=2)[..., None]
        chosen = np.take_along_axis(candidates, nearest[..., None], axis=2)[:, :, 0]
        far = np.take_along_axis(square, nearest, axis=2)[..., 0]
        counts = np.where(np.isfinite(far), weights[:, cells] / (1 + far / 3), 0.0)
        total = np.maximum(counts.sum(axis=0), 1e-9)
        centres = (counts[..., None] * chosen).sum(axis=0) / total[:, None]
    result = here.displaced.copy()
    known = np.isfinite(far)[..., None]
    result[:, cells] = np.where(known, chosen + here.field[:, cells], here.displaced[:, cells])
    return result


def _of_atlas(atlas: Atlas, here: Positions) -> Array:
    """Return (m, 3), places of the atlas from the means of the animals, relative to neighbours."""
    apart = (atlas.means - here.means)[None]
    return np.asarray(relative(apart, np.ones(apart.shape[:2]), here.means)[0])
