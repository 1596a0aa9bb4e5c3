"""What each part of the default preset is worth: builds without it, on training worms.

Run ``python benchmarks/ablation.py [ROW ...] [--draw N] [--workers N]``; it needs the real data
(``EUTELY_DATA``). Atlases from 30 of the training worms, without names, name 30 others of them,
each by itself; the test worms are not looked at. The difference from the default is a mean over
these others, with its standard error, for each draw of worms: what builds differ in by chance shows
between draws. Rows are merged into ``benchmarks/results/ablation.json``, the table goes into
``docs/replication.md``; ``--again`` computes rows that are there already. What each *mechanism* is
worth: ``ablation_mechanisms.py``.
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


def compute(name: str, draw: int, workers: int) -> None:
    """Build an atlas with the settings of one row, evaluate it and keep the figures."""
    order = np.random.default_rng(draw).permutation(len(worms())).tolist()
    train = [worms()[number] for number in order[:BUILT]]
    new = [worms()[number] for number in order[BUILT : BUILT + OTHERS]]
    start = time.process_time()
    built = eutely.build(train, config=resolve(overrides=ROWS[name]), workers=workers)
    seconds = time.process_time() - start
    atlas = named(built.atlas, built.specimens, built.cells)
    accuracies = eutely.evaluate(atlas, new, workers=workers, adapt=False).accuracies
    row = {
        "row": name,
        "draw": draw,
        "confirmed": round(float(built.consistency().mean()), 4),
        "pre_atlas": round(pre_atlas(built.specimens, built.cells).mean, 4),
        "others": accuracies.round(4).tolist(),
        "processor_seconds": round(seconds, 1),
    }
    keep(RESULTS, "default", {"rows": rows_with(RESULTS, "default", [row], "row", "draw")})


def difference(row: Figures, default: Figures) -> str:
    """Return the difference from the default, worm by worm, and its standard error."""
    apart = np.subtract(row["others"], default["others"])
    error = apart.std(ddof=1) / np.sqrt(len(apart))
    text = f"{apart.mean():+.4f} ± {error:.4f}"
    return f"**{text}**" if abs(apart.mean()) > 2 * error else text


def markdown() -> str:
    """Return the rows as a table, the preset first, with the differences in each draw."""
    section = known(RESULTS).get("default", {})
    found = {(row["row"], row["draw"]): row for row in section.get("rows", [])}
    draws = sorted({draw for _, draw in found})
    heads = [f"draw {draw + 1}: {what}" for draw in draws for what in ("other worms", "difference")]
    lines = [
        f"`python benchmarks/ablation.py` ({section.get('date', 'not run')}): atlases from {BUILT} "
        f"of the training worms, without names, on {OTHERS} others of them. Differences from the "
        "default with standard errors over worms, bold: more than two.",
        "",
        f"| | {' | '.join(heads)} | build, processor seconds |",
        "|---" * (len(heads) + 2) + "|",
    ]
    for name in ROWS:
        cells = []
        for draw in draws:
            row = found.get((name, draw))
            apart = difference(row, found["default", draw]) if row and name != "default" else ""
            cells += [f"{float(np.mean(row['others'])):.4f}" if row else "not run", apart]
        seconds = [
            found[name, draw]["processor_seconds"] for draw in draws if (name, draw) in found
        ]
        cells.append(f"{min(seconds):.0f}" if seconds else "")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help=", ".join(ROWS))
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="also rows that are there already")
    given = parser.parse_args()
    for one in given.rows or ROWS:
        rows = known(RESULTS).get("default", {}).get("rows", [])
        if given.again or (one, given.draw) not in {(row["row"], row["draw"]) for row in rows}:
            compute(one, given.draw, given.workers)
    put("benchmarks/ablation.py", markdown())
