"""Other organisms than the larva of the paper: embryos, and heads of adults with colours.

Run ``python benchmarks/organisms.py SECTION``; it needs the real data (``EUTELY_DATA``). Sections:
``embryos``, an atlas of 80 embryos of C. elegans at the 350-cell stage, found without names, tried
on the 36 others; ``heads``, NeuroPAL heads: an atlas of some of the EY worms tried on the others,
in turn, with and without colours, without and with names. The preset is the default one. Prints
tables and merges the figures into ``benchmarks/results/organisms.json``. Names are read after
everything else is done.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np

import eutely
from eutely.config import Config, resolve
from eutely.evaluation import pre_atlas
from figures import Figures, keep, spread, table
from worms import DATA, named

RESULTS = Path(__file__).resolve().parent / "results" / "organisms.json"

FOLDS = 3
"""Parts of the heads, each annotated by an atlas of the others."""


def trial(
    train: list[eutely.Specimen],
    new: list[eutely.Specimen],
    config: Config,
    workers: int,
    *,
    supervised: bool,
) -> tuple[Figures, np.ndarray, np.ndarray]:
    """Build from ``train``, name the cells, annotate ``new``; also the accuracy of the cells."""
    start = time.process_time()
    built = eutely.build(train, config=config, supervised=supervised, workers=workers)
    seconds = time.process_time() - start
    atlas = named(built.atlas, built.specimens, built.cells)
    found = eutely.evaluate(atlas, new, workers=workers).accuracies
    cells = pre_atlas(built.specimens, built.cells).accuracies
    figures = {"cells": len(atlas), "processor_seconds": round(seconds, 1)}
    return figures, found, cells


def embryos(workers: int) -> None:
    """Try an atlas of 80 embryos on the 36 others."""
    every = eutely.read(DATA / "epic" / "epic_350cell.csv")
    order = np.random.default_rng(0).permutation(len(every))
    train = [every[number] for number in order[:80].tolist()]
    new = [every[number] for number in order[80:].tolist()]
    for supervised in (False, True):
        figures, found, cells = trial(train, new, resolve(), workers, supervised=supervised)
        row = {"training": 80, **figures, "held_out": spread(found)}
        if not supervised:
            row["pre_atlas"] = spread(cells)
        way = "supervised" if supervised else "unsupervised"
        table(way, [{"way": way, "held_out": found.mean(), "lowest": found.min()}])
        keep(RESULTS, f"embryos {way}", row)


def heads(workers: int) -> None:
    """Try heads of the set EY in turn, with and without colours, without and with names."""
    path = DATA / "neuropal" / "heads_np_ey.csv"
    with path.open() as lines:
        chosen = {row["individual"] for row in csv.DictReader(lines) if row["dataset"] == "EY"}
    every = [one for one in eutely.read(path) if one.name in chosen]
    rows = []
    for supervised in (False, True):
        for features in ("none", "all"):
            config = resolve(overrides={"estimate.features": features})
            found, cells = [], []
            for part in range(FOLDS):
                train = [one for at, one in enumerate(every) if at % FOLDS != part]
                _, here, own = trial(
                    train, every[part::FOLDS], config, workers, supervised=supervised
                )
                found.append(here)
                cells.append(own)
            right = np.concatenate(found)
            way = "supervised" if supervised else "unsupervised"
            rows.append({"way": way, "features": features, "held_out": right.mean()})
            keep(
                RESULTS,
                f"heads EY {way}, features {features}",
                {"folds": FOLDS, "held_out": spread(right)}
                | ({} if supervised else {"pre_atlas": spread(np.concatenate(cells))}),
            )
    table("heads EY", rows)


if __name__ == "__main__":
    jobs = {"embryos": embryos, "heads": heads}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="+", choices=jobs)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    for section in given.sections:
        jobs[section](given.workers)
