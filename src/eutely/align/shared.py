"""Specimens brought together by the cells that they share: their places, and their scores.

Places are turned, mirrored, scaled and sheared a little. The extents of specimens do not matter, so
a partial one is fitted to the part that it shows. Scores become those of one microscope.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.agreement import FEWEST_MATCHES as FEWEST_SCORED
from eutely.agreement import GRADIENT, PRIOR
from eutely.align.affine import FEWEST_MATCHES, Map
from eutely.frame import Points
from eutely.geometry import median_places
from eutely.informative import informative

ROUNDS = 5
"""Rounds of fitting all specimens to their mean: by similarities, then by affine maps."""

RIDGE = 0.05
"""Weight of the similarity against which shear is fitted, as a share of the variance of places."""

SCORE_ROUNDS = 10
"""Rounds of fitting the scores of specimens to the means of cells."""

OFTEN = 3
"""Specimens that must have a cell to show what its features usually are."""


def shared_maps(places: NDArray[np.float64]) -> list[Map | None]:
    """Return the affine maps of all specimens into the frame of their mean.

    Generalised Procrustes analysis. Mirror images are undone; the mean has the handedness and the
    size of most specimens. None for a specimen that shares too few cells with the others.

    Parameters
    ----------
    places
        (N, m, 3), where each specimen has each cell; NaN where it has none.
    """
    seen = np.isfinite(places[:, :, 0])
    goal = places[int(seen.sum(axis=1).argmax())]
    for number in range(ROUNDS):
        maps = [_similarity(points, goal) for points in places]
        signs = [np.sign(np.linalg.det(fit[0])) for fit in maps if fit is not None]
        if number == 0 and sum(signs) < 0:
            goal = goal * [1.0, 1.0, -1.0]
            maps = [_similarity(points, goal) for points in places]
        # Fits to a mean shrink a little in every round.
        volumes = [np.abs(np.linalg.det(fit[0])) for fit in maps if fit is not None]
        scale = np.exp(-np.median(np.log(volumes)) / 3)
        goal = _mean(places, [fit and (scale * fit[0], scale * fit[1]) for fit in maps])
    mean = goal
    for _ in range(ROUNDS):
        maps = [_affine(points, mean) for points in places]
        # The shear that all maps share is no shear: the mean keeps its shape.
        moved = _mean(places, maps)
        back = _affine(moved, goal, ridge=0.0)
        assert back is not None
        maps = [fit and (back[0] @ fit[0], back[0] @ fit[1] + back[1]) for fit in maps]
        mean = moved @ back[0].T + back[1]
    return maps


def _mean(places: NDArray[np.float64], maps: list[Map | None]) -> NDArray[np.float64]:
    """Return (m, 3), the median place of each cell after the maps; NaN where none has it."""
    rows = zip(places, maps, strict=True)
    moved = np.array([points @ fit[0].T + fit[1] for points, fit in rows if fit is not None])
    known = np.isfinite(moved[:, :, 0]).any(axis=0)
    mean = np.full(places.shape[1:], np.nan)
    mean[known] = median_places(moved[:, known])
    return mean


def _similarity(points: NDArray[np.float64], mean: NDArray[np.float64]) -> Map | None:
    """Fit rotation, mirror image, scale and shift by the cells (m, 3) that both have."""
    both = np.isfinite(points[:, 0]) & np.isfinite(mean[:, 0])
    if both.sum() < FEWEST_MATCHES:
        return None
    centre, goal = points[both].mean(axis=0), mean[both].mean(axis=0)
    here, there = points[both] - centre, mean[both] - goal
    left, values, right = np.linalg.svd(there.T @ here)
    matrix = values.sum() / max(float((here**2).sum()), 1e-12) * left @ right
    return matrix, goal - matrix @ centre


def _affine(
    points: NDArray[np.float64], mean: NDArray[np.float64], ridge: float = RIDGE
) -> Map | None:
    """Fit an affine map, near to a similarity, by the cells (m, 3) that both have."""
    similar = _similarity(points, mean)
    both = np.isfinite(points[:, 0]) & np.isfinite(mean[:, 0])
    if similar is None or both.sum() < 3 * FEWEST_MATCHES:
        return similar
    centre, goal = points[both].mean(axis=0), mean[both].mean(axis=0)
    here, there = points[both] - centre, mean[both] - goal
    moments = here.T @ here
    prior = ridge * np.trace(moments) / 3 * np.eye(3)
    matrix = np.linalg.solve(moments + prior, (there.T @ here + similar[0] @ prior).T).T
    return matrix, goal - matrix @ centre


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
    kept = informative(_table(even, nuclei))
    if not kept.all():
        chosen = harmonised([values[:, kept] for values in scores], nuclei, places)
        for values, columns in zip(even, chosen, strict=True):
            values[:, kept] = columns
        return tuple(even)
    size = np.concatenate(list(places)).std(axis=0) + 1e-9
    scaled = [points / size for points in places]
    for _ in range(SCORE_ROUNDS):
        table = _table(even, nuclei)
        known = np.isfinite(table)
        counts = known.sum(axis=0)
        means = np.where(known, table, 0.0).sum(axis=0) / np.maximum(counts, 1)
        often = (counts >= OFTEN).all(axis=1)
        if often.sum() < FEWEST_SCORED:
            return tuple(even)
        means = (means - means[often].mean(axis=0)) / (means[often].std(axis=0) + 1e-9)
        means[~often] = np.nan
        fits = [_to_means(*row, means) for row in zip(scores, nuclei, scaled, strict=True)]
        shared = np.mean([gradient for _, gradient in fits], axis=0)
        even = [values - points @ shared for (values, _), points in zip(fits, scaled, strict=True)]
    return tuple(even)


def _table(scores: Sequence[Points], nuclei: Sequence[NDArray[np.int32]]) -> NDArray[np.float64]:
    """Return (N, m, d), the scores of the cells of each specimen; NaN where not known."""
    table = np.full((len(scores), len(nuclei[0]), scores[0].shape[1]), np.nan)
    for row, values, cells in zip(table, scores, nuclei, strict=True):
        row[cells >= 0] = values[cells[cells >= 0]]
    return table


def _to_means(
    scores: Points, nuclei: NDArray[np.int32], places: Points, means: Points
) -> tuple[Points, NDArray[np.float64]]:
    """Map the scores (n, d) of one specimen to the means (m, d) of its cells; and the gradient.

    Without enough cells of known means its scores are not known.
    """
    d = scores.shape[1]
    cells = np.flatnonzero((nuclei >= 0) & np.isfinite(means).all(axis=1))
    cells = cells[np.isfinite(scores[nuclei[cells]]).all(axis=1)]
    if len(cells) < FEWEST_SCORED:
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
