"""Specimens aligned by the cells that they share: turned, mirrored, scaled, sheared a little.

The extents of specimens do not matter, so a partial one is fitted to the part that it shows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eutely.align.affine import FEWEST_MATCHES, Map

ROUNDS = 5
"""Rounds of fitting all specimens to their mean: by similarities, then by affine maps."""

RIDGE = 0.05
"""Weight of the similarity against which shear is fitted, as a share of the variance of places."""


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
    mean[known] = np.nanmedian(moved[:, known], axis=0)
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
