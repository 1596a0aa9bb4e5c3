"""Learning the costs in three stages: linear costs, sparsity, offsets (section 3.2)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eutely.config.model import Learn
from eutely.execute import Executor
from eutely.find.learn.linear import calibrated, linear
from eutely.find.learn.offsets import offsets
from eutely.find.learn.sparsity import sparsity
from eutely.find.learn.study import Journal, Trial
from eutely.find.learn.work import Points, Progress, Work
from eutely.pairs import cost_of_a_match
from eutely.learned import Parameters

TYPICAL = 2.0
"""What a match costs in the end. A common factor of all variances changes no matching where all
nuclei are matched; with this one, worms of 558 nuclei leave about one unmatched at the paper's
cost of 40 for it."""

log = logging.getLogger("eutely")


@dataclass(frozen=True)
class Learned:
    """What learning found, and how.

    Attributes
    ----------
    parameters
        of the costs.
    specimens
        numbers of the specimens that it was learned on.
    trials
        stage -> its trials, in order.
    """

    parameters: Parameters
    specimens: tuple[int, ...]
    trials: dict[str, list[Trial]]


def choose_specimens(distance: NDArray[np.float64], count: int, seed: int) -> tuple[int, ...]:
    """Draw specimens to learn on, none that is clearly unlike the others.

    Parameters
    ----------
    distance
        (N,), of each specimen's nuclei from those that they match in the target.
    count
        how many; all if there are fewer.
    seed
        of the draw.
    """
    usual = np.flatnonzero(distance <= 2 * np.median(distance))
    drawn = np.random.default_rng(seed).permutation(usual)[:count]
    return tuple(sorted(drawn.tolist()))


def learn(
    frames: Sequence[Points],
    radii: Sequence[Points],
    distance: NDArray[np.float64],
    *,
    spacing: float,
    neighbours: int,
    settings: Learn,
    executor: Executor,
    seed: int = 0,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Learn the parameters of the costs from the consistency of matchings, without any name.

    Parameters
    ----------
    frames, radii, distance
        of all specimens, aligned (see `eutely.align.consensus.Aligned`).
    spacing
        typical distance of neighbouring nuclei.
    neighbours
        of each nucleus whose offsets are compared.
    settings
        the section ``learn`` of the configuration.
    executor, seed
        where to run, and where all random choices start.
    journal
        of trials done before, to which new ones are added; None keeps nothing.
    progress
        told after each trial.
    """
    specimens = choose_specimens(distance, settings.specimens, seed)
    work = Work(
        [frames[one] for one in specimens],
        [radii[one] for one in specimens],
        neighbours,
        settings,
        executor,
        seed,
        [] if journal is None else journal,
        progress,
    )
    found = Parameters.unlearned(spacing)
    trials: dict[str, list[Trial]] = {}
    for stage, step, count in (
        ("linear", linear, settings.trials_linear),
        ("sparsity", sparsity, settings.trials_sparsity),
        ("offsets", offsets, settings.trials_offsets),
    ):
        if count:
            found, trials[stage] = step(work, found, count)
        if stage == "linear":
            found = calibrated(found, work)
    cost = cost_of_a_match(
        work.frames, work.radii, found, settings.c0, executor, neighbours=neighbours
    )
    found = found.scaled(max(cost, 1e-6) / TYPICAL)
    log.info("learned: %s", found)
    return Learned(found, specimens, trials)
