"""From cells found in many specimens to an atlas: robust Gaussians, shrunk where data are few."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.errors import AtlasError
from eutely.specimen import UNKNOWN

ROUNDS = 8
"""Rounds of re-weighting of means and covariances."""

CLIP = 5.0
"""Residuals beyond so many standard deviations are pulled in before they are correlated."""


class Gaussians(NamedTuple):
    """Means (m, d) and covariances (m, d, d) of cells."""

    means: NDArray[np.float64]
    covariances: NDArray[np.float64]


def estimate(
    places: NDArray[np.float64],
    *,
    size: NDArray[np.float64],
    spacing: float,
    settings: Estimate,
    radii: NDArray[np.float64] | None = None,
    neighbours: int = 6,
    unit: str = UNKNOWN,
) -> Atlas:
    """Estimate an atlas.

    Parameters
    ----------
    places
        (N, m, 3), where each specimen has each cell, in the common frame; NaN where it has not.
    size
        (2,), length and width of the common frame.
    spacing
        typical distance of neighbouring cells.
    settings
        the section ``estimate`` of the configuration.
    radii
        (N, m, 3) semi-axes, NaN where not known; or None.
    neighbours
        nearest cells to which edges go.
    unit
        of all lengths.
    """
    seen = np.isfinite(places[:, :, 0]).sum(axis=0)
    if not len(places) or (seen == 0).any():
        raise AtlasError("every cell of an atlas must be seen in at least one specimen")
    cells = robust_gaussians(places, settings)
    joint = joint_covariance(places, cells, spacing, settings)
    chosen = _telling(joint, settings.neighbours)
    predictors, conditionals = _regression(joint, chosen)
    edges = _edges(cells.means, neighbours)
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
        size=size,
        specimens=len(places),
        freedom=settings.freedom,
        unit=unit,
    )


def robust_gaussians(values: NDArray[np.float64], settings: Estimate) -> Gaussians:
    """Estimate a Student-t distribution for each column of ``values`` (N, m, 3), NaN left out.

    Covariances are shrunk towards their median over all cells, with the weight of
    ``settings.prior`` specimens; columns without any value get the median of the others.
    """
    known = np.asarray(np.isfinite(values).all(axis=2))
    filled = np.where(known[:, :, None], values, 0.0)
    counts = known.sum(axis=0)
    start = np.zeros(values.shape[1:])
    start[counts > 0] = np.nanmedian(values[:, counts > 0], axis=0)
    residuals = np.where(known[:, :, None], filled - start, 0.0)
    scale = np.nanmedian(np.where(known[:, :, None], np.abs(residuals), np.nan), axis=(0, 1))
    # 1.4826 turns the median deviation of a Gaussian into its standard deviation.
    prior = np.diag(np.maximum(1.4826 * scale, 1e-6 * max(float(scale.max()), 1e-6)) ** 2)
    found = _student(filled, known, start, prior, settings)
    typical = np.median(found.covariances[counts > 1], axis=0) if (counts > 1).any() else prior
    return _student(filled, known, start, _definite(typical, prior), settings)


def _student(
    filled: NDArray[np.float64],
    known: NDArray[np.bool_],
    start: NDArray[np.float64],
    prior: NDArray[np.float64],
    settings: Estimate,
) -> Gaussians:
    counts = known.sum(axis=0)
    means = start
    covariances = np.repeat(prior[None], len(start), axis=0)
    for _ in range(ROUNDS):
        residuals = filled - means
        squared = np.einsum(
            "nmi,mij,nmj->nm", residuals, np.linalg.inv(covariances), residuals, optimize=True
        )
        weights = known * (settings.freedom + 3) / (settings.freedom + squared)
        total = np.maximum(weights.sum(axis=0), 1e-12)
        means = np.einsum("nm,nmi->mi", weights, filled) / total[:, None]
        residuals = filled - means
        covariances = np.einsum("nm,nmi,nmj->mij", weights, residuals, residuals, optimize=True) + (
            settings.prior * prior
        )
        covariances /= (counts + settings.prior)[:, None, None]
    return Gaussians(means, covariances)


def _definite(matrix: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``matrix`` (an elementwise median) if it is a covariance, else ``least``."""
    return matrix if np.linalg.eigvalsh(matrix).min() > 0 else least


def joint_covariance(
    places: NDArray[np.float64], cells: Gaussians, spacing: float, settings: Estimate
) -> NDArray[np.float64]:
    """Return (3 m, 3 m), how displacements of all cells go together.

    A weighted mean of what is seen, faded out with distance (few specimens make distant cells
    look correlated by chance), and of a prior: displacements correlated by
    ``strength * exp(-distance / length)``. Distances are measured along the axes in proportion
    to the root of the typical displacement there.
    """
    count, m, _ = places.shape
    seen = np.isfinite(places[:, :, 0])
    residuals = np.where(seen[:, :, None], places - cells.means, 0.0)
    whitening = np.linalg.inv(np.linalg.cholesky(cells.covariances))
    lengths = np.linalg.norm(np.einsum("mij,nmj->nmi", whitening, residuals), axis=2)
    residuals *= np.minimum(1.0, CLIP / np.maximum(lengths, 1e-12))[:, :, None]
    # A cell seen in few specimens counts as if it were seen in all: variances stay right.
    residuals *= np.sqrt(count / np.maximum(seen.sum(axis=0), 1))[None, :, None]
    typical = np.sqrt(np.diag(np.median(cells.covariances, axis=0)))
    own = np.einsum("nmi,nmj->mij", residuals, residuals)
    own = (own + settings.prior * np.median(cells.covariances, axis=0)) / (count + settings.prior)
    root = _square_roots(own)

    scaled = cells.means / (spacing * np.sqrt(typical / typical.max()))
    apart = np.sqrt(((scaled[:, None] - scaled[None]) ** 2).sum(axis=2))
    correlation = settings.strength * np.exp(-apart / settings.length)
    np.fill_diagonal(correlation, 1.0)
    prior = np.einsum("iab,ij,jcb->iajc", root, correlation, root, optimize=True)
    flat = residuals.reshape(count, 3 * m)
    observed = (flat.T @ flat).reshape(m, 3, m, 3)
    observed *= np.exp(-0.5 * (apart / settings.fade) ** 2)[:, None, :, None]
    joint = (settings.shrinkage * prior + observed) / (settings.shrinkage + count)
    return np.asarray(joint.reshape(3 * m, 3 * m), dtype=np.float64)


def _square_roots(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(matrices)
    roots = np.einsum("mij,mj,mkj->mik", vectors, np.sqrt(np.maximum(values, 0)), vectors)
    return np.asarray(roots, dtype=np.float64)


def _telling(joint: NDArray[np.float64], most: int) -> NDArray[np.int32]:
    """Return (m, k): the cells whose displacements are most correlated with each cell's."""
    m = len(joint) // 3
    deviations = np.sqrt(np.diag(joint))
    correlation = (joint / deviations / deviations[:, None]).reshape(m, 3, m, 3)
    strength = (correlation**2).sum(axis=(1, 3))
    np.fill_diagonal(strength, -1.0)
    return np.argsort(-strength, axis=1, kind="stable")[:, : min(most, m - 1)].astype(np.int32)


def _regression(
    joint: NDArray[np.float64], chosen: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each cell's neighbours tell: predictors (m, k, 3, 3), conditionals (m, 3, 3)."""
    m, k = chosen.shape
    own = 3 * np.arange(m)[:, None] + np.arange(3)
    others = (3 * chosen[:, :, None] + np.arange(3)).reshape(m, 3 * k)
    predictors = np.empty((m, k, 3, 3))
    conditionals = np.empty((m, 3, 3))
    for i in range(m):
        cross = joint[np.ix_(own[i], others[i])]
        matrix = np.linalg.solve(joint[np.ix_(others[i], others[i])], cross.T).T
        rest = joint[np.ix_(own[i], own[i])] - matrix @ cross.T
        predictors[i] = matrix.reshape(3, k, 3).transpose(1, 0, 2)
        conditionals[i] = (rest + rest.T) / 2
    return predictors, conditionals


def _edges(means: NDArray[np.float64], most: int) -> NDArray[np.int32]:
    """Return (e, 2), i < j: the nearest cells of each cell, both ways."""
    count = min(most + 1, len(means))
    _, near = KDTree(means).query(means, [*range(1, count + 1)])
    pairs = np.stack([np.repeat(np.arange(len(means)), count), near.ravel()], axis=1)
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0).astype(np.int32).reshape(-1, 2)
