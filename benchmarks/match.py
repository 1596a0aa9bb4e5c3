"""When the matches of two specimens can be trusted: their agreement beside their accuracy.

Run ``python benchmarks/match.py``; it needs the real data (``EUTELY_DATA``). Pairs of training
worms (as they are, with errors, with parts missing), of embryos and of simulated animals; then
pairs that have nothing in common. Prints a table and writes ``benchmarks/results/match.json``: for
each pair the share of named nuclei that are matched right, and what `eutely.match` measures without
names.
The thresholds of ``eutely/tasks/match.py`` were chosen by these pairs; no test worm is among them.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from eutely import Specimen, match, read, simulate
from eutely.simulation import body_plan
from figures import Figures, keep, table
from robustness import USUAL, degraded
from worms import DATA, worms

RESULTS = Path(__file__).resolve().parent / "results" / "match.json"
Pairs = Iterator[tuple[Specimen, Specimen]]


def in_turn(specimens: list[Specimen]) -> Pairs:
    """Yield the first with the second, the third with the fourth, and so on."""
    yield from zip(specimens[::2], specimens[1::2], strict=False)


def worm_pairs(count: int, **errors: float) -> Pairs:
    """Yield pairs of training worms with errors."""
    return in_turn(degraded("train100", 3, 2 * count, **errors))  # type: ignore[arg-type]


def halves(count: int) -> Pairs:
    """Yield whole training worms with front halves of others."""
    for whole, other in in_turn(list(worms()[: 2 * count])):
        x = other.centroids[:, 0]
        yield whole, other.take(np.flatnonzero(x > np.median(x)))


def mirrored(count: int) -> Pairs:
    """Yield training worms with mirror images of others."""
    for first, other in in_turn(list(worms()[: 2 * count])):
        yield first, other.mapped(np.diag([1.0, 1.0, -1.0]), np.zeros(3))


def embryos(count: int) -> Pairs:
    """Yield pairs of embryos."""
    return in_turn(read(DATA / "epic" / "epic_350cell.csv")[: 2 * count])


def simulated(count: int, cells: int, **errors: float) -> Pairs:
    """Yield pairs of simulated animals."""
    for seed in range(count):
        first, other = simulate(2, body_plan(cells, seed=seed), seed=seed, **errors)
        yield first, other


def two_plans(count: int, cells: int) -> Pairs:
    """Yield pairs of simulated animals of two organisms."""
    for seed in range(count):
        (first,) = simulate(1, body_plan(cells, seed=seed), seed=seed)
        (other,) = simulate(1, body_plan(cells, seed=100 + seed), seed=seed)
        yield first, other


def worm_and_embryo(count: int) -> Pairs:
    """Yield training worms with embryos."""
    yield from zip(worms()[:count], read(DATA / "epic" / "epic_350cell.csv")[:count], strict=True)


def worm_and_cloud(count: int) -> Pairs:
    """Yield training worms with random points in their box."""
    for seed, worm in enumerate(worms()[:count]):
        low, high = worm.centroids.min(axis=0), worm.centroids.max(axis=0)
        points = np.random.default_rng(seed).uniform(low, high, worm.centroids.shape)
        yield worm, replace(worm, centroids=points, names=None)


ROWS: dict[str, Callable[[int], Pairs]] = {
    "worms": lambda count: in_turn(list(worms()[: 2 * count])),
    "worms, usual errors": lambda count: worm_pairs(count, **USUAL),
    "worms, 30% missing": lambda count: worm_pairs(count, missing=0.3),
    "worms, jitter 4": lambda count: worm_pairs(count, jitter=4.0),
    "embryos": embryos,
    "simulated, 60 cells": lambda count: simulated(count, 60),
    "simulated, 300 cells": lambda count: simulated(count, 300),
    "simulated, 113 cells, tenths missing and spurious": lambda count: simulated(
        count, 113, missing=0.1, spurious=0.1
    ),
    "simulated, 113 cells, twice the variation": lambda count: simulated(count, 113, variation=2.0),
    "whole worm and half": halves,
    "worm and mirror image": mirrored,
    "two organisms, 60 cells": lambda count: two_plans(count, 60),
    "two organisms, 300 cells": lambda count: two_plans(count, 300),
    "worm and embryo": worm_and_embryo,
    "worm and random points": worm_and_cloud,
}


def figures_of(pairs: Pairs) -> Figures:
    """Return accuracy and agreement of each pair."""
    rows = []
    for first, other in pairs:
        found = match(first, other)
        names = other.names or ("",) * len(other)
        given = [names[j].upper() if j >= 0 else "" for j in found.partners]
        there = {name.upper() for name in names if name}
        own = [name.upper() for name in first.names or ()]
        shared = [at for at, name in enumerate(own) if name in there]
        right = np.mean([given[at] == own[at] for at in shared]) if shared else 0.0
        rows.append(
            {
                "accuracy": round(float(right), 3),
                "cost": round(found.agreement.cost / found.chance.cost, 3),
                "kept": round(found.agreement.kept, 3),
                "kept_by_chance": round(found.chance.kept, 3),
                "distance": round(found.agreement.distance, 3),
                "distance_by_chance": round(found.chance.distance, 3),
            }
        )
    return {"pairs": rows}


def main() -> None:
    """Run the rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", choices=[[], *ROWS], help="rows; all if none is given")
    parser.add_argument("--pairs", type=int, default=10, help="pairs of a row")
    options = parser.parse_args()
    for name in options.rows or ROWS:
        found = figures_of(ROWS[name](options.pairs))
        table(name, found["pairs"])
        keep(RESULTS, name, found)


if __name__ == "__main__":
    main()
