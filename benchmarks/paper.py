"""The paper's evaluation on its own worms: our figure beside the published one in every row.

Run ``python benchmarks/paper.py [SECTION ...] [--run DIR] [--quick]``; it needs the real data
(``EUTELY_DATA``). Sections, all by default: ``times`` (each step, memory), ``trials`` (one trial of
each stage), ``additions`` (from the preset ``paper-plus`` to the preset ``paper``, one addition
less in each row), ``models``, ``losses``, ``terms`` (the paper's tables of ablations, with the
preset ``paper-plus`` up to its cliques), ``sizes`` (over the number of training worms), ``modes``
(of multi-matching, over that number) and ``test`` (test worms, unsupervised and supervised). Rows
and steps are kept in DIR as soon as they are done; the same command continues where it stopped. The
full size takes hours; ``--quick`` takes 30 worms and 30 trials per stage. Prints tables and merges
them into ``benchmarks/results/paper.json`` (``paper-quick.json``), from which
``benchmarks/paper_pages.py`` makes the figures and the page. Names are read only to count what is
right, and by supervised rows.
"""

import argparse
import logging
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely import evaluate
from eutely.align.consensus import Aligned
from eutely.atlas import Atlas
from eutely.config import Config, resolve
from eutely.costs.gaussian import Costs, between
from eutely.evaluation import pre_atlas
from eutely.execute import open_executor
from eutely.find.learn import matched
from eutely.find.learn.stages import learn, loss_of
from eutely.find.named import all_names, named_cells
from eutely.find.named import weights as learned_weights
from eutely.io.atlas import write_atlas
from eutely.learned import Parameters
from eutely.multi import MultiProblem, solve_direct, synchronise
from eutely.pairs import PairRules, match_pairs
from eutely.specimen import Specimen
from eutely.steps import Context, Run
from eutely.store.folder import open_run
from figures import Figures
from laboratory import Cohort, Lab, TimedFolder, among, changed, figures, watch

NOTHING = 1e4
"""Factor of the variances of a term that shall not count; thresholds are divided by it."""

DIRECT = 20
"""Worms up to which cliques are found directly from costs: those of all pairs are in memory."""

NO_EDGES = {
    "edges": np.zeros((0, 2), np.int32),
    "offsets": np.zeros((0, 3)),
    "offset_covariances": np.zeros((0, 3, 3)),
}
"""Fields of an atlas without offsets: matching with it is a linear problem."""

DENSE = {"tau_centroid": 1e12, "tau_radius": 1e12}
"""Fields of an atlas that allows every assignment."""


def without(parameters: Parameters, *terms: str) -> Parameters:
    """Return costs in which ``terms`` count nothing, while the same assignments are allowed."""
    for term in terms:
        x, y, z = getattr(parameters, term)
        parameters = replace(parameters, **{term: (x * NOTHING, y * NOTHING, z * NOTHING)})
        tau = {"centroids": "tau_centroid", "radii": "tau_radius"}.get(term)
        if tau:
            parameters = replace(parameters, **{tau: getattr(parameters, tau) / NOTHING})
    return parameters


def up_to_cliques(lab: Lab) -> Config:
    """Return the preset without what it adds after cliques are found."""
    return changed(lab.config, "atlas", model="offsets", rounds=0)


def full(lab: Lab, **settings: str) -> Figures:
    """Evaluate the preset up to its cliques; ``settings`` of the section ``learn`` may differ."""
    found = lab.found(changed(up_to_cliques(lab), "learn", **settings))
    return lab.judged(found.cells, found.weights)


def models(lab: Lab) -> None:
    """Table 1: what each part of the model is good for."""

    def linear_dense() -> Figures:
        parameters = lab.learned_with(trials_offsets=0, trials_sparsity=0)
        rules = PairRules(parameters, lab.config.learn.c0, dense=True)
        matchings = match_pairs(lab.first.frames, lab.first.radii, rules, lab.run.executor)
        cells = lab.cells(lab.first, matchings)
        return lab.judged(cells, parameters.weights(), **NO_EDGES, **DENSE)

    def linear_sparse() -> Figures:
        parameters = lab.learned_with(trials_offsets=0)
        cells = lab.cells(lab.first, lab.matched(lab.first, parameters, neighbours=0))
        return lab.judged(cells, parameters.weights(), **NO_EDGES)

    def unlearned() -> Figures:
        start = Parameters.unlearned(lab.cohort.frame.body.spacing)
        k_min = lab.learned.parameters.k_min
        parameters = replace(start, k_min=k_min, tau_centroid=0.0)
        return lab.judged(lab.cells(lab.first, lab.matched(lab.first, parameters)), np.ones(3))

    lab.rows(
        "models",
        {
            "linear dense": linear_dense,
            "linear sparse": linear_sparse,
            "unlearned quadratic": unlearned,
            "full": lambda: full(lab),
        },
    )


def additions(lab: Lab) -> None:
    """Take away what the preset adds to the paper, one after the other."""

    def row(config: Config) -> Figures:
        found = lab.found(config)
        tested = lab.accuracy(lab.atlas(found.cells, found.weights), lab.test)
        return lab.judged(found.cells, found.weights) | {"test": tested}

    offsets = up_to_cliques(lab)
    paper = changed(offsets, "realign", warp=False)  # the preset paper
    lab.rows(
        "additions",
        {
            "the preset": lambda: row(lab.config),
            "without rounds": lambda: row(changed(lab.config, "atlas", rounds=0)),
            "and with offsets": lambda: row(offsets),
            "and without warp: the paper's steps": lambda: row(paper),
        },
    )


def losses(lab: Lab) -> None:
    """Table 2: what learning minimises."""
    lab.rows(
        "losses",
        {
            "cycle": lambda: full(lab, loss="cycle"),
            "synchronisation, dense": lambda: full(lab, loss="sync-dense"),
            "synchronisation, sparse": lambda: full(lab),
        },
    )


def terms(lab: Lab) -> None:
    """Table of the supplement: the final model without some of its terms, nothing learned again."""
    learned = lab.learned.parameters

    def row(weights: tuple[float, float, float], *gone: str) -> Figures:
        aligned = lab.realigned(learned)
        how = {} if weights[2] else {"neighbours": 0}
        cells = lab.cells(aligned, lab.matched(aligned, without(learned, *gone), **how))
        change = {} if weights[2] else NO_EDGES
        return lab.judged(cells, np.array(weights), **change)

    def aligned_otherwise(*, again: bool) -> Figures:
        aligned = lab.realigned(learned, warp=False) if again else lab.first
        return lab.judged(lab.cells(aligned, lab.matched(aligned, learned)), learned.weights())

    lab.rows(
        "terms",
        {
            "centres only": lambda: row((1, 0, 0), "radii"),
            "radii only": lambda: row((1e-4, 1, 0), "centroids"),
            "no offsets": lambda: row((1, 1, 0)),
            "offsets only": lambda: row((1e-4, 1e-4, 1), "centroids", "radii"),
            "single re-alignment": lambda: aligned_otherwise(again=False),
            "affine before matching": lambda: aligned_otherwise(again=True),
            "full": lambda: full(lab),
        },
    )


def sizes(lab: Lab) -> None:
    """Figures over the number of training worms: pre-atlas, atlas, test; supervised test."""
    learned = lab.learned.parameters
    aligned = lab.realigned(learned)
    matchings = lab.matched(aligned, learned)

    def row(count: int) -> Figures:
        chosen = drawn(lab, count)
        cohort = lab.cohort.some(chosen)
        cells = lab.cells(aligned, among(matchings, chosen), chosen)
        better = lab.improved(cells)
        atlas = lab.atlas(better, None, cohort)
        return {
            "pre_atlas": figures(pre_atlas(cohort.named, cells.labels())),
            "atlas": lab.accuracy(atlas, cohort.named),
            "test": lab.accuracy(atlas, lab.test),
            "supervised_test": supervised(lab, cohort)["accuracy"],
        }

    lab.rows("sizes", {f"{n}": lambda n=n: row(n) for n in range(10, lab.count + 1, 10)})


def modes(lab: Lab) -> None:
    """Figure over the number of training worms: how matchings of pairs become cliques."""
    learned = lab.learned.parameters
    aligned = lab.realigned(learned)
    # Sparse synchronisation also reads which assignments each pair allows.
    matchings = lab.with_settings("multi", synchronisation="sparse")(matched, aligned, learned)

    def row(count: int, mode: str) -> Figures:
        chosen = drawn(lab, count)
        start = time.process_time()
        if mode == "direct":
            cliques = solve_direct(problems(lab, aligned, learned, chosen), "fast")
        else:
            some = among(matchings, chosen)
            cliques = synchronise(some, sparse=mode == "sparse", seed=lab.config.seed)
        seconds = time.process_time() - start
        cells = lab.cells_of(aligned, cliques, chosen)
        accuracies = lab.judged(cells, learned.weights(), lab.cohort.some(chosen))
        return accuracies | {"processor_seconds": round(seconds, 2)}

    counts = [n for n in (10, 20, 30, 50, 70, 100) if n <= lab.count]
    lab.rows(
        "modes",
        {
            f"{mode}, {n}": lambda n=n, mode=mode: row(n, mode)
            for mode in ("direct", "sparse", "dense")
            for n in counts
            if mode != "direct" or n <= DIRECT
        },
    )


def problems(
    lab: Lab, aligned: Aligned, learned: Parameters, chosen: Sequence[int]
) -> MultiProblem:
    """Return the problems of all pairs of the chosen worms."""
    worms = [
        Specimen.from_arrays(str(number), aligned.frames[number], radii=aligned.radii[number])
        for number in chosen
    ]
    costs = Costs(
        c0=lab.config.multi.c0,
        tau_centroid=learned.tau_centroid,
        tau_radius=learned.tau_radius,
        k_min=learned.k_min,
        neighbours=lab.config.costs.neighbours,
    )
    variances = (learned.centroids, learned.radii, learned.offsets)
    return MultiProblem.from_pairs(
        (g, h, between(worms[g], worms[h], *variances, costs))
        for g in range(len(worms))
        for h in range(g + 1, len(worms))
    )


def drawn(lab: Lab, count: int) -> list[int]:
    """Return the first ``count`` worms of one random order."""
    order = np.random.default_rng(lab.config.seed).permutation(lab.count)
    return sorted(order[:count].tolist())


def supervised(
    lab: Lab,
    cohort: Cohort,
    weights: NDArray[np.float64] | str | None = None,
    **change: Any,
) -> Figures:
    """Build an atlas from names and evaluate it on the test worms.

    Parameters
    ----------
    lab, cohort
        the laboratory, and the worms to build from.
    weights
        (3,) of an atlas of the model ``offsets``, or "learned"; None for the model ``joint``.
    change
        fields of the atlas to replace.
    """
    cells = lab.run(named_cells, cohort.frame, cohort.labels)
    if isinstance(weights, str):
        weights = lab.run(learned_weights, cohort.frame, cells)
    atlas = lab.atlas(cells, weights, cohort, all_names(cohort.labels), **change)
    return tested(lab, atlas) | ({} if weights is None else {"weights": weights.round(3).tolist()})


def tested(lab: Lab, atlas: Atlas) -> Figures:
    """Return the accuracy on the test worms, in the mean and of each."""
    evaluation = evaluate(atlas, lab.test, workers=lab.workers, adapt=False)
    return {"accuracy": figures(evaluation), "worms": np.round(evaluation.accuracies, 4).tolist()}


def test(lab: Lab) -> None:
    """Table 3 and the distribution over test worms."""

    def unsupervised() -> Figures:
        found = lab.found(lab.config)
        atlas = lab.atlas(found.cells, found.weights)
        write_atlas(atlas, lab.folder.path / "atlas.h5")
        return tested(lab, atlas)

    cohort, centroids_only = lab.cohort, np.array([1.0, 0, 0])
    linear = NO_EDGES | DENSE | {"warp": False}
    lab.rows(
        "test",
        {
            "unsupervised": unsupervised,
            "supervised": lambda: supervised(lab, cohort),
            "supervised, offsets, equal weights": lambda: supervised(lab, cohort, np.ones(3)),
            "supervised, linear": lambda: supervised(lab, cohort, centroids_only, **linear),
            "supervised, offsets, learned weights": lambda: supervised(lab, cohort, "learned"),
        },
    )


def trials(lab: Lab, count: int = 10) -> None:
    """Time a few trials of each stage, and the losses, on 15 worms."""
    marks: dict[str, list[tuple[float, float]]] = {}

    def progress(what: str, *_: object) -> None:
        stage = what.removeprefix("learning ")
        marks.setdefault(stage, []).append((time.perf_counter(), time.process_time()))

    names = ("trials_linear", "trials_sparsity", "trials_offsets")
    config = changed(lab.config, "learn", **dict.fromkeys(names, count))
    aligned, executor = lab.first, lab.run.executor
    context = Context(config, executor, progress, [])
    learned = learn(aligned, lab.cohort.frame.body.spacing, context)

    def stage(name: str) -> Figures:
        clock, processors = np.median(np.diff(marks[name], axis=0), axis=0)
        return {"seconds": round(clock, 3), "processor_seconds": round(processors, 3)}

    def loss(kind: str) -> Figures:
        frames = [aligned.frames[number] for number in learned.specimens]
        radii = [aligned.radii[number] for number in learned.specimens]
        rules = PairRules(learned.parameters, config.learn.c0)
        matchings = match_pairs(frames, radii, rules, executor, allowed=True)
        loss_of(matchings, kind)
        start = time.process_time()
        loss_of(matchings, kind)
        return {"processor_seconds": round(time.process_time() - start, 3)}

    rows = {name: lambda name=name: stage(name) for name in marks}
    kinds = ("cycle", "sync-dense", "sync")
    lab.rows("trials", rows | {f"loss {kind}": lambda kind=kind: loss(kind) for kind in kinds})


def times(lab: Lab) -> None:
    """Show how long each step took when it was done, and the memory so far."""
    full(lab)
    spent = lab.folder.spent()
    rows = {step: lambda step=step: spent[step] for step in spent}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lab.rows("times", rows | {"memory": lambda: {"gigabytes": round(peak, 2)}})


SECTIONS: dict[str, Callable[[Lab], None]] = {
    "times": times,
    "trials": trials,
    "additions": additions,
    "models": models,
    "losses": losses,
    "terms": terms,
    "sizes": sizes,
    "modes": modes,
    "test": test,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--run", type=Path, default=Path("paper-run"))
    parser.add_argument("--quick", action="store_true", help="30 worms, 30 trials per stage")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    names = ("learn.trials_linear", "learn.trials_sparsity", "learn.trials_offsets")
    trials_per_stage = dict.fromkeys(names, 30 if given.quick else None)
    config = resolve(preset="paper-plus", overrides=trials_per_stage)
    with open_executor(given.workers) as executor, open_run(given.run) as folder:
        timed = TimedFolder(folder.path)
        run = Run(config, executor, timed, watch)
        lab = Lab(timed, run, given.workers, 30 if given.quick else 100)
        for section in given.sections or SECTIONS:
            SECTIONS[section](lab)


if __name__ == "__main__":
    main()
