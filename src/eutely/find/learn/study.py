"""One stage of Bayesian optimisation whose every trial can be repeated, or taken from a journal."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import TPESampler

from eutely.learned import Trial
from eutely.steps import Journal

log = logging.getLogger("eutely")

SEEDS = {"linear": 1, "sparsity": 2, "offsets": 3, "weights": 4}
"""Part of the seed of each stage, so that no two draw the same."""


class Study(NamedTuple):
    """What one stage optimises.

    Attributes
    ----------
    stage
        its name, a key of `SEEDS`.
    space
        parameter -> distribution.
    objectives
        how many losses a trial has.
    first
        the point to try first, so that the result is never worse.
    seed
        where all random choices start.
    """

    stage: str
    space: Mapping[str, BaseDistribution]
    objectives: int
    first: dict[str, Any]
    seed: int


def optimise(
    study: Study,
    losses: Callable[[dict[str, Any]], Sequence[float]],
    trials: int,
    journal: Journal,
    report: Callable[[Sequence[Trial]], None],
) -> list[Trial]:
    """Minimise ``losses`` by the tree-structured Parzen estimator.

    Each trial has its own sampler, seeded by (seed, stage, trial), and sees the parameters and
    losses of the trials before it and nothing else: a run that continues from a journal goes on
    exactly as if it had not been interrupted.

    Parameters
    ----------
    study
        what to optimise.
    losses
        of a point; pure.
    trials
        how many points to try, those in the journal included.
    journal
        trials of this stage, and perhaps of others, done before; new ones are added.
    report
        callback with all trials so far, after each new one.
    """
    optuna_study = _optuna_study(study.objectives)
    done = _done_before(study, optuna_study, journal, trials)
    if done:
        log.info("stage %s: %d trials done before", study.stage, len(done))
        report(done)
    while len(done) < trials:
        seed = [study.seed, SEEDS[study.stage], len(done)]
        asked = _ask(optuna_study, study.space, seed) if done else None
        values = study.first if asked is None else dict(asked.params)
        results = tuple(float(loss) for loss in losses(values))
        trial = Trial(study.stage, len(done), values, results)
        journal.append({"stage": study.stage, "parameters": values, "losses": list(results)})
        if asked is None:
            _add(optuna_study, study.space, trial)
        else:
            optuna_study.tell(asked, list(results))
        done.append(trial)
        report(done)
    return done


def _optuna_study(objectives: int) -> optuna.Study:
    # Optuna logs every study and trial; the caller reports ours.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(directions=["minimize"] * objectives)


def _done_before(
    study: Study, optuna_study: optuna.Study, journal: Journal, trials: int
) -> list[Trial]:
    """Return trials of this stage from the journal, up to the first one that is not usable."""
    done: list[Trial] = []
    for entry in journal:
        try:
            if entry["stage"] != study.stage or len(done) == trials:
                continue
            losses = tuple(float(loss) for loss in entry["losses"])
            trial = Trial(study.stage, len(done), dict(entry["parameters"]), losses)
            _add(optuna_study, study.space, trial)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            log.warning("stage %s: a stored trial is unusable (%s)", study.stage, error)
            break
        done.append(trial)
    return done


def _add(study: optuna.Study, space: Mapping[str, BaseDistribution], trial: Trial) -> None:
    """Add a trial to the study that did not come from it."""
    study.add_trial(
        optuna.trial.create_trial(
            params=trial.parameters, distributions=dict(space), values=list(trial.losses)
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
