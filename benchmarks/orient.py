"""How well and how fast specimens are oriented: real worms, degraded worms, embryos, heads.

Run ``python benchmarks/orient.py``; it needs the real data (``EUTELY_DATA``), prints a table and
writes ``benchmarks/results/orient.json``. Errors are angles between the pose found and the true
rotation, which is known from the names.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests"))

from eutely import Specimen, read  # noqa: E402
from eutely.io.apo import read_apo  # noqa: E402
from eutely.pose import Pose, orient  # noqa: E402
from poses import (  # noqa: E402
    best_rolls,
    consensus,
    errors,
    positions,
    random_motions,
    rotation_to,
)

DATA = Path(os.environ.get("EUTELY_DATA", HERE.parents[1] / "shared" / "data"))
HEADS = "neuropal/heads_np_ey.csv"
SEED = 1

Method = Callable[[Specimen], list[Pose]]


def principal_axes(specimen: Specimen) -> list[Pose]:
    """Return the usual poses: principal axes, head and back by skewness, both rolls."""
    centre = specimen.centroids.mean(axis=0)
    inside = specimen.centroids - centre
    axes = np.linalg.svd(inside, full_matrices=False)[2]
    for row in (0, 1):
        axes[row] *= -np.sign(((inside @ axes[row]) ** 3).sum())
    axes[2] = np.cross(axes[0], axes[1])
    half = np.diag([1.0, -1.0, -1.0])
    return [Pose(turn @ axes, centre, (1.0, 1.0), 0.0) for turn in (np.eye(3), half)]


def degraded(missing: float, spurious: int, jitter: float) -> list[Specimen]:
    """Return test2 with lost nuclei, jitter, and rejected segments of the same worm put back."""
    worms = []
    for number, path in enumerate(sorted((DATA / "rapcat/test2").glob("*.txt"))):
        rng = np.random.default_rng((SEED, number))
        worm = read_apo(path, path.name, keep_rejected=True)
        rejected = worm.features["rejected"] == 1
        kept = np.flatnonzero(~rejected & (rng.random(len(worm)) >= missing))
        debris = rng.permutation(np.flatnonzero(rejected))[:spurious]
        part = worm.take(np.concatenate([kept, debris]))
        shifts = rng.normal(0, jitter, part.centroids.shape)
        names = ["" if index in debris else worm.names[index] for index in (*kept, *debris)]
        worms.append(Specimen.from_arrays(part.name, part.centroids + shifts, names=names))
    return worms


def row(
    name: str,
    method: Method,
    cohort: list[Specimen],
    target: dict[str, np.ndarray] | None = None,
    frame: np.ndarray | None = None,
) -> dict[str, object]:
    """Measure one line of the table; the truth is the rotation to ``target`` (their mean)."""
    mean = consensus(cohort) if target is None else target
    unnamed = [one.without_names() for one in cohort]
    poses, seconds = [], []
    for one in unnamed:
        start = time.perf_counter()
        poses.append(method(one))
        seconds.append(time.perf_counter() - start)
    heads, rolls, tilts = errors(poses, [rotation_to(one, mean) for one in cohort], frame)
    result: dict[str, object] = {
        "row": name,
        "specimens": len(cohort),
        "head_right": int(heads[:, 0].sum()),
        "tilt_max": float(np.where(heads[:, 0], tilts[:, 0], 180 - tilts[:, 0]).max()),
        "milliseconds": 1000 * float(np.median(seconds)),
    }
    for first in (1, 2, 4):
        roll = best_rolls(heads, rolls, first)
        result[f"of_{first}"] = {
            "median": float(np.median(roll)),
            "p90": float(np.quantile(roll, 0.9)),
            "max": float(roll.max()),
            "within_15": float((roll <= 15).mean()),
        }
    return result


def main() -> None:
    train = random_motions(read(DATA / "rapcat/train100"), SEED)
    test = random_motions(read(DATA / "rapcat/test2"), SEED + 1)
    worms, mean = train + test, consensus(train + test)
    orient(worms[0])  # compiled outside of the clock
    reference = worms[0]
    rows = [
        row(
            "worms, reference worm",
            orient,
            worms,
            positions(reference),
            orient(reference)[0].rotation,
        ),
        row(
            "worms, reference worm, principal axes",
            principal_axes,
            worms,
            positions(reference),
            principal_axes(reference)[0].rotation,
        ),
        row("worms, principal axes", principal_axes, worms, mean),
        row("worms", orient, worms, mean),
        row("train100", orient, train, mean),
        row("test2", orient, test, mean),
    ]
    for missing, spurious, jitter in [(0.09, 25, 1.5), (0.2, 100, 3.0), (0.5, 25, 1.5)]:
        bad = random_motions(degraded(missing, spurious, jitter), SEED + 2)
        words = f"test2, {missing:.0%} lost, {spurious} spurious, jitter {jitter}"
        rows.append(row(f"{words}, principal axes", principal_axes, bad, mean))
        rows.append(row(words, orient, bad, mean))
    for name, path in {"epic": "epic/epic_350cell.csv", "neuropal": HEADS}.items():
        cohort = random_motions(read(DATA / path), SEED + 3)
        rows.append(row(f"{name}, principal axes", principal_axes, cohort))
        rows.append(row(name, orient, cohort))

    print(f"{'':58}  head right   roll error: median / max / within 15 degrees          ms")
    print(f"{'':58}              {'first pose':>21}{'best of 2':>21}{'best of 4':>21}")
    for line in rows:
        cells = "".join(
            f"{part['median']:8.1f} {part['max']:5.0f} {part['within_15']:6.1%}"
            for part in (line["of_1"], line["of_2"], line["of_4"])
        )
        heads = f"{line['head_right']}/{line['specimens']}"
        print(f"{line['row']:58}{heads:>10}{cells} {line['milliseconds']:7.1f}")
    results = HERE / "results" / "orient.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(
        json.dumps(
            {
                "command": "python benchmarks/orient.py",
                "date": datetime.now(UTC).date().isoformat(),
                "machine": f"{platform.machine()}, {os.cpu_count()} cores, "
                f"Python {platform.python_version()}",
                "seed": SEED,
                "unit": "degrees",
                "rows": rows,
            },
            indent=1,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
