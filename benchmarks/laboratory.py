"""What the rows of the paper's evaluation need: worms, steps that are done once, accuracies."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from eutely import Specimen, evaluate, read
from eutely.align.consensus import Aligned
from eutely.atlas import Atlas
from eutely.cliques import Cliques, Matchings
from eutely.config import Config
from eutely.evaluation import Evaluation, majority_names, pre_atlas
from eutely.execute import Executor
from eutely.find.learn import Learned
from eutely.find.learn import cells as steps
from eutely.find.learn.records import aligned_of, aligned_saved, matchings_of, matchings_saved
from eutely.find.refine import Cohort
from eutely.frame import Framed, framed, in_order
from eutely.learned import Parameters
from eutely.pairs import PairRules, match_pairs
from eutely.record import Record, digest
from eutely.store.folder import RunFolder
from eutely.store.journal import Journal
from eutely.tasks.estimator import Estimator
from eutely.tasks.refined import improved
from figures import Figures, keep, table
from published import PUBLISHED
from worms import DATA, worms

T = TypeVar("T")

RESULTS = Path(__file__).resolve().parent / "results"


class TimedRun(RunFolder):
    """A run folder that also keeps how long each stage took."""

    def stage(
        self,
        name: str,
        depends_on: object,
        compute: Callable[[], T],
        save: Callable[[T], Record],
        load: Callable[[Record], T],
    ) -> T:
        """Run a stage as any run folder does, and note how long it took."""
        return super().stage(name, depends_on, lambda: self.timed(name, compute), save, load)

    def timed(self, name: str, compute: Callable[[], T]) -> T:
        """Compute something and note how long it took."""
        wall, processors = time.perf_counter(), time.process_time()
        result = compute()
        row = {
            "step": name,
            "seconds": round(time.perf_counter() - wall, 1),
            "processor_seconds": round(time.process_time() - processors, 1),
        }
        logging.info("%s", row)
        Journal(self.path / "steps.jsonl").append(row)
        return result

    def spent(self) -> dict[str, Figures]:
        """Return how long each stage took the first time."""
        found: dict[str, Figures] = {}
        for row in Journal(self.path / "steps.jsonl"):
            found.setdefault(row["step"], {k: v for k, v in row.items() if k != "step"})
        return found


@dataclass
class Lab:
    """The worms of one evaluation, and the run folder with all that is known about them."""

    run: TimedRun
    executor: Executor
    workers: int
    count: int
    config: Config

    @cached_property
    def named(self) -> tuple[Specimen, ...]:
        """The training worms, with names."""
        return in_order(worms()[: self.count])

    @cached_property
    def frame(self) -> Framed:
        """The same without names, and how they may lie."""
        return framed(self.named, self.run, self.executor)

    @cached_property
    def test(self) -> list[Specimen]:
        """The test worms."""
        return list(read(DATA / "rapcat" / "test2"))[: self.count]

    def costs(self, **learn: Any) -> tuple[Aligned, Learned]:
        """Align and learn; ``learn`` are settings that differ."""
        config = changed(self.config, "learn", learn)
        f = self.frame
        given = (f.poses, f.radii, f.spacing, config, self.executor, self.run, f.key, watch)
        return steps.find_costs(*given)

    def stages_of(self, found: Learned, **learn: int) -> Parameters:
        """Return what was learned with fewer stages, by the trials that are known."""
        trials = [
            {"stage": stage, "values": one.values, "losses": list(one.losses)}
            for stage, done in found.trials.items()
            for one in done
        ]
        config = changed(self.config, "learn", learn)
        first = self.costs()[0]
        return steps.learned(first, self.frame.spacing, config, self.executor, trials).parameters

    def realigned(self, parameters: Parameters, *, warp: bool = True) -> Aligned:
        """Align again by these costs."""
        config = changed(self.config, "realign", {"warp": warp})
        f = self.frame
        given = (self.costs()[0], parameters, f.poses, f.size, f.spacing, config, self.executor)
        key = [f.key, config.part("realign", "learn", "costs", "seed"), parameters.as_dict()]
        return self.run.stage(
            "realign",
            key,
            lambda: steps.realigned(*given),
            aligned_saved,
            aligned_of,
        )

    def matched(self, cohort: Aligned, parameters: Parameters, **how: Any) -> Matchings:
        """Match all pairs."""
        c0 = self.config.learn.c0 if how.get("dense") else self.config.multi.c0
        options = {"neighbours": self.config.costs.neighbours, "allowed": True} | how
        places = digest([cohort.frames, cohort.radii])
        key = [self.frame.key, places, parameters.as_dict(), options, c0]
        allowed = bool(options["allowed"])
        rules = PairRules(parameters, c0, **{k: v for k, v in options.items() if k != "allowed"})
        return self.run.stage(
            "match",
            key,
            lambda: match_pairs(cohort.frames, cohort.radii, rules, self.executor, allowed=allowed),
            matchings_saved,
            matchings_of,
        )

    def cohort(
        self, aligned: Aligned, cliques: Cliques, chosen: list[int] | None = None
    ) -> tuple[Cohort, Framed]:
        """Return the cells of the ``chosen`` specimens (all if None), and these specimens."""
        own = list(range(len(self.named))) if chosen is None else chosen
        f = part(self.frame, own)
        cohort = replace(
            aligned,
            frames=tuple(aligned.frames[one] for one in own),
            radii=tuple(aligned.radii[one] for one in own),
            poses=aligned.poses[own],
        )
        found = steps.cells(cohort, cliques, f.poses, f.size, f.spacing, self.config)
        return found, f

    def improved(self, cohort: Cohort, frame: Framed) -> Cohort:
        """Go through the rounds of the preset."""
        return improved(cohort, frame, self.config, self.run, self.executor)

    def atlas(
        self, cohort: Cohort, frame: Framed, weights: Any, names: Any = None, **change: Any
    ) -> Atlas:
        """Estimate an atlas, of the paper's model if there are weights; named by majority or so."""
        found = Estimator(cohort, frame, self.config, weights).atlas()
        if names is None:
            by_name = {one.name: one.names or () for one in self.named}
            labels = [by_name[one.name] for one in frame.specimens]
            names = majority_names(cohort.labels(), labels, len(found))
        return replace(found.named(names), **change)

    def judged(self, cohort: Cohort, frame: Framed, weights: Any, **change: Any) -> Figures:
        """Return the pre-atlas and the atlas accuracy of the training worms."""
        by_name = {one.name: one for one in self.named}
        named = [by_name[one.name] for one in frame.specimens]
        atlas = self.atlas(cohort, frame, weights, **change)
        return {
            "pre_atlas": figures(pre_atlas(named, cohort.labels())),
            "atlas": figures(evaluate(atlas, named, workers=self.workers, adapt=False)),
        }

    def rows(self, section: str, wanted: dict[str, Callable[[], Figures]]) -> None:
        """Compute the rows that are not known yet, and show all."""
        journal = Journal(self.run.path / f"{section}.jsonl")
        found = {row["row"]: row for row in journal}
        facts = {"worms": self.count, "trials": self.config.learn.trials_offsets}
        quick = "-quick" if self.count < len(worms()) else ""
        rows: list[Figures] = []
        for name, compute in wanted.items():
            if name not in found:
                logging.info("%s: %s", section, name)
                found[name] = {"row": name} | compute()
                found[name] |= {"paper": PUBLISHED.get(section, {}).get(name)}
                journal.append(found[name])
            rows = [found[one] for one in wanted if one in found]
            keep(RESULTS / f"paper{quick}.json", section, facts | {"rows": rows})
        table(section, [{k: v for k, v in row.items() if k != "worms"} for row in rows])


def changed(config: Config, section: str, values: dict[str, Any]) -> Config:
    """Return the settings with other values in one section."""
    return config.model_copy(update={section: getattr(config, section).model_copy(update=values)})


def part(frame: Framed, chosen: list[int]) -> Framed:
    """Return some of the specimens."""
    return frame._replace(
        specimens=tuple(frame.specimens[one] for one in chosen),
        poses=[frame.poses[one] for one in chosen],
        radii=[frame.radii[one] for one in chosen],
    )


def among(matchings: Matchings, chosen: list[int]) -> Matchings:
    """Return the matchings of some specimens with each other."""
    number = matchings.numbers()
    starts = matchings.allowed_starts()
    pairs = [(g, h) for g in range(len(chosen)) for h in range(g + 1, len(chosen))]
    partners, bits = [], []
    for g, h in pairs:
        own = number[chosen[g], chosen[h]]
        partners.append(matchings.of(own))
        bits.append(matchings.allowed[starts[own] : starts[own + 1]])
    sizes = matchings.sizes[chosen]
    lengths = sizes[[g for g, _ in pairs]]
    return Matchings(
        sizes,
        np.array(pairs, np.int32),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        np.concatenate(partners),
        np.concatenate(bits),
    )


def figures(found: Evaluation) -> Figures:
    """Return mean, deviation and lowest."""
    values = found.accuracies
    return {
        "mean": round(float(values.mean()), 4),
        "std": round(float(values.std()), 4),
        "lowest": round(float(values.min()), 4),
    }


def watch(what: str, done: int, total: int, note: str) -> None:
    if done % 25 == 0 or done == total:
        logging.info("%s %d of %d: %s", what, done, total, note)
