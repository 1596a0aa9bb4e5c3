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
from eutely.align.consensus import Aligned
from eutely.atlas import Atlas
from eutely.cells import Cells
from eutely.cliques import Cliques, Matchings
from eutely.config import Config
from eutely.estimate import atlas_of
from eutely.evaluation import Evaluation, majority_names, pre_atlas
from eutely.find import Found, Labels
from eutely.find.learn import (
    aligned,
    cells_of_cliques,
    costs,
    find,
    improved,
    matched,
    realigned,
    synchronised,
)
from eutely.find.learn.stages import learn
from eutely.frame import Frame
from eutely.learned import Learned, Parameters
from eutely.record import Record
from eutely.steps import Context, Run
from eutely.store.files import Journal
from eutely.store.folder import RunFolder
from eutely.tasks.build import in_order
from figures import Figures, keep, table
from published import PUBLISHED
from worms import DATA, frame_of, worms

RESULTS = Path(__file__).resolve().parent / "results"


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


class Cohort(NamedTuple):
    """Training worms: with names, and without them in their common frame, in the same order."""

    named: tuple[Specimen, ...]
    frame: Frame

    def some(self, chosen: Sequence[int]) -> "Cohort":
        """Return the chosen worms; the size of the frame stays."""
        specimens = tuple(self.frame.specimens[number] for number in chosen)
        named = tuple(self.named[number] for number in chosen)
        return Cohort(named, replace(self.frame, specimens=specimens))

    def smooth(self, warp: bool) -> "Cohort":
        """Return the same worms, to be warped smoothly or by affine maps."""
        body = self.frame.body._replace(smooth=warp)
        return self._replace(frame=replace(self.frame, body=body))

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
    count: int

    @property
    def config(self) -> Config:
        """The settings of the preset."""
        return self.run.config

    @cached_property
    def cohort(self) -> Cohort:
        """The training worms."""
        named = in_order(worms()[: self.count])
        return Cohort(named, frame_of(self.run, named))

    @cached_property
    def test(self) -> list[Specimen]:
        """The test worms."""
        return list(read(DATA / "rapcat" / "test2"))[: self.count]

    def with_settings(self, section: str, **values: Any) -> Run:
        """Return a run with other settings in one section, and the same store."""
        return replace(self.run, config=changed(self.config, section, **values))

    def found(self, config: Config) -> Found:
        """Find the cells of all training worms by the method ``learn``."""
        frame = self.cohort.smooth(config.realign.warp).frame
        return find(replace(self.run, config=config), frame)

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

    def realigned(self, parameters: Parameters, *, warp: bool = True) -> Aligned:
        """Align again by these costs."""
        return self.run(realigned, self.cohort.smooth(warp).frame, self.first, parameters)

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

    def improved(self, cells: Cells) -> Cells:
        """Go through the last rounds of the preset."""
        for number in range(self.config.atlas.rounds):
            cells = self.run(improved, cells, number)
        return cells

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
        weights: NDArray[np.float64] | None,
        cohort: Cohort | None = None,
        **change: Any,
    ) -> Figures:
        """Return the pre-atlas and the atlas accuracy of training worms; see `atlas`."""
        named = (cohort or self.cohort).named
        atlas = self.atlas(cells, weights, cohort, **change)
        return {
            "pre_atlas": figures(pre_atlas(named, cells.labels())),
            "atlas": self.accuracy(atlas, named),
        }

    def accuracy(self, atlas: Atlas, specimens: Sequence[Specimen]) -> Figures:
        """Return the accuracy of an atlas on specimens, each by itself."""
        return figures(evaluate(atlas, specimens, workers=self.workers, adapt=False))

    def rows(self, section: str, wanted: dict[str, Callable[[], Figures]]) -> None:
        """Compute the rows that are not known yet, and show all."""
        journal = Journal(self.folder.path / f"{section}.jsonl")
        known = {row["row"]: row for row in journal}
        facts = {"worms": self.count, "trials": self.config.learn.trials_offsets}
        quick = "-quick" if self.count < len(worms()) else ""
        rows: list[Figures] = []
        for name, compute in wanted.items():
            if name not in known:
                logging.info("%s: %s", section, name)
                known[name] = {"row": name} | compute()
                known[name] |= {"paper": PUBLISHED.get(section, {}).get(name)}
                journal.append(known[name])
            rows = [known[row] for row in wanted if row in known]
            keep(RESULTS / f"paper{quick}.json", section, facts | {"rows": rows})
        table(section, [{k: v for k, v in row.items() if k != "worms"} for row in rows])


def changed(config: Config, section: str, **values: Any) -> Config:
    """Return the settings with other values in one section, which are not checked."""
    return config.model_copy(update={section: getattr(config, section).model_copy(update=values)})


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


def figures(evaluation: Evaluation) -> Figures:
    """Return mean, standard deviation and lowest accuracy."""
    values = evaluation.accuracies
    return {
        "mean": round(float(values.mean()), 4),
        "std": round(float(values.std()), 4),
        "lowest": round(float(values.min()), 4),
    }


def watch(what: str, done: int, total: int, note: str) -> None:
    """Log every 25th report of progress, and the last."""
    if done % 25 == 0 or done == total:
        logging.info("%s %d of %d: %s", what, done, total, note)
