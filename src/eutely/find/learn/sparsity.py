"""Stage 2: which assignments to allow, as few as possible at nearly the lowest loss."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from optuna.distributions import FloatDistribution, IntDistribution

from eutely.find.learn.study import Trial, Values, optimise
from eutely.find.learn.work import Work
from eutely.pairs import candidates_of_a_pair
from eutely.learned import Parameters

log = logging.getLogger("eutely")

LEAST = (1, 20)
"""Where stage 2 looks for K_min."""

THRESHOLDS = (0.01, 10.0)
"""Where stage 2 looks for the largest squared distances."""


def sparsity(work: Work, start: Parameters, count: int) -> tuple[Parameters, list[Trial]]:
    """Learn which assignments to allow: sparse linear matchings, few candidates, low loss."""
    space = {
        "least": IntDistribution(*LEAST),
        "tau_centroid": FloatDistribution(*THRESHOLDS, log=True),
        "tau_radius": FloatDistribution(*THRESHOLDS, log=True),
    }

    def losses(values: Values) -> list[float]:
        matchings = work.matchings(replace(start, **values), dense=False, neighbours=0)
        return [work.loss(matchings), candidates_of_a_pair(matchings)]

    trials = optimise(
        "sparsity",
        2,
        space,
        losses,
        objectives=2,
        trials=count,
        first={name: getattr(start, name) for name in space},
        seed=work.seed,
        journal=work.journal,
        told=work.teller("sparsity", count),
    )
    settings = work.settings
    return replace(
        start, **pareto_choice(trials, settings.most_candidates, settings.tolerance).values
    ), trials


def pareto_choice(trials: Sequence[Trial], most: float, tolerance: float) -> Trial:
    """Return the trial with the fewest candidates among those of nearly the lowest loss.

    Parameters
    ----------
    trials
        with two losses each: the loss and the mean number of candidates of a pair.
    most
        candidates that a trial must have fewer than; where none has, the fewest win.
    tolerance
        share of the lowest loss by which a trial may miss it.
    """
    sparse = [trial for trial in trials if trial.losses[1] < most]
    if not sparse:
        fewest = min(trials, key=lambda trial: trial.losses[::-1])
        log.warning(
            "learn.most_candidates is %d, but no trial has fewer than %d candidates a pair",
            most,
            fewest.losses[1],
        )
        return fewest
    lowest = min(trial.losses[0] for trial in sparse)
    near = [trial for trial in sparse if trial.losses[0] <= lowest + tolerance * abs(lowest)]
    return min(near, key=lambda trial: trial.losses[::-1])
