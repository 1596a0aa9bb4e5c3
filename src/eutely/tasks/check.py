"""What was read, and what looks odd about it: the facts of each specimen, and warnings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.errors import SpecimenError
from eutely.pose import orient
from eutely.specimen import Specimen

LARGE = 3.0
"""A nucleus this many times larger (or smaller) than the median one, in radius, is odd."""

NEAR = 0.4
"""Two nuclei nearer than this share of the sum of their smallest radii overlap."""

COUNT, SCALE = 0.1, 1.5
"""Share by which the count, and factor by which the size, may differ from the cohort's."""

SURE = 1.0
"""Difference in score (of logarithms of probabilities) from which on head and tail are told."""


@dataclass(frozen=True)
class Facts:
    """What there is to know of a specimen at a glance; lengths in its unit.

    Attributes
    ----------
    extent
        range of the centroids along x, y, z.
    spread
        root mean square distance of the centroids to their mean: a size that no pose changes.
    named
        nuclei with a name.
    neighbour, radius
        medians of the distance to the nearest other nucleus, and of the radius of the sphere of
        the same volume (NaN where no radii are known).
    head
        unit vector (x, y, z) towards the head, as far as positions tell; None without a pose.
    head_margin, roll_margin
        by how much the pose found scores above the best one with head and tail, or back and
        belly, exchanged; near 0: cannot tell; NaN without a pose.
    trouble
        why there is no pose, if so.
    """

    name: str
    nuclei: int
    unit: str
    extent: tuple[float, float, float]
    spread: float
    named: int
    neighbour: float
    radius: float
    head: tuple[float, float, float] | None
    head_margin: float
    roll_margin: float
    trouble: str = ""


@dataclass(frozen=True)
class Oddity:
    """Something about a specimen that a user should look at."""

    specimen: str
    kind: str
    """the same words for the same oddity of other specimens"""
    detail: str
    ids: tuple[int, ...] = field(default=())
    """nuclei that it is about"""


def examine(specimen: Specimen) -> Facts:
    """Return the facts of a specimen of at least 4 nuclei."""
    points = specimen.centroids
    trouble = ""
    try:
        poses = orient(specimen)
    except SpecimenError as error:
        poses, trouble = [], str(error).removeprefix(f"{specimen.name}: ")

    def margin(row: int) -> float:
        against = [
            pose.score for pose in poses if pose.rotation[row] @ poses[0].rotation[row] < -0.5
        ]
        return poses[0].score - max(against) if against else np.nan

    radius = _radius(specimen)
    return Facts(
        name=specimen.name,
        nuclei=len(specimen),
        unit=specimen.unit,
        extent=_triple(np.ptp(points, axis=0)),
        spread=float(np.sqrt(points.var(axis=0).sum())),
        named=sum(map(bool, specimen.names or ())),
        neighbour=float(np.median(_neighbours(points))),
        radius=float(np.nanmedian(radius)) if np.isfinite(radius).any() else np.nan,
        head=_triple(poses[0].rotation[0]) if poses else None,
        head_margin=margin(0),
        roll_margin=margin(1),
        trouble=trouble,
    )


def _triple(values: NDArray[np.float64]) -> tuple[float, float, float]:
    x, y, z = values.tolist()
    return x, y, z


def _radius(specimen: Specimen) -> NDArray[np.float64]:
    return np.asarray(np.cbrt(specimen.radii.prod(axis=1)))


def _neighbours(points: NDArray[np.float64]) -> NDArray[np.float64]:
    distances, _ = KDTree(points).query(points, k=[2])
    return np.asarray(distances, dtype=np.float64)[:, 0]


def odd_nuclei(specimen: Specimen) -> Iterator[Oddity]:
    """Yield what is odd about the nuclei of one specimen."""

    def oddity(kind: str, which: NDArray[np.bool_], detail: str = "") -> Iterator[Oddity]:
        if which.any():
            ids = specimen.ids[which].tolist()
            some = ", ".join(map(str, ids[:5])) + (", ..." if len(ids) > 5 else "")
            words = f"{len(ids)} of {len(specimen)} nuclei{detail} (id {some})"
            yield Oddity(specimen.name, kind, words, tuple(ids))

    radius = _radius(specimen)
    if (radius > 0).any():
        yield from oddity("radius unknown or 0", ~(radius > 0))
        ratio = radius / np.median(radius[radius > 0])
        yield from oddity("unusually large", ratio > LARGE, f" over {LARGE:g} times the median")
        small = (ratio < 1 / LARGE) & (radius > 0)
        yield from oddity("unusually small", small, f" below 1/{LARGE:g} of the median")
    yield from oddity("nuclei overlap", _overlapping(specimen))
    names = np.array(specimen.names or [""] * len(specimen))
    values, inverse, counts = np.unique(names, return_inverse=True, return_counts=True)
    twice = (counts[inverse] > 1) & (names != "")
    words = ", ".join(values[(counts > 1) & (values != "")][:5])
    yield from oddity("duplicate names", twice, f" share {words}")
    features = specimen.features
    if {"voxels", "detached", "border"} <= set(features):
        yield from oddity("segments of one voxel", features["voxels"] == 1)
        yield from oddity("segments with detached voxels", features["detached"] > 0)
        yield from oddity("cut off by the border of the volume", features["border"] > 0)


def _overlapping(specimen: Specimen) -> NDArray[np.bool_]:
    """Return which nuclei have their centre at, or deep inside, another one."""
    smallest = np.nan_to_num(specimen.radii.min(axis=1))
    result = np.zeros(len(specimen), dtype=bool)
    pairs = KDTree(specimen.centroids).query_pairs(
        2 * NEAR * float(smallest.max()), output_type="ndarray"
    )
    if len(pairs):
        a, b = pairs.T
        gap = np.linalg.norm(specimen.centroids[a] - specimen.centroids[b], axis=1)
        close = gap <= NEAR * (smallest[a] + smallest[b])
        result[a[close]] = result[b[close]] = True
    return result


def odd_specimens(cohort: Sequence[Facts]) -> Iterator[Oddity]:
    """Yield which specimens differ from the others of their cohort."""
    for one in cohort:
        if one.trouble:
            yield Oddity(one.name, "no pose found", one.trouble)
        elif one.head_margin < SURE:
            detail = f"the other way round scores only {one.head_margin:.2g} less"
            yield Oddity(one.name, "head and tail hard to tell apart", detail)
    if len(cohort) < 3:
        return
    counts = np.array([one.nuclei for one in cohort], dtype=np.float64)
    usual = np.median(counts)
    for one in cohort:
        if abs(one.nuclei - usual) > max(COUNT * usual, 5 * _scatter(counts)):
            detail = f"{one.nuclei} nuclei, the cohort has {usual:g}"
            yield Oddity(one.name, "count far from the cohort's", detail)

    known = [not np.isnan(one.radius) for one in cohort]
    for one, has in zip(cohort, known, strict=True):
        if any(known) and not has:
            yield Oddity(one.name, "no radius known", "others of the cohort have radii")

    spreads = np.log([one.spread for one in cohort])
    extents = np.log(np.maximum([one.extent for one in cohort], 1e-12))
    middle = np.median(extents, axis=0)
    # Where poses differ, extents along x, y, z say nothing.
    posed = all(_scatter(column) < 0.15 for column in extents.T)
    for one, spread, extent in zip(cohort, spreads, extents, strict=True):
        factor = np.exp(spread - np.median(spreads))
        if max(factor, 1 / factor) > max(SCALE, np.exp(5 * _scatter(spreads))):
            detail = f"{factor:.3g} times the cohort's; are unit and voxel size right?"
            yield Oddity(one.name, "size far from the cohort's", detail)
        elif posed and (order := _swapped(extent, middle)):
            detail = f"x, y, z look like the cohort's {order}; check the order of axes"
            yield Oddity(one.name, "axes look swapped", detail)
        elif posed and np.abs(extent - middle).max() > np.log(2):
            axis = int(np.abs(extent - middle).argmax())
            detail = (
                f"along {'xyz'[axis]} {np.exp(extent - middle)[axis]:.2g} times the cohort's; is "
                "the voxel size right?"
            )
            yield Oddity(one.name, "extent far from the cohort's", detail)


def _scatter(values: NDArray[np.float64]) -> float:
    """Return the standard deviation as the median deviation tells it."""
    return float(1.4826 * np.median(np.abs(values - np.median(values))))


def _swapped(extent: NDArray[np.float64], usual: NDArray[np.float64]) -> str:
    """Return the order of axes that explains logarithmic extents far better than x, y, z."""

    def misfit(order: tuple[int, ...]) -> float:
        return float(np.abs(extent - usual[list(order)]).sum())

    best = min(permutations(range(3)), key=misfit)
    if misfit(best) + np.log(SCALE) < misfit((0, 1, 2)):
        return ", ".join("xyz"[axis] for axis in best)
    return ""


def summarised(oddities: Sequence[Oddity], at_most: int, specimens: int) -> Iterator[str]:
    """Yield a line for each oddity, or one for all specimens that share it if over ``at_most``."""
    kinds: dict[str, list[Oddity]] = {}
    for oddity in oddities:
        kinds.setdefault(oddity.kind, []).append(oddity)
    for kind, some in kinds.items():
        if len(some) <= at_most:
            yield from (f"{one.specimen}: {kind}: {one.detail}" for one in some)
            continue
        worst = max(some, key=lambda one: len(one.ids))
        yield (
            f"{kind}: {len(some)} of {specimens} specimens, for example {worst.specimen}: "
            f"{worst.detail}"
        )
