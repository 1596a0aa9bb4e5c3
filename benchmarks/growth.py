"""Growth of the default build with cells, specimens and workers; beside an earlier version.

Run ``python benchmarks/growth.py cells`` (10 specimens, 200 to 20,000 cells), ``specimens`` (10 to
1,000 of 558 cells) or ``workers`` (1 to 8 local Dask processes). ``--before FOLDER`` runs the same
rows by the code of another checkout, for example ``git worktree add ../before 260bcc7``;
sizes after the table, such as ``cells 200 500``, measure these rows only. ``cluster`` measures
every task and message of one build and of one annotation, and computes from these how long 1 to 64
workers would take. ``partners`` builds by the method of the paper with 20, 50 and all partners of
each specimen. ``worm`` annotates real worms one by one; ``hands`` looks for mirror images among
large bodies. Each row is a process of its own, so that its
memory is its own. Cohorts are simulated; names are read when everything else is done. Prints
tables, merges rows into ``benchmarks/results/growth.json``, and ``draw`` makes
``docs/images/growth.svg`` of them.
"""

import argparse
import heapq
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "growth.json"
PICTURE = HERE.parent / "docs" / "images" / "growth.svg"

TABLES = ("cells", "specimens", "workers", "cluster", "partners", "worm", "hands", "draw", "row")
CELLS = (200, 500, 1000, 2000, 5000, 10_000, 20_000)
SPECIMENS = (10, 30, 100, 300, 1000)
WORKERS = (1, 2, 4, 8)
SIMULATED_WORKERS = (1, 2, 4, 8, 16, 32, 64)
PARTNERS = (20, 50, 0)
"""Partners of each specimen in the paper's method; 0 for all."""

BANDWIDTH, LATENCY = 1e9, 1e-3
"""Of the simulated cluster: bytes per second out of the scheduler's machine, and seconds that each
task takes besides its work."""

HANDS = (
    (8, 1000, 1, 0.5, True),
    (8, 1000, 2, 0.2, True),
    (8, 1000, 3, 0.1, True),
    (12, 1000, 9, 0.3, True),
    (8, 2000, 4, 0.2, True),
    (8, 2000, 5, 0.1, True),
    (8, 2000, 6, 0.3, False),
    (8, 2000, 1, 0.0, True),
    (8, 2000, 2, 0.0, False),
    (8, 1000, 4, 0.0, False),
    (8, 1000, 7, 0.0, False),
    (6, 2000, 8, 0.0, False),
)
"""Cohorts of large bodies: specimens, cells, seed, how far cells are moved off their mirror images
in distances of neighbours, and whether half of the specimens are mirrored."""

WORM = 558
"""Cells of the cohorts that grow in specimens."""

COHORT = 16
"""Specimens that 1 to 8 processes build from."""


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it started and that ended."""
    times = os.times()
    return sum(times[:4])


def row(specimens: int, cells: int, workers: str) -> dict[str, float]:
    """Build from one simulated cohort; return time, memory, size of the page, and accuracy."""
    import eutely
    from eutely.evaluation import pre_atlas

    cohort = eutely.simulate(specimens, cells=cells, seed=1)
    # A first small build loads machine code, which is not what grows.
    eutely.build(eutely.simulate(3, cells=40, seed=2), workers=1)
    with tempfile.TemporaryDirectory() as folder:
        wall, processors = time.perf_counter(), processor_seconds()
        where = int(workers) if workers.isdigit() else workers
        built = eutely.build(cohort, folder, workers=where)
        wall, processors = time.perf_counter() - wall, processor_seconds() - processors
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


def rows(what: str, sizes: list[int]) -> list[tuple[int, int, str]]:
    """Return (specimens, cells, workers) of a table, of some sizes or of all."""
    if what == "cells":
        return [(10, cells, "2") for cells in sizes or CELLS]
    if what == "specimens":
        return [(specimens, WORM, "2") for specimens in sizes or SPECIMENS]
    return [(COHORT, WORM, f"local:{workers}") for workers in sizes or WORKERS]


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return the power of the sizes with which the seconds grow, by least squares of logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure(what: str, before: Path | None, sizes: list[int]) -> None:
    """Measure a table, row by row; each row is kept as soon as it is there."""
    from figures import keep, table

    found = []
    for specimens, cells, workers in rows(what, sizes):
        line: dict[str, object] = {"specimens": specimens, "cells": cells, "workers": workers}
        for name, code in (("now", HERE.parent), ("before", before)):
            if code is not None:
                figures = measured(code, specimens, cells, workers)
                line |= {f"{key}, {name}": value for key, value in figures.items()}
        found.append(line)
        keep(RESULTS, f"{what}: {specimens} x {cells}, workers {workers}", line)
    table(what, found)


class Recorder:
    """An executor that runs everything here, and records times and sizes of tasks."""

    def __init__(self) -> None:
        self.workers = 64
        self.maps: list[dict[str, Any]] = []
        self.known: set[int] = set()

    def map(
        self,
        function: Any,
        items: Any,
        *,
        shared: tuple[Any, ...] = (),
        chunk: int | None = None,
        on_done: Any = None,
    ) -> Iterator[Any]:
        """Map ``function`` over ``items``, one by one."""
        del chunk, on_done
        sizes = [len(pickle.dumps(value)) for value in shared]
        new = sum(size for size, value in zip(sizes, shared, strict=True) if self._new(value))
        record = {"name": function.__name__, "seconds": [], "shared": new, "items": 0, "results": 0}
        self.maps.append(record)
        for item in items:
            record["items"] += len(pickle.dumps(item))
            start = time.process_time()
            result = function(*shared, item)
            record["seconds"].append(time.process_time() - start)
            record["results"] += len(pickle.dumps(result))
            yield result

    def _new(self, value: Any) -> bool:
        """Return whether a shared value was not sent before."""
        new = id(value) not in self.known
        self.known.add(id(value))
        return new


def makespan(maps: list[dict[str, Any]], workers: int) -> float:
    """Return the seconds that tasks take on so many workers, one map after the other.

    Each worker takes the next task when it is done with its last one; shared values reach every
    worker over one wire, items and results go through it as well.
    """
    total = 0.0
    for record in maps:
        free = [0.0] * workers
        for seconds in record["seconds"]:
            heapq.heapreplace(free, free[0] + seconds + LATENCY)
        used = min(workers, len(record["seconds"]))
        sent = record["shared"] * used + record["items"] + record["results"]
        total += max(free) + sent / BANDWIDTH
    return total


def cluster(specimens: int, cells: int = WORM) -> None:
    """Measure tasks of a build and of annotations, and compute the time on many workers."""
    import eutely
    from eutely.tasks import annotate as annotating
    from eutely.tasks import build as building
    from figures import keep, table

    cohort = eutely.simulate(specimens, cells=cells, seed=1)
    eutely.build(eutely.simulate(3, cells=40, seed=2), workers=1)
    built = None
    for what, module in (("build", building), ("annotate", annotating)):
        recorder = Recorder()
        opened = module.open_executor
        module.open_executor = lambda _, recorder=recorder: nullcontext(recorder)
        start = time.process_time()
        if what == "build":
            built = eutely.build(cohort)
        else:
            eutely.annotate(built.atlas, cohort)
        seconds = time.process_time() - start
        module.open_executor = opened
        tasks = sum(sum(record["seconds"]) for record in recorder.maps)
        serial = seconds - tasks
        sent = sum(record["items"] + record["results"] for record in recorder.maps)
        shared = sum(record["shared"] for record in recorder.maps)
        longest = {}
        for record in recorder.maps:
            value = max(record["seconds"], default=0.0)
            longest[record["name"]] = longest.get(record["name"], 0.0) + value
        lines = []
        for workers in SIMULATED_WORKERS:
            clock = serial + makespan(recorder.maps, workers)
            efficiency = seconds / (workers * clock)
            lines.append(
                {"workers": workers, "seconds": round(clock, 2), "efficiency": round(efficiency, 3)}
            )
        line = {
            "specimens": specimens,
            "cells": cells,
            "task_seconds": round(tasks, 2),
            "serial_seconds": round(serial, 2),
            "kilobytes_per_specimen": round(sent / specimens / 1e3, 1),
            "shared_megabytes": round(shared / 1e6, 2),
            "longest_tasks": {
                name: round(value, 2)
                for name, value in sorted(longest.items(), key=lambda pair: -pair[1])[:5]
            },
            "workers": lines,
        }
        keep(RESULTS, f"cluster: {what} of {specimens} x {cells}", line)
        table(f"{what} on a simulated cluster", lines)
        print({key: value for key, value in line.items() if key != "workers"})


def partners(specimens: int, cells: int, trials: int) -> None:
    """Build by the paper's method with few partners of each specimen, and with all."""
    import eutely
    from eutely.config import resolve
    from eutely.evaluation import pre_atlas
    from figures import keep, table

    cohort = eutely.simulate(specimens, cells=cells, seed=1)
    lines = []
    for number in PARTNERS:
        given = {
            "learn": dict.fromkeys(("trials_linear", "trials_sparsity", "trials_offsets"), trials),
            "multi": {"partners": number},
        }
        start = time.process_time()
        built = eutely.build(cohort, config=resolve(given, preset="paper"), workers=1)
        seconds = time.process_time() - start
        accuracy = float(np.mean(pre_atlas(built.specimens, built.cells).accuracies))
        lines.append(
            {
                "specimens": specimens,
                "cells": cells,
                "trials": trials,
                "partners": number or "all",
                "processor_seconds": round(seconds, 1),
                "accuracy": round(accuracy, 4),
            }
        )
        keep(RESULTS, f"partners: {number or 'all'} of {specimens} x {cells}", lines[-1])
    table("partners", lines)


def worm(count: int = 20) -> None:
    """Annotate worms of test2 one by one by the built-in atlas; print their processor seconds.

    All threads of the process count. To compare with an earlier version, run this file with the
    ``src`` folder of its checkout as PYTHONPATH.
    """
    import eutely
    from eutely.atlas import Atlas
    from worms import worms

    atlas = Atlas.load("celegans-l1")
    some = sorted(worms("test2"), key=lambda one: one.name)[:count]
    seconds = []
    for number, one in enumerate([*some[:3], *some]):
        start = time.process_time()
        eutely.annotate(atlas, [one.without_names()], adapt=False, workers=1)
        if number >= 3:  # the first ones load machine code
            seconds.append(time.process_time() - start)
    print(
        f"{count} worms: mean {np.mean(seconds):.3f}, median {np.median(seconds):.3f}, "
        f"{min(seconds):.3f} to {max(seconds):.3f} processor seconds"
    )


def hands(first: int = 0, last: int = len(HANDS)) -> None:
    """Find mirror images in cohorts of large bodies, and in symmetric ones: all, or some rows."""
    from dataclasses import replace

    import eutely
    from eutely.simulation.plan import body_plan
    from figures import keep
    from worms import settled_frame

    for number, cells, seed, moved, half in HANDS[first:last]:
        plan = body_plan(cells, seed=seed)
        shift = np.random.default_rng(9).standard_normal(plan.centroids.shape)
        plan = replace(plan, centroids=plan.centroids + moved * plan.spacing * shift)
        mirrored = np.random.default_rng(seed).permutation(np.arange(number) % 2 == 1) & half
        rows = zip(eutely.simulate(number, cells=plan, seed=seed), mirrored, strict=True)
        cohort = [
            replace(one, centroids=one.centroids * [1.0, 1.0, -1.0]) if hand else one
            for one, hand in rows
        ]
        start = time.process_time()
        found = np.array([posed.mirrored for posed in settled_frame(cohort).specimens])
        seconds = time.process_time() - start
        # Either half may be taken as it is.
        right = max(int((found == mirrored).sum()), int((found != mirrored).sum()))
        line = {
            "specimens": number,
            "cells": cells,
            "moved": moved,
            "mirrored": int(mirrored.sum()),
            "found": int(found.sum()),
            "right": right,
            "processor_seconds": round(seconds, 1),
        }
        keep(RESULTS, f"hands: {number} x {cells}, moved by {moved}, seed {seed}", line)
        print(line, flush=True)


def draw() -> None:
    """Draw processor seconds over cells and specimens, and how well more workers are used."""
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "growth"  # the same rows, the same file
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for axis, what in zip(axes[:2], ("cells", "specimens"), strict=True):
        lines = [line for key, line in kept.items() if key.startswith(f"{what}:")]
        points = sorted((line[what], line["processor_seconds, now"]) for line in lines)
        sizes, seconds = map(list, zip(*points, strict=True))
        axis.loglog(sizes, seconds, "o-", label="default build")
        # In proportion to the size, through the middle row.
        middle = len(sizes) // 2
        axis.loglog(
            sizes,
            [seconds[middle] * size / sizes[middle] for size in sizes],
            ":",
            color="gray",
            label="in proportion",
        )
        of_what = "10 specimens" if what == "cells" else f"of {WORM} cells"
        axis.set(xlabel=f"{what} ({of_what})", ylabel="processor seconds")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=45)
        axis.minorticks_off()
        axis.legend(frameon=False)
        if what == "cells":
            large = [row for row in points if row[0] >= 1000]
            power = exponent(*map(list, zip(*large, strict=True)))
            axis.set_title(f"exponent {power:.2f} from 1,000 cells on", fontsize="medium")
    for key, line in kept.items():
        if key.startswith("cluster:"):
            what = key.removeprefix("cluster: ").split()[0]
            numbers = [point["workers"] for point in line["workers"]]
            used = [point["efficiency"] for point in line["workers"]]
            label = f"{what}, {line['specimens']} x {line['cells']}"
            axes[2].semilogx(numbers, used, "o-", base=2, label=label)
    axes[2].set(xlabel="workers of a simulated cluster", ylabel="efficiency", ylim=(0, 1))
    axes[2].set_xticks(SIMULATED_WORKERS, map(str, SIMULATED_WORKERS))
    axes[2].legend(frameon=False)
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=TABLES)
    parser.add_argument(
        "numbers",
        nargs="*",
        help="cells, specimens, workers: sizes; row: specimens cells workers; "
        "cluster: specimens cells; partners: specimens cells trials; hands: first and last row",
    )
    parser.add_argument("--before", type=Path, help="checkout of an earlier version")
    given = parser.parse_args()
    if given.what == "row":
        count, size, where = given.numbers
        print(json.dumps(row(int(count), int(size), where)))
    elif given.what == "cluster":
        cluster(*map(int, given.numbers or ("40",)))
    elif given.what == "partners":
        partners(*map(int, given.numbers or ("60", "200", "40")))
    elif given.what == "worm":
        worm(*map(int, given.numbers))
    elif given.what == "hands":
        hands(*map(int, given.numbers))
    elif given.what == "draw":
        draw()
    else:
        measure(given.what, given.before, [int(size) for size in given.numbers])
