"""The specimen that all others are fitted to by true correspondence (supplement D)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eutely.config.model import Estimate
from eutely.estimate import robust_gaussians
from eutely.solver.softassign import centres_of, squared_distances

Map = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Matrix (3, 3) and shift (3,) of an affine map."""

SHARED = 4
"""Cells that two specimens must share for one to be fitted to the other."""


def base_maps(places: NDArray[np.float64], settings: Estimate) -> tuple[int, list[Map]]:
    """Choose the base, and return it with the maps of all specimens to it.

    Each specimen in turn is the one that all others are fitted to by least squares, cell to cell;
    the base is the one whose atlas the others are nearest to, in standard deviations.

    Parameters
    ----------
    places
        (N, m, 3), where each specimen has each cell; NaN where it has not.
    settings
        the section ``estimate`` of the configuration.
    """
    found = [maps_to(places, base) for base in range(len(places))]
    costs = [_distance(_moved(places, maps), settings) for maps in found]
    base = int(np.argmin(costs))
    return base, found[base]


def maps_to(places: NDArray[np.float64], base: int) -> list[Map]:
    """Return the affine maps (least squares) of all specimens to one of them."""
    goal = places[base]
    found = []
    for number, own in enumerate(places):
        both = np.isfinite(own[:, 0]) & np.isfinite(goal[:, 0])
        if number == base or both.sum() < SHARED:
            found.append((np.eye(3), np.zeros(3)))
            continue
        design = np.column_stack([own[both], np.ones(both.sum())])
        solution = np.linalg.lstsq(design, goal[both], rcond=None)[0]
        found.append((np.ascontiguousarray(solution[:3].T), solution[3]))
    return found


def _moved(places: NDArray[np.float64], maps: list[Map]) -> NDArray[np.float64]:
    rows = zip(places, maps, strict=True)
    return np.array([own @ matrix.T + shift for own, (matrix, shift) in rows])


def _distance(places: NDArray[np.float64], settings: Estimate) -> float:
    """Return the mean distance of all specimens' cells from those of their atlas."""
    seen = np.isfinite(places[:, :, 0])
    cells = robust_gaussians(places, settings)
    whitening = centres_of(cells.covariances).whitening
    total = 0.0
    for own, known in zip(places, seen, strict=True):
        squared = squared_distances(cells.means[known], whitening[known], own[known])
        total += float(np.sqrt(squared).sum())
    return total / max(int(seen.sum()), 1)
