"""Robust means and covariances of cells, shrunk where data are few."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.config.model import Estimate
from eutely.geometry import median_places
from eutely.kernel import kernel

REWEIGHTINGS = 8
"""Rounds of re-weighting of means and covariances."""


class Gaussians(NamedTuple):
    """Means (m, d) and covariances (m, d, d) of cells."""

    means: NDArray[np.float64]
    covariances: NDArray[np.float64]


def robust_gaussians(values: NDArray[np.float64], settings: Estimate) -> Gaussians:
    """Estimate a Student-t distribution for each column of ``values`` (N, m, 3), NaN left out.

    Covariances are shrunk towards their median over all cells, with the weight of
    ``settings.prior`` specimens; columns without any value get the median of the others.
    """
    known = np.asarray(np.isfinite(values).all(axis=2))
    filled = np.where(known[:, :, None], values, 0.0)
    counts = known.sum(axis=0)
    start = np.zeros(values.shape[1:])
    start[counts > 0] = median_places(values[:, counts > 0])
    residuals = np.where(known[:, :, None], filled - start, 0.0)
    # A cell that was seen once says nothing about how cells vary.
    telling = known & (counts > 1) if (counts > 1).any() else known
    scale = np.nanmedian(np.where(telling[:, :, None], np.abs(residuals), np.nan), axis=(0, 1))
    # 1.4826 turns the median deviation of a Gaussian into its standard deviation.
    prior = np.diag(np.maximum(1.4826 * scale, 1e-6 * max(float(scale.max()), 1e-6)) ** 2)
    first = _student(filled, known, start, prior, settings)
    typical = np.median(first.covariances[counts > 1], axis=0) if (counts > 1).any() else prior
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
    means = np.empty((m, 3))
    covariances = np.empty((m, 3, 3))
    weights = np.empty(count)
    middle = np.empty(3)
    inverse = np.empty((3, 3))
    for i in range(m):
        covariance = covariances[i]
        mean = means[i]
        number = 0
        for n in range(count):
            weights[n] = 0.0
            number += known[i, n]
        for a in range(3):
            mean[a] = start[i, a]
            for b in range(3):
                covariance[a, b] = prior[a, b]
        for _ in range(REWEIGHTINGS):
            # The inverse by cofactors; that of a symmetric matrix is symmetric.
            for a in range(3):
                b, c = (a + 1) % 3, (a + 2) % 3
                for d in range(3):
                    e, f = (d + 1) % 3, (d + 2) % 3
                    inverse[d, a] = (
                        covariance[b, e] * covariance[c, f] - covariance[b, f] * covariance[c, e]
                    )
            scale = 0.0
            for a in range(3):
                scale += covariance[0, a] * inverse[a, 0]
            for a in range(3):
                for b in range(3):
                    inverse[a, b] /= scale
            total = 0.0
            for a in range(3):
                middle[a] = 0.0
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
                for b in range(3):
                    covariance[a, b] = weight * prior[a, b]
            for n in range(count):
                for a in range(3):
                    for b in range(3):
                        covariance[a, b] += (
                            weights[n] * (filled[i, n, a] - mean[a]) * (filled[i, n, b] - mean[b])
                        )
            for a in range(3):
                for b in range(3):
                    covariance[a, b] /= number + weight
    return means, covariances


def _definite(matrix: NDArray[np.float64], fallback: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``matrix`` (an elementwise median) if it is a covariance, else ``fallback``."""
    return matrix if np.linalg.eigvalsh(matrix).min() > 0 else fallback
