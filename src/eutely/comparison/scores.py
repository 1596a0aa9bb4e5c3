"""Permutation tests of a group difference, one for each cell, by standardised linear statistics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.comparison.design import FEWEST, Contrast
from eutely.comparison.measured import filled, medians, normal_matrices
from eutely.comparison.permutations import Permutations

Array = NDArray[np.float64]

PRIOR = 5.0
"""Animals that the prior covariance counts for: with few animals their own is poorly known."""

CLIP = 2.5
"""Distance, in standard deviations per root of a dimension, from which an animal counts less."""

ROUNDS = 3
"""Rounds of finding who counts less."""

CHUNK = 500
"""Permutations that are computed at a time, which bounds the memory."""

LEVEL = 0.05
"""Family-wise and false discovery rate at which something is called a finding."""


class Scores(NamedTuple):
    """What each animal says about each cell, whatever its group.

    Attributes
    ----------
    scores
        (n, m, d) float64, weighted residuals of the model without the group; they sum to 0 over
        animals.
    weights
        (n, m) float64, confidence, reduced for animals that are far from the others.
    covariances
        (m, d, d) float64, of residuals, shrunk.
    testable
        (m,) bool, cells that enough animals have, and that vary.
    """

    scores: Array
    weights: Array
    covariances: Array
    testable: NDArray[np.bool_]


class Result(NamedTuple):
    """Results of one test for all cells.

    Attributes
    ----------
    p
        (m,) float64, of each cell by its own permutations; NaN where it was not tested.
    pooled
        (m,), by the permutations of all cells together: finer, for few animals; the same as p where
        there are few cells.
    family
        (m,), adjusted for all cells of the test by the largest statistic (max-T).
    q
        (m,), false discovery rate (Benjamini-Hochberg).
    maxima
        (B,), largest statistic of each permutation.
    highest
        the largest observed statistic.
    threshold
        statistic that only 5% of the permutations reach anywhere.
    """

    p: Array
    pooled: Array
    family: Array
    q: Array
    maxima: Array
    highest: float
    threshold: float


def residuals(values: Array, weights: Array, design: Array) -> Array:
    """Return (n, m, d), residuals of weighted least squares on the columns of a design (n, q)."""
    if design.shape[1] == 1:
        total = np.maximum((weights * design).sum(axis=0), 1e-12)
        means = np.einsum("nm,nmd->md", weights, values) / total[:, None]
        return np.asarray(values - means)
    square = normal_matrices(design, weights)
    right = np.einsum("nm,nq,nmd->mqd", weights, design, values)
    return np.asarray(values - np.einsum("nq,mqd->nmd", design, np.linalg.solve(square, right)))


def shrunk(products: Array, counts: Array, prior: Array | None) -> Array:
    """Return covariances (m, d, d) from sums of products and counts (m,), with a prior.

    The prior (m, d, d) is scaled by one factor for all cells, the median ratio of traces; None
    stands for the median covariance of all cells.
    """
    raw = products / np.maximum(counts, 1.0)[:, None, None]
    traces = np.trace(raw, axis1=1, axis2=2)
    known = (counts >= 2 * FEWEST) & (traces > 0)
    if prior is None:
        middle = np.median(raw[known], axis=0) if known.any() else np.eye(raw.shape[1])
        prior = np.broadcast_to(middle, raw.shape)
    given = np.trace(prior, axis1=1, axis2=2)
    factor = float(np.median(traces[known] / given[known])) if known.any() else 1.0
    total = (products + PRIOR * factor * prior) / (counts + PRIOR)[:, None, None]
    floor = 1e-12 * max(float(np.median(traces[known])) if known.any() else 1.0, 1e-12)
    return np.asarray(total + floor * np.eye(raw.shape[1]))


def distances(values: Array, covariances: Array) -> Array:
    """Return (n, m), Mahalanobis lengths of values (n, m, d)."""
    roots = np.linalg.cholesky(covariances)
    solved = np.linalg.solve(roots[None], values[..., None])[..., 0]
    return np.asarray(np.sqrt((solved**2).sum(axis=2)))


def scores_of(
    values: Array, weights: Array, nuisance: Array, prior: Array | None = None, clip: bool = True
) -> Scores:
    """Return what each animal says about each cell; blind to the group.

    Parameters
    ----------
    values
        (n, m, d), NaN where not known.
    weights
        (n, m), confidences.
    nuisance
        (n, q), what is regressed out.
    prior
        (m, d, d), covariances that those of the animals are shrunk towards, up to a factor.
    clip
        whether animals far from the others count less.
    """
    known, given, base = filled(values, weights)
    current = _first_weights(values, known, base) if clip else base
    dimensions = values.shape[2]
    for turn in range(ROUNDS + 1):
        apart = residuals(given, current, nuisance)
        spread = np.einsum("nm,nmd,nme->mde", current, apart, apart)
        covariances = shrunk(spread, current.sum(axis=0), prior)
        if not clip or turn == ROUNDS:
            break
        far = distances(apart, covariances) / np.sqrt(dimensions)
        current = base * np.minimum(1.0, CLIP / np.maximum(far, 1e-12)) ** 2
    scores = np.where(known[..., None], current[..., None] * apart, 0.0)
    enough = known.sum(axis=0) >= 2 * FEWEST
    varies = np.trace(spread, axis1=1, axis2=2) > 1e-18 * max(1.0, float(np.abs(given).max()) ** 2)
    return Scores(scores, current, covariances, enough & varies)


def _first_weights(values: Array, known: NDArray[np.bool_], weights: Array) -> Array:
    """Return (n, m), weights by distances from the median, which no single animal can hide in."""
    count, cells, dimensions = values.shape
    rows = np.where(known[..., None], values, np.nan).transpose(1, 2, 0).reshape(-1, count)
    apart = np.abs(rows - medians(rows, 0.0)[:, None])
    scale = 1.4826 * medians(apart, 1.0)
    usual = float(np.median(scale[scale > 0])) if (scale > 0).any() else 1.0
    far = (apart / np.maximum(scale, 0.1 * usual)[:, None]).reshape(cells, dimensions, count)
    length = np.sqrt((np.nan_to_num(far) ** 2).mean(axis=1)).T
    return np.asarray(weights * np.minimum(1.0, (CLIP / np.maximum(length, 1e-12)) ** 2))


def variances(found: Scores, contrast: Contrast) -> Array:
    r"""Return (m, d, d), the covariance of the linear statistics over permutations, shrunk.

    With scores s and residual values g of the contrast (Strasser and Weber),

    .. math:: V = \sum_b \frac{\sum_{i \in b} g_i^2}{n_b - 1} \sum_{i \in b} s_i s_i^T

    over batches b of n_b animals, shrunk towards the covariance of the residuals.
    """
    scores, weights = found.scores, found.weights
    residual = contrast.residual
    dimensions = scores.shape[2]
    total = np.zeros((scores.shape[1], dimensions, dimensions))
    prior = np.zeros(scores.shape[1])
    for batch in range(int(contrast.batches.max(initial=0)) + 1):
        rows = contrast.batches == batch
        factor = float((residual[rows] ** 2).sum()) / max(int(rows.sum()) - 1, 1)
        total += factor * np.einsum("nmd,nme->mde", scores[rows], scores[rows])
        prior += factor * (weights[rows] ** 2).sum(axis=0)
    counts = (weights > 0).sum(axis=0)[:, None, None]
    target = prior[:, None, None] * found.covariances
    return np.asarray((counts * total + PRIOR * target) / (counts + PRIOR))


class Statistics(NamedTuple):
    """Statistics of all cells, as a function of the values of a contrast.

    Attributes
    ----------
    white
        (n, k, d) float64, scores of the k cells that can be tested, in units of V^(1/2).
    """

    white: Array

    @classmethod
    def of(cls, found: Scores, contrast: Contrast) -> Statistics:
        """Return the statistics of scores."""
        cells = np.flatnonzero(found.testable)
        roots = np.linalg.cholesky(np.linalg.inv(variances(found, contrast)[cells]))
        return cls(np.einsum("nmd,mde->nme", found.scores[:, cells], roots))

    def __call__(self, values: Array) -> Array:
        """Return (b, k), the statistics for values (b, n) of a contrast."""
        animals, cells, dimensions = self.white.shape
        linear = values @ self.white.reshape(animals, cells * dimensions)
        return np.asarray((linear.reshape(len(values), cells, dimensions) ** 2).sum(axis=2))


def result_of(
    found: Scores,
    contrast: Contrast,
    exchanged: Permutations,
    *,
    pooled: bool,
    deflate: float,
) -> Result:
    r"""Test for each cell whether its scores differ between groups.

    The statistic of a cell is :math:`T = u^T V^{-1} u` with :math:`u = \sum_i g_i s_i`. V does not
    change when animals are exchanged, so that all permutations are one product of matrices.

    Parameters
    ----------
    found
        scores.
    contrast
        question.
    exchanged
        permutations, the same for all tests.
    pooled
        q-values from the permutations of all cells together, whose statistics have one scale: with
        few animals those of one cell are too few. False where there are few cells.
    deflate
        factor on the observed statistics.
    """
    empty = np.full(found.scores.shape[1], np.nan)
    if not found.testable.any():
        size = len(exchanged.values)
        return Result(empty, empty, empty, empty, np.zeros(size), 0.0, np.inf)
    cells = np.flatnonzero(found.testable)
    statistics = Statistics.of(found, contrast)
    observed = deflate * statistics(contrast.residual[None])[0]
    limit = observed * (1 - 1e-9)  # ties of exchanged animals are ties
    order = np.argsort(limit)
    own = np.zeros(len(cells), dtype=np.int64)
    anywhere = np.zeros(len(cells) + 1, dtype=np.int64)
    maxima = np.empty(len(exchanged.values))
    for start in range(0, len(maxima), CHUNK):
        drawn = statistics(exchanged.values[start : start + CHUNK])
        own += (drawn >= limit).sum(axis=0)
        maxima[start : start + CHUNK] = drawn.max(axis=1)
        if pooled:
            reached = np.searchsorted(limit[order], drawn.ravel(), side="right")
            anywhere += np.bincount(reached, minlength=len(cells) + 1)
    p, finer, family, q = (empty.copy() for _ in range(4))
    p[cells] = exchanged.p_values(own)
    beyond = len(maxima) - np.searchsorted(np.sort(maxima), limit, side="left")
    family[cells] = exchanged.p_values(beyond)
    if pooled:
        exceeding = np.empty(len(cells), dtype=np.int64)
        exceeding[order] = anywhere[::-1].cumsum()[::-1][1:]
        finer[cells] = exchanged.p_values(exceeding, len(cells))
    else:
        finer[cells] = p[cells]
    q[cells] = benjamini_hochberg(finer[cells])
    threshold = float(np.quantile(maxima, 1 - LEVEL))
    return Result(p, finer, family, q, maxima, float(observed.max()), threshold)


def benjamini_hochberg(p: Array) -> Array:
    """Return q-values: the lowest false discovery rate at which each of the tests is a finding."""
    order = np.argsort(-p, kind="stable")
    ranks = np.arange(len(p), 0, -1)
    q = np.empty_like(p)
    q[order] = np.minimum(1.0, np.minimum.accumulate(p[order] * len(p) / ranks))
    return q
