"""Stage 3: variances of the offsets between neighbours, by sparse quadratic matchings."""

from __future__ import annotations

from dataclasses import replace

from optuna.distributions import FloatDistribution

from eutely.find.learn.study import Trial, Values, optimise
from eutely.find.learn.work import AXES, Work, triple
from eutely.learned import Parameters

OFFSETS = (0.05, 20.0)
"""Where stage 3 looks for variances of offsets, in those of the centroids along the same axis."""


def offsets(work: Work, start: Parameters, count: int) -> tuple[Parameters, list[Trial]]:
    """Learn the variances of offsets by sparse quadratic matchings."""
    names = [f"offset_{axis}" for axis in AXES]
    space = {name: FloatDistribution(*OFFSETS, log=True) for name in names}

    def parameters(values: Values) -> Parameters:
        scaled = zip(names, start.centroids, strict=True)
        return replace(start, offsets=triple(values[name] * own for name, own in scaled))

    def losses(values: Values) -> list[float]:
        matchings = work.matchings(parameters(values), dense=False, neighbours=work.neighbours)
        return [work.loss(matchings)]

    trials = optimise(
        "offsets",
        3,
        space,
        losses,
        objectives=1,
        trials=count,
        first=dict.fromkeys(names, 1.0),
        seed=work.seed,
        journal=work.journal,
        told=work.teller("offsets", count),
    )
    return parameters(min(trials, key=lambda trial: trial.losses).values), trials
