"""What safe writing costs: `eutely annotate` and `build` as they are, and without any of it.

Run ``python benchmarks/safety/cost.py``. Both take turns in one process, in random order, so that
whatever else the machine does meets both. Without safe writing files are written to their places at
once: no folder aside, no flush to the disk, no hashes, no manifest, no copies of what a person
changed. Prints medians of processor time and of time by the clock, and their ratio with an interval
(bootstrap of the medians); writes ``benchmarks/results/safety.json``.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import eutely
from eutely.cli import main
from eutely.io import annotations, sources, whole, written
from eutely.io.tables import write_table
from eutely.store import folder as run_folder
from eutely.tasks import outputs

RESULTS = Path(__file__).resolve().parents[1] / "results" / "safety.json"

COHORTS = {
    "annotate 3 specimens of 60 cells": (3, 60),
    "annotate 20 specimens of 558 cells": (20, 558),
    "build 10 specimens of 100 cells": (10, 100),
}
"""Command and cohort -> specimens and cells."""


@contextmanager
def in_place(folder: Path, *_: object, **__: object) -> Iterator[Path]:
    """Yield the folder itself: files go to their places at once."""
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


@contextmanager
def bare() -> Iterator[None]:
    """Write without any care."""
    with ExitStack() as stack:
        for module in (written, annotations, outputs, sources, run_folder):
            stack.enter_context(patch.object(module, "tables_in", in_place))
        stack.enter_context(patch.object(outputs, "cells_of", lambda _: ""))
        stack.enter_context(patch.object(whole, "to_disk", lambda _: None))
        stack.enter_context(patch.object(whole, "entries_to_disk", lambda _: None))
        yield


def timed(place: Path, words: list[str], care: bool) -> tuple[float, float]:
    """Do a command into a new folder; return seconds of the processor and by the clock."""
    output = place / "output"
    shutil.rmtree(output, ignore_errors=True)
    sys.argv = ["eutely", *words, "-o", str(output), "-j", "1", "--quiet"]
    with ExitStack() as stack, open(os.devnull, "w") as nowhere:
        stack.enter_context(redirect_stdout(nowhere))
        stack.enter_context(redirect_stderr(nowhere))
        if not care:
            stack.enter_context(bare())
        begin = time.process_time(), time.monotonic()
        try:
            main()
        except SystemExit as stopped:
            if stopped.code:
                raise
        end = time.process_time(), time.monotonic()
    assert (output / written.RECORD).exists() == care
    assert (output / written.PAGE).exists()
    return end[0] - begin[0], end[1] - begin[1]


def measured(name: str, repetitions: int) -> dict[str, object]:
    """Return the row of a cohort."""
    count, cells = COHORTS[name]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        cohort = eutely.simulate(count + 6, cells=cells, seed=1)
        for specimen in cohort[:count]:
            write_table(specimen, place / "worms" / f"{specimen.name}.csv")
        words = ["build", str(place / "worms")]
        if name.startswith("annotate"):
            eutely.build(cohort[count:], supervised=True, workers=1).atlas.save(place / "atlas.h5")
            words = ["annotate", str(place / "atlas.h5"), str(place / "worms")]
        times: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        order = random.Random(0)
        for number in range(repetitions + 1):  # the first one compiles
            for care in order.sample([True, False], 2):
                found = timed(place, words, care)
                if number:
                    times[care].append(found)
    safe, plain = np.array(times[True]), np.array(times[False])
    chosen = np.random.default_rng(0).integers(repetitions, size=(2000, repetitions))
    ratios = np.median(safe[chosen, 0], axis=1) / np.median(plain[chosen, 0], axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return {
        "command": name,
        "repetitions": repetitions,
        "processor s": round(float(np.median(safe[:, 0])), 4),
        "without": round(float(np.median(plain[:, 0])), 4),
        "ratio": round(float(np.median(safe[:, 0]) / np.median(plain[:, 0])), 4),
        "interval": [round(float(low), 4), round(float(high), 4)],
        "ratio by the clock": round(float(np.median(safe[:, 1]) / np.median(plain[:, 1])), 4),
    }


if __name__ == "__main__":
    from figures import keep, table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=21)
    parser.add_argument("--only", nargs="*", default=list(COHORTS), help="cohorts")
    options = parser.parse_args()
    rows = [measured(name, options.repetitions) for name in options.only]
    table("cost", rows)
    if options.only == list(COHORTS):
        keep(RESULTS, "cost", {"command": "python benchmarks/safety/cost.py", "rows": rows})
