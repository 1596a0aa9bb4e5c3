"""How large a difference is, between which bounds, and how large it must be to be found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ncfdtr
from scipy.stats import f as f_distribution
from scipy.stats import ncx2, t

from eutely.comparison.design import Contrast
from eutely.comparison.measured import filled, normal_matrices
from eutely.comparison.scores import PRIOR, Scores, distances, residuals, shrunk

Array = NDArray[np.float64]

COVERAGE = 0.95
"""Of intervals."""

POWER = 0.8
"""Probability of finding a difference of the detectable size."""

FEWEST_KNOWN = 2
"""Animals of each group that must have a cell to say how large a difference is."""

SHORTEST = 0.05
"""Distance from the centre, in standard deviations, below which all are the same."""

FAR = 400.0
"""Squared length, in variances, from which the length is nearly normal."""


class Effects(NamedTuple):
    """Differences between groups, per unit of the contrast.

    Attributes
    ----------
    shifts
        (m, d) float64; NaN where not known.
    covariances
        (m, d, d), of the shifts.
    freedom
        (m,), degrees of freedom of the covariances.
    """

    shifts: Array
    covariances: Array
    freedom: Array


class Interval(NamedTuple):
    """Effects with 95% bounds, (m,) each."""

    effect: Array
    low: Array
    high: Array


def effects_of(values: Array, found: Scores, contrast: Contrast) -> Effects:
    r"""Return differences by weighted least squares with the weights of the tests.

    Their covariance is :math:`\sum_i v_i^2 r_i r_i^T / (1 - h_i)` with residuals r, leverages h
    and the share v of each animal in the difference (HC2: that of Welch for two groups), shrunk
    towards the covariance that all animals have in common.

    Parameters
    ----------
    values
        (n, m, d), NaN where not known.
    found
        scores, for their weights.
    contrast
        question.
    """
    _, given, weights = filled(values, found.weights)
    design = np.column_stack([contrast.nuisance, contrast.values])
    size = np.maximum(weights.sum(axis=0), 1e-9)
    inverse = np.linalg.inv(normal_matrices(design, weights))
    right = np.einsum("nm,nq,nmd->mqd", weights, design, given)
    fitted = inverse @ right
    apart = given - np.einsum("nq,mqd->nmd", design, fitted)
    leverage = weights * np.einsum("nq,mqr,nr->nm", design, inverse, design)
    share = weights * np.einsum("mq,nq->nm", inverse[:, -1], design)
    free = np.maximum(1 - leverage, 0.05)
    robust = np.einsum("nm,nmd,nme->mde", share**2 / free, apart, apart)
    count = (weights > 0).sum(axis=0)
    common = shrunk(np.einsum("nm,nmd,nme->mde", weights / free, apart, apart), size,
                    found.covariances)  # fmt: skip
    common = common * (share**2).sum(axis=0)[:, None, None]
    several = count[:, None, None]
    covariances = (several * robust + PRIOR * common) / (several + PRIOR)
    shifts = fitted[:, -1]
    for group in range(len(contrast.labels)):
        seen = (weights[contrast.groups == group] > 0).sum(axis=0)
        if len(contrast.labels) == 2:
            shifts = np.where(seen[:, None] >= FEWEST_KNOWN, shifts, np.nan)
    effective = size**2 / np.maximum((weights**2).sum(axis=0), 1e-12)
    freedom = np.maximum(effective - design.shape[1], 1.0) + PRIOR
    return Effects(shifts, covariances, freedom)


def intervals(effects: Effects) -> Interval:
    """Return differences with their 95% intervals: signed in one dimension, else their lengths."""
    if effects.shifts.shape[1] == 1:
        error = t.ppf(0.5 + COVERAGE / 2, effects.freedom) * np.sqrt(effects.covariances[:, 0, 0])
        shift = effects.shifts[:, 0]
        return Interval(shift, shift - error, shift + error)
    return lengths(effects)


def lengths(effects: Effects) -> Interval:
    r"""Return the lengths of shifts, free of the length that chance gives, with 95% intervals.

    The squared length of an estimated shift, over :math:`s = \sum \lambda^2 / \sum \lambda` with
    the eigenvalues of its covariance, has nearly a non-central F distribution with
    :math:`f = (\sum \lambda)^2 / \sum \lambda^2` degrees of freedom. The true length is that for
    which the observed one is the median; the bounds those for which it is a 2.5% quantile.
    """
    traces = np.maximum(np.trace(effects.covariances, axis1=1, axis2=2), 1e-150)
    squares = np.maximum(np.einsum("mde,med->m", effects.covariances, effects.covariances), 1e-300)
    scale, freedom = squares / traces, traces**2 / squares
    observed = (effects.shifts**2).sum(axis=1) / scale
    known = np.isfinite(observed)
    tail = (1 - COVERAGE) / 2
    results = []
    for share in (0.5, 1 - tail, tail):
        found = np.full(len(observed), np.nan)
        found[known] = _non_central(observed[known], freedom[known], effects.freedom[known], share)
        results.append(np.sqrt(found * scale))
    return Interval(*results)


def _non_central(observed: Array, freedom: Array, error_freedom: Array, share: float) -> Array:
    """Return non-centralities for which ``observed`` is the quantile ``share``; 0 if none is."""
    root, quantile = np.sqrt(observed), t.ppf(share, error_freedom)
    plain = np.maximum(root - quantile * np.sqrt(1 + observed / (2 * error_freedom)), 0.0) ** 2
    low = np.zeros_like(observed)
    high = 2 * (root + np.abs(quantile) + 4) ** 2
    near = observed < FAR
    for _ in range(60):
        middle = (low + high) / 2
        below = np.ones_like(observed)
        below[near] = ncfdtr(
            freedom[near], error_freedom[near], middle[near], observed[near] / freedom[near]
        )
        rising = below > share  # the true one is larger
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    none = f_distribution.cdf(observed / freedom, freedom, error_freedom) <= share
    return np.where(near, np.where(none, 0.0, low), plain)


def detectable(effects: Effects, threshold: float, animals: int) -> Array:
    """Return (m,), the size of a difference that is found in 80% of experiments like this.

    Parameters
    ----------
    effects
        for their covariances.
    threshold
        of the statistic, see `eutely.comparison.scores.Result`. It is at most ``animals`` - 1,
        and is turned into that of a test by the covariance within groups.
    animals
        number of them.
    """
    dimensions = effects.shifts.shape[1]
    if not np.isfinite(threshold):
        return np.full(len(effects.shifts), np.nan)
    within = threshold * (animals - 2) / max(animals - 1 - threshold, 1e-3)
    low, high = 0.0, 10 * (within + 20)
    for _ in range(60):
        middle = (low + high) / 2
        missed = float(ncx2.cdf(within, dimensions, middle)) > 1 - POWER
        low, high = (middle, high) if missed else (low, middle)
    traces = np.trace(effects.covariances, axis1=1, axis2=2) / dimensions
    return np.asarray(np.sqrt(high * traces))


def spread_residuals(values: Array, found: Scores, contrast: Contrast) -> Array:
    """Return (n, m), logarithms of the distances from the centre of the own group.

    Distances are in standard deviations of the cell, corrected for the share that each animal has
    in its centre. NaN where not known.
    """
    known, given, weights = filled(values, found.weights)
    design = np.column_stack([contrast.nuisance, contrast.values])
    if len(contrast.labels) > 2:  # every group of a trend has its own centre
        design = np.column_stack(
            [contrast.nuisance]
            + [contrast.groups == group for group in range(1, len(contrast.labels))]
        ).astype(np.float64)
    apart = residuals(given, weights, design)
    inverse = np.linalg.inv(normal_matrices(design, weights))
    leverage = weights * np.einsum("nq,mqr,nr->nm", design, inverse, design)
    free = np.sqrt(np.maximum(1 - leverage, 0.05))
    apart_lengths = distances(apart, found.covariances) / free
    return np.where(known, np.log(np.maximum(apart_lengths, SHORTEST)), np.nan)
