"""Stage 1: variances of centroids and radii, by dense linear matchings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from optuna.distributions import FloatDistribution

from eutely.find.learn.study import Trial, Values, optimise
from eutely.find.learn.work import AXES, Work, triple
from eutely.learned import Parameters

VARIANCES = (0.005, 1.0)
"""Where stage 1 looks for variances, in squared distances of neighbouring nuclei. Only their
ratios matter there, and the paper's range, to 200 squared voxels, was about that wide."""

MEDIAN_SQUARE = 2.366
"""Median squared distance from the mean of a Gaussian in three dimensions, in variances."""


def linear(work: Work, start: Parameters, count: int) -> tuple[Parameters, list[Trial]]:
    """Learn the variances of centroids and radii by dense linear matchings."""
    sized = any(np.isfinite(radii).any() for radii in work.radii)
    names = [f"{what}_{axis}" for what in ("centroid", "radius")[: 1 + sized] for axis in AXES]
    space = {name: FloatDistribution(*VARIANCES, log=True) for name in names}

    def parameters(values: Values) -> Parameters:
        known = (*start.centroids, *start.radii)
        scaled = [own * values[name] for own, name in zip(known, names, strict=False)]
        return replace(start, centroids=triple(scaled[:3]), radii=triple(scaled[3:] or start.radii))

    trials = optimise(
        "linear",
        1,
        space,
        lambda values: [work.loss(work.matchings(parameters(values), dense=True, neighbours=0))],
        objectives=1,
        trials=count,
        first=dict.fromkeys(names, VARIANCES[1]),
        seed=work.seed,
        journal=work.journal,
        told=work.teller("linear", count),
    )
    found = parameters(min(trials, key=lambda trial: trial.losses).values)
    return found, trials


def calibrated(found: Parameters, work: Work) -> Parameters:
    """Scale the variances of centroids and radii such that consistent matches are as far apart.

    A common factor changes nothing in dense linear matchings, so the first stage cannot learn
    it; thresholds, offsets and the cost of leaving nuclei unmatched are relative to it. With
    calibrated variances the median squared distance of matches is that of a Gaussian.
    """
    matchings = work.matchings(found, dense=True, neighbours=0)
    squares = []
    for number, (g, h) in enumerate(matchings.pairs):
        partners = matchings.of(number)
        own = partners >= 0
        apart = work.frames[g][own] - work.frames[h][partners[own]]
        squares.append((apart**2 / found.centroids).sum(axis=1))
    factor = float(np.median(np.concatenate(squares))) / MEDIAN_SQUARE
    scale = max(factor, 1e-6)
    return replace(
        found,
        centroids=triple(scale * value for value in found.centroids),
        radii=triple(scale * value for value in found.radii),
        offsets=triple(scale * value for value in found.centroids),
    )
