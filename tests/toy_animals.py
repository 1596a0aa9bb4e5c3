"""Simulated animals that are not symmetric, as laboratories may have them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eutely.config import resolve
from eutely.specimen import Specimen

QUICK = resolve(
    overrides={
        "refine.linear_rounds": 2,
        "refine.joint_rounds": 2,
        "refine.targets": 2,
        "refine.target_rounds": 1,
        "refine.folds": 2,
    }
)
"""Settings of a build that takes a second."""

MIRROR = np.array([1.0, -1.0, 1.0])


def lopsided(specimen: Specimen) -> Specimen:
    """Return a simulated animal without every third cell of its right side; with two colours."""
    names = specimen.names or ()
    kept = [not (name.endswith("R") and int(name[1:4]) % 3 == 0) for name in names]
    specimen = specimen.take(np.flatnonzero(kept))
    random = np.random.default_rng(7)
    table = {name: random.normal(size=2) for name in sorted(set(names))}
    colours = np.array([table[name] for name in specimen.names or ()])
    colours += np.random.default_rng(len(specimen.name)).normal(0, 0.3, colours.shape)
    return replace(specimen, features={"red": colours[:, 0], "green": colours[:, 1]})


def turned(specimen: Specimen, seed: int, factor: float = 1.0) -> Specimen:
    """Return a specimen turned and shifted at random, and scaled."""
    random = np.random.default_rng(seed)
    turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    centroids = factor * specimen.centroids @ turn.T + random.normal(0, 300, 3)
    return replace(specimen, centroids=centroids, radii=factor * specimen.radii)


def mirrored(specimen: Specimen) -> Specimen:
    """Return the mirror image of a specimen."""
    return replace(specimen, centroids=specimen.centroids * MIRROR)


def window(specimen: Specimen, low: float, high: float) -> Specimen:
    """Return the nuclei between two shares of the length; the head is at 1."""
    along = specimen.centroids[:, 0]
    share = (along - along.min()) / np.ptp(along)
    return specimen.take(np.flatnonzero((share >= low) & (share <= high)))
