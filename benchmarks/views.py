"""Worms that are mirrored, cut to windows and turned; points that are no worm; time per worm.

By the atlas of the named worms of train100, each worm of test2 by itself. By default every third
worm or so (30), with ``--all`` all of them.

    python benchmarks/views.py
    python benchmarks/views.py --all
    python benchmarks/views.py --train       train worms by an atlas of others
    python benchmarks/views.py --cohorts "half mirrored" windows     builds without names
    python benchmarks/views.py --cohorts windows --train --seed 1    the other train worms by it
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import eutely
from eutely import Specimen
from eutely.atlas import Atlas
from eutely.evaluation import score
from eutely.tasks.outliers import outliers
from worms import DATA, settled_frame, worms

RESULTS = Path(__file__).resolve().parent / "results" / "views.json"
SUBSET = 30
EMBRYOS = 12
"""Named embryos of the atlas that a worm does not fit."""

WINDOWS = {
    "front 60%": (0.4, 1.0), "back 60%": (0.0, 0.6), "middle 50%": (0.25, 0.75),
    "without the front fifth": (0.0, 0.8),
}  # fmt: skip
"""Shares of the length, the head at 1; bars 0.95, 0.95, 0.93, and 0.88 for any third."""

TRAIN = 60
"""Train worms of the atlas by which the others are annotated: no test worm is looked at."""

CUT = 40
"""Train worms that are cut to windows to build from; the others are whole and name no cell."""

KINDS = ("as they are", "mirrored", *WINDOWS, "any third")


def turned(specimen: Specimen, seed: int, *, mirror: bool) -> Specimen:
    """Return a specimen turned at random, mirrored or not."""
    random = np.random.default_rng(seed)
    turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn)) * (-1.0 if mirror else 1.0)
    return replace(specimen, centroids=specimen.centroids @ turn.T)


def window(specimen: Specimen, low: float, high: float) -> Specimen:
    """Return the nuclei between two shares of the length."""
    along = specimen.centroids[:, 0]
    share = (along - along.min()) / np.ptp(along)
    return specimen.take(np.flatnonzero((share >= low) & (share <= high)))


def changed(specimen: Specimen, kind: str, number: int) -> tuple[Specimen, bool]:
    """Return a worm as a row of the table has it, and whether it is mirrored."""
    if kind == "as they are":
        return specimen, False
    if kind == "mirrored":
        return replace(specimen, centroids=specimen.centroids * [1.0, 1.0, -1.0]), True
    start = np.random.default_rng(number).uniform(0, 2 / 3)
    part = window(specimen, *WINDOWS.get(kind, (start, start + 1 / 3)))
    mirror = bool(number % 2)
    return turned(part, number, mirror=mirror), mirror


def row(atlas: Atlas, specimens: list[Specimen], kind: str) -> dict[str, float]:
    """Return accuracy, handedness found, calibration and time for one kind of change."""
    accuracies, confidences, hands, seconds = [], [], [], []
    for number, specimen in enumerate(specimens):
        new, mirror = changed(specimen, kind, number)
        begin = time.process_time()
        [annotation] = eutely.annotate(atlas, [new.without_names()], workers=1)
        seconds.append(time.process_time() - begin)
        accuracies.append(score(new, annotation.names).accuracy)
        confidences.append(float(np.nan_to_num(annotation.confidence).mean()))
        hands.append(annotation.mirrored == mirror)
    result = {
        "accuracy": round(float(np.mean(accuracies)), 4),
        "lowest": round(float(min(accuracies)), 3),
        "confidence": round(float(np.mean(confidences)), 4),
        "handedness": f"{sum(hands)} of {len(hands)}",
        "seconds": round(float(np.mean(seconds)), 2),
    }
    print(kind, result, flush=True)
    return result


def doubtful(atlas: Atlas, worm: Specimen) -> dict[str, dict[str, object]]:
    """Return how sure the atlas is about what is no worm, and one of embryos about a worm."""
    random = np.random.default_rng(0)
    extent = np.ptp(worm.centroids, axis=0)
    cloud = random.uniform(0, 1, (len(worm), 3)) * extent
    embryos = sorted(eutely.read(DATA / "epic" / "epic_350cell.csv"), key=lambda one: one.name)
    of_embryos = eutely.build(embryos[:EMBRYOS], supervised=True).atlas
    ten = random.uniform(0, 1, (10, 3)) * extent
    cases = {
        "random cloud": Specimen.from_arrays("cloud", cloud, unit=worm.unit),
        "ten random points": Specimen.from_arrays("ten", ten, unit=worm.unit),
        "embryo by the worm atlas": embryos[0].without_names(),
        "worm by an atlas of embryos": worm.without_names(),
    }
    result: dict[str, dict[str, object]] = {}
    for name, specimen in cases.items():
        used = of_embryos if name.endswith("of embryos") else atlas
        [annotation] = eutely.annotate(used, [specimen], workers=1)
        result[name] = {
            "confidence": round(float(np.nan_to_num(annotation.confidence).mean()), 3),
            "support": round(annotation.support or 0.0, 2),
            "flagged": bool(outliers([annotation], len(used))),
        }
        print(name, result[name], flush=True)
    return result


def half_mirrored(seed: int = 0) -> tuple[list[Specimen], list[bool]]:
    """Return train100 with a random half mirrored, and which."""
    specimens = sorted(worms("train100"), key=lambda worm: worm.name)
    chance = np.random.default_rng(seed)
    hands = chance.permutation(np.arange(len(specimens)) % 2 == 1).tolist()
    images = [
        replace(one, centroids=one.centroids * [1.0, 1.0, -1.0]) if hand else one
        for one, hand in zip(specimens, hands, strict=True)
    ]
    return images, hands


def of_train(seed: int, count: int = CUT) -> tuple[list[Specimen], list[Specimen]]:
    """Return train worms to cut, and the others; the first ones by name for the seed 0."""
    ranked = sorted(worms("train100"), key=lambda worm: worm.name)
    order = np.arange(len(ranked))
    if seed:
        order = np.random.default_rng(seed).permutation(order)
    chosen, others = np.sort(order[:count]), np.sort(order[count:])
    return [ranked[at] for at in chosen], [ranked[at] for at in others]


def windowed(seed: int = 0) -> tuple[list[Specimen], list[bool]]:
    """Return train worms, each cut to a random window of 60 to 100% of its length."""
    cut = []
    for number, one in enumerate(of_train(seed)[0]):
        random = np.random.default_rng(1000 * seed + number)
        length = random.uniform(0.6, 1.0)
        start = random.uniform(0.0, 1.0 - length)
        cut.append(window(one, start, start + length))
    return cut, [False] * len(cut)


COHORTS = {"half mirrored": half_mirrored, "windows": windowed}
"""Cohorts to build from without names; bars 0.960 and every mirrored worm found, and 0.95."""


def build_row(kind: str, seed: int, *, quick: bool, train: bool) -> dict[str, object]:
    """Return how well an atlas of such a cohort names whole worms, and what the build found.

    ``quick`` settles poses alone, without the build; ``train`` names the train worms that were
    not cut, instead of test2.
    """
    specimens, hands = COHORTS[kind](seed)
    begin = time.process_time()
    result: dict[str, object] = {}
    if quick:
        frame = settled_frame(specimens)
        found = [posed.mirrored for posed in frame.specimens]
        result = {"parts": sum(posed.part for posed in frame.specimens)}
    else:
        built = eutely.build([one.without_names() for one in specimens], workers=1)
        found = [fit.mirrored for fit in built.fits]
        result = {"cells": len(built.atlas), "parts": sum(f.view is not None for f in built.fits)}
    result["seconds"] = round(time.process_time() - begin, 1)
    # Either half may be taken as it is.
    same = max(
        sum(a == b for a, b in zip(found, hands, strict=True)),
        sum(a != b for a, b in zip(found, hands, strict=True)),
    )
    result["handedness"] = f"{same} of {len(hands)}"
    if not quick:
        atlas = eutely.name(built.atlas, specimens, workers=1)
        tests = sorted(worms("test2"), key=lambda worm: worm.name)
        if train:
            tests = of_train(seed)[1]
        begin = time.process_time()
        annotations = eutely.annotate(atlas, [one.without_names() for one in tests], workers=1)
        seconds = (time.process_time() - begin) / len(tests)
        rows = zip(tests, annotations, strict=True)
        scores = [score(one, annotation.names).accuracy for one, annotation in rows]
        result |= {"accuracy": round(float(np.mean(scores)), 4), "lowest": round(min(scores), 3)}
        result["seconds a worm"] = round(seconds, 3)
    print(kind, result, flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="all worms of test2")
    parser.add_argument("--train", action="store_true", help="train worms by an atlas of others")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--cohorts", nargs="*", choices=list(COHORTS), help="builds, no other rows")
    parser.add_argument("--quick", action="store_true", help="poses of cohorts, no build")
    parser.add_argument("--seed", type=int, default=0, help="another choice of worms and windows")
    given = parser.parse_args()
    if given.train and "half mirrored" in (given.cohorts or ()):
        parser.error("all train worms are in the cohort 'half mirrored': none is left to name")
    for kind in given.cohorts or ():
        key = f"build, {kind}" + (", handedness alone" if given.quick else "")
        key += ", other train worms" if given.train else ""
        key += f", seed {given.seed}" if given.train or given.seed else ""
        row_of_kind = build_row(kind, given.seed, quick=given.quick, train=given.train)
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results[key] = row_of_kind
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if given.cohorts is not None:
        return
    known = sorted(worms("train100"), key=lambda worm: worm.name)
    every = sorted(worms("test2"), key=lambda worm: worm.name)
    specimens = every if given.all else every[:: max(len(every) // SUBSET, 1)][:SUBSET]
    if given.train:
        known, specimens = known[:TRAIN], known[TRAIN:]
    atlas = eutely.build(known, supervised=True).atlas
    eutely.annotate(atlas, [specimens[0]], workers=1)  # compiled before it is timed
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not given.train:
        results["doubt"] = doubtful(atlas, specimens[0])
    for kind in given.kinds:
        key = f"train worms, {kind}" if given.train else kind
        results[key] = {"worms": len(specimens), **row(atlas, specimens, kind)}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
