"""Segmentation errors: nuclei that are missing, spurious, split, merged, shifted, mismeasured."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from eutely.errors import EutelyError, expect_number
from eutely.simulation.plan import rotations

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Flaws:
    """Errors of a segmentation; none by default.

    Attributes
    ----------
    missing, merged, split
        share of the nuclei, 0 to 1, that are missing; merged with their nearest neighbour, under
        the name of the larger; split into two halves, of which one keeps the name.
    spurious
        number of spurious nuclei, without a name, relative to that of true nuclei.
    shift
        SD of the error of a centroid along each axis, in micrometres.
    radius_noise
        relative SD of the error of each semi-axis.
    """

    missing: float = 0.0
    spurious: float = 0.0
    split: float = 0.0
    merged: float = 0.0
    shift: float = 0.0
    radius_noise: float = 0.0

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            expect_number(entry.name, value)
            most = 1.0 if entry.name in ("missing", "merged", "split") else np.inf
            if not 0 <= value <= most or value == np.inf:
                limit = "between 0 and 1" if most == 1 else ">= 0"
                raise EutelyError(f"{entry.name} is {value}; give a number {limit}")


def flaws_of(given: Mapping[str, float]) -> Flaws:
    """Return the flaws that a user gave; an unknown one is an error."""
    known = [entry.name for entry in fields(Flaws)]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise EutelyError(f"simulate knows no '{unknown[0]}'; flaws are {', '.join(known)}")
    return Flaws(**given)


@dataclass
class Nuclei:
    """Mutable ellipsoids: the columns of a specimen."""

    names: list[str]
    centroids: Floats
    radii: Floats
    axes: Floats

    def take(self, rows: NDArray[np.intp]) -> "Nuclei":
        """Return only the nuclei at ``rows``."""
        return Nuclei(
            [self.names[row] for row in rows],
            self.centroids[rows],
            self.radii[rows],
            self.axes[rows],
        )

    def and_also(self, other: "Nuclei") -> "Nuclei":
        """Return these nuclei followed by those of ``other``."""
        return Nuclei(
            self.names + other.names,
            np.concatenate([self.centroids, other.centroids]),
            np.concatenate([self.radii, other.radii]),
            np.concatenate([self.axes, other.axes]),
        )


def segmented(truth: Nuclei, flaws: Flaws, random: np.random.Generator) -> Nuclei:
    """Return the nuclei of an individual after segmentation errors.

    The fate of every nucleus is drawn whatever the rates are, so that more errors of one kind do
    not change the errors of other kinds.
    """
    count = len(truth.names)
    fate = random.random((4, count))
    made_up = int(np.count_nonzero(random.random(count) < flaws.spurious % 1))
    made_up += count * int(flaws.spurious)
    ghosts = _ghosts(truth, made_up, np.random.default_rng(random.integers(2**63)))
    error = np.random.default_rng(random.integers(2**63))

    lost = fate[0] < flaws.missing
    keep = np.flatnonzero(~lost)
    halves = fate[1][keep] < flaws.split
    seen = _merged(truth.take(keep), fate[2][keep] < flaws.merged, halves)
    seen = _split(seen, {truth.names[row] for row in keep[halves]}, fate[3] < 0.5)
    seen = seen.and_also(ghosts)
    seen.centroids = seen.centroids + flaws.shift * error.standard_normal(seen.centroids.shape)
    noise = np.exp(flaws.radius_noise * error.standard_normal(seen.radii.shape))
    order = np.argsort(-seen.radii * noise, axis=1)
    seen.radii = np.take_along_axis(seen.radii * noise, order, axis=1)
    seen.axes = np.take_along_axis(seen.axes, order[:, :, None], axis=1)
    return seen


def _merged(nuclei: Nuclei, chosen: NDArray[np.bool_], halves: NDArray[np.bool_]) -> Nuclei:
    """Merge each ``chosen`` nucleus with the nearest that is neither split nor merged."""
    from scipy.spatial.distance import cdist  # here, because importing SciPy is slow

    gone = np.zeros(len(nuclei.names), dtype=bool)
    free = ~halves
    result = nuclei.take(np.arange(len(gone)))
    for row in np.flatnonzero(chosen & free):
        free[row], was_free = False, free[row]
        if not was_free or not free.any():
            continue
        others = np.flatnonzero(free)
        gaps = cdist(nuclei.centroids[row : row + 1], nuclei.centroids[others])[0]
        partner = others[np.argmin(gaps)]
        free[partner] = False
        larger, smaller = sorted(
            (row, partner), key=lambda nucleus: -float(nuclei.radii[nucleus].prod())
        )
        gone[smaller] = True
        _unite(result, larger, smaller)
    return result.take(np.flatnonzero(~gone))


def _unite(nuclei: Nuclei, larger: int, smaller: int) -> None:
    """Give ``larger`` the moments of both: a solid ellipsoid has the variance r^2 / 5."""
    pair = [larger, smaller]
    weight = nuclei.radii[pair].prod(axis=1)
    weight = weight / weight.sum()
    axes, radii = nuclei.axes[pair], nuclei.radii[pair]
    gap = nuclei.centroids[larger] - nuclei.centroids[smaller]
    spread = np.einsum("p,pac,pa,pad->cd", weight, axes, radii**2 / 5, axes)
    spread += weight[0] * weight[1] * np.outer(gap, gap)
    nuclei.centroids[larger] = weight @ nuclei.centroids[pair]
    values, vectors = np.linalg.eigh(spread)
    nuclei.radii[larger] = np.sqrt(5 * values[::-1])
    nuclei.axes[larger] = vectors.T[::-1]


def _split(nuclei: Nuclei, chosen: set[str], front: NDArray[np.bool_]) -> Nuclei:
    """Cut the ``chosen`` nuclei across their longest axis; ``front`` is the half with the name."""
    rows = np.array([row for row, name in enumerate(nuclei.names) if name in chosen], dtype=int)
    if not len(rows):
        return nuclei
    side = np.where(front[: len(rows)], 1.0, -1.0)[:, None]
    # The barycentre of half a ball lies 3/8 of the radius from the cut, and the variance across it
    # is 1/5 - (3/8)^2.
    step = 3 / 8 * nuclei.radii[rows, :1] * nuclei.axes[rows, 0] * side
    radii = nuclei.radii[rows] * [np.sqrt(5 * (1 / 5 - 9 / 64)), 1.0, 1.0]
    order = np.argsort(-radii, axis=1)
    radii = np.take_along_axis(radii, order, axis=1)
    axes = np.take_along_axis(nuclei.axes[rows], order[:, :, None], axis=1)
    nameless = Nuclei([""] * len(rows), nuclei.centroids[rows] - step, radii, axes)
    nuclei.centroids[rows] += step
    nuclei.radii[rows], nuclei.axes[rows] = radii, axes
    return nuclei.and_also(nameless)


def _ghosts(truth: Nuclei, count: int, random: np.random.Generator) -> Nuclei:
    """Return ``count`` spurious nuclei: smaller than true nuclei, at random places among them."""
    near = random.integers(len(truth.names), size=count)
    reach = 4 * truth.radii[near].mean(axis=1, keepdims=True)
    away = rotations(random, count)[:, 0]
    return Nuclei(
        names=[""] * count,
        centroids=truth.centroids[near] + reach * away * np.cbrt(random.random((count, 1))),
        radii=0.7 * truth.radii[near],
        axes=rotations(random, count),
    )
