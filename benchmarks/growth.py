"""Growth of the default build with cells, specimens and workers; beside an earlier version.

Run ``python benchmarks/growth.py cells`` (10 specimens, 200 to 20,000 cells), ``specimens`` (10 to
1,000 of 558 cells) or ``workers`` (1 to 8 local Dask processes). ``--before FOLDER`` runs the same
rows by the code of another checkout, for example ``git worktree add ../before 260bcc7``;
``--most N`` leaves out what is larger. Each row is a process of its own, so that its memory is its
own. Cohorts are simulated; names are read when everything else is done. Prints tables, merges rows
into ``benchmarks/results/growth.json``, and ``draw`` makes ``docs/images/growth.svg`` of them.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "growth.json"
PICTURE = HERE.parent / "docs" / "images" / "growth.svg"

CELLS = (200, 500, 1000, 2000, 5000, 10_000, 20_000)
SPECIMENS = (10, 30, 100, 300, 1000)
WORKERS = (1, 2, 4, 8)
WORM = 558
"""Cells of the cohorts that grow in specimens."""


def row(specimens: int, cells: int, workers: str) -> dict[str, float]:
    """Build from one simulated cohort; return time, memory, size of the page, and accuracy."""
    import eutely
    from eutely.evaluation import pre_atlas

    cohort = eutely.simulate(specimens, cells=cells, seed=1)
    # A first small build loads machine code, which is not what grows.
    eutely.build(eutely.simulate(3, cells=40, seed=2), workers=1)
    with tempfile.TemporaryDirectory() as folder:
        wall, processors = time.perf_counter(), time.process_time()
        where = int(workers) if workers.isdigit() else workers
        built = eutely.build(cohort, folder, workers=where)
        wall, processors = time.perf_counter() - wall, time.process_time() - processors
        page = (Path(folder) / "report.html").stat().st_size
    return {
        "seconds": round(wall, 1),
        "processor_seconds": round(processors, 1),
        "memory_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "page_megabytes": round(page / 1e6, 2),
        "cells_found": len(built.atlas),
        "accuracy": round(float(np.mean(pre_atlas(built.specimens, built.cells).accuracies)), 4),
    }


def measured(code: Path, specimens: int, cells: int, workers: str) -> dict[str, float]:
    """Return a row by the code in ``code``, from a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(code / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__)), "row", str(specimens), str(cells), workers]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(output.stdout.splitlines()[-1]))


def rows(what: str, most: int) -> list[tuple[int, int, str]]:
    """Return (specimens, cells, workers) of a table."""
    if what == "cells":
        return [(10, cells, "1") for cells in CELLS if cells <= most]
    if what == "specimens":
        return [(specimens, WORM, "2") for specimens in SPECIMENS if specimens <= most]
    return [(40, WORM, f"local:{workers}") for workers in WORKERS if workers <= most]


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return the power of the sizes with which the seconds grow, by least squares of logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure(what: str, before: Path | None, most: int) -> None:
    """Measure a table, row by row; each row is kept as soon as it is there."""
    from figures import keep, table

    found = []
    for specimens, cells, workers in rows(what, most):
        line: dict[str, object] = {"specimens": specimens, "cells": cells, "workers": workers}
        for name, code in (("now", HERE.parent), ("before", before)):
            if code is not None:
                figures = measured(code, specimens, cells, workers)
                line |= {f"{key}, {name}": value for key, value in figures.items()}
        found.append(line)
        keep(RESULTS, f"{what}: {specimens} x {cells}, workers {workers}", line)
    table(what, found)
    if what == "cells" and len(found) > 2:
        large = [line for line in found if int(str(line["cells"])) >= 1000]
        sizes = [int(str(line["cells"])) for line in large]
        seconds = [float(str(line["processor_seconds, now"])) for line in large]
        if len(sizes) > 1:
            print("exponent from 1,000 cells on:", round(exponent(sizes, seconds), 2))


def draw() -> None:
    """Draw processor seconds over cells and over specimens, on logarithmic axes."""
    import matplotlib.pyplot as plt

    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, what in zip(axes, ("cells", "specimens"), strict=True):
        lines = [line for key, line in kept.items() if key.startswith(f"{what}:")]
        for name, style in (("before", "o--"), ("now", "o-")):
            key = f"processor_seconds, {name}"
            points = sorted((line[what], line[key]) for line in lines if key in line)
            if points:
                axis.loglog(*zip(*points, strict=True), style, label=name)
        axis.set(xlabel=what, ylabel="processor seconds")
        axis.legend()
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["cells", "specimens", "workers", "draw", "row"])
    parser.add_argument("numbers", nargs="*", help="of a row: specimens, cells, workers")
    parser.add_argument("--before", type=Path, help="checkout of an earlier version")
    parser.add_argument("--most", type=int, default=10**9, help="largest size to measure")
    given = parser.parse_args()
    if given.what == "row":
        count, size, where = given.numbers
        print(json.dumps(row(int(count), int(size), where)))
    elif given.what == "draw":
        draw()
    else:
        measure(given.what, given.before, given.most)
