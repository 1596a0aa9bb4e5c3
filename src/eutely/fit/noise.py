"""Errors of the coordinates of one specimen, beyond the variation that its atlas expects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eutely.solver.softassign import Centres, centres_of, squared_distances

LEVELS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
"""Errors that are compared, in typical distances of neighbours: standard deviations of each
coordinate. Below the first ones a specimen is as good as those of the atlas."""


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
