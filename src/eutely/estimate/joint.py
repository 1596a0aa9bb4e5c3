"""How displacements of cells go together: each is predicted from those most correlated with it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.config.model import Estimate
from eutely.estimate.gaussians import Gaussians, robust_gaussians
from eutely.kernel import kernel

CLIP = 5.0
"""Residuals beyond so many standard deviations are pulled in before they are correlated."""


class Joint(NamedTuple):
    """Cells by themselves and given their neighbours, as in `eutely.atlas.Atlas`."""

    cells: Gaussians
    neighbours: NDArray[np.int32]
    predictors: NDArray[np.float64]
    conditionals: NDArray[np.float64]


def joint_gaussians(places: NDArray[np.float64], spacing: float, settings: Estimate) -> Joint:
    """Estimate what matching needs of an atlas, and no more; parameters: see `estimate`."""
    cells = robust_gaussians(places, settings)
    joint = joint_covariance(places, cells, spacing, settings)
    chosen = _predictive(joint, settings.neighbours)
    return Joint(cells, chosen, *_regression(joint, chosen))


def independent_gaussians(cells: Gaussians) -> Joint:
    """Return cells that predict nothing about each other."""
    m = len(cells.means)
    nothing = np.zeros((m, 0), np.int32), np.zeros((m, 0, 3, 3))
    return Joint(cells, *nothing, cells.covariances)


def prior_gaussians(cells: Gaussians, spacing: float, settings: Estimate) -> Joint:
    """Return cells that predict each other by the prior alone, before anything was seen."""
    nothing = np.zeros((3 * len(cells.means), 3 * len(cells.means)))
    joint = _with_prior(nothing, 0, cells, cells.covariances, spacing, settings)
    chosen = _predictive(joint, settings.neighbours)
    return Joint(cells, chosen, *_regression(joint, chosen))


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


def _predictive(joint: NDArray[np.float64], most: int) -> NDArray[np.int32]:
    """Return (m, k): the cells whose displacements are most correlated with each cell's."""
    m = len(joint) // 3
    strength = _correlations(joint)
    return np.argsort(-strength, axis=1, kind="stable")[:, : min(most, m - 1)].astype(np.int32)


@kernel
def _correlations(joint: Any) -> Any:
    """Return (m, m), the sum of the squared correlations of two cells; -1 of a cell with itself."""
    m = len(joint) // 3
    strength = np.full((m, m), -1.0)
    for i in range(m):
        for j in range(m):
            if i == j:
                continue
            total = 0.0
            for a in range(3 * i, 3 * i + 3):
                for b in range(3 * j, 3 * j + 3):
                    total += joint[a, b] ** 2 / (joint[a, a] * joint[b, b])
            strength[i, j] = total
    return strength


@kernel
def _regression(joint: Any, chosen: Any) -> Any:
    """Regress each cell on its neighbours: predictors (m, k, 3, 3), conditionals (m, 3, 3)."""
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
        weights = np.linalg.solve(others, cross)
        rest = joint[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] - weights.T @ cross
        for p in range(k):
            for a in range(3):
                for b in range(3):
                    predictors[i, p, a, b] = weights[3 * p + b, a]
        for a in range(3):
            for b in range(3):
                conditionals[i, a, b] = (rest[a, b] + rest[b, a]) / 2
    return predictors, conditionals
