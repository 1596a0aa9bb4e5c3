"""Simulated NeuroPAL heads: cells of the built-in atlas, jittered, with their colours."""

from __future__ import annotations

import numpy as np

from eutely import Atlas, Specimen

COLOURS = ("R", "G", "B")


def head(
    name: str = "head", seed: int = 0, missing: int = 20, spread: float = 0.25, lying: bool = False
) -> Specimen:
    """A head in micrometres, turned unless it lies along x, with names and colours; ids from 1."""
    atlas = Atlas.load("celegans-adult-head")
    rng = np.random.default_rng(seed)
    kept = np.sort(rng.permutation(len(atlas))[missing:])
    points = atlas.means[kept] + rng.normal(0, spread, (len(kept), 3))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    if lying:
        turn = np.eye(3)
    colours = np.sinh(atlas.feature_means[kept] + rng.normal(0, 0.3, (len(kept), 3)))
    columns = {key: 500.0 + 200.0 * colours[:, atlas.features.index(key)] for key in COLOURS}
    return Specimen.from_arrays(
        name, points @ turn.T + 40, ids=np.arange(1, len(kept) + 1), radii=np.full(len(kept), 0.9),
        names=[atlas.names[cell] for cell in kept], features=columns, unit="um",
    )  # fmt: skip
