"""The paper's way on real worms: time of a trial, time of each step, memory, accuracy.

Run ``python benchmarks/pipeline.py SECTION [--run DIR] [--workers N] [--trials N]``; it needs the
real data (``EUTELY_DATA``). Sections: ``trials``, a few trials of each stage of learning on 15
worms; ``paper``, the whole preset on train100, with DIR as its run folder, so that it goes on where
it was interrupted; ``test``, the atlas in DIR on test2. Prints tables and merges the figures into
``benchmarks/results/pipeline.json``. Names are read after everything else is done. On a machine
that others use as well, seconds of the processors divided by their number tell more than the clock.
"""

import argparse
import logging
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from eutely import evaluate, read
from eutely.atlas import Atlas
from eutely.config import Config, resolve
from eutely.estimate import estimate
from eutely.evaluation import majority_names, pre_atlas
from eutely.execute import open_executor
from eutely.io.atlas import read_atlas, write_atlas
from eutely.io.journal import Journal
from eutely.io.record import Record
from eutely.io.runfolder import RunFolder, open_run
from eutely.learn import cells as steps
from eutely.pipeline.frame import Framed, framed, in_order
from eutely.refine import Cohort
from figures import Figures, keep, table
from worms import DATA, worms

RESULTS = Path(__file__).resolve().parent / "results" / "pipeline.json"

T = TypeVar("T")


class TimedRun(RunFolder):
    """A run folder that also keeps the seconds of the processors of each stage."""

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

    def rows(self) -> list[Figures]:
        """Return the steps; one that was interrupted counts for all its parts."""
        found: dict[str, Figures] = {}
        for row in Journal(self.path / "steps.jsonl"):
            found[row["step"]] = row
        return list(found.values())


def trials(folder: Path, workers: int, config: Config) -> None:
    """Time a few trials of each stage."""
    times: dict[str, list[tuple[float, float]]] = {}

    def progress(stage: str, done: int, total: int, lowest: float) -> None:
        _watch(stage, done, total, f"{lowest:.0f}")
        times.setdefault(stage, []).append((time.perf_counter(), time.process_time()))

    with open_executor(workers) as executor, open_run(folder) as run:
        frame = framed(in_order(worms()), run, executor)
        cohort = steps.aligned(frame.poses, frame.radii, frame.spacing, config, executor)
        steps.learned(cohort, frame.spacing, config, executor, progress=progress)
    rows = []
    for stage, marks in times.items():
        wall, processors = np.median(np.diff(marks, axis=0), axis=0)
        rows.append(
            {
                "stage": stage,
                "trials": len(marks),
                "seconds_a_trial": round(float(wall), 3),
                "processor_seconds_a_trial": round(float(processors), 3),
                "processor_seconds_by_workers": round(float(processors) / workers, 3),
            }
        )
    table(f"one trial, 105 pairs, {workers} workers", rows)
    keep(RESULTS, "trials", {"workers": workers, "rows": rows})


def paper(folder: Path, workers: int, config: Config) -> None:
    """Run the whole preset on train100."""
    with open_executor(workers) as executor, open_run(folder) as opened:
        run = TimedRun(opened.path)
        frame = framed(in_order(worms()), run, executor)
        cohort, found = steps.find_cells(
            frame.poses,
            frame.radii,
            frame.size,
            frame.spacing,
            config,
            executor,
            run,
            frame.key,
            _watch,
        )
        atlas = run.timed("atlas", lambda: estimated(cohort, frame, config))
        atlas = steps.with_offsets(atlas, found.parameters, config)
        peak = memory()
        named = in_order(worms())
        names = majority_names(cohort.labels(), [one.names or () for one in named], len(atlas))
        atlas = atlas.named(names)
        write_atlas(atlas, folder / "atlas.h5")
        accuracy = run.timed("annotate", lambda: evaluate(atlas, named, workers=workers))
        rows = run.rows()
    figures = {
        "workers": workers,
        "trials_a_stage": {stage: len(done) for stage, done in found.trials.items()},
        "memory_gigabytes": peak,
        "cells": len(atlas),
        "parameters": found.parameters.as_dict(),
        "pre_atlas_accuracy": round(pre_atlas(named, cohort.labels()).mean, 4),
        "atlas_accuracy": round(accuracy.mean, 4),
        "lowest_loss_by_trial": {
            stage: _lowest([trial.losses[0] for trial in done])
            for stage, done in found.trials.items()
        },
        "rows": rows,
    }
    table("the paper preset, train100", rows)
    print({key: value for key, value in figures.items() if isinstance(value, float | int)})
    keep(RESULTS, "paper", figures)


def estimated(cohort: Cohort, frame: Framed, config: Config) -> Atlas:
    """Estimate the atlas as a build does."""
    sizes = np.full(cohort.places().shape, np.nan)
    for row, own, nuclei in zip(sizes, frame.radii, cohort.nuclei, strict=True):
        row[nuclei >= 0] = own[nuclei[nuclei >= 0]]
    return estimate(
        cohort.places(),
        size=frame.size,
        spacing=frame.spacing,
        settings=config.estimate,
        radii=sizes,
        neighbours=config.costs.neighbours,
        unit=frame.specimens[0].unit,
    )


def test(folder: Path, workers: int, config: Config) -> None:
    """Annotate test2 with the atlas that `paper` left."""
    del config
    specimens = list(read(DATA / "rapcat" / "test2"))
    start = time.process_time()
    found = evaluate(read_atlas(folder / "atlas.h5"), specimens, workers=workers)
    seconds = (time.process_time() - start) / len(specimens)
    row = {
        "set": "test2",
        "accuracy": round(found.mean, 4),
        "std": round(float(found.accuracies.std()), 4),
        "worst": round(float(found.accuracies.min()), 4),
        "processor_seconds_a_specimen": round(seconds, 2),
    }
    table("the atlas of the paper preset", [row])
    keep(RESULTS, "test", {"workers": workers, "rows": [row]})


def memory() -> float:
    """Return the peak memory of this process, gigabytes."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)


def _lowest(losses: list[float]) -> dict[str, float]:
    """Return the lowest loss after 1, 2, 5, 10, ... trials."""
    lowest = np.minimum.accumulate(losses)
    marks = [number for number in (1, 2, 5, 10, 20, 50, 100, 200, 500) if number <= len(losses)]
    return {str(number): float(lowest[number - 1]) for number in marks}


def _watch(what: str, done: int, total: int, note: str) -> None:
    if done % 25 == 0 or done == total:
        logging.info("%s %d of %d: %s", what, done, total, note)


def main() -> None:
    sections: dict[str, Callable[..., Any]] = {"trials": trials, "paper": paper, "test": test}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("section", choices=sections)
    parser.add_argument("--run", type=Path, default=Path("pipeline-run"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--trials", type=int, help="of each stage (default: 500; 20 for 'trials')")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    count = 20 if given.section == "trials" and given.trials is None else given.trials
    names = ("learn.trials_linear", "learn.trials_sparsity", "learn.trials_offsets")
    config = resolve(preset="paper", overrides=dict.fromkeys(names, count))
    sections[given.section](given.run, given.workers, config)


if __name__ == "__main__":
    main()
