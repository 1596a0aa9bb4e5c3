"""From cells found in many specimens to an atlas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.atlas import BIN_WIDTH, BINS, Atlas
from eutely.cells import Cells
from eutely.config import Config
from eutely.config.model import Estimate
from eutely.errors import AtlasError
from eutely.estimate.gaussians import Gaussians, robust_gaussians
from eutely.estimate.joint import joint_gaussians
from eutely.features import cell_means
from eutely.frame import Body, Frame

USUAL = (10, 20)
"""Bins of distances, from 1 to 2 spacings, at which pairs of cells are as frequent as anywhere."""

CLUSTERED = 1.5
"""Power of how much rarer close pairs of cells are than chance would have it: fragments of nuclei
and doubled ones lie nearer to nuclei than chance would have it, too."""


def atlas_of(
    cells: Cells,
    frame: Frame,
    config: Config,
    *,
    weights: NDArray[np.float64] | None = None,
    chosen: NDArray[np.bool_] | None = None,
) -> Atlas:
    """Estimate the atlas of cells.

    Parameters
    ----------
    cells, frame
        found cells, and the specimens that they were found in.
    config
        sections ``estimate``, ``costs``, ``realign`` and ``atlas``.
    weights
        (3,) of the costs of centroids, radii and offsets, for an atlas of the model ``offsets``;
        None for the model ``joint``.
    chosen
        (N,), the specimens to estimate from; all where these are not enough, see `Cells.enough`.
    """
    used = np.ones(len(cells), bool) if chosen is None else cells.enough(chosen)
    atlas = estimate(
        cells.places()[used],
        cells.body,
        config.estimate,
        radii=cells.cell_radii(frame.radii)[used],
        features=frame.features,
        scores=cells.cell_scores()[used],
        neighbours=config.costs.neighbours,
    )
    atlas = replace(atlas, scale=config.realign.scale)
    if any(cells.parts):
        atlas = _of_parts(atlas, cells, config.estimate, used)
    if weights is None:
        return atlas
    return replace(atlas, model="offsets", weights=weights, c0=config.atlas.c0)


def _of_parts(atlas: Atlas, cells: Cells, settings: Estimate, used: NDArray[np.bool_]) -> Atlas:
    """Return an atlas that knows how many of the ``used`` (N,) specimens show each cell."""
    joint = joint_gaussians(cells.places()[used], cells.body.spacing, settings, partial=True)
    return replace(
        atlas,
        shown=cells.shown()[used].sum(axis=0),
        neighbours=joint.neighbours,
        predictors=joint.predictors,
        conditionals=joint.conditionals,
    )


def estimate(
    places: NDArray[np.float64],
    body: Body,
    settings: Estimate,
    *,
    radii: NDArray[np.float64] | None = None,
    features: Sequence[str] = (),
    scores: NDArray[np.float64] | None = None,
    neighbours: int = 6,
) -> Atlas:
    """Estimate an atlas.

    Parameters
    ----------
    places
        (N, m, 3), where each specimen has each cell, in the common frame; NaN where it has not.
    body
        size and spacing of the common frame.
    settings
        the section ``estimate`` of the configuration.
    radii
        (N, m, 3) semi-axes, NaN where not known; or None.
    features, scores
        names of d features, and their scores (N, m, d), NaN where not known; see
        `eutely.features`.
    neighbours
        nearest cells to which edges go.
    """
    seen = np.isfinite(places[:, :, 0]).sum(axis=0)
    if not len(places) or (seen == 0).any():
        raise AtlasError("every cell of an atlas must be seen in at least one specimen")
    cells, chosen, predictors, conditionals = joint_gaussians(places, body.spacing, settings)
    edges = nearest_pairs(cells.means, neighbours)
    offsets = robust_gaussians(places[:, edges[:, 0]] - places[:, edges[:, 1]], settings)
    sizes = (
        Gaussians(np.full(cells.means.shape, np.nan), np.full(cells.covariances.shape, np.nan))
        if radii is None or not np.isfinite(radii).any()
        else robust_gaussians(radii, settings)
    )
    return Atlas(
        means=cells.means,
        covariances=cells.covariances,
        radii=sizes.means,
        radius_covariances=sizes.covariances,
        seen=seen,
        rare=seen < settings.fewest,
        edges=edges,
        offsets=offsets.means,
        offset_covariances=offsets.covariances,
        neighbours=chosen,
        predictors=predictors,
        conditionals=conditionals,
        size=body.size,
        specimens=len(places),
        freedom=settings.freedom,
        features=tuple(features),
        feature_means=cell_means(places[:, :, :0] if scores is None else scores),
        crowding=crowding(places, body.spacing),
        warp=body.smooth,
    )


def crowding(places: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """Return (BINS,), the cost of two nuclei at each distance being both cells.

    Minus the logarithm of how many times rarer pairs of cells at this distance are than chance
    would have it, where they are rarer.

    Parameters
    ----------
    places
        (N, m, 3), where each specimen has each cell; NaN where it has not.
    spacing
        typical distance of neighbouring cells.
    """
    edges = BIN_WIDTH * spacing * np.arange(USUAL[1] + 1)
    counts = np.zeros(USUAL[1])
    for specimen in places:
        tree = KDTree(specimen[np.isfinite(specimen[:, 0])])
        counts += np.diff(tree.count_neighbors(tree, edges, cumulative=True)) / 2
    volumes = np.diff((BIN_WIDTH * np.arange(USUAL[1] + 1)) ** 3)
    density = counts[slice(*USUAL)].sum() / volumes[slice(*USUAL)].sum()
    # One pair more than seen and expected: few specimens cannot tell how rare a pair is.
    rarer = np.log((density * volumes + 1) / (counts + 1))[:BINS]
    return CLUSTERED * np.maximum.accumulate(np.maximum(rarer, 0.0)[::-1])[::-1]


def nearest_pairs(means: NDArray[np.float64], most: int) -> NDArray[np.int32]:
    """Return (e, 2), i < j: the nearest cells of each cell, both ways."""
    count = min(most + 1, len(means))
    _, near = KDTree(means).query(means, [*range(1, count + 1)])
    pairs = np.stack([np.repeat(np.arange(len(means)), count), near.ravel()], axis=1)
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0).astype(np.int32).reshape(-1, 2)
