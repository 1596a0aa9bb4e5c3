"""Where specimens are placed that are cut, of another age or unit, or of another organism.

Each specimen by itself. A row of the results says how many names are right on average and in the
worst specimen, how sure the names are, the calibration error (ten bins of equally many nuclei, mean
absolute difference of confidence and share of right names), in how many specimens handedness is
found, and processor seconds. It needs the real data (``EUTELY_DATA``).

    python benchmarks/placement.py                                all cohorts
    python benchmarks/placement.py "worms, ends cut" heads        cohorts whose names begin so
    python benchmarks/placement.py --few 2                        two specimens each, not kept
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import eutely
from eutely import Specimen
from eutely.atlas import Atlas
from eutely.evaluation import comparable
from eutely.specimen import MICROMETRE
from figures import Figures, keep
from neuropal import Head, atlas_of, splits, undeclared
from neuropal import heads as all_heads
from robustness import USUAL, degraded
from views import changed, turned, window
from worms import DATA, worms

RESULTS = Path(__file__).resolve().parent / "results" / "placement.json"

TRAIN, CUT = 60, (0.05, 0.40)
"""Train worms of the atlas by which the others are annotated, and the shares of the length that are
missing at one end of them."""

OF_EMBRYOS, MOST = 58, 30
"""Embryos of the atlas by which others are annotated, and specimens of each age, at most."""

AGES, NEAR = (350, 300, 250, 200, 100), 4
"""Nuclei of embryos of several ages, and how many more or less an embryo may have."""

CLOUDS = 4

BINS = 10
"""Of the calibration error."""

HELD_BACK = ("3", "4")
"""Folds of heads that no choice was made by."""


class Case(NamedTuple):
    """A specimen to annotate; whether it is mirrored, None where that is not known."""

    atlas: Atlas
    specimen: Specimen
    mirrored: bool | None = None


@cache
def worm_split() -> tuple[list[Specimen], list[Specimen]]:
    """Return the train worms of the atlas, and the others."""
    ranked = sorted(worms("train100"), key=lambda worm: worm.name)
    order = np.random.default_rng(5).permutation(len(ranked)).tolist()
    return [ranked[at] for at in order[:TRAIN]], [ranked[at] for at in order[TRAIN:]]


@cache
def worm_atlas(*, every: bool = False) -> Atlas:
    """Return the atlas of some train worms, or of all of them."""
    return eutely.build(worms("train100") if every else worm_split()[0], supervised=True).atlas


@cache
def embryos() -> list[Specimen]:
    """Return all embryos of the 350-cell stage, by name."""
    return sorted(eutely.read(DATA / "epic" / "epic_350cell.csv"), key=lambda one: one.name)


@cache
def embryo_atlas() -> Atlas:
    """Return the atlas of half of the embryos."""
    return eutely.build(embryos()[:OF_EMBRYOS], supervised=True).atlas


def without_end(worm: Specimen, number: int) -> Specimen:
    """Return a worm that lacks its tail or its head, every second one each."""
    share = float(np.random.default_rng(number).uniform(*CUT))
    return window(worm, 0.0, 1.0 - share) if number % 2 else window(worm, share, 1.0)


def worm_ends(*, test: bool) -> Iterator[Case]:
    """Yield worms without one end: other train worms, or the test worms."""
    chosen = sorted(worms("test2"), key=lambda one: one.name) if test else worm_split()[1][:MOST]
    for number, worm in enumerate(chosen):
        yield Case(worm_atlas(every=test), without_end(worm, number), mirrored=False)


def worms_as(kind: str) -> Iterator[Case]:
    """Yield test worms changed in one way, see `views`."""
    ranked = sorted(worms("test2"), key=lambda one: one.name)
    for number, worm in enumerate(ranked if kind in ("as they are", "mirrored") else ranked[:MOST]):
        yield Case(worm_atlas(every=True), *changed(worm, kind, number))


def worms_with_errors() -> Iterator[Case]:
    """Yield test worms in any pose with lost, spurious and misplaced nuclei, see `robustness`."""
    for worm in degraded("test2", 101, MOST, **USUAL):
        yield Case(worm_atlas(every=True), worm)


def scored_heads(*, declared: bool, held_back: bool) -> Iterator[Case]:
    """Yield heads by atlases of all other folds, with or without their unit."""
    atlases: dict[tuple[str, ...], Atlas] = {}
    for train, tests in splits(all_heads("raw"), "retrain"):
        key = tuple(head.specimen.name for head in train)
        for head in tests:
            if (head.fold in HELD_BACK) == held_back:
                if key not in atlases:
                    atlases[key] = atlas_of(train, "retrain")
                one: Head = head if declared else undeclared(head)
                yield Case(atlases[key], one.specimen)


@cache
def over_time() -> pd.DataFrame:
    """Return every nucleus of every embryo at every time."""
    return pd.read_parquet(DATA / "epic" / "epic_series.parquet")


def aged(count: int, known: Sequence[Specimen]) -> list[Specimen]:
    """Return embryos of about so many nuclei, without those that an atlas is of."""
    of_atlas = {one.name for one in known}
    found = []
    for name, lineage in over_time().groupby("series", observed=True):
        apart = (lineage.groupby("time").size() - count).abs()
        if name in of_atlas or apart.min() > NEAR:
            continue
        now = lineage[lineage["time"] == apart.idxmin()]
        names = ["" if cell.startswith("Nuc") else cell for cell in now["cell"]]
        points = now[["x", "y", "z"]].to_numpy(np.float64)
        found.append(Specimen.from_arrays(str(name), points, names=names, unit=MICROMETRE))
    return found[:MOST]


def embryos_of(count: int, *, built_in: bool) -> Iterator[Case]:
    """Yield embryos of one age in any pose, every second one mirrored."""
    atlas = Atlas.load("celegans-embryo-350") if built_in else embryo_atlas()
    known = embryos() if built_in else embryos()[:OF_EMBRYOS]
    for number, embryo in enumerate(aged(count, known)):
        mirror = bool(number % 2)
        yield Case(atlas, turned(embryo, number, mirror=mirror), mirror)


def clouds(atlas: Callable[[], Atlas]) -> Iterator[Case]:
    """Yield random points in boxes: as long as a worm and as round as an embryo, many and few."""
    extent = np.ptp(worm_split()[1][0].centroids, axis=0)
    for number in range(CLOUDS):
        random = np.random.default_rng(number)
        box = extent if number % 2 else np.full(3, extent.mean())
        points = random.uniform(0, 1, (500 if number < CLOUDS // 2 else 150, 3)) * box
        yield Case(atlas(), Specimen.from_arrays(f"cloud {number}", points))


def worms_by_embryos() -> Iterator[Case]:
    """Yield worms by an atlas of embryos."""
    for worm in worm_split()[1][:CLOUDS]:
        yield Case(embryo_atlas(), worm)


def embryos_by_worms() -> Iterator[Case]:
    """Yield embryos by an atlas of worms."""
    for embryo in embryos()[-CLOUDS:]:
        yield Case(worm_atlas(), embryo)


COHORTS: dict[str, Callable[[], Iterator[Case]]] = {
    "worms, ends cut, train": partial(worm_ends, test=False),
    "worms, ends cut, test": partial(worm_ends, test=True),
    **{
        f"worms, {kind}, test": partial(worms_as, kind)
        for kind in (
            "as they are", "mirrored", "front 60%", "back 60%", "middle 50%", "any third",
        )
    },
    "worms, with errors, test": worms_with_errors,
    **{
        f"heads, {unit}, folds {folds}": partial(scored_heads, declared=declared, held_back=later)
        for unit, declared in (("in micrometres", True), ("unit not declared", False))
        for folds, later in (("0 to 2", False), ("3 and 4", True))
    },
    **{
        f"embryos of {count}, by {whose}": partial(embryos_of, count, built_in=built_in)
        for whose, built_in in ((f"{OF_EMBRYOS} others", False), ("celegans-embryo-350", True))
        for count in AGES
    },
    "clouds, by worms": partial(clouds, worm_atlas),
    "clouds, by embryos": partial(clouds, embryo_atlas),
    "other organism, worms by embryos": worms_by_embryos,
    "other organism, embryos by worms": embryos_by_worms,
}  # fmt: skip
"""Name of a row -> its specimens."""


class Row(NamedTuple):
    """One specimen: confidence of its nuclei, which of them have their own name, and more."""

    confidence: NDArray[np.float64]
    right: NDArray[np.bool_]
    found_hand: bool | None
    seconds: float


def annotated(case: Case) -> Row:
    """Annotate a specimen by itself; without names anywhere, every name is wrong."""
    specimen = case.specimen
    begin = time.process_time()
    [found] = eutely.annotate(case.atlas, [specimen.without_names()], adapt=False, workers=1)
    seconds = time.process_time() - begin
    truth = np.array([comparable(name) for name in specimen.names or ("",) * len(specimen)])
    right = (truth == [comparable(name) for name in found.names]) & (truth != "")
    counted = truth != "" if (truth != "").any() else np.ones(len(specimen), bool)
    hand = None if case.mirrored is None else found.mirrored == case.mirrored
    return Row(np.nan_to_num(found.confidence)[counted], right[counted], hand, seconds)


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Return the mean absolute difference of confidence and share of right names over ten bins."""
    edges = np.quantile(confidence, np.linspace(0, 1, BINS + 1))
    at = np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, BINS - 1)
    sums = [np.bincount(at, values, BINS) for values in (confidence, right)]
    return float(np.abs(sums[0] - sums[1]).sum() / len(at))


def figures_of(rows: Sequence[Row]) -> Figures:
    """Return what is kept of a cohort."""
    accuracies = [float(row.right.mean()) for row in rows]
    confidence = np.concatenate([row.confidence for row in rows])
    hands = [row.found_hand for row in rows if row.found_hand is not None]
    result = {
        "specimens": len(rows),
        "accuracy": round(float(np.mean(accuracies)), 4),
        "lowest": round(min(accuracies), 3),
        "confidence": round(float(confidence.mean()), 4),
        "calibration_error": round(
            calibration_error(confidence, np.concatenate([row.right for row in rows])), 3
        ),
        "processor_seconds": round(float(np.mean([row.seconds for row in rows])), 2),
        "slowest": round(max(row.seconds for row in rows), 2),
    }
    return result | ({"handedness": f"{sum(hands)} of {len(hands)}"} if hands else {})


def measure(name: str, few: int | None) -> None:
    """Annotate a cohort, print its row and, unless it is cut short, keep it."""
    rows: list[Row] = []
    warm: set[int] = set()
    for case in COHORTS[name]():
        if len(rows) == few:
            break
        if id(case.atlas) not in warm:  # prepared and compiled before it is timed
            annotated(case)
            warm.add(id(case.atlas))
        rows.append(annotated(case))
    row = figures_of(rows)
    print(f"{name}: {json.dumps(row)}", flush=True)
    if few is None:
        keep(RESULTS, name, row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cohorts", nargs="*", help="begin of the name of a cohort; all by default")
    parser.add_argument("--few", type=int, help="specimens of each cohort; then nothing is kept")
    given = parser.parse_args()
    chosen = [one for one in COHORTS if not given.cohorts or one.startswith(tuple(given.cohorts))]
    if not chosen:
        parser.error(f"no such cohort; there are: {', '.join(COHORTS)}")
    for name in chosen:
        measure(name, given.few)


if __name__ == "__main__":
    main()
