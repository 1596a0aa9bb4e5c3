"""Weights of an atlas's costs, by Bayesian optimisation of the accuracy (supplement D)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import FloatDistribution

from eutely.atlas import Atlas
from eutely.execute import Executor
from eutely.find.learn.study import Journal, Trial, Values, optimise
from eutely.find.learn.work import Progress
from eutely.fit.quadratic import problem_of
from eutely.solver import solve

Points = NDArray[np.float64]

TERMS = ("centroids", "radii", "offsets")

MOST = 2.0
"""Largest weight that is tried."""


def learn_weights(
    atlas: Atlas,
    frames: Sequence[Points],
    radii: Sequence[Points],
    nuclei: Sequence[NDArray[np.int32]],
    *,
    trials: int,
    executor: Executor,
    seed: int = 0,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Return the weights (3,) with which most named nuclei find their own cell.

    Equal weights are tried first; without any trial they are returned.

    Parameters
    ----------
    atlas
        of the model ``offsets``.
    frames, radii
        for each specimen its nuclei (n, 3) in the frame of the atlas, and their semi-axes.
    nuclei
        for each specimen (m,) the nucleus of each cell, or -1.
    trials
        how many weights to try.
    executor, seed, journal, progress
        as of `eutely.find.learn.learn`.
    """
    items = list(zip(frames, radii, nuclei, strict=True))

    def losses(values: Values) -> list[float]:
        weighted = replace(atlas, weights=_weights(values))
        return [-float(sum(executor.map(_right, items, shared=(weighted,))))]

    def told(done: Sequence[Trial]) -> None:
        if progress is not None:
            progress("weights", len(done), trials, min(one.losses[0] for one in done))

    found = optimise(
        "weights",
        4,
        {name: FloatDistribution(0.0, MOST) for name in TERMS},
        losses,
        objectives=1,
        trials=trials,
        first=dict.fromkeys(TERMS, 1.0),
        seed=seed,
        journal=[] if journal is None else journal,
        told=told,
    )
    if not found:
        return np.ones(3)
    return _weights(min(found, key=lambda trial: trial.losses).values)


def _weights(values: Values) -> NDArray[np.float64]:
    """Return weights of the length of (1, 1, 1), to which c0 is relative."""
    given = np.array([values[name] for name in TERMS])
    return np.asarray(given * np.sqrt(3) / max(float(np.linalg.norm(given)), 1e-9))


def _right(atlas: Atlas, one: tuple[Points, Points, NDArray[np.int32]]) -> int:
    """Return how many nuclei of a specimen are matched with their own cells."""
    frame, radii, truth = one
    found = solve(problem_of(atlas, frame, radii), "fast").matching
    return int(((found == truth) & (truth >= 0)).sum())
