"""Learning the costs in three stages: linear costs, sparsity, offsets (section 3.2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import FloatDistribution, IntDistribution

from eutely.align.consensus import Aligned
from eutely.cliques import Matchings
from eutely.costs.candidates import Limits
from eutely.find.learn.study import Study, optimise
from eutely.frame import Points
from eutely.learned import Learned, Parameters, Trial, Triple
from eutely.multi import cycle_loss, synchronisation_loss
from eutely.pairs import PairRules, candidates_of_a_pair, cost_of_a_match, match_pairs
from eutely.record import pack
from eutely.steps import Context

log = logging.getLogger("eutely")

AXES = ("x", "y", "z")

VARIANCES = (0.005, 1.0)
"""Where stage 1 looks for variances, in squared distances of neighbouring nuclei. Only their
ratios matter there, and the paper's range, to 200 squared voxels, was about that wide."""

K_MIN, THRESHOLDS = (1, 20), (0.01, 10.0)
"""Where stage 2 looks for k_min, and for tau of centroids and radii."""

WIDEST = Limits(1.0, 1.0, 0.0, THRESHOLDS[1], THRESHOLDS[1], K_MIN[1])
"""Limits of candidates that stages 2 and 3 do not exceed."""

OFFSETS = (0.05, 20.0)
"""Where stage 3 looks for variances of offsets, in those of the centroids along the same axis."""

MEDIAN_SQUARE = 2.366
"""Median squared distance from the mean of a Gaussian in three dimensions, in variances."""

TYPICAL = 2.0
"""Cost of a match in the end. A common factor of all variances changes no matching where all nuclei
are matched; with this one, worms of 558 nuclei leave about one unmatched at the paper's c0, 40."""


@dataclass(frozen=True)
class Lesson:
    """What all stages learn from: a few aligned specimens, and how to match them.

    Attributes
    ----------
    frames, radii
        of the specimens to learn on.
    context
        settings ``seed``, ``costs`` and ``learn``, where to run, and the journal of trials.
    """

    frames: list[Points]
    radii: list[Points]
    context: Context

    def matchings(self, parameters: Parameters, *, dense: bool, neighbours: int) -> Matchings:
        """Match all pairs, as fast as the solver can."""
        c0 = self.context.settings.learn.c0
        rules = PairRules(parameters, c0, neighbours, dense, "fast", None if dense else WIDEST)
        return match_pairs(self.frames, self.radii, rules, self.context.executor, allowed=True)

    def loss(self, matchings: Matchings) -> int:
        """Return the loss that the settings ask for."""
        settings = self.context.settings
        return loss_of(matchings, settings.learn.loss, settings.seed)

    def optimise(
        self,
        stage: str,
        space: dict[str, Any],
        losses: Callable[[dict[str, Any]], Sequence[float]],
        first: dict[str, Any],
        trials: int,
    ) -> list[Trial]:
        """Minimise losses over a space of parameters; see `eutely.find.learn.study.optimise`."""
        objectives = 2 if stage == "sparsity" else 1
        study = Study(stage, space, objectives, first, self.context.settings.seed)

        def report(done: Sequence[Trial]) -> None:
            lowest = min(trial.losses[0] for trial in done)
            self.context.progress(f"learning {stage}", len(done), trials, f"loss {lowest:.0f}")

        return optimise(study, losses, trials, self.context.journal, report)


def loss_of(matchings: Matchings, kind: str, seed: int = 0) -> int:
    """Return the loss of matchings (section 3.1); lower is more consistent.

    Parameters
    ----------
    matchings
        of all pairs.
    kind
        ``sync``, minus the matches that sparse synchronisation keeps; ``sync-dense``, the same for
        dense synchronisation; or ``cycle``, the inconsistent triples.
    seed
        of the synchronisation.
    """
    if kind == "cycle":
        return cycle_loss(matchings)
    return synchronisation_loss(matchings, sparse=kind == "sync", seed=seed)


def learn(specimens: Aligned, spacing: float, context: Context) -> Learned:
    """Learn the parameters of the costs from the consistency of matchings, without any name.

    Parameters
    ----------
    specimens
        all of them, aligned; some are drawn to learn on.
    spacing
        typical distance of neighbouring nuclei.
    context
        settings ``seed``, ``costs`` and ``learn``, where to run, and the journal of trials.
    """
    settings = context.settings.learn
    drawn = choose_specimens(specimens.distance, settings.specimens, context.settings.seed)
    lesson = Lesson(
        [specimens.frames[g] for g in drawn], [specimens.radii[g] for g in drawn], context
    )
    parameters = Parameters.unlearned(spacing)
    trials: list[Trial] = []
    chosen: dict[str, int] = {}
    for stage, learn_stage, count in (
        ("linear", linear, settings.trials_linear),
        ("sparsity", sparsity, settings.trials_sparsity),
        ("offsets", offsets, settings.trials_offsets),
    ):
        if count:
            parameters, done, best = learn_stage(lesson, parameters, count)
            trials += done
            chosen[stage] = best.number
        if stage == "linear":
            parameters = calibrated(parameters, lesson)
    rules = PairRules(parameters, settings.c0, context.settings.costs.neighbours)
    cost = cost_of_a_match(lesson.frames, lesson.radii, rules, context.executor)
    parameters = parameters.scaled(max(cost, 1e-6) / TYPICAL)
    log.info("learned: %s", parameters)
    return Learned(parameters, drawn, tuple(trials), chosen)


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


Stage = tuple[Parameters, list[Trial], Trial]
"""Parameters after a stage, all its trials, and the one that was chosen."""


def linear(lesson: Lesson, start: Parameters, count: int) -> Stage:
    """Stage 1: variances of centroids and radii, by dense linear matchings."""
    sized = any(np.isfinite(radii).any() for radii in lesson.radii)
    names = [f"{what}_{axis}" for what in ("centroid", "radius")[: 1 + sized] for axis in AXES]
    space = {name: FloatDistribution(*VARIANCES, log=True) for name in names}

    def parameters(values: dict[str, Any]) -> Parameters:
        known = (*start.centroids, *start.radii)
        scaled = [value * values[name] for value, name in zip(known, names, strict=False)]
        return replace(
            start, centroids=_triple(scaled[:3]), radii=_triple(scaled[3:] or start.radii)
        )

    def losses(values: dict[str, Any]) -> list[float]:
        return [lesson.loss(lesson.matchings(parameters(values), dense=True, neighbours=0))]

    first = dict.fromkeys(names, VARIANCES[1])
    trials = lesson.optimise("linear", space, losses, first, count)
    best = min(trials, key=lambda trial: trial.losses)
    return parameters(best.parameters), trials, best


def calibrated(parameters: Parameters, lesson: Lesson) -> Parameters:
    """Scale the variances of centroids and radii such that consistent matches are as far apart.

    A common factor changes nothing in dense linear matchings, so the first stage cannot learn
    it; thresholds, offsets and c0 are relative to it. With calibrated variances the median squared
    distance of matches is that of a Gaussian.
    """
    matchings = lesson.matchings(parameters, dense=True, neighbours=0)
    squares = []
    for number, (g, h) in enumerate(matchings.pairs):
        partners = matchings.of(number)
        matched = partners >= 0
        apart = lesson.frames[g][matched] - lesson.frames[h][partners[matched]]
        squares.append((apart**2 / parameters.centroids).sum(axis=1))
    scale = max(float(np.median(np.concatenate(squares))) / MEDIAN_SQUARE, 1e-6)
    return replace(
        parameters,
        centroids=_triple(scale * value for value in parameters.centroids),
        radii=_triple(scale * value for value in parameters.radii),
        offsets=_triple(scale * value for value in parameters.centroids),
    )


def sparsity(lesson: Lesson, start: Parameters, count: int) -> Stage:
    """Stage 2: which assignments to allow, as few as possible at nearly the lowest loss."""
    space = {
        "k_min": IntDistribution(*K_MIN),
        "tau_centroid": FloatDistribution(*THRESHOLDS, log=True),
        "tau_radius": FloatDistribution(*THRESHOLDS, log=True),
    }

    known: dict[str, int] = {}

    def losses(values: dict[str, Any]) -> list[float]:
        matchings = lesson.matchings(replace(start, **values), dense=False, neighbours=0)
        # Thresholds that no candidate lies between allow the same assignments.
        key = pack(matchings).digest
        if key not in known:
            known[key] = lesson.loss(matchings)
        return [known[key], candidates_of_a_pair(matchings)]

    first = {name: getattr(start, name) for name in space}
    trials = lesson.optimise("sparsity", space, losses, first, count)
    settings = lesson.context.settings.learn
    best = pareto_choice(trials, settings.most_candidates, settings.tolerance)
    return replace(start, **best.parameters), trials, best


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


def offsets(lesson: Lesson, start: Parameters, count: int) -> Stage:
    """Stage 3: variances of the offsets between neighbours, by sparse quadratic matchings."""
    names = [f"offset_{axis}" for axis in AXES]
    space = {name: FloatDistribution(*OFFSETS, log=True) for name in names}
    neighbours = lesson.context.settings.costs.neighbours

    def parameters(values: dict[str, Any]) -> Parameters:
        scaled = zip(names, start.centroids, strict=True)
        return replace(start, offsets=_triple(values[name] * variance for name, variance in scaled))

    def losses(values: dict[str, Any]) -> list[float]:
        matchings = lesson.matchings(parameters(values), dense=False, neighbours=neighbours)
        return [lesson.loss(matchings)]

    trials = lesson.optimise("offsets", space, losses, dict.fromkeys(names, 1.0), count)
    best = min(trials, key=lambda trial: trial.losses)
    return parameters(best.parameters), trials, best


def _triple(values: Iterable[float]) -> Triple:
    x, y, z = values
    return x, y, z
