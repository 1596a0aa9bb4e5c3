"""Shared by all benchmarks: times on one core, tables, and results kept by section."""

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Figures = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "docs" / "results.md",
    ROOT / "docs" / "replication.md",
    ROOT / "docs" / "solver.md",
    *sorted((ROOT / "docs" / "notebook").glob("*.md")),
]


def timed(call: Callable[[], Any], repeats: int = 1) -> tuple[Any, float]:
    """Return the result and the least time of ``call``, seconds of this process."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        best = min(best, time.process_time() - start)
    return result, best


def one_core() -> None:
    """Run this process on one core, as for all programs that are compared."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def spread(accuracies: NDArray[np.float64]) -> Figures:
    """Return mean, spread and the lowest three of the specimens' accuracies."""
    values = np.sort(accuracies)
    return {
        "mean": round(float(values.mean()), 4),
        "std": round(float(values.std()), 4),
        "median": round(float(np.median(values)), 4),
        "lowest": [round(value, 4) for value in values[:3].tolist()],
        "n": len(values),
    }


def memory() -> float:
    """Return the memory of this process now, in kB, and reset its peak."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    """Return the peak memory of this process, in kB.

    The usual ``ru_maxrss`` would start from that of the parent process.
    """
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0])


def table(title: str, rows: list[Figures]) -> None:
    """Print ``rows`` as a table."""
    print(f"\n{title}")
    keys = list(dict.fromkeys(key for row in rows for key in row))
    cells = [keys] + [
        [
            f"{row.get(key, ''):.6g}" if isinstance(row.get(key), float) else str(row.get(key, ""))
            for key in keys
        ]
        for row in rows
    ]
    widths = [max(len(line[k]) for line in cells) for k in range(len(keys))]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    sys.stdout.flush()


def put(script: str, text: str) -> None:
    """Write ``text`` into a page of results, between the marks of a script."""
    begin, end = f"<!-- {script} -->\n", f"<!-- end of {script} -->\n"
    page = next(page for page in PAGES if begin in page.read_text())
    before, rest = page.read_text().split(begin)
    page.write_text(before + begin + "\n" + text + "\n" + end + rest.split(end)[1])


def known(path: Path) -> Figures:
    """Return the figures found so far."""
    return json.loads(path.read_text()) if path.is_file() else {}


def command() -> str:
    """Return the command of this process, without the path of its run folder."""
    given = ["RUN" if before == "--run" else one for before, one in pairwise(["", *sys.argv[1:]])]
    return " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *given])


def keep(path: Path, section: str, figures: Figures) -> None:
    """Put the figures of one section into the file; the others stay as they are."""
    results = known(path)
    results[section] = {
        "command": command(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
        **figures,
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


def rows_with(path: Path, section: str, rows: list[Figures], *keys: str) -> list[Figures]:
    """Return ``rows`` and those found before that differ in ``keys``."""

    def key(row: Figures) -> tuple[Any, ...]:
        return tuple(row.get(name, "") for name in keys)

    before = {key(row): row for row in known(path).get(section, {}).get("rows", [])}
    return [row for _, row in sorted((before | {key(row): row for row in rows}).items())]
