"""Cliques from many specimens: how good, how fast, and how that grows.

Run ``python benchmarks/multi.py [SECTION ...]``; sections are direct, synchronise, cohort, growth,
losses, accuracy. It needs the real data (``EUTELY_DATA``); direct and synchronise compare with
pylibmgm where it is installed (extra ``bench``). Prints tables and merges the figures into
``benchmarks/results/multi.json``. Times are of one core, after compilation.
"""

import argparse
import logging
import lzma
import multiprocessing
import queue
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from eutely import simulate
from eutely.cliques import Matchings
from eutely.evaluation import pre_atlas
from eutely.io.dd import read_dd
from eutely.multi import (
    MultiProblem,
    agreement,
    cycle_loss,
    solve_direct,
    specimen_agreement,
    synchronisation_loss,
    synchronise,
)
from figures import Figures, keep, memory, one_core, peak, rows_with, table, timed
from worms import DATA, aligned, dense_matchings, sparse_matchings, warped, worms

RESULTS = Path(__file__).resolve().parent / "results" / "multi.json"


# pylibmgm -------------------------------------------------------------------------------------


def peer_model(matchings: Matchings) -> tuple[Any, Any]:
    """Return pylibmgm's model of what ``matchings`` allow, and the matchings as its solution."""
    import pylibmgm as peer

    graphs = [peer.Graph(g, int(size)) for g, size in enumerate(matchings.sizes)]
    model = peer.MgmModel()
    begins = matchings.allowed_starts()
    labels = {}
    for pair, (g, h) in enumerate(matchings.pairs.tolist()):
        shape = (int(matchings.sizes[g]), -1)
        rows = matchings.allowed[begins[pair] : begins[pair + 1]].reshape(shape)
        bits = np.unpackbits(rows, axis=1, bitorder="little")
        nodes = np.argwhere(bits).tolist()
        problem = peer.GmModel(graphs[g], graphs[h], len(nodes), 0)
        for i, s in nodes:
            problem.add_assignment(i, s, -1.0)
        model.add_model(problem)
        labels[g, h] = matchings.of(pair).tolist()
    solution = peer.MgmSolution(model)
    solution.set_solution(labels)
    return model, solution


def peer_synchronise(matchings: Matchings, sparse: bool, level: str, answer: Any) -> None:
    """Send pylibmgm's agreement and time; one of the three runs that it makes by default."""
    from pylibmgm import solver

    model, solution = peer_model(matchings)
    start = time.process_time()
    found = solver.synchronize_solution(
        model, solution, feasible=sparse, iterations=1, opt_level=solver.OptimizationLevel[level]
    )
    seconds = time.process_time() - start
    partners = found.labeling()
    kept = 0
    for pair, key in enumerate(map(tuple, matchings.pairs.tolist())):
        mine = matchings.of(pair)
        kept += int(np.count_nonzero((np.array(partners[key]) == mine) & (mine >= 0)))
    answer.put((kept, seconds))


def peer_direct(path: Path, level: str, answer: Any) -> None:
    """Send the matchings that pylibmgm finds for all pairs of a file, and its time."""
    import pylibmgm as peer

    logging.disable(logging.INFO)
    one_core()
    peer.omp_set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "problem.dd"
        plain.write_bytes(lzma.decompress(path.read_bytes()))
        model = peer.io.parse_dd_file(plain)
    start = time.process_time()
    found = peer.solver.solve_mgm(model, peer.solver.OptimizationLevel[level])
    seconds = time.process_time() - start
    partners = {
        key: [-1 if label is None else int(label) for label in labels]
        for key, labels in found.labeling().items()
    }
    answer.put((partners, seconds))


def limited(work: Callable[..., None], seconds: float, *arguments: Any) -> Any:
    """Return what ``work`` sends within so many seconds, or None."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=work, args=(*arguments, answer))
    process.start()
    try:
        return answer.get(timeout=seconds)  # before joining: a long answer would wait for us
    except queue.Empty:
        process.terminate()
        return None
    finally:
        process.join()


# sections -------------------------------------------------------------------------------------


DIRECT = {
    "worms_3_small": "DEFAULT",
    "hotel_instance_1": "EXHAUSTIVE",
    "house_instance_1": "EXHAUSTIVE",
    "synthetic_complete_instance_1": "EXHAUSTIVE",
}
"""Instances of the literature, and the level of pylibmgm that they are compared with."""


def section_direct(options: argparse.Namespace) -> Figures:
    """Solve multi-graph matching problems of the literature directly."""
    rows = []
    for name, level in DIRECT.items():
        (path,) = (DATA / "dd").glob(f"{name}*.xz")
        pairs = read_dd(path)
        row: Figures = {"instance": name, "graphs": max(h for _, h, _ in pairs) + 1}
        for effort in ("fast", "default", "thorough"):

            def ours(effort: str = effort, pairs: Any = pairs) -> float:
                joint = MultiProblem.from_pairs(pairs)
                return joint.evaluate(solve_direct(joint, effort))[0]

            if effort == "fast":
                ours()  # compiles
            row[effort], row[f"{effort} s"] = timed(ours)
        asked = options.peer != "none"
        found = limited(peer_direct, options.limit, path, level) if asked else None
        row["peer level"] = level if asked else "none"
        if found:
            partners, row["peer s"] = found
            row["peer"] = sum(problem.objective(partners[g, h]) for g, h, problem in pairs)
            row["times faster, default"] = row["peer s"] / row["default s"]
        rows.append(row)
        table("directly from costs", rows)
    return {"rows": rows}


def section_synchronise(options: argparse.Namespace) -> Figures:
    """Synchronise the same sparse matchings of real worms, and compare with pylibmgm."""
    rows = []
    for count in options.sizes:
        matchings = sparse_matchings(aligned()[:count])
        for sparse in (True, False):
            synchronise(matchings, sparse=sparse)
            cliques, seconds = timed(partial(synchronise, matchings, sparse=sparse), 3)
            row: Figures = {
                "worms": count,
                "mode": "sparse" if sparse else "dense",
                "matches": matchings.matched,
                "kept": agreement(matchings, cliques),
                "seconds": seconds,
            }
            if options.peer != "none":
                found = limited(peer_synchronise, options.limit, matchings, sparse, options.peer)
                row["peer level"] = options.peer
                row["peer kept"], row["peer seconds"] = found or (None, f"> {options.limit:g}")
                row["times faster"] = (found[1] if found else options.limit) / seconds
            rows.append(row)
            table("synchronisation", rows)
    return {"rows": rows_with(RESULTS, "synchronise", rows, "worms", "mode", "peer level")}


@cache
def first_target() -> int:
    """Return the worm that agrees best with a first synchronisation, of 20 partners each."""
    features = aligned()
    matchings = dense_matchings(features, some_pairs(len(features), 20))
    return int(np.nanargmax(specimen_agreement(matchings, synchronise(matchings, rounds=0))))


@cache
def all_matchings() -> Matchings:
    """Return the 4,950 dense matchings of 100 real worms after affine alignment."""
    return dense_matchings(aligned(first_target()))


def some_pairs(count: int, partners: int) -> np.ndarray:
    """Return pairs of specimens so that each has about so many partners."""
    steps = range(1, partners // 2 + 1)
    pairs = {tuple(sorted((g, (g + step) % count))) for step in steps for g in range(count)}
    return np.array(sorted(pairs), np.int32)


def section_cohort(_: argparse.Namespace) -> Figures:
    """Synchronise all matchings of 100 real worms, dense."""
    matchings = all_matchings()
    rows = []
    for rounds in (0, 2):
        synchronise(matchings, rounds=rounds)
        cliques, seconds = timed(partial(synchronise, matchings, rounds=rounds))
        rows.append(
            {
                "rounds": rounds,
                "pairs": len(matchings),
                "matches": matchings.matched,
                "kept": agreement(matchings, cliques),
                "cliques of half the worms": int(np.count_nonzero(cliques.sizes() >= 50)),
                "seconds": seconds,
                "peak GB": peak() / 2**20,
            }
        )
    table("100 real worms, dense", rows)
    return {"rows": rows}


def grown(features: np.ndarray, pairs: np.ndarray | None, answer: Any) -> None:
    """Send cliques, time and memory of one cohort, measured in a process of its own."""
    one_core()
    synchronise(dense_matchings(features[:3]))  # compiles
    matchings = dense_matchings(features, pairs)
    before = memory()
    cliques, seconds = timed(partial(synchronise, matchings))
    most = peak()
    row = {
        "pairs": len(matchings),
        "kept": agreement(matchings, cliques) / matchings.matched,
        "seconds": seconds,
        "us a match": 1e6 * seconds / matchings.matched,
        "GB": (most - before) / 2**20,
        "GB of all": most / 2**20,
    }
    answer.put((row, list(cliques)))


def section_growth(options: argparse.Namespace) -> Figures:
    """Synchronise simulated cohorts of growing size: all pairs, and 20 partners each."""
    cohort = simulate(300, pose="none", seed=1)  # so that smaller ones are part of larger ones
    features = np.array([np.hstack([worm.centroids, worm.radii]) for worm in cohort])
    rows = []
    for partners in options.partners:
        for count in options.cohorts:
            pairs = None if partners == "all" else some_pairs(count, 20)
            row, cliques = limited(grown, 3600.0, features[:count], pairs)
            score = pre_atlas(cohort[:count], cliques).mean
            rows.append({"specimens": count, "partners": partners, **row, "accuracy": score})
            table("growth (simulated worms)", rows)
    return {"rows": rows_with(RESULTS, "growth", rows, "partners", "specimens")}


def section_losses(_: argparse.Namespace) -> Figures:
    """Time both losses for 15 worms."""
    matchings = sparse_matchings(aligned()[:15])
    calls = {
        "cycle": lambda: cycle_loss(matchings),
        "synchronisation, sparse": lambda: synchronisation_loss(matchings, sparse=True),
        "synchronisation, dense": lambda: synchronisation_loss(matchings, sparse=False),
    }
    rows = []
    for name, call in calls.items():
        call()
        loss, seconds = timed(call, 5)
        rows.append({"loss": name, "value": loss, "milliseconds": 1e3 * seconds})
    table("losses of 15 worms", rows)
    return {"rows": rows}


def section_accuracy(_: argparse.Namespace) -> Figures:
    """Pre-atlas accuracy of 100 real worms from dense linear matchings, the paper's variances."""
    rows = []
    features = aligned(first_target())
    matchings = all_matchings()
    for frame in ("affine, to one worm", "bending, to the cliques of the above"):
        cliques = synchronise(matchings)
        scores = pre_atlas(worms(), list(cliques)).accuracies
        rows.append(
            {
                "frame": frame,
                "kept": agreement(matchings, cliques) / matchings.matched,
                "mean": float(scores.mean()),
                "std": float(scores.std()),
                "median": float(np.median(scores)),
                "least": float(scores.min()),
                "least agreement": float(specimen_agreement(matchings, cliques).min()),
            }
        )
        table("pre-atlas accuracy (paper: 0.949 +- 0.033)", rows)
        if len(rows) == 1:
            features = warped(features, cliques)
            matchings = dense_matchings(features)
    return {"rows": rows, "target": first_target()}


SECTIONS = {
    "direct": section_direct,
    "synchronise": section_synchronise,
    "cohort": section_cohort,
    "growth": section_growth,
    "losses": section_losses,
    "accuracy": section_accuracy,
}


def main() -> None:
    """Run the sections and merge their figures into the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", default=list(SECTIONS), metavar="SECTION")
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--cohorts", type=int, nargs="+", default=[25, 50, 100, 200, 300])
    parser.add_argument("--partners", nargs="+", default=["all", "20"], choices=["all", "20"])
    level = "EXHAUSTIVE" if find_spec("pylibmgm") else "none"
    parser.add_argument("--peer", default=level, help="level of pylibmgm, or none")
    parser.add_argument(
        "--limit", type=float, default=300.0, help="seconds for each run of pylibmgm"
    )
    options = parser.parse_args()
    one_core()
    for name in options.sections:
        keep(RESULTS, name, SECTIONS[name](options))


if __name__ == "__main__":
    main()
