"""From cells found in many specimens to an atlas: robust Gaussians, shrunk where data are few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.errors import AtlasError
from eutely.features import cell_means
from eutely.kernel import kernel
from eutely.fit.spurious import crowding
from eutely.specimen import UNKNOWN

ROUNDS = 8
"""Rounds of re-weighting of means and covariances."""

CLIP = 5.0
"""Residuals beyond so many standard deviations are pulled in before they are correlated."""


class Gaussians(NamedTuple):
    """Means (m, d) and covariances (m, d, d) of cells."""

    means: NDArray[np.float64]
    covariances: NDArray[np.float64]


class Joint(NamedTuple):
    """Cells by themselves and given their neighbours, as in `eutely.atlas.Atlas`."""

    cells: Gaussians
    neighbours: NDArray[np.int32]
    predictors: NDArray[np.float64]
    conditionals: NDArray[np.float64]


def estimate(
    places: NDArray[np.float64],
    *,
    size: NDArray[np.float64],
    spacing: float,
    settings: Estimate,
    radii: NDArray[np.float64] | None = None,
    features: Sequence[str] = (),
    scores: NDArray[np.float64] | None = None,
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
    features, scores
        names of d features, and their scores (N, m, d), NaN where not known; as of
        `eutely.features`.
    neighbours
        nearest cells to which edges go.
    unit
        of all lengths.
    """
    seen = np.isfinite(places[:, :, 0]).sum(axis=0)
    if not len(places) or (seen == 0).any():
        raise AtlasError("every cell of an atlas must be seen in at least one specimen")
    cells, chosen, predictors, conditionals = joint_gaussians(places, spacing, settings)
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
        features=tuple(features),
        feature_means=cell_means(places[:, :, :0] if scores is None else scores),
        crowding=crowding(places, spacing),
        unit=unit,
    )


def joint_gaussians(places: NDArray[np.float64], spacing: float, settings: Estimate) -> Joint:
    """Estimate only what matching needs of an atlas; arguments as of `estimate`."""
    cells = robust_gaussians(places, settings)
    joint = joint_covariance(places, cells, spacing, settings)
    chosen = _telling(joint, settings.neighbours)
    return Joint(cells, chosen, *_regression(joint, chosen))


def prior_gaussians(cells: Gaussians, spacing: float, settings: Estimate) -> Joint:
    """Return cells that predict each other by the prior alone, before anything was seen."""
    nothing = np.zeros((3 * len(cells.means), 3 * len(cells.means)))
    joint = _with_prior(nothing, 0, cells, cells.covariances, spacing, settings)
    chosen = _telling(joint, settings.neighbours)
    return Joint(cells, chosen, *_regression(joint, chosen))


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
    return Gaussians(
        *_fit_student(
            np.ascontiguousarray(filled.transpose(1, 0, 2)),
            np.ascontiguousarray(known.T),
            start,
            np.ascontiguousarray(prior),
            float(settings.prior),
            float(settings.freedom),
        )
    )


@kernel
def _fit_student(
    filled: Any, known: Any, start: Any, prior: Any, weight: float, freedom: float
) -> Any:
    """Re-weight each cell's places (m, N, 3) until mean and covariance agree with the weights."""
    m, count, _ = filled.shape
    means = start.copy()
    covariances = np.empty((m, 3, 3))
    for i in range(m):
        covariance = prior.copy()
        mean = means[i]
        weights = np.zeros(count)
        number = known[i].sum()
        for _ in range(ROUNDS):
            inverse = np.linalg.inv(covariance)
            total = 0.0
            middle = np.zeros(3)
            for n in range(count):
                if not known[i, n]:
                    continue
                squared = 0.0
                for a in range(3):
                    for b in range(3):
                        squared += (
                            (filled[i, n, a] - mean[a])
                            * inverse[a, b]
                            * (filled[i, n, b] - mean[b])
                        )
                weights[n] = (freedom + 3) / (freedom + squared)
                total += weights[n]
                for a in range(3):
                    middle[a] += weights[n] * filled[i, n, a]
            for a in range(3):
                mean[a] = middle[a] / max(total, 1e-12)
            covariance = weight * prior
            for n in range(count):
                for a in range(3):
                    for b in range(3):
                        covariance[a, b] += (
                            weights[n] * (filled[i, n, a] - mean[a]) * (filled[i, n, b] - mean[b])
                        )
            covariance /= number + weight
        covariances[i] = covariance
    return means, covariances


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
    own = np.einsum("nmi,nmj->mij", residuals, residuals)
    own = (own + settings.prior * np.median(cells.covariances, axis=0)) / (count + settings.prior)
    flat = residuals.reshape(count, 3 * m)
    return _with_prior(flat.T @ flat, count, cells, own, spacing, settings)


def _with_prior(
    observed: NDArray[np.float64],
    count: int,
    cells: Gaussians,
    covariances: NDArray[np.float64],
    spacing: float,
    settings: Estimate,
) -> NDArray[np.float64]:
    """Return the mean of products summed over ``count`` specimens and of the prior."""
    typical = np.sqrt(np.diag(np.median(cells.covariances, axis=0)))
    scaled = cells.means / (spacing * np.sqrt(typical / typical.max()))
    return np.asarray(
        _blended(
            observed,
            _square_roots(covariances),
            scaled,
            float(count),
            settings.strength,
            settings.length,
            settings.fade,
            settings.shrinkage,
        )
    )


@kernel
def _blended(
    observed: Any,
    root: Any,
    scaled: Any,
    count: float,
    strength: float,
    length: float,
    fade: float,
    shrinkage: float,
) -> Any:
    """Blend the sums of products ``observed`` (3 m, 3 m) with the prior, in place."""
    m = len(root)
    for i in range(m):
        for j in range(m):
            squared = 0.0
            for a in range(3):
                squared += (scaled[i, a] - scaled[j, a]) ** 2
            alike = 1.0 if i == j else strength * np.exp(-np.sqrt(squared) / length)
            trust = np.exp(-0.5 * squared / fade**2)
            for a in range(3):
                for b in range(3):
                    prior = 0.0
                    for c in range(3):
                        prior += root[i, a, c] * root[j, b, c]
                    observed[3 * i + a, 3 * j + b] = (
                        shrinkage * alike * prior + trust * observed[3 * i + a, 3 * j + b]
                    ) / (shrinkage + count)
    return observed


def _square_roots(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(matrices)
    roots = np.einsum("mij,mj,mkj->mik", vectors, np.sqrt(np.maximum(values, 0)), vectors)
    return np.asarray(roots, dtype=np.float64)


def _telling(joint: NDArray[np.float64], most: int) -> NDArray[np.int32]:
    """Return (m, k): the cells whose displacements are most correlated with each cell's."""
    m = len(joint) // 3
    strength = _correlations(joint)
    return np.argsort(-strength, axis=1, kind="stable")[:, : min(most, m - 1)].astype(np.int32)


@kernel
def _correlations(joint: Any) -> Any:
    """Return (m, m), the sum of the squared correlations of two cells; -1 of a cell with itself."""
    m = len(joint) // 3
    found = np.full((m, m), -1.0)
    for i in range(m):
        for j in range(m):
            if i == j:
                continue
            total = 0.0
            for a in range(3 * i, 3 * i + 3):
                for b in range(3 * j, 3 * j + 3):
                    total += joint[a, b] ** 2 / (joint[a, a] * joint[b, b])
            found[i, j] = total
    return found


@kernel
def _regression(joint: Any, chosen: Any) -> Any:
    """Return what each cell's neighbours tell: predictors (m, k, 3, 3), conditionals (m, 3, 3)."""
    m, k = chosen.shape
    predictors = np.empty((m, k, 3, 3))
    conditionals = np.empty((m, 3, 3))
    others = np.empty((3 * k, 3 * k))
    cross = np.empty((3 * k, 3))
    for i in range(m):
        for p in range(k):
            for a in range(3):
                row = 3 * chosen[i, p] + a
                for b in range(3):
                    cross[3 * p + a, b] = joint[row, 3 * i + b]
                for q in range(k):
                    for b in range(3):
                        others[3 * p + a, 3 * q + b] = joint[row, 3 * chosen[i, q] + b]
        told = np.linalg.solve(others, cross)
        rest = joint[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] - told.T @ cross
        for p in range(k):
            for a in range(3):
                for b in range(3):
                    predictors[i, p, a, b] = told[3 * p + b, a]
        for a in range(3):
            for b in range(3):
                conditionals[i, a, b] = (rest[a, b] + rest[b, a]) / 2
    return predictors, conditionals


def _edges(means: NDArray[np.float64], most: int) -> NDArray[np.int32]:
    """Return (e, 2), i < j: the nearest cells of each cell, both ways."""
    count = min(most + 1, len(means))
    _, near = KDTree(means).query(means, [*range(1, count + 1)])
    pairs = np.stack([np.repeat(np.arange(len(means)), count), near.ravel()], axis=1)
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0).astype(np.int32).reshape(-1, 2)
