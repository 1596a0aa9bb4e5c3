"""Simulated worms beside real ones: how close is the default difficulty to that of the latter.

Run: ``python benchmarks/simulate.py`` (real worms from EUTELY_DATA, or ../shared/data beside the
checkout). Prints a table and writes benchmarks/results/simulate.json.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.spatial.distance import cdist

from eutely import Specimen, read, simulate
from eutely.geometry import neighbour_distances
from eutely.simulation import difficulty
from eutely.simulation.difficulty import assigned

HERE = Path(__file__).parent
DATA = Path(os.environ.get("EUTELY_DATA", HERE.parents[1] / "shared" / "data"))
RAPCAT = "Li et al., Nature Communications 15 (2024), doi 10.5281/zenodo.7627915"
GAPS = ((8, 12), (12, 20), (20, 40), (40, 80))


def measure(cohort: Sequence[Specimen]) -> dict[str, object]:
    """Return the figures that are compared, by what they are."""
    found = difficulty(cohort)
    residuals, mean = found.residuals, found.mean
    station = np.argsort(np.argsort(-mean[:, 0])) * 4 // len(mean)
    fitted = mean + residuals
    near = np.concatenate([neighbour_distances(worm.centroids) for worm in cohort])
    cell = np.sqrt(np.mean(residuals**2, axis=0))
    smooth, rest = warped(mean, residuals)
    part = [assigned_in(fitted / found.sd, mean / found.sd, station == q) for q in range(4)]
    gaps = cdist(mean, mean)
    common = np.einsum("kia,kja->ija", residuals, residuals) / len(residuals) / found.sd**2
    figures = {
        "median distance to the nearest neighbour": found.spacing,
        "the same, 1%, 5%, 25%, 75%, 95%": np.percentile(near, [1, 5, 25, 75, 95]),
        "extent of the mean shape (SD x, y, z)": mean.std(axis=0),
        "SD of the residual x, y, z": found.sd,
        "by cell, 5%, 50%, 95%: x": np.percentile(cell[:, 0], [5, 50, 95]),
        "by cell, 5%, 50%, 95%: y": np.percentile(cell[:, 1], [5, 50, 95]),
        "by cell, 5%, 50%, 95%: z": np.percentile(cell[:, 2], [5, 50, 95]),
        "SD along x by quarter, head to tail": [
            np.sqrt(np.mean(residuals[:, station == q, 0] ** 2)) for q in range(4)
        ],
        "shared with 6 neighbours x, y, z": found.shared,
    }
    for low, high in GAPS:
        pairs = (gaps >= low) & (gaps < high)
        figures[f"correlation at distance {low}-{high}"] = common[pairs].mean(axis=0)
    return figures | {
        "explained by a warp along the body x, y, z": smooth,
        "SD of the twist by quarter, degrees": twist(mean, fitted, station).std(axis=0),
        "largest twist, degrees": np.abs(twist(mean, fitted, station)).max(),
        "right by linear assignment, plain": found.plain,
        "right by linear assignment, weighted by SD": found.weighted,
        "the same by quarter, head to tail": part,
        "the same after a warp along the body": assigned((mean + rest) / found.sd, mean / found.sd),
    }


def assigned_in(
    shapes: NDArray[np.float64], mean: NDArray[np.float64], chosen: NDArray[np.bool_]
) -> float:
    """Return the share of right assignments among the ``chosen`` cells."""
    from scipy.optimize import linear_sum_assignment

    right = [
        linear_sum_assignment(cdist(shape, mean, "sqeuclidean"))[1] == np.arange(len(mean))
        for shape in shapes
    ]
    return float(np.mean(np.array(right)[:, chosen]))


def warped(
    mean: NDArray[np.float64], residuals: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit cubic splines along x (5 intervals) times 1, y, z; return what they explain, and rest."""
    low, high = mean[:, 0].min() - 1, mean[:, 0].max() + 1
    knots = np.r_[[low] * 3, np.linspace(low, high, 6), [high] * 3]
    along = BSpline.design_matrix(mean[:, 0], knots, 3).toarray()
    basis = np.hstack([along, along * mean[:, 1:2], along * mean[:, 2:]])
    fit = np.einsum("ij,kja->kia", basis @ np.linalg.pinv(basis), residuals)
    return np.sum(fit**2, axis=(0, 1)) / np.sum(residuals**2, axis=(0, 1)), residuals - fit


def twist(
    mean: NDArray[np.float64], fitted: NDArray[np.float64], station: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the roll of each quarter of each individual against the mean shape, degrees."""
    angles = np.empty((len(fitted), 4))
    for quarter in range(4):
        target = mean[station == quarter, 1:] - mean[station == quarter, 1:].mean(axis=0)
        shape = fitted[:, station == quarter, 1:]
        shape = shape - shape.mean(axis=1, keepdims=True)
        sine = np.sum(target[:, 0] * shape[..., 1] - target[:, 1] * shape[..., 0], axis=1)
        angles[:, quarter] = np.degrees(np.arctan2(sine, np.sum(target * shape, axis=(1, 2))))
    return angles


def main() -> None:
    cohorts = {"simulated": simulate(100)}
    folder = DATA / "rapcat" / "train100"
    if folder.is_dir():
        cohorts = {"real": read(folder)} | cohorts
    else:
        print(f"real worms absent: no folder {folder} (set EUTELY_DATA)")
    figures = {name: measure(cohort) for name, cohort in cohorts.items()}
    print(f"{'':48}" + "".join(f"{name:>34}" for name in figures))
    for what in figures["simulated"]:
        cells = ["  ".join(f"{v:.4g}" for v in np.atleast_1d(f[what])) for f in figures.values()]
        print(f"{what:48}" + "".join(f"{text:>34}" for text in cells))
    rounded = {
        name: {what: np.round(value, 3).tolist() for what, value in each.items()}
        for name, each in figures.items()
    }
    result = {"command": "python benchmarks/simulate.py", "real": RAPCAT, "figures": rounded}
    path = HERE / "results" / "simulate.json"
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
