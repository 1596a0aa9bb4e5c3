"""What each part of the default preset is worth: builds without it, on training worms.

Run ``python benchmarks/ablation.py [ROW ...] [--workers N]``; it needs the real data
(``EUTELY_DATA``). Atlases from 30 of the training worms, without names, name 30 others of them,
each by itself; the test worms are not looked at. The difference from the default is a mean over
these others, with its standard error: it says nothing about another draw to build from. Rows are
merged into ``benchmarks/results/ablation.json``, the table goes into ``docs/replication.md``;
``--again`` computes rows that are there already. What each *mechanism* is worth:
``ablation_mechanisms.py``.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import eutely
from eutely.config import resolve
from eutely.evaluation import pre_atlas
from figures import Figures, keep, known, put, rows_with
from worms import named, worms

RESULTS = Path(__file__).resolve().parent / "results" / "ablation.json"

BUILT, OTHERS = 30, 30

ROWS: dict[str, dict[str, Any]] = {
    "default": {},
    "radii, no intensities": {"estimate.features": "radius"},
    "places only": {"estimate.features": "none"},
    "affine maps, no warp": {"realign.warp": False},
    "each cell by itself": {"estimate.shrinkage": 1e6, "estimate.strength": 0.0},
    "Gaussian costs": {"estimate.freedom": 30.0},
    "no shrinkage of covariances": {"estimate.prior": 1.0},
    "one target": {"refine.targets": 1},
    "no rounds after fusion": {"refine.joint_rounds": 0},
}
"""Name of the row -> settings that differ from the preset."""


def compute(name: str, workers: int) -> None:
    """Build an atlas with the settings of one row, evaluate it and keep the figures."""
    order = np.random.default_rng(0).permutation(len(worms())).tolist()
    train = [worms()[number] for number in order[:BUILT]]
    new = [worms()[number] for number in order[BUILT : BUILT + OTHERS]]
    start = time.process_time()
    built = eutely.build(train, config=resolve(overrides=ROWS[name]), workers=workers)
    seconds = time.process_time() - start
    atlas = named(built.atlas, built.specimens, built.cells)
    accuracies = eutely.evaluate(atlas, new, workers=workers, adapt=False).accuracies
    row = {
        "row": name,
        "confirmed": round(float(built.consistency().mean()), 4),
        "pre_atlas": round(pre_atlas(built.specimens, built.cells).mean, 4),
        "others": accuracies.round(4).tolist(),
        "processor_seconds": round(seconds, 1),
    }
    keep(RESULTS, "default", {"rows": rows_with(RESULTS, "default", [row], "row")})


def difference(row: Figures, default: Figures) -> str:
    """Return the difference from the default, worm by worm, and its standard error."""
    apart = np.subtract(row["others"], default["others"])
    error = apart.std(ddof=1) / np.sqrt(len(apart))
    text = f"{apart.mean():+.4f} ± {error:.4f}"
    return f"**{text}**" if abs(apart.mean()) > 2 * error else text


def markdown() -> str:
    """Return the rows as a table, the preset first."""
    section = known(RESULTS).get("default", {})
    found = {row["row"]: row for row in section.get("rows", [])}
    lines = [
        f"`python benchmarks/ablation.py` ({section.get('date', 'not run')}): atlases from {BUILT} "
        f"of the training worms, without names, on {OTHERS} others of them. Bold: more than two "
        "standard errors over worms; another draw of the worms to build from is not tried.",
        "",
        "| | pre-atlas | other worms | difference | build, processor seconds |",
        "|---|---|---|---|---|",
    ]
    for name in ROWS:
        if name not in found:
            lines.append(f"| {name} | not run | | | |")
            continue
        row = found[name]
        apart = difference(row, found["default"]) if name != "default" else ""
        mean = float(np.mean(row["others"]))
        seconds = f"{row['processor_seconds']:.0f}"
        lines.append(f"| {name} | {row['pre_atlas']:.4f} | {mean:.4f} | {apart} | {seconds} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help=", ".join(ROWS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="also rows that are there already")
    given = parser.parse_args()
    for one in given.rows or ROWS:
        there = {row["row"] for row in known(RESULTS).get("default", {}).get("rows", [])}
        if given.again or one not in there:
            compute(one, given.workers)
    put("benchmarks/ablation.py", markdown())
