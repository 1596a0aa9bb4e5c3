"""What confidences mean: the share of right names in each bin of confidence, on several data.

Run ``python benchmarks/calibration.py [ROW ...]``; it needs the real data (``EUTELY_DATA``). Rows:
test worms as they are, degraded, mirrored, and cut to parts by the built-in atlas ``celegans-l1``
(built without names from the training worms), test worms by an atlas of ten training worms,
simulated specimens, and the scored NeuroPAL heads, each alone and as series of one
laboratory and fold, by atlases of all heads of the other folds; of heads named nuclei count only.
Prints a table and writes ``benchmarks/results/calibration.json``. Names are read to count what is
right.
"""

import argparse
from functools import cache
from pathlib import Path

import numpy as np

from eutely import Annotation, Atlas, Specimen, annotate, build, simulate
from figures import Figures, keep, table
from neuropal import heads, splits
from robustness import USUAL, degraded, judged
from views import KINDS, changed
from worms import named, worms

RESULTS = Path(__file__).resolve().parent / "results" / "calibration.json"

TEN, TESTED = 10, 30
"""Training worms of the small atlas, and test worms of each row."""


def few_worms() -> tuple[list[Specimen], list[Annotation]]:
    """Annotate test worms by an atlas of ten training worms, each by itself."""
    built = build(worms()[:TEN])
    atlas = named(built.atlas, built.specimens, built.cells)
    test = list(worms("test2")[:TESTED])
    return test, annotate(atlas, test, adapt=False)


def simulated() -> tuple[list[Specimen], list[Annotation]]:
    """Annotate simulated specimens with errors by an atlas of others."""
    errors = {"missing": 0.05, "spurious": 0.05, "shift": 1.0}
    built = build(simulate(15, cells=200, seed=0, **errors))
    atlas = named(built.atlas, built.specimens, built.cells)
    test = simulate(20, cells=200, seed=1, **errors)
    return test, annotate(atlas, test, adapt=False)


def by_built_in(test: list[Specimen]) -> tuple[list[Specimen], list[Annotation]]:
    """Annotate test worms by the built-in atlas, each by itself."""
    return test, annotate(Atlas.load("celegans-l1"), test, adapt=False)


def parts() -> list[Specimen]:
    """Return test worms cut to windows, turned, and half of them mirrored."""
    kinds = KINDS[2:]
    test = worms("test2")[:TESTED]
    return [changed(worm, kinds[at % len(kinds)], at)[0] for at, worm in enumerate(test)]


@cache
def head_atlas(fold: str) -> Atlas:
    """Build an atlas from the named heads of all folds but one."""
    train = [head.specimen for head in heads("raw") if head.fold != fold]
    return build(train, supervised=True).atlas


def scored_heads(*, series: bool) -> tuple[list[Specimen], list[Annotation]]:
    """Annotate the scored heads of each fold, alone or as series of a laboratory."""
    specimens: list[Specimen] = []
    annotations: list[Annotation] = []
    for _, test in splits(heads("raw"), "retrain"):
        chosen = [head.specimen for head in test]
        specimens += chosen
        adapt = None if series else False
        annotations += annotate(head_atlas(test[0].fold), chosen, adapt=adapt)
    return specimens, annotations


def figures_of(
    specimens: list[Specimen], annotations: list[Annotation], *, named_only: bool
) -> Figures:
    """Return accuracy, calibration, and how often an alternative is likelier than the cell."""
    found = judged(specimens, annotations, named_only=named_only)
    contested = np.concatenate([annotation.contested for annotation in annotations])
    keys = ("specimens", "accuracy", "calibration_error", "errors_in_least_certain_tenth")
    confidence, right = found["calibration"]
    return {
        **{key: found[key] for key in keys},
        "contested": float(contested.mean()),
        "bins": [
            {"nuclei": count, "confidence": sure, "right": true}
            for count, sure, true in zip(
                found["calibration_counts"], confidence, right, strict=True
            )
        ],
    }


def main() -> None:
    """Compute the rows, print them and keep them."""
    sets = {
        "test worms": lambda: by_built_in(list(worms("test2")[:TESTED])),
        "degraded test worms": lambda: by_built_in(degraded("test2", 101, TESTED, **USUAL)),
        "test worms, atlas of ten": few_worms,
        "simulated": simulated,
        "mirrored test worms": lambda: by_built_in(
            [changed(worm, "mirrored", 0)[0] for worm in worms("test2")[:TESTED]]
        ),
        "parts of test worms": lambda: by_built_in(parts()),
        "heads, each alone": lambda: scored_heads(series=False),
        "heads, as series": lambda: scored_heads(series=True),
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", default=list(sets), help=f"of: {', '.join(sets)}")
    given = parser.parse_args()
    if unknown := set(given.rows) - set(sets):
        parser.error(f"no row '{min(unknown)}'; there are: {', '.join(sets)}")
    sets = {name: sets[name] for name in given.rows}
    rows = {}
    for name, compute in sets.items():
        rows[name] = figures_of(*compute(), named_only=name.startswith("heads"))
        table(name, rows[name]["bins"])
        print({key: value for key, value in rows[name].items() if key != "bins"}, flush=True)
        keep(RESULTS, name, rows[name])


if __name__ == "__main__":
    main()
