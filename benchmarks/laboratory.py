"""What the rows of the paper's evaluation need: worms, steps that run once, accuracies."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely import Specimen, evaluate, read
from eutely.align.consensus import Aligned, realign
from eutely.align.target import ALL_MATCHED, pose_rules
from eutely.atlas import Atlas
from eutely.cells import Cells
from eutely.cliques import Cliques, Matchings
from eutely.config import Config
from eutely.estimate import atlas_of
from eutely.evaluation import Evaluation, evaluation, majority_names, pre_atlas, score
from eutely.find import Labels
from eutely.find.learn import (
    aligned,
    cells_of_cliques,
    costs,
    matched,
    realigned,
    synchronised,
)
from eutely.find.learn.stages import learn
from eutely.fit.quadratic import problem_of
from eutely.frame import Frame, canonical_order
from eutely.learned import Learned, Parameters
from eutely.pairs import PairRules
from eutely.pose import anonymous, oriented, posed
from eutely.record import Record
from eutely.solver import solve
from eutely.solver.assignment import assign
from eutely.solver.softassign import centres_of
from eutely.steps import Context, Run
from eutely.store.files import Journal
from eutely.store.folder import RunFolder
from eutely.tasks.build import in_order
from figures import Figures, keep, table
from worms import DATA, frame_of, worms

RESULTS = Path(__file__).resolve().parent / "results" / "paper.json"

FEWER = 100
"""Trials a stage where learning is done again; the losses change little after these."""

SOME = 50
"""Worms that are matched where learning is done again."""


class TimedFolder(RunFolder):
    """A run folder that also keeps the processor time of each step, in ``steps.jsonl``."""

    start = 0.0

    def get(self, name: str, key: str) -> Record | None:
        """Return a stored result, or None; a step that is not stored starts now."""
        record = super().get(name, key)
        self.start = time.process_time()
        return record

    def put(self, name: str, key: str, record: Record, seconds: float) -> None:
        """Store a result, and how long it took."""
        super().put(name, key, record, seconds)
        row = {
            "step": name,
            "seconds": round(seconds, 1),
            "processor_seconds": round(time.process_time() - self.start, 1),
        }
        Journal(self.path / "steps.jsonl").append(row)

    def spent(self) -> dict[str, Figures]:
        """Return how long each step took the first time."""
        first: dict[str, Figures] = {}
        for row in Journal(self.path / "steps.jsonl"):
            first.setdefault(row["step"], {k: v for k, v in row.items() if k != "step"})
        return first


class Placed(NamedTuple):
    """Worms with names, and their nuclei and radii in the frame of the target."""

    named: Sequence[Specimen]
    frames: Sequence[NDArray[np.float64]]
    radii: Sequence[NDArray[np.float64]]


class Cohort(NamedTuple):
    """Training worms: with names, and without them in their common frame, in the same order."""

    named: tuple[Specimen, ...]
    frame: Frame

    def some(self, chosen: Sequence[int]) -> "Cohort":
        """Return the chosen worms; the size of the frame stays."""
        specimens = tuple(self.frame.specimens[number] for number in chosen)
        named = tuple(self.named[number] for number in chosen)
        return Cohort(named, replace(self.frame, specimens=specimens))

    @property
    def labels(self) -> Labels:
        """For each worm the names of its nuclei."""
        return tuple(one.names or ("",) * len(one) for one in self.named)


@dataclass
class Lab:
    """The worms of one evaluation, and the run with all steps done for them."""

    folder: TimedFolder
    run: Run
    workers: int

    @property
    def config(self) -> Config:
        """The settings of the preset."""
        return self.run.config

    @cached_property
    def cohort(self) -> Cohort:
        """The training worms."""
        named = in_order(worms())
        return Cohort(named, frame_of(self.run, named))

    @cached_property
    def test(self) -> list[Specimen]:
        """The test worms."""
        return [worm.take(canonical_order(worm)) for worm in read(DATA / "rapcat" / "test2")]

    @cached_property
    def test_aligned(self) -> Placed:
        """The test worms, aligned to the target as the training worms are (section 3.4)."""
        settings, body, target = self.config.realign, self.cohort.frame.body, self.second.target
        goal, radii = self.second.frames[target], self.second.radii[target]
        broad = centres_of(np.broadcast_to(body.spacing**2 * np.eye(3), (len(goal), 3, 3)))
        frames, sizes = [goal], [radii]
        for worm in self.test:
            one = posed(oriented(anonymous(worm, worm.name)), body.size)
            costs = [assign(goal, broad, points, pose_rules(broad))[1] for points in one.poses]
            frames.append(one.poses[int(np.argmin(costs))])
            sizes.append(one.radii)
        none = np.zeros(len(frames))
        start = Aligned(tuple(frames), tuple(sizes), none.astype(int), 0, none, none)
        unlearned = PairRules(Parameters.unlearned(body.spacing), ALL_MATCHED, dense=True)
        first = realign(start, unlearned, settings, self.run.executor)
        c0, neighbours = self.config.learn.c0, self.config.costs.neighbours
        rules = PairRules(self.learned.parameters, c0, neighbours, effort="fast")
        second = realign(first, rules, settings, self.run.executor)
        return Placed(self.test, second.frames[1:], second.radii[1:])

    def placed(self, worms_aligned: Aligned, chosen: Sequence[int] | None = None) -> Placed:
        """Return the chosen training worms (None: all) where they are aligned."""
        numbers = range(len(self.cohort.named)) if chosen is None else chosen
        return Placed(
            [self.cohort.named[number] for number in numbers],
            [worms_aligned.frames[number] for number in numbers],
            [worms_aligned.radii[number] for number in numbers],
        )

    def with_settings(self, section: str, **values: Any) -> Run:
        """Return a run with other settings in one section, and the same store."""
        return replace(self.run, config=changed(self.config, section, **values))

    @cached_property
    def first(self) -> Aligned:
        """The training worms, aligned by unlearned costs."""
        return self.run(aligned, self.cohort.frame)

    @cached_property
    def learned(self) -> Learned:
        """The costs that the preset learns."""
        return self.run(costs, self.first, self.cohort.frame.body.spacing)

    def learned_with(self, **settings: int) -> Parameters:
        """Return the costs after fewer stages or trials, from the trials of `learned`."""
        journal = [
            {"stage": t.stage, "parameters": t.parameters, "losses": list(t.losses)}
            for t in self.learned.trials
        ]
        config = changed(self.config, "learn", **settings)
        context = Context(config, self.run.executor, watch, journal)
        return learn(self.first, self.cohort.frame.body.spacing, context).parameters

    @cached_property
    def second(self) -> Aligned:
        """The training worms, aligned by the learned costs."""
        return self.realigned(self.learned.parameters)

    def realigned(self, parameters: Parameters) -> Aligned:
        """Align the training worms again by these costs."""
        return self.run(realigned, self.cohort.frame, self.first, parameters)

    @cached_property
    def matchings(self) -> Matchings:
        """The matchings of all pairs by the learned costs, and what each pair allowed."""
        run = self.with_settings("multi", synchronisation="sparse")
        return run(matched, self.second, self.learned.parameters)

    @cached_property
    def found(self) -> Cells:
        """The cells of all training worms."""
        return self.cells(self.second, self.matchings)

    @cached_property
    def full(self) -> Figures:
        """The accuracies of the whole pipeline on the training worms."""
        return self.judged(self.found, self.weights, self.second)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights of the atlas, (3,), from what was learned."""
        return self.learned.parameters.weights()

    def matched(self, worms_aligned: Aligned, parameters: Parameters, **how: Any) -> Matchings:
        """Match all pairs; ``how`` are settings of the section ``costs`` that differ."""
        return self.with_settings("costs", **how)(matched, worms_aligned, parameters)

    def cells(
        self, worms_aligned: Aligned, matchings: Matchings, chosen: Sequence[int] | None = None
    ) -> Cells:
        """Return the cells of the chosen worms (None: all); ``matchings`` are theirs."""
        return self.cells_of(worms_aligned, self.run(synchronised, matchings), chosen)

    def cells_of(
        self, worms_aligned: Aligned, cliques: Cliques, chosen: Sequence[int] | None = None
    ) -> Cells:
        """Return the cells that cliques of the chosen worms (None: all) stand for."""
        if chosen is None:
            return self.run(cells_of_cliques, self.cohort.frame, worms_aligned, cliques)
        part = replace(
            worms_aligned,
            frames=tuple(worms_aligned.frames[number] for number in chosen),
            radii=tuple(worms_aligned.radii[number] for number in chosen),
            poses=worms_aligned.poses[list(chosen)],
        )
        return self.run(cells_of_cliques, self.cohort.some(chosen).frame, part, cliques)

    def atlas(
        self,
        cells: Cells,
        weights: NDArray[np.float64] | None,
        cohort: Cohort | None = None,
        names: Sequence[str] | None = None,
        **change: Any,
    ) -> Atlas:
        """Estimate an atlas and name its cells.

        Parameters
        ----------
        cells
            of the worms.
        weights
            (3,) for an atlas of the paper's model; None for the model ``joint``.
        cohort
            the worms; None for all.
        names
            of the cells; None for those that most worms have there.
        change
            fields of the atlas to replace.
        """
        cohort = cohort or self.cohort
        atlas = atlas_of(cells, cohort.frame, self.config, weights=weights)
        if names is None:
            names = majority_names(cells.labels(), cohort.labels, len(atlas))
        return replace(atlas.named(names), unit=cohort.named[0].unit, **change)

    def judged(
        self,
        cells: Cells,
        weights: NDArray[np.float64],
        worms_aligned: Aligned,
        chosen: Sequence[int] | None = None,
        **change: Any,
    ) -> Figures:
        """Return the pre-atlas and the atlas accuracy of training worms (None: all).

        The atlas is matched with the worms as they are aligned; ``change`` as in `atlas`.
        """
        cohort = self.cohort if chosen is None else self.cohort.some(chosen)
        atlas = self.atlas(cells, weights, cohort, **change)
        return {
            "pre_atlas": figures(pre_atlas(cohort.named, cells.labels())),
            "atlas": figures(matched_with(atlas, self.placed(worms_aligned, chosen))),
        }

    def evaluated(self, atlas: Atlas, specimens: Sequence[Specimen]) -> Evaluation:
        """Evaluate an atlas on specimens as `eutely annotate` does, each by itself."""
        return evaluate(atlas, specimens, workers=self.workers, adapt=False)

    def rows(self, section: str, wanted: dict[str, Callable[[], Figures]]) -> None:
        """Compute the rows that are not known yet, and show all."""
        journal = Journal(self.folder.path / f"{section}.jsonl")
        known = {row["row"]: row for row in journal}
        rows: list[Figures] = []
        for name, compute in wanted.items():
            if name not in known:
                logging.info("%s: %s", section, name)
                known[name] = {"row": name} | compute()
                journal.append(known[name])
            rows = [known[row] for row in wanted if row in known]
            keep(RESULTS, section, {"rows": rows})
        table(section, [{k: v for k, v in row.items() if k != "worms"} for row in rows])


def changed(config: Config, section: str, **values: Any) -> Config:
    """Return the settings with other values in one section, which are not checked."""
    return config.model_copy(update={section: getattr(config, section).model_copy(update=values)})


def drawn(lab: Lab, count: int) -> list[int]:
    """Return the first ``count`` worms of one random order."""
    order = np.random.default_rng(lab.config.seed).permutation(len(lab.cohort.named))
    return sorted(order[:count].tolist())


def among(matchings: Matchings, chosen: Sequence[int]) -> Matchings:
    """Return the matchings of the chosen specimens with each other."""
    number = matchings.numbers()
    sizes = matchings.sizes[list(chosen)]
    pairs = np.transpose(np.triu_indices(len(chosen), 1)).astype(np.int32)
    own = [number[chosen[g], chosen[h]] for g, h in pairs]
    bits = None
    if matchings.allowed is not None:
        starts = matchings.allowed_starts()
        bits = np.concatenate([matchings.allowed[starts[k] : starts[k + 1]] for k in own])
    return Matchings(
        sizes,
        pairs,
        np.concatenate([[0], np.cumsum(sizes[pairs[:, 0]], dtype=np.int64)]),
        np.concatenate([matchings.of(k) for k in own]),
        bits,
    )


def of_pairs(matchings: Matchings, pairs: NDArray[np.int32]) -> Matchings:
    """Return the matchings of some pairs only."""
    number = matchings.numbers()
    own = [number[g, h] for g, h in pairs]
    starts = np.concatenate([[0], np.cumsum(matchings.sizes[pairs[:, 0]], dtype=np.int64)])
    return Matchings(matchings.sizes, pairs, starts, np.concatenate([matchings.of(k) for k in own]))


def matched_with(atlas: Atlas, worms_placed: Placed) -> Evaluation:
    """Match worms with an atlas where they are, as the paper does, and count what is right."""
    scores = []
    for worm, frame, radii in zip(*worms_placed, strict=True):
        matching = solve(problem_of(atlas, frame, radii), "default").matching
        given = np.full(len(worm), "", dtype=object)
        matched_cells = np.flatnonzero(matching >= 0)
        given[matching[matched_cells]] = [atlas.names[cell] for cell in matched_cells]
        scores.append(score(worm, given.tolist()))
    return evaluation(scores)


def figures(evaluation: Evaluation) -> Figures:
    """Return mean, standard deviation and lowest accuracy."""
    values = evaluation.accuracies
    return {
        "mean": round(float(values.mean()), 4),
        "std": round(float(values.std()), 4),
        "lowest": round(float(values.min()), 4),
    }


def detailed(evaluation: Evaluation) -> Figures:
    """Return `figures`, and the accuracy of each specimen."""
    return {"accuracy": figures(evaluation), "worms": evaluation.accuracies.round(4).tolist()}


def watch(what: str, done: int, total: int, note: str) -> None:
    """Log every 25th report of progress, and the last."""
    if done % 25 == 0 or done == total:
        logging.info("%s %d of %d: %s", what, done, total, note)
