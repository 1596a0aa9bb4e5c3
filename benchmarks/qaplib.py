"""Quadratic assignment problems of QAPLIB: distance to the best known values, beside SciPy.

Run ``python benchmarks/qaplib.py [INSTANCE ...]``; it needs the real data (``EUTELY_DATA``). Each
instance is solved at every effort, and right after by SciPy's ``quadratic_assignment``: FAQ, then
2-opt, from ever new starts, each for as many processor seconds as ours took, and at least once
(at most `PATIENCE` seconds for the first run, which 2-opt exceeds on large instances). Prints
tables, merges the figures into ``benchmarks/results/qaplib.json`` and writes the table of
``docs/solver.md``; ``--table`` only writes that.
"""

import argparse
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import quadratic_assignment

from eutely.io.qap import read_qap
from eutely.quadratic import QuadraticAssignment
from eutely.solver import solve_assignment
from figures import Figures, keep, known, one_core, put, rows_with, table
from worms import DATA

RESULTS = Path(__file__).resolve().parent / "results" / "qaplib.json"
EFFORTS = ("fast", "default", "thorough")
PATIENCE = 60
"""Processor seconds after which the first run of a method is given up."""


class LateError(Exception):
    """A run took too long."""


def stopped(run: Callable[[], float], seconds: float) -> float:
    """Return a result, or inf if it takes more than so many processor seconds."""

    def late(*_: object) -> None:
        raise LateError

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return run()
    except LateError:
        return np.inf
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def peer_values(problem: QuadraticAssignment, seconds: dict[str, float], how: str) -> Figures:
    """Return SciPy's best value after the time of each effort, from ever new starts.

    One sequence of starts serves all efforts: a longer time has all results of the shorter one.
    """
    rng = np.random.default_rng(0)
    best, spent, runs = np.inf, 0.0, 0
    found: Figures = {}
    for effort in EFFORTS:
        while runs == 0 or spent < seconds[effort]:
            options: Figures = {"rng": rng}
            if how == "faq" and runs:
                options["P0"] = "randomized"

            def run(options: Figures = options) -> float:
                flows, distances = problem.flows, problem.distances
                return float(quadratic_assignment(flows, distances, how, options).fun)

            begin = time.process_time()
            limit = PATIENCE if runs == 0 else max(seconds[effort] - spent, 0.001)
            best = min(best, stopped(run, limit))
            spent += time.process_time() - begin
            runs += 1
        found[effort] = {"objective": best if np.isfinite(best) else None, "runs": runs}
    return found


def measured(path: Path) -> Figures:
    """Return the figures of one instance."""
    problem, best = read_qap(path)
    ours: Figures = {}
    seconds = {}
    for effort in EFFORTS:
        begin = time.process_time()
        solution = solve_assignment(problem, effort, seed=1)
        seconds[effort] = time.process_time() - begin
        ours[effort] = {"objective": solution.objective, "seconds": seconds[effort]}
    bound = solve_assignment(problem, "fast", bound=True).bound
    return {
        "instance": path.name.split(".")[0],
        "n": len(problem),
        "best known": best,
        "bound": bound,
        "ours": ours,
        "faq": peer_values(problem, seconds, "faq"),
        "2opt": peer_values(problem, seconds, "2opt"),
    }


def peer_of(row: Figures, effort: str) -> float:
    """Return the better value of SciPy's two methods."""
    values = [row[how][effort]["objective"] for how in ("faq", "2opt")]
    return min(value for value in values if value is not None)


def above(row: Figures, value: float) -> float:
    """Return by how much a value exceeds the best known one, as a share.

    Where ours is below the best known value of the file, that counts as the best known one.
    """
    best = min(row["best known"], *(row["ours"][effort]["objective"] for effort in EFFORTS))
    return (value - best) / abs(best) if best else float(value > best)


def family(row: Figures) -> str:
    """Return the name of the family of an instance."""
    letters, kind = re.fullmatch(r"([a-z]+)\d+([a-z]?)", row["instance"]).groups()
    return f"{letters}…{kind}" if letters in ("lipa", "tai") else letters


def markdown() -> str:
    """Return the table of the documentation."""
    rows = known(RESULTS)["instances"]["rows"]
    groups: dict[str, list[Figures]] = {}
    for row in rows:
        groups.setdefault(family(row), []).append(row)
    lines = [
        "| family | instances | n | " + " | ".join(f"`{e}`" for e in EFFORTS) + " | seconds | "
        + "SciPy in the time of `default` | of `thorough` |",
        "|---" * (3 + len(EFFORTS) + 3) + "|",
    ]  # fmt: skip
    for name, group in [*sorted(groups.items()), ("**all**", rows)]:
        sizes = sorted({row["n"] for row in group})
        cells = [name, len(group), "-".join(map(str, dict.fromkeys((sizes[0], sizes[-1]))))]
        for effort in EFFORTS:
            gaps = [100 * above(row, row["ours"][effort]["objective"]) for row in group]
            cells.append(f"{np.mean(gaps):.2f} ({max(gaps):.2f})")
        times = [np.mean([row["ours"][e]["seconds"] for row in group]) for e in EFFORTS]
        cells.append(", ".join(f"{value:.2g}" for value in times))
        for effort in EFFORTS[1:]:
            gaps = [100 * above(row, peer_of(row, effort)) for row in group]
            cells.append(f"{np.mean(gaps):.2f} ({max(gaps):.2f})")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def shown(rows: list[Figures]) -> list[Figures]:
    """Return rows to print: gaps in percent."""
    return [
        {"instance": row["instance"], "n": row["n"]}
        | {
            f"{effort} {what}": value
            for effort in EFFORTS
            for what, value in (
                ("gap", 100 * above(row, row["ours"][effort]["objective"])),
                ("s", row["ours"][effort]["seconds"]),
                ("SciPy", 100 * above(row, peer_of(row, effort))),
            )
        }
        for row in rows
    ]


def main() -> None:
    """Measure the instances that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*", metavar="INSTANCE")
    parser.add_argument("--table", action="store_true", help="write the table again")
    options = parser.parse_args()
    one_core()
    paths = sorted((DATA / "qaplib").glob("*.qap.xz"))
    if options.instances:
        paths = [path for path in paths if path.name.split(".")[0] in options.instances]
    if not options.table:
        solve_assignment(read_qap(paths[0]).problem, bound=True)  # compiles
        for path in paths:
            row = measured(path)
            table("QAPLIB, gaps in percent", shown([row]))
            rows = rows_with(RESULTS, "instances", [row], "instance")
            keep(RESULTS, "instances", {"rows": rows})
    put("benchmarks/qaplib.py", markdown())


if __name__ == "__main__":
    main()
