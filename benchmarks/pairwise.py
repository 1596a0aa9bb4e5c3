"""One pair at a time: the solver beside pylibmgm and SciPy, and how it grows.

Run ``python benchmarks/pairwise.py [SECTION ...]``; sections are worms, pairs, dense, growth. It
needs the real data (``EUTELY_DATA``) and pylibmgm (extra ``bench``); growth needs neither. Prints
tables and merges the figures into ``benchmarks/results/pairwise.json``; ``--c0``, ``--seed`` and
``--sizes`` measure a part, or other pairs. Times are of this process, on one core, after
compilation, and with the building of the model: ours computes all costs, remembering nothing from
one call to the next; pylibmgm gets them computed.
"""

import argparse
import logging
import multiprocessing
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eutely import Specimen, simulate
from eutely.arrays import pair_list
from eutely.costs import gaussian
from eutely.costs.dense import dense_costs
from eutely.costs.gaussian import Costs, between
from eutely.io.dd import read_dd
from eutely.problem import PairProblem
from eutely.solver import solve, solve_dense
from figures import Figures, keep, memory, one_core, peak, rows_with, table, timed
from worms import DATA, PAPER, aligned, worms

RESULTS = Path(__file__).resolve().parent / "results" / "pairwise.json"
CEN, RAD, OFF = PAPER.centroids, PAPER.radii, PAPER.offsets
"""The paper's learned variances; its k_min, tau and number of neighbours are our defaults."""

SAME = 1e-6
"""Relative difference up to which two objectives are the same: costs are in single precision."""

Matching = np.ndarray[Any, np.dtype[np.int32]]


def peer_solution(problem: PairProblem) -> tuple[Matching, float, float]:
    """Return pylibmgm's matching, and the seconds of building its model and of solving it."""
    import pylibmgm as peer

    logging.disable(logging.INFO)
    peer.omp_set_num_threads(1)
    p = problem.arrays
    nodes = list(zip(p.owners.tolist(), p.labels.tolist(), p.linear.tolist(), strict=True))
    pairs = list(zip(*(values.tolist() for values in pair_list(p)), strict=True))
    start = time.process_time()
    graphs = peer.Graph(0, problem.n_left), peer.Graph(1, problem.n_right)
    model = peer.GmModel(*graphs, len(nodes), len(pairs))
    for node in nodes:
        model.add_assignment(*node)
    for pair in pairs:
        model.add_edge(*pair)
    built = time.process_time()
    found = peer.solver.solve_gm(model)
    done = time.process_time()
    labels = [-1 if label is None else label for label in found.to_list_with_none()]
    return np.array(labels, np.int32), built - start, done - built


def forget() -> None:
    """Clear what the costs of a pair remember, so that the next call does all the work."""
    gaussian._graph.cache_clear()


def no_worse(ours: Any, theirs: Any) -> Any:
    """Return whether objectives are as low, up to rounding."""
    return ours <= theirs + SAME * np.abs(theirs)


# sections -------------------------------------------------------------------------------------


def section_worms(_: argparse.Namespace) -> Figures:
    """Solve the pairs of the literature's worms, from lists of costs."""
    rows = []
    for g, h, problem in read_dd(DATA / "dd" / "worms_3_small.dd.xz"):
        p = problem.arrays
        first, second, costs = pair_list(p)
        lists = (
            (problem.n_left, problem.n_right),
            np.stack([p.owners, p.labels], axis=1),
            p.linear,
            np.stack([first, second], axis=1),
            costs,
        )

        def ours(effort: str, lists: Any = lists) -> float:
            return solve(PairProblem.from_arrays(*lists), effort).objective

        row: Figures = {"pair": f"{g}, {h}"}
        matching, building, solving = peer_solution(problem)
        row["peer"], row["peer s"] = problem.objective(matching), building + solving
        for effort in ("fast", "default"):
            ours(effort)
            row[effort], row[f"{effort} s"] = timed(partial(ours, effort), 3)
            row[f"{effort}, times faster"] = row["peer s"] / row[f"{effort} s"]
        rows.append(row)
        table("worms_3_small", rows)
    return {"rows": rows}


def real_pairs(count: int, seed: int = 1) -> list[tuple[Specimen, Specimen]]:
    """Return random pairs of real worms that were aligned without their names."""
    rng = np.random.default_rng(seed)
    placed = [
        Specimen.from_arrays(worm.name, points[:, :3], radii=points[:, 3:], names=worm.names)
        for worm, points in zip(worms(), aligned(), strict=True)
    ]
    chosen = [rng.choice(len(placed), 2, replace=False) for _ in range(count)]
    return [(placed[g], placed[h]) for g, h in chosen]


def right(left: Specimen, other: Specimen, matching: Matching) -> float:
    """Return the share of all names that were matched with themselves."""
    names, partners = np.array(left.names), np.array(other.names)[matching]
    return float(((names == partners) & (matching >= 0)).mean())


def section_pairs(options: argparse.Namespace) -> Figures:
    """Solve random pairs of real worms at several costs of leaving a nucleus unmatched."""
    pairs = real_pairs(options.pairs, options.seed)
    rows: list[Figures] = []
    for c0 in options.c0:
        costs = Costs(c0=c0)
        found: dict[str, list[tuple[float, ...]]] = {}
        for turn, (left, other) in enumerate([pairs[0], *pairs]):
            answers = {}
            for effort in ("fast", "default"):
                forget()
                start = time.process_time()
                matching = solve(between(left, other, CEN, RAD, OFF, costs), effort).matching
                answers[effort] = matching, time.process_time() - start
            if turn == 0:
                continue  # compiled now
            problem = between(left, other, CEN, RAD, OFF, costs)
            matching, building, solving = peer_solution(problem)
            answers["peer"] = matching, building + solving
            for solver, (matching, seconds) in answers.items():
                score = right(left, other, matching)
                unmatched = int((matching < 0).sum())
                figures = (problem.objective(matching), seconds, score, unmatched)
                found.setdefault(solver, []).append(figures)
        columns = {solver: np.array(values).T for solver, values in found.items()}
        theirs = columns["peer"]
        for solver, mine in columns.items():
            rows.append(
                {
                    "c0": c0,
                    "seed": options.seed,
                    "solver": solver,
                    "pairs": len(pairs),
                    "mean objective": float(mine[0].mean()),
                    "no worse": float(no_worse(mine[0], theirs[0]).mean()),
                    "better": float((~no_worse(theirs[0], mine[0])).mean()),
                    "ms a pair": 1e3 * float(mine[1].mean()),
                    "times faster": float(theirs[1].sum() / mine[1].sum()),
                    "accuracy": float(mine[2].mean()),
                    "unmatched": float(mine[3].mean()),
                }
            )
        table("pairs of real worms", rows)
        keep(RESULTS, "pairs", {"rows": rows_with(RESULTS, "pairs", rows, "c0", "seed", "solver")})
    return {"rows": rows_with(RESULTS, "pairs", rows, "c0", "seed", "solver")}


def section_dense(options: argparse.Namespace) -> Figures:
    """Assign all nuclei of real worms linearly, every pair allowed."""
    from scipy.optimize import linear_sum_assignment

    found = []
    for left, other in real_pairs(options.pairs):
        build = partial(dense_costs, left, other, CEN, RAD)
        costs, building = timed(build, 5)
        solution, ours = timed(partial(solve_dense, costs), 5)
        (i, s), scipy = timed(partial(linear_sum_assignment, costs), 5)
        assert np.isclose(solution.objective, costs[i, s].sum())
        found.append((1e3 * building, 1e3 * ours, 1e3 * scipy, ours <= scipy))
    mean = np.mean(found[1:], axis=0)  # compiled in the first
    row = {
        "nuclei": len(left),
        "pairs": len(found) - 1,
        "build ms": float(mean[0]),
        "solve ms": float(mean[1]),
        "SciPy ms": float(mean[2]),
        "times faster": float(mean[2] / mean[1]),
        "faster in": float(mean[3]),
    }
    table("dense linear assignment", [row])
    return {"rows": [row]}


def long_worms(nuclei: int) -> list[Specimen]:
    """Return two specimens as long as that takes: simulated worms of 500 cells, head to tail."""
    worms = simulate(8, cells=500, pose="none", variation=0.5, seed=3)
    rng = np.random.default_rng(nuclei)
    parts = [rng.choice(len(worms), 2, replace=False) for _ in range(nuclei // 500)]
    length = max(np.ptp(worm.centroids[:, 0]) for worm in worms) * 1.02
    result = []
    for side in range(2):
        chosen = [worms[part[side]] for part in parts]
        points = [worm.centroids + [length * k, 0, 0] for k, worm in enumerate(chosen)]
        names = [f"{k} {name}" for k, worm in enumerate(chosen) for name in worm.names]
        radii = np.concatenate([worm.radii for worm in chosen])
        result.append(
            Specimen.from_arrays("long", np.concatenate(points), radii=radii, names=names)
        )
    return result


def grown(nuclei: int, effort: str, answer: Any) -> None:
    """Send time and memory of one size, measured in a process of its own."""
    one_core()
    small = long_worms(500)
    solve(between(small[0], small[1], CEN, RAD, OFF, Costs(c0=100)), effort)  # compiles
    left, other = long_worms(nuclei)
    before = memory()
    problem, building = timed(lambda: between(left, other, CEN, RAD, OFF, Costs(c0=100)))
    solution, solving = timed(lambda: solve(problem, effort))
    added = peak() - before
    answer.put(
        {
            "nuclei": nuclei,
            "effort": effort,
            "candidates a nucleus": len(problem.arrays.labels) / nuclei,
            "build s": building,
            "solve s": solving,
            "ms a nucleus": 1e3 * (building + solving) / nuclei,
            "MB": added / 1024,
            "kB a nucleus": added / nuclei,
            "accuracy": right(left, other, solution.matching),
        }
    )


def section_growth(options: argparse.Namespace) -> Figures:
    """Solve simulated pairs of growing size, with the same number of candidates per nucleus."""
    context = multiprocessing.get_context("spawn")
    rows = []
    for effort in ("fast", "default"):
        for nuclei in options.sizes:
            answer = context.Queue()
            process = context.Process(target=grown, args=(nuclei, effort, answer))
            process.start()
            rows.append(answer.get())
            process.join()
            table("growth (simulated)", rows)
    return {"rows": rows_with(RESULTS, "growth", rows, "effort", "nuclei")}


SECTIONS = {
    "worms": section_worms,
    "pairs": section_pairs,
    "dense": section_dense,
    "growth": section_growth,
}


def main() -> None:
    """Run the sections and merge their figures into the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", default=list(SECTIONS), metavar="SECTION")
    parser.add_argument("--pairs", type=int, default=50, help="of real worms")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of pairs")
    parser.add_argument("--c0", type=int, nargs="+", default=[10000, 100, 40])
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[500, 1000, 2000, 5000, 10000, 20000]
    )
    options = parser.parse_args()
    one_core()
    for name in options.sections:
        keep(RESULTS, name, SECTIONS[name](options))


if __name__ == "__main__":
    main()
