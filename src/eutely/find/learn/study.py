"""One stage of Bayesian optimisation whose every trial can be repeated, or taken from a journal."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import TPESampler

log = logging.getLogger("eutely")

Values = dict[str, Any]
"""One point of a search space: name -> value."""


class Journal(Protocol):
    """Where trials are kept: a list, or `eutely.store.journal.Journal`."""

    def __iter__(self) -> Iterator[Any]:
        """Return the trials so far, first one first."""
        ...

    def append(self, value: Any, /) -> None:
        """Keep one more trial."""
        ...


@dataclass(frozen=True)
class Trial:
    """What was tried, and the losses it had, one per objective."""

    values: Values
    losses: tuple[float, ...]


def optimise(
    stage: str,
    number: int,
    space: Mapping[str, BaseDistribution],
    losses: Callable[[Values], Sequence[float]],
    *,
    objectives: int,
    trials: int,
    first: Values,
    seed: int,
    journal: Journal,
    told: Callable[[Sequence[Trial]], None],
) -> list[Trial]:
    """Minimise ``losses`` over ``space`` by the tree-structured Parzen estimator.

    Each trial has a sampler of its own, seeded by (seed, stage, trial), and sees the values and
    losses of the trials before it and nothing else: a run that continues from a journal goes on
    exactly as if it had not been interrupted.

    Parameters
    ----------
    stage, number
        name and number of the stage.
    space
        name -> distribution.
    losses
        of a point; pure.
    objectives
        how many losses a point has.
    trials
        how many points to try, those in the journal included.
    first
        the point to try first, so that the result is never worse.
    seed
        where all random choices start.
    journal
        trials of this stage, and perhaps of others, done before; new ones are added.
    told
        called with all trials so far after each new one.
    """
    done = [
        Trial(dict(record["values"]), tuple(record["losses"]))
        for record in journal
        if record["stage"] == stage
    ][:trials]
    study = _study(objectives)
    for trial in done:
        _add(study, space, trial)
    if done:
        log.info("stage %s: %d trials done before", stage, len(done))
        told(done)
    while len(done) < trials:
        asked = _ask(study, space, [seed, number, len(done)]) if done else None
        values = first if asked is None else dict(asked.params)
        trial = Trial(values, tuple(float(loss) for loss in losses(values)))
        journal.append({"stage": stage, "values": trial.values, "losses": list(trial.losses)})
        if asked is None:
            _add(study, space, trial)
        else:
            study.tell(asked, list(trial.losses))
        done.append(trial)
        told(done)
    return done


def _study(objectives: int) -> optuna.Study:
    # Optuna reports every study and trial; ours are reported by the caller.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(directions=["minimize"] * objectives)


def _add(study: optuna.Study, space: Mapping[str, BaseDistribution], trial: Trial) -> None:
    """Let the study know a trial that it was not asked for."""
    study.add_trial(
        optuna.trial.create_trial(
            params=trial.values, distributions=dict(space), values=list(trial.losses)
        )
    )


def _ask(
    study: optuna.Study, space: Mapping[str, BaseDistribution], seed: list[int]
) -> optuna.Trial:
    """Return the next point, drawn by a sampler of its own."""
    state = int(np.random.SeedSequence(seed).generate_state(1)[0])
    several = len(study.directions) > 1
    with warnings.catch_warnings():
        # Older versions of Optuna call the multivariate estimator experimental.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.sampler = TPESampler(seed=state, multivariate=not several, constant_liar=False)
    return study.ask(dict(space))
