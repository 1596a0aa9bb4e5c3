"""The paper's evaluation on its own worms: our figure beside the published one in every row.

Run ``python benchmarks/paper.py [SECTION ...] [--run DIR] [--quick]``; it needs the real data
(``EUTELY_DATA``). Sections, all by default: ``times`` (each step, memory), ``trials`` (one trial of
each stage), ``additions`` (what the preset has beyond the paper), ``models``, ``losses``, ``terms``
(the paper's tables of ablations, without those additions that come after cliques), ``sizes`` (over
the number of training worms), ``modes`` (of multi-matching, over that number) and ``test`` (test
worms, unsupervised and supervised). Every row is kept in DIR as soon as it is known, and so is
every step; the same command goes on where it stopped. The full size takes hours; ``--quick`` takes
30 worms and 30 trials a stage. Prints tables and merges them into ``benchmarks/results/paper.json``
(``paper-quick.json``), from which ``benchmarks/paper_pages.py`` makes the figures and the page.
Names are read only to count what is right, and by supervised rows.
"""

import argparse
import logging
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from eutely import evaluate
from eutely.align.consensus import Aligned
from eutely.atlas import Atlas
from eutely.config import resolve
from eutely.costs.gaussian import Costs, between
from eutely.execute import open_executor
from eutely.find.learn import cells as steps
from eutely.find.learn.work import loss_of
from eutely.find.named import cells_by_name, names_of
from eutely.find.refine import Cohort
from eutely.frame import Framed
from eutely.io.atlas import write_atlas
from eutely.learned import Parameters, Triple
from eutely.multi import MultiProblem, solve_direct, synchronise
from eutely.pairs import PairRules, match_pairs
from eutely.specimen import Specimen
from eutely.store.folder import open_run
from eutely.tasks.weighed import weights_by_name
from figures import Figures
from laboratory import Lab, TimedRun, among, changed, figures, part, watch

NOTHING = 1e4
"""Factor of the variances of a term that shall not count; thresholds are divided by it."""

DIRECT = 20
"""Worms up to which cliques are found directly from costs: those of all pairs are in memory."""

NO_EDGES = {
    "edges": np.zeros((0, 2), np.int32),
    "offsets": np.zeros((0, 3)),
    "offset_covariances": np.zeros((0, 3, 3)),
}
"""What makes an atlas linear."""

DENSE = {"tau_centroid": 1e12, "tau_radius": 1e12}


def without(parameters: Parameters, *terms: str) -> Parameters:
    """Return costs in which ``terms`` count nothing, while the same assignments are allowed."""

    def times(values: Triple) -> Triple:
        return values[0] * NOTHING, values[1] * NOTHING, values[2] * NOTHING

    found = parameters
    for term in terms:
        found = replace(found, **{term: times(getattr(found, term))})
        tau = {"centroids": "tau_centroid", "radii": "tau_radius"}.get(term)
        if tau:
            found = replace(found, **{tau: getattr(found, tau) / NOTHING})
    return found


def full(lab: Lab, **learn: str) -> Figures:
    """Evaluate the whole way but for what comes after cliques, perhaps with another loss."""
    found = lab.costs(**learn)[1].parameters
    aligned = lab.realigned(found)
    cliques = synchronise(lab.matched(aligned, found), seed=lab.config.seed)
    return lab.judged(*lab.cohort(aligned, cliques), found.weights())


def models(lab: Lab) -> None:
    """Table 1: what each part of the model is good for."""

    def linear(*, dense: bool) -> Figures:
        stages = {"trials_offsets": 0} | ({"trials_sparsity": 0} if dense else {})
        found = lab.stages_of(lab.costs()[1], **stages)
        aligned = lab.costs()[0]
        how = {"dense": True, "allowed": False} if dense else {"neighbours": 0}
        cliques = synchronise(lab.matched(aligned, found, **how), seed=lab.config.seed)
        change = NO_EDGES | (DENSE if dense else {})
        return lab.judged(*lab.cohort(aligned, cliques), found.weights(), **change)

    def unlearned() -> Figures:
        least = lab.costs()[1].parameters.least
        found = replace(Parameters.unlearned(lab.frame.spacing), least=least, tau_centroid=0.0)
        aligned = lab.costs()[0]
        cliques = synchronise(lab.matched(aligned, found), seed=lab.config.seed)
        return lab.judged(*lab.cohort(aligned, cliques), np.ones(3))

    lab.rows(
        "models",
        {
            "linear dense": lambda: linear(dense=True),
            "linear sparse": lambda: linear(dense=False),
            "unlearned quadratic": unlearned,
            "full": lambda: full(lab),
        },
    )


def additions(lab: Lab) -> None:
    """Take away what the preset has beyond the paper, one after the other."""
    found = lab.costs()[1].parameters

    def row(*, warp: bool, joint: bool, rounds: bool) -> Figures:
        aligned = lab.realigned(found, warp=warp)
        cliques = synchronise(lab.matched(aligned, found), seed=lab.config.seed)
        config = lab.config
        lab.config = changed(config, "realign", {"warp": warp})
        cohort, frame = lab.cohort(aligned, cliques)
        if rounds:
            cohort = lab.improved(cohort, frame)
        weights = None if joint else found.weights()
        figures_now = lab.judged(cohort, frame, weights)
        atlas = lab.atlas(cohort, frame, weights)
        lab.config = config
        tested = figures(evaluate(atlas, lab.test, workers=lab.workers, adapt=False))
        return figures_now | {"test": tested}

    lab.rows(
        "additions",
        {
            "the preset": lambda: row(warp=True, joint=True, rounds=True),
            "without rounds": lambda: row(warp=True, joint=True, rounds=False),
            "and with offsets": lambda: row(warp=True, joint=False, rounds=False),
            "and without warp: the paper's steps": lambda: row(
                warp=False, joint=False, rounds=False
            ),
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
    """Table of the supplement: the final model without some of its terms, nothing learned anew."""
    learned = lab.costs()[1].parameters

    def row(weights: tuple[float, float, float], *gone: str) -> Figures:
        found = without(learned, *gone)
        aligned = lab.realigned(learned)
        how = {} if weights[2] else {"neighbours": 0}
        cliques = synchronise(lab.matched(aligned, found, **how), seed=lab.config.seed)
        change = {} if weights[2] else NO_EDGES
        return lab.judged(*lab.cohort(aligned, cliques), np.array(weights), **change)

    def aligned_otherwise(*, again: bool) -> Figures:
        aligned = lab.realigned(learned, warp=False) if again else lab.costs()[0]
        cliques = synchronise(lab.matched(aligned, learned), seed=lab.config.seed)
        return lab.judged(*lab.cohort(aligned, cliques), learned.weights())

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
    learned = lab.costs()[1].parameters
    aligned = lab.realigned(learned)
    matchings = lab.matched(aligned, learned)

    def row(count: int) -> Figures:
        chosen = drawn(lab, count)
        cliques = synchronise(among(matchings, chosen), seed=lab.config.seed)
        cohort, frame = lab.cohort(aligned, cliques, chosen)
        cliques_alone = lab.judged(cohort, frame, None)["pre_atlas"]
        cohort = lab.improved(cohort, frame)
        atlas = lab.atlas(cohort, frame, None)
        return {
            "pre_atlas": cliques_alone,
            "atlas": lab.judged(cohort, frame, None)["atlas"],
            "test": figures(evaluate(atlas, lab.test, workers=lab.workers, adapt=False)),
            "supervised_test": supervised(lab, chosen, None)["accuracy"],
        }

    lab.rows("sizes", {f"{n}": lambda n=n: row(n) for n in range(10, lab.count + 1, 10)})


def modes(lab: Lab) -> None:
    """Figure over the number of training worms: how matchings of pairs become cliques."""
    learned = lab.costs()[1].parameters
    aligned = lab.realigned(learned)
    matchings = lab.matched(aligned, learned)

    def row(count: int, mode: str) -> Figures:
        chosen = drawn(lab, count)
        start = time.process_time()
        if mode == "direct":
            cliques = solve_direct(problems(lab, aligned, learned, chosen), "fast")
        else:
            own = among(matchings, chosen)
            cliques = synchronise(own, sparse=mode == "sparse", seed=lab.config.seed)
        seconds = time.process_time() - start
        found = lab.judged(*lab.cohort(aligned, cliques, chosen), learned.weights())
        return found | {"processor_seconds": round(seconds, 2)}

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


def problems(lab: Lab, aligned: Aligned, learned: Parameters, chosen: list[int]) -> MultiProblem:
    """Return the problems of all pairs of the chosen worms."""
    worms = [
        Specimen.from_arrays(str(one), aligned.frames[one], radii=aligned.radii[one])
        for one in chosen
    ]
    costs = Costs(
        unassigned=lab.config.multi.c0,
        tau_cen=learned.tau_centroid,
        tau_rad=learned.tau_radius,
        least=learned.least,
        neighbours=lab.config.costs.neighbours,
    )
    terms = (learned.centroids, learned.radii, learned.offsets)
    return MultiProblem.from_pairs(
        (g, h, between(worms[g], worms[h], *terms, costs))
        for g in range(len(worms))
        for h in range(g + 1, len(worms))
    )


def drawn(lab: Lab, count: int) -> list[int]:
    """Return the first ``count`` worms of one random order."""
    order = np.random.default_rng(lab.config.seed).permutation(len(lab.named))
    return sorted(order[:count].tolist())


def supervised(lab: Lab, chosen: list[int], weights: Any, **change: Any) -> Figures:
    """Build an atlas from names and evaluate it on the test worms; `None` for the joint model."""
    frame = part(lab.frame, chosen)
    named = [lab.named[one] for one in chosen]
    cohort = cells_by_name(named, frame.poses, frame.size, frame.spacing, lab.config)
    if callable(weights):
        weights = weights(cohort, frame)
    atlas = lab.atlas(cohort, frame, weights, names_of(named), **change)
    return tested(lab, atlas) | ({} if weights is None else {"weights": weights.round(3).tolist()})


def tested(lab: Lab, atlas: Atlas) -> Figures:
    """Return the accuracy on the test worms, in the mean and of each."""
    found = evaluate(atlas, lab.test, workers=lab.workers, adapt=False)
    return {"accuracy": figures(found), "worms": np.round(found.accuracies, 4).tolist()}


def test(lab: Lab) -> None:
    """Table 3 and the distribution over test worms."""
    everybody = list(range(lab.count))

    def unsupervised() -> Figures:
        found = lab.costs()[1].parameters
        aligned = lab.realigned(found)
        cliques = synchronise(lab.matched(aligned, found), seed=lab.config.seed)
        cohort, frame = lab.cohort(aligned, cliques)
        atlas = lab.atlas(lab.improved(cohort, frame), frame, None)
        write_atlas(atlas, lab.run.path / "atlas.h5")
        return tested(lab, atlas)

    def learned(cohort: Cohort, frame: Framed) -> Any:
        return weights_by_name(cohort, frame, lab.config, lab.run, lab.executor, watch)

    flat = np.array([1.0, 0, 0])
    linear = NO_EDGES | DENSE | {"warp": False}
    lab.rows(
        "test",
        {
            "unsupervised": unsupervised,
            "supervised": lambda: supervised(lab, everybody, None),
            "supervised, offsets, equal weights": lambda: supervised(lab, everybody, np.ones(3)),
            "supervised, linear": lambda: supervised(lab, everybody, flat, **linear),
            "supervised, offsets, learned weights": lambda: supervised(lab, everybody, learned),
        },
    )


def trials(lab: Lab, count: int = 10) -> None:
    """Time a few trials of each stage, and the losses, on 15 worms."""
    marks: dict[str, list[tuple[float, float]]] = {}

    def progress(stage: str, *_: float) -> None:
        marks.setdefault(stage, []).append((time.perf_counter(), time.process_time()))

    names = ("trials_linear", "trials_sparsity", "trials_offsets")
    config = changed(lab.config, "learn", dict.fromkeys(names, count))
    cohort, frame = lab.costs()[0], lab.frame
    found = steps.learned(cohort, frame.spacing, config, lab.executor, progress=progress)

    def stage(name: str) -> Figures:
        clock, processors = np.median(np.diff(marks[name], axis=0), axis=0)
        return {"seconds": round(clock, 3), "processor_seconds": round(processors, 3)}

    def loss(kind: str) -> Figures:
        own = [cohort.frames[one] for one in found.specimens]
        radii = [cohort.radii[one] for one in found.specimens]
        rules = PairRules(found.parameters, 1e4)
        matchings = match_pairs(own, radii, rules, lab.executor, allowed=True)
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
    spent = lab.run.spent()
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
    parser.add_argument("--quick", action="store_true", help="30 worms, 30 trials a stage")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    names = ("learn.trials_linear", "learn.trials_sparsity", "learn.trials_offsets")
    config = resolve(preset="paper", overrides=dict.fromkeys(names, 30 if given.quick else None))
    with open_executor(given.workers) as executor, open_run(given.run) as run:
        lab = Lab(TimedRun(run.path), executor, given.workers, 30 if given.quick else 100, config)
        for section in given.sections or SECTIONS:
            SECTIONS[section](lab)


if __name__ == "__main__":
    main()
