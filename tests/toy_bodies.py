"""Long bodies of few cells, whose roll and ends can be told, and their atlas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.estimate import estimate
from eutely.fit.match import Fit
from eutely.frame import Body, Points, Posed

CELLS = 60


def bodies(count: int, seed: int) -> Points:
    """Return (count, m, 3): long bodies, denser at one end, cells in order; head to +x.

    The back is round and the belly flat, so that roll and ends can be told.
    """
    plan = np.random.default_rng(99)
    cells = np.stack([300 * (1 - plan.random(CELLS) ** 2), *plan.normal(size=(2, CELLS))], axis=1)
    cells[:, 1:] *= [12, 7]
    cells[:, 1] += 0.06 * np.abs(cells[:, 2]) ** 1.5
    cells -= cells.mean(axis=0)
    random = np.random.default_rng(seed)
    bent = cells + random.normal(size=(count, CELLS, 3)) * [1.5, 0.7, 0.7]
    bent[:, :, 1] += 3 * np.sin(cells[:, 0] / 100 + random.uniform(0, 6, (count, 1)))
    return bent


def atlas_of_bodies() -> Atlas:
    """Return an atlas of such bodies, its cells in their order."""
    places = bodies(15, seed=0)
    size = np.array([np.ptp(places[0, :, 0]), 20.0])
    return estimate(places, Body(size, 7.0), Estimate())


def posed(*poses: Points) -> Posed:
    """Return a specimen without features in its plausible poses."""
    count = len(poses[0])
    return Posed(poses, np.full((count, 3), np.nan), np.zeros((count, 0)))


def turned(points: Points, roll: float, back: bool) -> Points:
    """Roll a body about x by so many degrees, and turn it end for end."""
    rotation = Rotation.from_euler("x", roll, degrees=True)
    return rotation.apply(points * ([-1.0, -1.0, 1.0] if back else [1.0, 1.0, 1.0]))


def right(fit: Fit, truth: NDArray[np.int64]) -> float:
    """Return the share of nuclei that are their own cells; -1 for none."""
    return float((fit.cells == truth).mean())
