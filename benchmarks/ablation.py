"""What each part of the default preset contributes: the preset without it.

Run ``python benchmarks/ablation.py [ROW ...] [--workers N]``; it needs the real data
(``EUTELY_DATA``). Atlases from 40 of the training worms, without names, tried on 30 others of them;
the test worms are not looked at. Each row also has what is known without names: the spread of a
cell given its neighbours (geometric mean of standard deviations, voxels; lower is better; compare
rows of the same section ``estimate``) and the share of the cells that an atlas of others confirms.
Merges the rows into ``benchmarks/results/ablation.json``; rows that are there are not computed
again. The table goes into ``docs/replication.md``.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import eutely
from eutely.atlas import Atlas
from eutely.config import resolve
from eutely.evaluation import pre_atlas
from figures import keep, known, put, rows_with
from worms import named, worms

RESULTS = Path(__file__).resolve().parent / "results" / "ablation.json"

ROWS: dict[str, dict[str, Any]] = {
    "default": {},
    "places only": {"estimate.features": "none"},
    "radii, no intensities": {"estimate.features": "radius"},
    "affine maps, no warp": {"realign.warp": False},
    "not brought to one size": {"realign.scale": False},
    "Gaussian costs": {"estimate.freedom": 30.0},
    "no shrinkage of covariances": {"estimate.prior": 1.0},
    "no prior of correlations": {"estimate.shrinkage": 10.0},
    "one target": {"refine.targets": 1},
    "no rounds after fusion": {"refine.joint_rounds": 0},
}
"""Name of the row -> settings that differ from the preset."""

COLUMNS = {
    "40 training worms": "row",
    "confirmed by others": "confirmed",
    "spread given neighbours": "spread",
    "pre-atlas": "pre_atlas",
    "30 other worms": "held_out",
    "the same, `--adapt`": "held_out_adapted",
}
"""Heading -> key of a row."""


def spread_of(atlas: Atlas) -> float:
    """Return the standard deviation of cells given their neighbours, geometric mean over axes."""
    return float(np.exp(np.linalg.slogdet(atlas.conditionals)[1].mean() / 6))


def compute(name: str, workers: int) -> None:
    """Build an atlas with the settings of one row, evaluate it and keep the figures."""
    every = worms()
    order = np.random.default_rng(0).permutation(len(every))
    train = [every[number] for number in order[:40].tolist()]
    new = [every[number] for number in order[40:70].tolist()]
    built = eutely.build(train, config=resolve(overrides=ROWS[name]), workers=workers)
    atlas = named(built.atlas, built.specimens, built.cells)
    row = {
        "row": name,
        "confirmed": round(float(built.consistency().mean()), 4),
        "spread": round(spread_of(built.atlas), 4),
        "pre_atlas": round(pre_atlas(built.specimens, built.cells).mean, 4),
        "held_out": round(eutely.evaluate(atlas, new, workers=workers, adapt=False).mean, 4),
        "held_out_adapted": round(eutely.evaluate(atlas, new, workers=workers, adapt=True).mean, 4),
    }
    keep(RESULTS, "rows", {"rows": rows_with(RESULTS, "rows", [row], "row")})


def markdown() -> str:
    """Return the rows as a table, the preset first."""
    found = {row["row"]: row for row in known(RESULTS)["rows"]["rows"]}
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for name in ROWS:
        if name in found:
            cells = [str(found[name][key]) for key in COLUMNS.values()]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", default=list(ROWS))
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    for one in given.rows:
        if one not in {row["row"] for row in known(RESULTS).get("rows", {}).get("rows", [])}:
            compute(one, given.workers)
    put("benchmarks/ablation.py", markdown())
