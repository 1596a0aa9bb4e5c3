"""Handedness: which cells are mirror images of each other, and whether a body shows its hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eutely.fit.model import Model
from eutely.fit.place import MIRROR, Fit, warp_pose
from eutely.frame import Points
from eutely.solver.softassign import squared_distances

ASYMMETRIC = 4.0
"""Asymmetry from which an atlas shows handedness. Symmetric simulated animals have 1 to 2.6, heads
8 to 11, whole worms 16 to 110."""

UNPAIRED = 25.0
"""Squared distance that stands for a cell without a mirror image, in variances."""


def mirror_fit(model: Model) -> Fit:
    """Match the mirror image of the cells with the cells: a body nearly is its own mirror image.

    Its "nuclei" are cells: that of cell i is the cell whose mirror image lies at i.
    """
    scores = model.features if model.features.size else np.zeros((len(model.means), 0))
    return warp_pose(model, model.means * MIRROR, scores, None)


def asymmetry(model: Model, seen: NDArray[np.int64]) -> float:
    """Return how much farther cells are from mirror images of cells than chance explains.

    The mean squared distance in variances of the cells, each counted as often as it is present,
    relative to that of two symmetric cells whose places were estimated from as many specimens as
    ``seen`` (m,) says. 1 for a symmetric animal: specimens are as likely as their mirror images.
    """
    fit = mirror_fit(model)
    cells = np.flatnonzero(fit.nuclei >= 0)
    images = fit.nuclei[cells]
    squared = squared_distances(
        model.means[cells], model.centres.whitening[cells], fit.warped[images]
    )
    noise, presence = 3 / np.maximum(seen, 1), model.background.presence
    weights = np.minimum(presence[cells], presence[images])
    chance = weights @ (noise[cells] + noise[images])
    unpaired = np.flatnonzero(fit.nuclei < 0)
    apart = weights @ squared + UNPAIRED * presence[unpaired].sum()
    return float(apart / (chance + 2 * presence[unpaired] @ noise[unpaired]))


def is_mirrored(points: Points, places: Points) -> bool:
    """Return whether nuclei (n, 3) are a mirror image of their places (n, 3) in an atlas."""
    return bool(np.linalg.det((points - points.mean(axis=0)).T @ places) < 0)
