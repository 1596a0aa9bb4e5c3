"""What each mechanism contributes: the package without it, specimen by specimen.

Run ``python benchmarks/ablation_mechanisms.py [ROW ...] [--table FILE]`` for the rows of
`mechanisms.py`: each switches one mechanism of pose, fit, find or series off, and is compared with
the unchanged code, specimen by specimen. Training data only:

``whole``, ``mirrored``, ``parts``, ``ends``, ``degraded``, ``spurious``, ``bent``
    train worms by an atlas of 60 others: as they are; mirror images; 60, 50 or 33% of the length;
    without 5 to 40% at one end; with lost nuclei and inexact places; with 25 spurious nuclei
    besides (``spurious, all`` counts these as well: they should get no cell); bent. Each by itself.
``heads``, ``heads series``
    heads of a fold by an atlas without that fold and another one; by themselves, or all of a fold
    together with ``adapt``.
``embryos``, ``clouds``
    embryos of 350 cells by an atlas of 58 others; random points by the worms' atlas, for which the
    mean confidence is compared instead of the accuracy.
``worms series``, ``batch series``, ``windows series``
    a series of train worms: as they are; all warped alike; by an atlas that was built, without
    names, from windows of others.
``build``, ``build degraded``, ``build windows``, ``build embryos``, ``build heads``
    others by an atlas that was built without names: from train worms as they are, with errors, or
    cut to windows; from embryos; from heads of two folds.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cohorts
import eutely
from eutely import Annotation, Specimen
from eutely.atlas import Atlas
from eutely.evaluation import comparable, pre_atlas
from eutely.tasks import annotate as annotating
from figures import keep, put, rows_with
from mechanism_pages import RESULTS, mechanism_rows, mechanism_table
from mechanisms import MECHANISMS, switched_off
from neuropal import Head, heads
from robustness import USUAL, degraded
from views import changed, turned, window
from worms import DATA, named, worms

CACHE = Path(tempfile.gettempdir()) / "eutely-ablation"
"""Atlases that do not depend on a mechanism, of this state of the package."""

TRAIN, EMBRYOS, BUILT, NEW, CUT = 60, 58, 30, 20, 24
"""Worms and embryos of an atlas; worms to build from, others to name by it, worms that are cut to
windows to build from."""

KINDS = ("front 60%", "back 60%", "middle 50%", "any third")
FOLDS = ("0", "1", "2")
FAR = 0.05
"""Difference in the accuracy of a specimen that counts by itself."""


class Task(NamedTuple):
    """Specimens that are annotated in one call by one atlas; ``adapt`` as in `eutely.annotate`."""

    atlas: Atlas
    specimens: Sequence[Specimen]
    adapt: bool | None = False


class Measured(NamedTuple):
    """What came out: (n,) by specimen, by nucleus for the calibration, and processor seconds."""

    values: NDArray[np.float64]
    confidence: NDArray[np.float64]
    right: NDArray[np.bool_]
    seconds: float

    def calibration(self) -> float:
        """Return the mean gap between confidence and accuracy, over tenths of the nuclei."""
        edges = np.quantile(self.confidence, np.linspace(0, 1, 11))
        tenth = np.clip(np.searchsorted(edges, self.confidence, side="right") - 1, 0, 9)
        counts = np.bincount(tenth, minlength=10)
        gaps = np.bincount(tenth, self.confidence, 10) - np.bincount(tenth, self.right, 10)
        return float(np.abs(gaps).sum() / counts.sum())


def kept(name: str, make: Any) -> Atlas:
    """Return an atlas, made once."""
    path = CACHE / f"{cohorts._method().hex()[:12]}-{name}.h5"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        make().save(path)
    return Atlas.load(path)


def supervised(specimens: Sequence[Specimen]) -> Atlas:
    return eutely.build(specimens, supervised=True, workers=1).atlas


@cache
def split() -> tuple[list[Specimen], list[Specimen]]:
    """Return the worms of an atlas, and others."""
    ranked = sorted(worms(), key=lambda worm: worm.name)
    order = np.random.default_rng(5).permutation(len(ranked)).tolist()
    return [ranked[at] for at in order[:TRAIN]], [ranked[at] for at in order[TRAIN:]]


@cache
def with_errors(kind: str) -> list[Specimen]:
    """Return the train worms with errors; their files hold no rejected segments to add."""
    errors: dict[str, Any] = {"bend": 60.0} if kind == "bent" else USUAL
    return degraded("train100", 77, None, **errors, made_up=kind == "spurious")


def among(specimens: Sequence[Specimen], wanted: Sequence[Specimen]) -> list[Specimen]:
    names = {one.name for one in wanted}
    return [one for one in specimens if one.name in names]


def without_an_end(worm: Specimen, number: int) -> Specimen:
    """Return a worm without 5 to 40% of its length at one end."""
    share = float(np.random.default_rng(number).uniform(0.05, 0.40))
    return window(worm, *((0.0, 1 - share) if number % 2 else (share, 1.0)))


def cut(worm: Specimen, number: int) -> Specimen:
    """Return a random window of 60 to 100% of the length."""
    random = np.random.default_rng(number)
    length = random.uniform(0.6, 1.0)
    start = random.uniform(0.0, 1.0 - length)
    return window(worm, start, start + length)


def clouds() -> list[Specimen]:
    """Return random points, two sets in a box like a worm's and two in a cube."""
    extent = np.ptp(split()[1][0].centroids, axis=0)
    return [
        Specimen.from_arrays(
            f"cloud {seed}",
            np.random.default_rng(seed).uniform(0, 1, (500 if seed < 2 else 150, 3))
            * (extent if seed % 2 == 0 else extent.mean()),
        )
        for seed in range(4)
    ]


def worm_cohort(name: str) -> list[Task]:
    train, others = split()
    atlas = kept("worms", lambda: supervised(train))
    if name == "clouds":
        return [Task(atlas, clouds()[::3])]
    made: dict[str, Any] = {
        "whole": lambda: others[:20],
        "mirrored": lambda: [changed(one, "mirrored", 0)[0] for one in others[:10]],
        "parts": lambda: [changed(one, KINDS[at % 4], at)[0] for at, one in enumerate(others[:20])],
        "ends": lambda: [without_an_end(one, at) for at, one in enumerate(others[:24])],
        "degraded": lambda: among(with_errors("degraded"), others[:12]),
        "spurious": lambda: among(with_errors("spurious"), others[:12]),
        "spurious, all": lambda: among(with_errors("spurious"), others[:12]),
        "bent": lambda: among(with_errors("bent"), others[:8]),
        "worms series": lambda: others[:20],
        "batch series": lambda: cohorts.batch(others[:20], "warp"),
    }
    return [Task(atlas, made[name](), None if name.endswith("series") else False)]


def head_atlas(name: str, train: Sequence[Head]) -> Atlas:
    return kept(f"heads {name}", lambda: supervised([head.specimen for head in train]))


def head_cohort(name: str) -> list[Task]:
    every = heads("raw")
    tasks = []
    for fold, other in zip(FOLDS, (*FOLDS[1:], FOLDS[0]), strict=True):
        train = [head for head in every if head.fold not in (fold, other)]
        tests = [head.specimen for head in every if head.scored and head.fold == fold]
        series = name == "heads series"
        atlas = head_atlas(f"{fold}{other}", train)
        tasks.append(Task(atlas, tests if series else tests[::2], series))
    return tasks


@cache
def embryos() -> list[Specimen]:
    return sorted(eutely.read(DATA / "epic" / "epic_350cell.csv"), key=lambda one: one.name)


def embryo_cohort() -> list[Task]:
    every = embryos()
    atlas = kept("embryos", lambda: supervised(every[:EMBRYOS]))
    tests = enumerate(every[EMBRYOS : EMBRYOS + 24])
    return [Task(atlas, [turned(one, at, mirror=bool(at % 2)) for at, one in tests])]


def unnamed_task(given: Sequence[Specimen], new: Sequence[Specimen]) -> Task:
    """Build without names, name the cells afterwards; return the task of naming others."""
    atlas = eutely.build([one.without_names() for one in given], workers=1).atlas
    return Task(eutely.name(atlas, given, workers=1), new)


def build_task(name: str) -> Task:
    """Build without names; return the task of naming others."""
    train, others = split()
    if name == "build embryos":
        every = embryos()
        return unnamed_task(every[:NEW], every[EMBRYOS:])
    if name == "build heads":
        every = [head for head in heads("raw") if head.fold in ("1", "2", "")]
        known_ = [head.specimen for head in every if head.fold != "1"]
        new = [head.specimen for head in every if head.fold == "1"]
        return unnamed_task(known_, new)
    if name == "build windows":
        given = [cut(one, at) for at, one in enumerate(train[:CUT])]
        return unnamed_task(given, others[:NEW])
    given = (
        among(with_errors("degraded"), train[:NEW]) if name == "build degraded" else train[:BUILT]
    )
    new = among(with_errors("degraded"), others[:NEW]) if name == "build degraded" else others[:NEW]
    built = eutely.build(given, workers=1)
    print("   pre-atlas", round(pre_atlas(built.specimens, built.cells).mean, 4), flush=True)
    return Task(named(built.atlas, built.specimens, built.cells), new)


def windows_series() -> list[Task]:
    atlas = kept("windows", lambda: build_task("build windows").atlas)
    return [Task(atlas, split()[1], None)]


@cache
def tasks_of(name: str) -> list[Task]:
    """Return what is annotated in a cohort that no mechanism changes."""
    if name.startswith("heads"):
        return head_cohort(name)
    if name == "windows series":
        return windows_series()
    return embryo_cohort() if name == "embryos" else worm_cohort(name)


def measured(name: str) -> Measured:
    """Annotate a cohort by the package as it is now."""
    for cached in (annotating._target, annotating._asymmetry, annotating._of_origin):
        if hasattr(cached, "cache_clear"):  # not where a mechanism stands in for it
            cached.cache_clear()
    changing = name.startswith("build")
    begin = time.process_time()
    tasks = [build_task(name)] if changing else tasks_of(name)
    begin = begin if changing else time.process_time()
    pairs: list[tuple[Specimen, Annotation]] = []
    for task in tasks:
        bare = [one.without_names() for one in task.specimens]
        found = eutely.annotate(task.atlas, bare, adapt=task.adapt, workers=1)
        pairs += zip(task.specimens, found, strict=True)
    seconds = time.process_time() - begin
    values, confidences, rights = [], [], []
    for one, annotation in pairs:
        truth = np.array([comparable(label) for label in one.names or [""] * len(one)])
        right = truth == np.array([comparable(label) for label in annotation.names])
        # Without any name all nuclei are no cell; a spurious nucleus should get none.
        every = name == "spurious, all" or not (truth != "").any()
        used = np.ones(len(one), bool) if every else truth != ""
        sure = np.nan_to_num(annotation.confidence)[used]
        values.append(sure.mean() if name == "clouds" else right[used].mean())
        told = annotation.cells[used] >= 0 if name == "spurious, all" else np.ones(len(sure), bool)
        confidences.append(sure[told])
        rights.append((right & (truth != ""))[used][told])
    return Measured(np.array(values), np.concatenate(confidences), np.concatenate(rights), seconds)


@cache
def unchanged(name: str) -> Measured:
    """Return what the package without a change makes of a cohort."""
    for task in () if name.startswith("build") else tasks_of(name):
        # Compiled, and atlases built, before it is timed.
        eutely.annotate(task.atlas, [task.specimens[0].without_names()], adapt=False, workers=1)
    found = measured(name)
    figures = {
        "cohort": name,
        "specimens": len(found.values),
        "mean": round(float(found.values.mean()), 4),
        "calibration": round(found.calibration(), 4),
        "seconds": round(found.seconds, 2),
        "values": found.values.round(4).tolist(),
    }
    keep(RESULTS, "unchanged", {"rows": rows_with(RESULTS, "unchanged", [figures], "cohort")})
    return found


def compare(before: Measured, after: Measured) -> dict[str, Any]:
    """Return what changed, specimen by specimen."""
    apart = after.values - before.values
    return {
        "specimens": len(apart),
        "changed": int((apart != 0).sum()),
        "difference": round(float(apart.mean()), 4),
        "error": round(float(apart.std(ddof=1) / np.sqrt(len(apart))), 4),
        "worse": int((apart <= -FAR).sum()),
        "better": int((apart >= FAR).sum()),
        "calibration": round(after.calibration(), 4),
        "calibration_difference": round(after.calibration() - before.calibration(), 4),
        "time": round(after.seconds / before.seconds, 2),
    }


def switch_off(wanted: Sequence[str], text: Path | None) -> None:
    """Measure the package without each of the mechanisms; rows that are there are not repeated."""
    there = {(row["row"], row["cohort"]) for row in mechanism_rows()}
    for one in MECHANISMS:
        for name in one.cohorts if not wanted or one.name in wanted else ():
            if (one.name, name) in there:
                continue
            before = unchanged(name)
            with switched_off(one):
                after = measured(name)
            new = {"row": one.name, "cohort": name, **compare(before, after)}
            rows = rows_with(RESULTS, "mechanisms", [new], "row", "cohort")
            keep(RESULTS, "mechanisms", {"rows": rows})
            print(new, flush=True)
            if text is not None:
                text.write_text(mechanism_table())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--table", type=Path, help="write the table of mechanisms here as it grows")
    given = parser.parse_args()
    switch_off(given.rows, given.table)
    put("benchmarks/ablation_mechanisms.py", mechanism_table())
