"""Propose how a specimen lies in the frame of an atlas, at which size, mirrored or not.

Nuclei are a sample of the cells between the ends of the specimen. A hypothesis is a map into the
frame of the atlas; its likelihood is that of a mixture of these cells, each as likely to be seen as
there are nuclei per cell. So a dense part of the body does not attract every specimen, and the part
that it shows need not be known.

Directions, rolls, tilts, scales, mirror images and places along the body are scored by the density
of cells; the best are fitted by expectation-maximisation, features included, at smaller and smaller
widths of the mixture. What is too far behind to become the best is left out at each stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.align.affine import growth
from eutely.align.warp import fit_warp
from eutely.features import rank_costs
from eutely.fit.hypothesis import FARTHEST, WITNESS, Hypothesis, Prior
from eutely.fit.model import Model
from eutely.fit.scan import MOST, OUTLIERS, Landscape, scanned
from eutely.frame import Points, Posed
from eutely.geometry import UNSEEN
from eutely.kernel import kernel

SAMPLE = 200
"""Nuclei to which they are fitted, at most."""

WIDTHS = ((0.9, 6), (0.7, 6))
"""Widths of the mixture in typical distances of neighbours, and fits of a map at each: with half as
many, one in twenty cut worms has no hypothesis within 1.3 such distances of its place, instead of
one in sixty."""

WARPED = ((0.7, 2), (0.5, 2))
"""The same of warps, by which maps are compared in the end."""

KEPT = (16, 16, 16, 3)
"""Hypotheses of each handedness that are kept before each of these stages and at last, at most."""

BEHIND = (150.0, 110.0, 110.0, 150.0)
"""Log-likelihood by which a hypothesis may be behind the best there: odds of a few million and
less, by `WITNESS`."""

WINDOWS = 20
"""Pieces of the body by which it is told which cells a specimen shows, to compare features."""

TELLING = 0.5
"""Probability that the features of a nucleus tell anything before nuclei are matched."""

CORE = 3.5
"""Distance, in standard deviations, beyond which a cell does not explain a nucleus."""

LONGEST = 1.6
"""Largest factor by which a fit may change lengths along any axis, besides the scale."""

RIDGE = 0.05
"""Weight of the similarity against which shear is fitted."""


def propose(cells: Landscape, model: Model, specimen: Posed, prior: Prior) -> list[Hypothesis]:
    """Return the likeliest hypotheses about a specimen, the best first.

    Parameters
    ----------
    cells, model
        the cells of an atlas.
    specimen
        in its plausible poses as a whole body.
    prior
        what is known before.
    """
    points = specimen.unstretched()
    found = [one for scale in prior.scales for one in scanned(cells, specimen, prior, scale)]
    every = -(-len(points) // SAMPLE)
    some = np.argsort(points[:, 0], kind="stable")[::every]
    sample = _Sample(points[some], specimen.scores[some], len(points), {})
    stages: list[Stage] = [*(partial(_fitted, step=step) for step in WIDTHS), _warped]
    for stage, kept, behind in zip(stages, KEPT, BEHIND, strict=False):
        close = _close(found, behind, kept, points[some], model.body.spacing)
        found = [stage(cells, model, sample, one) for one in close]
    return _close(found, BEHIND[-1], KEPT[-1], points[some], model.body.spacing)


def _close(
    found: Sequence[Hypothesis], behind: float, most: int, points: Points, spacing: float
) -> list[Hypothesis]:
    """Return the likeliest hypotheses of each scale and handedness that differ from each other.

    What is behind the best of its scale is left out: scales compare once specimens are warped.
    """
    chosen: list[Hypothesis] = []
    for scale in {one.scale: None for one in found}:
        of_scale = sorted((one for one in found if one.scale == scale), key=lambda one: -one.score)
        for mirrored in (False, True):
            places = np.empty((min(most, len(found)), *points.shape))
            count = 0
            for one in of_scale:
                if one.mirrored != mirrored or one.score < of_scale[0].score - behind:
                    continue
                here = one(points)
                if (np.abs(places[:count] - here).mean(axis=(1, 2)) > 0.5 * spacing).all():
                    places[count] = here
                    count += 1
                    chosen.append(one)
                if count == most:
                    break
    return sorted(chosen, key=lambda one: -one.score)


class _Sample(NamedTuple):
    """Some nuclei of a specimen.

    Attributes
    ----------
    points, scores
        (k, 3) places and (k, d) features.
    total
        number of all nuclei.
    costs
        of their features, for each window that was needed so far.
    """

    points: Points
    scores: Points
    total: int
    costs: dict[tuple[int, int], NDArray[np.float64]]


Stage = Callable[[Landscape, Model, _Sample, Hypothesis], Hypothesis]
"""Cells, an atlas, a specimen and a hypothesis -> the hypothesis with another map or score."""


def _fitted(
    cells: Landscape,
    model: Model,
    sample: _Sample,
    hypothesis: Hypothesis,
    step: tuple[float, int],
) -> Hypothesis:
    """Fit a hypothesis by expectation-maximisation, at one width of the mixture."""
    points = sample.points
    variance = (step[0] * model.body.spacing) ** 2
    posed = hypothesis(points)
    costs = _feature_costs(cells, model, sample, posed)
    for _ in range(step[1]):
        targets, weights, _ = _mixed(cells, model, posed, sample.total, variance, costs)
        hypothesis = _refitted(points, targets, weights, hypothesis)
        posed = hypothesis(points)
    _, _, total = _mixed(cells, model, posed, sample.total, variance, costs)
    growth = np.log(abs(np.linalg.det(hypothesis.matrix)))
    score = min(sample.total, MOST) * (total / len(points) + growth)
    known = WITNESS * float(hypothesis.scale.log(hypothesis.matrix[None])[0])
    return hypothesis._replace(score=float(score + known))


def _warped(cells: Landscape, model: Model, sample: _Sample, hypothesis: Hypothesis) -> Hypothesis:
    """Score a hypothesis by how well nuclei fit the cells once they are warped to them.

    A bent or twisted specimen lies far off its cells by any map.
    """
    posed = warped = hypothesis(sample.points)
    costs = _feature_costs(cells, model, sample, posed)
    for width, fits in WARPED:
        variance = (width * model.body.spacing) ** 2
        for _ in range(fits):
            targets, weights, _ = _mixed(cells, model, warped, sample.total, variance, costs)
            warped = fit_warp(posed, targets, weights, model.goal.span)(posed)
    _, _, total = _mixed(cells, model, warped, sample.total, variance, costs)
    score = min(sample.total, MOST) * (total / len(posed) + growth(sample.points, warped))
    known = WITNESS * float(hypothesis.scale.log(hypothesis.matrix[None])[0])
    return hypothesis._replace(score=float(score + known))


def _feature_costs(
    cells: Landscape, model: Model, sample: _Sample, posed: Points
) -> NDArray[np.float64]:
    """Return (m, n), what the features of nuclei cost if they are cells; (0, 0) without any."""
    if not (sample.scores.size and model.features.size):
        return np.zeros((0, 0))
    inside = np.flatnonzero(_between(cells, model, posed))
    if not len(inside):
        return np.zeros((0, 0))
    m = len(cells.means)
    first, last = inside[0] * WINDOWS // m, -(-(inside[-1] + 1) * WINDOWS // m)
    key = (int(first), int(last))
    if key not in sample.costs:
        shown = np.zeros(m, bool)
        shown[first * m // WINDOWS : last * m // WINDOWS] = True
        features = model.features[cells.order]
        told = rank_costs(features, sample.scores, shown)
        told = -np.logaddexp(np.log(TELLING) - told, np.log1p(-TELLING))
        sample.costs[key] = np.ascontiguousarray(told)
    return sample.costs[key]


def _between(cells: Landscape, model: Model, posed: Points) -> NDArray[np.bool_]:
    """Return (m,), which cells lie between the ends of a specimen, about."""
    along, spare = cells.means[:, 0], 0.6 * model.body.spacing
    low, high = posed[:, 0].min() - spare, posed[:, 0].max() + spare
    return np.asarray((along >= low) & (along <= high))


def _mixed(
    cells: Landscape,
    model: Model,
    posed: Points,
    count: int,
    variance: float,
    costs: NDArray[np.float64],
) -> tuple[Points, NDArray[np.float64], float]:
    """Return mean cells (n, 3), how sure they are (n,), and the log-likelihood of a pose."""
    weights = cells.presence * np.where(_between(cells, model, posed), 1.0, UNSEEN)
    share = min(count / weights.sum(), 1.0)
    noise = OUTLIERS * share * np.exp(model.background.density)
    targets, sure, total = _mixture(cells.means, share * weights, posed, costs, variance, noise)
    return targets, sure, float(total)


def _refitted(
    points: Points, targets: Points, weights: NDArray[np.float64], hypothesis: Hypothesis
) -> Hypothesis:
    """Fit the map to targets (n, 3): a similarity of the same handedness, and a little shear."""
    total = weights.sum()
    if total < 4:
        return hypothesis
    centre, goal = weights @ points / total, weights @ targets / total
    here, there = points - centre, targets - goal
    weighted = weights[:, None] * here
    moments, mixed = here.T @ weighted, there.T @ weighted
    left, values, right = np.linalg.svd(mixed)
    signs = np.ones(3)
    if (np.linalg.det(left @ right) < 0) != hypothesis.mirrored:
        signs[2] = -1.0
    before = abs(np.linalg.det(hypothesis.matrix)) ** (1 / 3)
    drift = float(np.exp(FARTHEST * hypothesis.scale.spread))
    size = (values * signs).sum() / np.trace(moments)
    size = float(np.clip(size, before / drift, before * drift))
    matrix = size * (left * signs) @ right
    ridge = RIDGE * np.trace(moments) / 3 * np.eye(3)
    matrix = np.linalg.solve(moments + ridge, (mixed + matrix @ ridge).T).T
    left, values, right = np.linalg.svd(matrix)
    values = np.clip(values, size / LONGEST, size * LONGEST)
    matrix = (left * values) @ right
    return hypothesis._replace(matrix=matrix, shift=goal - matrix @ centre)


@kernel
def _mixture(means: Any, prior: Any, points: Any, extra: Any, variance: float, noise: float) -> Any:
    """Return where the cells of points are on average, (n, 3), how surely, (n,), and the score.

    The score is the sum of the log-density of points (n, 3) under cells at ``means`` (m, 3), which
    ascend in x, with weights ``prior`` (m,), costs of features ``extra`` (m, n) or (0, 0), and
    ``noise``, the density of points that are no cell.
    """
    n = len(points)
    targets = np.zeros((n, 3))
    weights = np.zeros(n)
    height = (2 * np.pi * variance) ** -1.5
    reach = CORE * np.sqrt(variance)
    score = 0.0
    for j in range(n):
        low = np.searchsorted(means[:, 0], points[j, 0] - reach)
        high = np.searchsorted(means[:, 0], points[j, 0] + reach)
        total = 0.0
        for i in range(low, high):
            squared = 0.0
            for a in range(3):
                squared += (points[j, a] - means[i, a]) ** 2
            if squared > reach * reach:
                continue
            cost = 0.5 * squared / variance
            if len(extra):
                cost += extra[i, j]
            value = prior[i] * height * np.exp(-cost)
            total += value
            for a in range(3):
                targets[j, a] += value * means[i, a]
        if total > 0:
            for a in range(3):
                targets[j, a] /= total
        weights[j] = total / (total + noise)
        score += np.log(total + noise)
    return targets, weights, score
