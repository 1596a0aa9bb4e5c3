"""The first second: what a new installation compiles, imports, help, errors, bound, linear pairs.

Run ``python benchmarks/first.py [SECTION ...] [--before SRC]``; it needs the real data
(``EUTELY_DATA``). Sections, all by default: ``compilation`` (each command with an empty folder for
machine code), ``start`` (import, help, errors about input), ``bound`` (beside the solution) and
``linear`` (dense linear matchings of pairs, as in the first stage of learning). SRC is the folder
``src`` of an older checkout, measured right after the present one in the same run. All figures are
processor seconds of a process with one thread. Prints tables and writes
``benchmarks/results/first.json``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from figures import Figures, keep, rows_with, table

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("EUTELY_DATA", HERE.parents[1] / "shared" / "data"))
RESULTS = HERE / "results" / "first.json"
REPEATS = 3

COMMANDS = {
    "annotate": ["annotate", "celegans-l1", "worm.csv", "-o", "annotated"],
    "build": ["build", "cohort", "-o", "run", "-j", "1"],
    "solve --mode direct": ["solve", str(DATA / "dd" / "worms_3_small.dd.xz"), "-o", "s.json"],
    "match": ["match", "worm.csv", "other.csv", "-o", "pairs.csv"],
}
"""What a new user may type first."""

STARTS = {
    "import eutely": None,
    "--help": ["--help"],
    "annotate: no such file": ["annotate", "celegans-l1", "nothing.csv", "-o", "out"],
    "annotate: no column z": ["annotate", "celegans-l1", "bad.csv", "-o", "out"],
    "build: no column z": ["build", "bad.csv", "-o", "out"],
    "compare: no column z": [
        "compare",
        "bad.csv",
        "nothing.csv",
        "--atlas",
        "celegans-l1",
        "-o",
        "out",
    ],
    "match: no column z": ["match", "bad.csv", "bad.csv"],
    "check: no column z": ["check", "bad.csv"],
    "evaluate: no column z": ["evaluate", "celegans-l1", "bad.csv"],
    "transfer: no column z": ["transfer", "bad.csv", "bad.csv", "-o", "out.csv"],
    "solve: no such file": ["solve", "nothing.dd"],
    "solve: no problem": ["solve", "bad.csv"],
    "report: no run": ["report", "nothing"],
    "view: no such file": ["view", "nothing"],
    "curate: no such file": ["curate", "celegans-l1", "nothing.csv", "-o", "out"],
}

INPUT = """
from eutely import read
from pathlib import Path
for name, file in zip(("worm", "other"), sorted(Path(DATA, "rapcat", "test2").iterdir())):
    worm = read(file)[0]
    lines = ["id,x,y,z", *(",".join(map(str, (i, *p))) for i, p in zip(worm.ids, worm.centroids))]
    Path(f"{name}.csv").write_text("\\n".join(lines) + "\\n")
"""

COMPILED = """
import json, sys, time
from numba.core import event
class Listener(event.Listener):
    def __init__(self):
        self.begins, self.seconds, self.number = [], 0.0, 0
    def on_start(self, event):
        self.begins.append(time.process_time())
    def on_end(self, event):
        begin = self.begins.pop()
        self.number += 1
        if not self.begins:
            self.seconds += time.process_time() - begin
listener = Listener()
event.register("numba:compile", listener)
from eutely.cli import main
sys.argv = ["eutely", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps({"compilation": round(listener.seconds, 2), "functions": listener.number}))
"""

STARTED = """
import sys
from eutely.cli import main
sys.argv = ["eutely", *sys.argv[1:]]
main()
"""

BOUND = """
import json, time
from pathlib import Path
from eutely.io.dd import read_dd
from eutely.solver import solve
from eutely.solver.dual import lower_bound
rows = []
problems = [problem for *_, problem in read_dd(Path(DATA, "dd", "worms_3_small.dd.xz"))]
import sys
sys.path.insert(0, BENCHMARKS)
from worms import PAPER, worms
from eutely.costs.gaussian import Costs, between
a, b = worms()[:2]
rules = Costs(c0=40.0, neighbours=6)
problems.append(between(a, b, PAPER.centroids, PAPER.radii, PAPER.offsets, rules))
for problem in problems:
    solution = solve(problem, bound=True)
    least = [1e9, 1e9]
    for _ in range(5):
        start = time.process_time()
        solve(problem)
        middle = time.process_time()
        bound = lower_bound(problem.arrays, 20)
        least = [min(least[0], middle - start), min(least[1], time.process_time() - middle)]
    rows.append([solution.objective, bound, *least])
print(json.dumps(rows))
"""

LINEAR = """
import json, sys, time
sys.path.insert(0, BENCHMARKS)
import numpy as np
from itertools import combinations
from worms import PAPER, worms
from eutely.costs.dense import coordinates
from eutely.pairs import _match_dense
def scaled(points):
    points = points - points.mean(axis=0)
    return points / points.std() * 70.0
nuclei = [coordinates(scaled(worm.centroids), worm.radii) for worm in worms()[:8]]
random = np.random.default_rng(0)
base = np.array([*PAPER.centroids, *PAPER.radii])
rows = []
for trial in range(9):
    variances = base * np.exp(random.uniform(np.log(0.005), 0.0, 6)) if trial else base
    start = time.process_time()
    pairs = combinations(range(8), 2)
    matchings = [_match_dense(nuclei, 1 / variances, 1e4, pair) for pair in pairs]
    seconds = time.process_time() - start
    rows.append([seconds, [int(m.astype(int) @ np.arange(len(m))) for m in matchings]])
print(json.dumps(rows[1:]))
"""


def child(code: str, arguments: list[str], source: Path, cache: str, folder: Path) -> Any:
    """Run a program in a process of its own; return the last line it prints, and its seconds."""
    code = code.replace("DATA", repr(str(DATA))).replace("BENCHMARKS", repr(str(HERE)))
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    # As in an installation, modules are there as bytecode.
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    paths = {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": cache, **bytecode}
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=os.environ | single | paths,
        capture_output=True,
        text=True,
        check=False,
    )
    after = os.times()
    seconds = sum(after[2:4]) - sum(before[2:4])
    if done.returncode not in (0, 2):
        raise RuntimeError(done.stderr[-2000:])
    lines = done.stdout.splitlines()
    return (json.loads(lines[-1]) if lines and lines[-1].startswith(("[", "{")) else None), seconds


def compilation(source: Path, folder: Path, commands: list[str]) -> list[Figures]:
    rows = []
    for name in commands:
        arguments = COMMANDS[name]
        with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as place:
            for file in ("worm.csv", "other.csv", "cohort"):
                Path(place, file).symlink_to(folder / file)
            begin = time.monotonic()
            figures, first = child(COMPILED, arguments, source, cache, Path(place))
            clock = time.monotonic() - begin
        # Compilation in the process of the command; a second process may do a part of it.
        rows.append({"row": name, **figures, "first run": round(first, 1), "clock": round(clock)})
    return rows


def start(source: Path, folder: Path) -> list[Figures]:
    rows = []
    for name, arguments in STARTS.items():
        code = STARTED if arguments else "import eutely"
        times = [
            child(code, arguments or [], source, str(folder), folder)[1] for _ in range(REPEATS)
        ]
        rows.append({"row": name, "seconds": round(min(times), 3)})
    return rows


def bound(source: Path, folder: Path) -> list[Figures]:
    names = ["worms_3_small 0, 1", "worms_3_small 0, 2", "worms_3_small 1, 2", "two worms, c0 40"]
    rows, _ = child(BOUND, [], source, str(folder / "kept"), folder)
    return [
        {"row": name, "objective": a, "bound": b, "solution": round(c, 4), "seconds": round(d, 4)}
        for name, (a, b, c, d) in zip(names, rows, strict=True)
    ]


def linear(source: Path, folder: Path) -> list[Figures]:
    rows, _ = child(LINEAR, [], source, str(folder / "kept"), folder)
    return [
        {"row": f"variances {number}", "seconds": round(seconds, 3), "matchings": sum(sums)}
        for number, (seconds, sums) in enumerate(rows)
    ]


SECTIONS: dict[str, Callable[..., list[Figures]]] = {
    "compilation": compilation,
    "start": start,
    "bound": bound,
    "linear": linear,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", help=", ".join(SECTIONS))
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS), help="for compilation")
    parser.add_argument("--before", type=Path, help="folder src of an older checkout")
    given = parser.parse_args()
    present = HERE.parent / "src"
    sources = {"now": present} | ({"before": given.before} if given.before else {})
    sys.argv = [sys.argv[0], *given.sections, *(["--before", "SRC"] if given.before else [])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        child(INPUT, [], present, str(folder / "kept"), folder)
        cohort = ["simulate", "-o", "cohort", "--specimens", "8", "--cells", "100", "-q"]
        child(STARTED, cohort, present, str(folder / "kept"), folder)
        (folder / "bad.csv").write_text("id,x,y\n1,2,3\n")
        for section in given.sections or list(SECTIONS):
            more = [given.commands] if section == "compilation" else []
            rows = [
                {"source": key, **row}
                for key, source in sources.items()
                for row in SECTIONS[section](source, folder, *more)
            ]
            table(section, rows)
            keep(RESULTS, section, {"rows": rows_with(RESULTS, section, rows, "row", "source")})


if __name__ == "__main__":
    main()
