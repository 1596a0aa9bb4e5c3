"""The default preset on real worms: time of each step, memory, accuracy; the built-in atlas.

Run ``python benchmarks/default.py build --run DIR`` (train100, without names), then ``test`` (the
atlas in DIR on test2, also adapted to it), ``supervised`` (the same from names), and ``atlas``,
which writes the built-in atlas ``celegans-l1``; ``--features radius`` leaves the intensities out,
which the paper does not use. Needs the real data (``EUTELY_DATA``). Prints tables and merges the
figures into ``benchmarks/results/default.json``. Names are read after everything else is done. On a
machine that others use as well, seconds of the processors divided by their number tell more than
the clock.
"""

import argparse
import json
import resource
import time
from dataclasses import replace
from pathlib import Path

import eutely
from eutely.config import resolve
from eutely.evaluation import pre_atlas
from eutely.io.atlas import BUILT_IN, read_atlas, write_atlas
from figures import keep, spread, table
from worms import named, worms

RESULTS = Path(__file__).resolve().parent / "results" / "default.json"

SOURCE = {
    "organism": "C. elegans, L1 larva",
    "source": "from the 100 training worms of Li et al., Nature Communications 15 (2024), "
    "doi 10.5281/zenodo.7627915",
    "cells": "found without names by the preset default; named afterwards by majority",
}


def of(part: str, seed: int, features: str) -> str:
    """Return the section of the results."""
    return f"{part} seed {seed}" + (f", features {features}" if features != "all" else "")


def build(folder: Path, workers: int, seed: int, features: str) -> None:
    """Build from train100; then read names, name the atlas, and count."""
    train = worms("train100")
    config = resolve(overrides={"seed": seed, "estimate.features": features})
    wall, processors = time.perf_counter(), time.process_time()
    built = eutely.build(train, folder, config=config, workers=workers)
    wall, processors = time.perf_counter() - wall, time.process_time() - processors
    write_atlas(named(built.atlas, built.specimens, built.cells), folder / "named.h5")
    rows = [{"step": step, "seconds": round(seconds, 1)} for step, seconds in built.timings]
    table("steps", rows)
    found = {
        "seed": seed,
        "workers": workers,
        "seconds": round(wall, 1),
        "processor_seconds": round(processors, 1),
        "memory_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "cells": len(built.atlas),
        "confirmed_by_an_atlas_of_others": round(float(built.consistency().mean()), 4),
        "pre_atlas_train100": spread(pre_atlas(built.specimens, built.cells).accuracies),
        "steps": rows,
    }
    print(json.dumps({key: value for key, value in found.items() if key != "steps"}, indent=1))
    keep(RESULTS, of("build", seed, features), found)


def test(folder: Path, workers: int, seed: int, features: str) -> None:
    """Evaluate the atlas of a build on test2."""
    atlas, new = read_atlas(folder / "named.h5"), worms("test2")
    start = time.perf_counter()
    plain = spread(eutely.evaluate(atlas, new, workers=workers, adapt=False).accuracies)
    each = (time.perf_counter() - start) / len(new)
    adapted = spread(eutely.evaluate(atlas, new, workers=workers).accuracies)
    found = {"seconds_a_worm": round(each, 3), "test2": plain, "test2_adapted": adapted}
    print(json.dumps(found, indent=1))
    keep(RESULTS, of("test", seed, features), found)


def supervised(folder: Path, workers: int, seed: int, features: str) -> None:
    """Build from the names of train100, and evaluate on test2."""
    del folder, seed, features
    built = eutely.build(worms("train100"), supervised=True, workers=workers)
    new = worms("test2")
    found = {
        "test2": spread(eutely.evaluate(built.atlas, new, workers=workers, adapt=False).accuracies),
        "test2_adapted": spread(eutely.evaluate(built.atlas, new, workers=workers).accuracies),
    }
    print(json.dumps(found, indent=1))
    keep(RESULTS, "supervised", found)


def atlas(folder: Path, workers: int, seed: int, features: str) -> None:
    """Write the built-in atlas from the build in ``folder``."""
    del workers, seed, features
    found = read_atlas(folder / "named.h5")
    write_atlas(replace(found, provenance=SOURCE), BUILT_IN / "celegans-l1.h5")
    print((BUILT_IN / "celegans-l1.h5").stat().st_size, "bytes")


if __name__ == "__main__":
    jobs = {"build": build, "test": test, "supervised": supervised, "atlas": atlas}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=jobs)
    parser.add_argument("--run", type=Path, default=Path("worm-run"), help="run folder")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--features", default="all", help="radius: without intensities, as the paper"
    )
    given = parser.parse_args()
    jobs[given.job](given.run, given.workers, given.seed, given.features)
