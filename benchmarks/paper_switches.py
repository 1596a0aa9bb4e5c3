"""Where the preset ``paper`` loses accuracy: one switch in each row, judged on training worms only.

Run ``python benchmarks/paper_switches.py [ROW ...] [--run DIR]`` after ``python benchmarks/paper.py
learning`` with the same DIR. Six draws of 25 of the training worms are
matched and synchronised, and their atlas is matched with the other 75, all of them aligned to the
target by the learned costs. The mean over draws, and the difference from the preset with its
standard error over draws, are merged into ``benchmarks/results/paper.json``. Names are read only to
count what is right, and by the rows that say so. The test worms are not looked at.
"""

import argparse
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.cells import Cells
from eutely.cliques import Matchings
from eutely.config import Config, resolve
from eutely.estimate import atlas_of
from eutely.evaluation import comparable, majority_names, pre_atlas
from eutely.execute import open_executor
from eutely.learned import Parameters
from eutely.multi import synchronise
from eutely.pairs import PairRules, match_pairs
from eutely.steps import Run
from eutely.store.files import Journal
from eutely.store.folder import open_run
from figures import Figures, keep, known, table
from laboratory import RESULTS, Lab, TimedFolder, changed, matched_with, watch
from published import PUBLISHED

DRAW, ORDERS = 25, (11, 12)

NOTHING = 1e4
"""Factor of the variances of a term that shall not count."""

MIXED = 8
"""Pairs of cells that are shown."""

Change = Callable[[Config], Config]


def draws(count: int) -> list[list[int]]:
    """Return the worms of each draw."""
    orders = [np.random.default_rng(seed).permutation(count).tolist() for seed in ORDERS]
    return [sorted(order[at * DRAW : (at + 1) * DRAW]) for order in orders for at in range(3)]


class Draws:
    """Matchings of the pairs of each draw, by the preset's rules or by others."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.known: dict[tuple[int, ...], Matchings] = {}

    def found(self, chosen: Sequence[int], seed: int = 0, rounds: int = 2, **change: Any) -> Cells:
        """Match and synchronise some worms; ``change`` are fields of the rules that differ."""
        matchings = self.matched(chosen, **change) if change else self.by_preset(tuple(chosen))
        cliques = synchronise(matchings, rounds=rounds, seed=seed)
        return self.lab.cells_of(self.lab.second, cliques, chosen)

    def by_preset(self, chosen: tuple[int, ...]) -> Matchings:
        """Return the matchings by the preset's rules, made once."""
        if chosen not in self.known:
            self.known[chosen] = self.matched(chosen)
        return self.known[chosen]

    def matched(self, chosen: Sequence[int], **change: Any) -> Matchings:
        """Match all pairs of some worms where they are aligned."""
        lab = self.lab
        settings = lab.config.multi.c0, lab.config.costs.neighbours
        rules = PairRules(lab.learned.parameters, *settings)._replace(**change)
        frames = [lab.second.frames[number] for number in chosen]
        radii = [lab.second.radii[number] for number in chosen]
        return match_pairs(frames, radii, rules, lab.run.executor)


def truth(lab: Lab, cells: Cells, chosen: Sequence[int], exchanged: float = 0.0) -> Cells:
    """Return the cells that names stand for; a share of neighbours is exchanged at random."""
    random = np.random.default_rng(0)
    rows = [[comparable(name) for name in lab.cohort.labels[number]] for number in chosen]
    names = sorted(set(rows[0]).intersection(*rows))
    nuclei = []
    for number, row in zip(chosen, rows, strict=True):
        own = np.array([row.index(name) for name in names], np.int32)
        places = lab.second.frames[number][own]
        for cell in np.flatnonzero(random.random(len(own)) < exchanged / 2).tolist():
            apart = ((places - places[cell]) ** 2).sum(axis=1)
            other = int(np.argsort(apart)[1])
            own[[cell, other]] = own[[other, cell]]
        nuclei.append(own)
    return replace(cells, nuclei=tuple(nuclei))


def without_radii(parameters: Parameters) -> Parameters:
    """Return costs in which radii count nothing."""
    x, y, z = parameters.radii
    radii = (x * NOTHING, y * NOTHING, z * NOTHING)
    return replace(parameters, radii=radii, tau_radius=parameters.tau_radius / NOTHING)


def of_the_paper(longer: float = 1.0) -> Parameters:
    """Return the costs that the paper learned, variances along x ``longer`` times as large."""
    values = PUBLISHED["learning"]["learned"]
    terms = {key: values[key] for key in ("centroids", "offsets")}
    scaled = {key: (longer * x, y, z) for key, (x, y, z) in terms.items()}
    return Parameters.from_dict({**values, **scaled})


def atlas(
    lab: Lab,
    cells: Cells,
    chosen: Sequence[int],
    *,
    weights: NDArray[np.float64] | None = None,
    change: Change = lambda config: config,
) -> Atlas:
    """Estimate the atlas of some worms, and name it."""
    cohort = lab.cohort.some(chosen)
    weights = lab.weights if weights is None else weights
    made = atlas_of(cells, cohort.frame, change(lab.config), weights=weights)
    return made.named(majority_names(cells.labels(), cohort.labels, len(made)))


def estimated(**values: float) -> Change:
    """Return a change of the section ``estimate``."""
    return lambda config: changed(config, "estimate", **values)


def rows(draws_of: Draws) -> dict[str, tuple[Callable[..., Cells], dict[str, Any]]]:
    """Return name -> how cells are found from the draw, and how their atlas is made."""
    lab, plain = draws_of.lab, draws_of.found
    ours = lab.learned.parameters

    def named(chosen: Sequence[int], exchanged: float = 0.0) -> Cells:
        return truth(lab, plain(chosen), chosen, exchanged)

    return {
        "the preset": (plain, {}),
        "true names for cliques": (named, {}),
        "true names, neighbours exchanged at random": (partial(named, exchanged=0.035), {}),
        "weights of the atlas (1, 1, 1)": (plain, {"weights": np.ones(3)}),
        "no shrinkage, Gaussian": (plain, {"change": estimated(prior=1.0, freedom=30.0)}),
        "atlas: offsets of 16 neighbours": (
            plain,
            {"change": lambda config: changed(config, "costs", neighbours=16)},
        ),
        "synchronisation: another order, nothing rebuilt": (partial(plain, seed=1, rounds=0), {}),
        "pairs: no radii": (partial(plain, parameters=without_radii(ours)), {}),
        "pairs: offsets of 4 neighbours": (partial(plain, neighbours=4), {}),
        "pairs: offsets of 16 neighbours": (partial(plain, neighbours=16), {}),
        "pairs: c0 = 10000": (partial(plain, c0=1e4), {}),
        "pairs: the paper's learned costs, c0 = 10000": (
            partial(plain, parameters=of_the_paper(), c0=1e4),
            {},
        ),
        "pairs: the same, long axis in half the voxels": (
            partial(plain, parameters=of_the_paper(longer=4.0), c0=1e4),
            {},
        ),
        "pairs: a fast solver": (partial(plain, effort="fast"), {}),
    }


def exchanged(lab: Lab) -> list[Figures]:
    """Return the pairs of cells that the cliques of all worms exchange most, and why.

    The offset of two cells tells them apart in two worms if that of one is nearer to that of the
    other than to its opposite: by the learned variances, which all pairs of cells share, or by the
    covariance of these two cells, their mean offset given (a quadratic cost of the atlas).
    """
    labels = [[comparable(name) for name in row] for row in lab.cohort.labels]
    table_of = np.array(lab.found.nuclei)
    mixed: Counter[tuple[str, str]] = Counter()
    for nuclei in table_of.T:
        members = [labels[g][nucleus] for g, nucleus in enumerate(nuclei) if nucleus >= 0]
        (first, most), *others = Counter(members).most_common(2)
        for second, count in others:
            mixed[min(first, second), max(first, second)] += min(count, most)
    rows = []
    for (first, second), count in mixed.most_common(MIXED):
        both = [g for g, row in enumerate(labels) if first in row and second in row]
        apart = np.array(
            [
                np.subtract(*lab.second.frames[g][[labels[g].index(c) for c in (first, second)]])
                for g in both
            ]
        )
        g, h = np.triu_indices(len(apart), 1)
        precisions = 1 / np.array(lab.learned.parameters.offsets)
        same = ((apart[g] - apart[h]) ** 2 @ precisions) < ((apart[g] + apart[h]) ** 2 @ precisions)
        mean, own = apart.mean(axis=0), np.linalg.inv(np.cov(apart.T))
        rows.append(
            {
                "cells": f"{first}, {second}",
                "exchanged": round(count / 2 / len(both), 2),
                "mean": mean.round(1).tolist(),
                "std": apart.std(axis=0).round(1).tolist(),
                "wrong_by_shared": round(float(1 - same.mean()), 2),
                "wrong_by_own": round(float((apart @ own @ mean < 0).mean()), 2),
            }
        )
    return rows


def compute(draws_of: Draws, name: str) -> Figures:
    """Return the accuracies of all draws with one switch."""
    lab = draws_of.lab
    find, made = rows(draws_of)[name]
    before, after = [], []
    for chosen in draws(len(lab.cohort.named)):
        cells = find(chosen)
        others = sorted(set(range(len(lab.cohort.named))) - set(chosen))
        before.append(pre_atlas(lab.cohort.some(chosen).named, cells.labels()).mean)
        judged = matched_with(atlas(lab, cells, chosen, **made), lab.placed(lab.second, others))
        after.append(judged.mean)
    return {"row": name, "pre_atlas": before, "held_out": after}


def summary(row: Figures, preset: Figures) -> Figures:
    """Return means over draws, and the difference from the preset."""
    apart = np.subtract(row["held_out"], preset["held_out"])
    error = float(apart.std(ddof=1) / np.sqrt(len(apart)))
    values = np.array(row["held_out"])
    shown: Figures = {
        "row": row["row"],
        "pre_atlas": round(float(np.mean(row["pre_atlas"])), 4),
        "held_out": {"mean": round(float(values.mean()), 4), "std": round(float(values.std()), 4)},
    }
    if row is preset:
        return shown
    return shown | {"difference": {"mean": round(float(apart.mean()), 4), "error": round(error, 4)}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--run", type=Path, default=Path("paper-run"))
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with open_executor(1) as executor, open_run(given.run) as folder:
        timed = TimedFolder(folder.path)
        lab = Lab(timed, Run(resolve(preset="paper"), executor, timed, watch), 1)
        draws_of = Draws(lab)
        journal = Journal(timed.path / "switches.jsonl")
        done = {row["row"]: row for row in journal}
        for name in given.rows or rows(draws_of):
            if name not in done:
                logging.info("switch: %s", name)
                done[name] = compute(draws_of, name)
                journal.append(done[name])
            shown = [summary(row, done["the preset"]) for row in done.values()]
            keep(RESULTS, "switches", {"rows": shown, "exchanged": exchanged(lab)})
        table("cells that are exchanged", known(RESULTS)["switches"]["exchanged"])
        table("switches", known(RESULTS)["switches"]["rows"])


if __name__ == "__main__":
    main()
