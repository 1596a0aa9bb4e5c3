"""Checks of input data: facts about each specimen, and warnings about what looks odd."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.atlas import Atlas
from eutely.config import Config
from eutely.errors import EutelyError, SpecimenError
from eutely.execute import open_executor
from eutely.geometry import spacing
from eutely.pose import anonymous, framed, orient, oriented
from eutely.specimen import MICROMETRE, UNKNOWN, VOXEL, Specimen
from eutely.steps import Run
from eutely.store import Memory

LARGE = 3.0
"""A nucleus whose radius is this many times larger or smaller than the median is odd."""

NEAR = 0.4
"""Two nuclei closer than this fraction of the sum of their smallest radii overlap."""

COUNT, SCALE = 0.1, 1.5
"""Fraction by which the count, and factor by which the size, may differ from the cohort."""

ROUND, ROUNDER = 2.0, 1.5
"""Nuclei are at most this many times as long along one axis as along another; and the factor by
which another order of the voxel size must make them rounder to be the likely one."""

LONG = 2.5
"""The same as ``ROUND`` where the voxel size is not known: nuclei may be elongated."""

BLUR = 3.0
"""Microscopes lengthen nuclei along z up to this many times."""

SCATTERED = 0.3
"""Share of voxels outside the largest pieces of their labels above which these are no labels."""

NEIGHBOURS = (0.05, 500.0)
"""Least and largest plausible distance of neighbouring nuclei, in micrometres."""

FAR = 5.0
"""Factor by which the size may differ from that of an atlas, or of a single other specimen."""

FEWEST_TO_COMPARE = 3
"""Specimens that show which handedness is usual."""

SURE = 1.0
"""Difference of log-probabilities from which head and tail are clear."""


@dataclass(frozen=True)
class Facts:
    """Summary of a specimen; lengths are in its unit.

    Attributes
    ----------
    extent
        range of the centroids along x, y, z.
    spread
        root mean square distance of the centroids to their mean: a size independent of the pose.
    named
        number of nuclei with a name.
    neighbour, radius
        median distance to the nearest other nucleus, and median radius of the sphere of the same
        volume (NaN if no radii are known).
    lengths
        median half-extent of the nuclei along x, y, z; NaN if their axes are not known.
    scattered
        share of labelled voxels outside the largest piece of their label; NaN if not known.
    head
        unit vector (x, y, z) towards the head, estimated from positions; None without a pose.
    head_margin, roll_margin
        difference of score between the best pose and the best pose with head and tail, or back and
        belly, exchanged; near 0 if unclear; NaN without a pose.
    trouble
        why there is no pose; empty if there is one.
    """

    name: str
    nuclei: int
    unit: str
    extent: tuple[float, float, float]
    spread: float
    named: int
    neighbour: float
    radius: float
    lengths: tuple[float, float, float]
    scattered: float
    head: tuple[float, float, float] | None
    head_margin: float
    roll_margin: float
    trouble: str = ""


NO_LABELS = "labels do not look like nuclei"
"""Kind of oddity of a volume that is an image or a mask."""


@dataclass(frozen=True)
class Oddity:
    """Something about a specimen that a user should check."""

    specimen: str
    kind: str
    """the same text for the same oddity of other specimens"""
    detail: str
    ids: tuple[int, ...] = field(default=())
    """ids of the nuclei concerned"""


def examine(specimen: Specimen, pose: bool = True) -> Facts:
    """Return the facts of a specimen of at least 4 nuclei; without ``pose`` none about its head."""
    points = specimen.centroids
    trouble = ""
    try:
        poses = orient(specimen) if pose else []
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
        neighbour=spacing(points),
        radius=float(np.nanmedian(radius)) if np.isfinite(radius).any() else np.nan,
        lengths=_lengths(specimen),
        scattered=_scattered(specimen),
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


def _lengths(specimen: Specimen) -> tuple[float, float, float]:
    """Return the median half-extent of the ellipsoids along x, y, z."""
    if specimen.axes is None:
        return np.nan, np.nan, np.nan
    extents = np.linalg.norm(specimen.axes * specimen.radii[:, :, None], axis=1)
    extents = extents[np.isfinite(extents).all(axis=1)]
    return _triple(np.median(extents, axis=0)) if len(extents) else (np.nan, np.nan, np.nan)


def _scattered(specimen: Specimen) -> float:
    """Return the share of voxels that are not part of the largest piece of their label."""
    features = specimen.features
    if not {"voxels", "detached"} <= set(features):
        return np.nan
    return float(np.nansum(features["detached"]) / max(np.nansum(features["voxels"]), 1.0))


def odd_volume(facts: Facts, voxel_size: Sequence[float] | None = None) -> Iterator[Oddity]:
    """Yield what suggests that a volume holds no labels, or its voxel size is in a wrong order.

    Parameters
    ----------
    facts
        of the specimen.
    voxel_size
        x, y, z of its label volume, if there is one.
    """
    if facts.scattered > SCATTERED:
        detail = (
            f"{facts.scattered:.0%} of the labelled voxels lie apart from the rest of their label; "
            "is it an intensity image, or a mask of classes? Expected one number per nucleus"
        )
        yield Oddity(facts.name, NO_LABELS, detail)
    lengths = np.array(facts.lengths)
    if not (lengths > 0).all():
        return
    ratio = float(lengths.max() / lengths.min())
    long, short = "xyz"[lengths.argmax()], "xyz"[lengths.argmin()]
    words = f"nuclei are {ratio:.2g} times as long in {long} as in {short}"
    if voxel_size is None:
        if ratio > LONG:
            detail = f"{words}; are {long} and {short} swapped in the voxel size behind it?"
            yield Oddity(facts.name, "axes look swapped", detail)
        return
    size = np.array(voxel_size)
    orders = [size[list(order)] for order in permutations(range(3))]
    best = min(orders, key=lambda order: _elongation(lengths / size * order))
    before = _elongation(lengths)
    if before > ROUND and _elongation(lengths / size * best) * ROUNDER < before:
        changed = [axis for axis, a, b in zip("xyz", size, best, strict=True) if a != b]
        sides = ",".join(f"{side:.4g}" for side in best)
        detail = f"{words}: are {' and '.join(changed)} swapped (--voxel-size {sides})?"
        yield Oddity(facts.name, "voxel size in a wrong order", detail)


def _elongation(lengths: NDArray[np.float64]) -> float:
    """Return the largest by the smallest length along x, y, z, apart from blur along z."""
    x, y, z = lengths.tolist()
    blurred = min(max(z / np.sqrt(x * y), 1.0), BLUR)
    return float(max(x, y, z / blurred) / min(x, y, z / blurred))


def odd_units(facts: Facts, atlas: Atlas | None = None) -> Iterator[Oddity]:
    """Yield what suggests that a specimen is in another unit than it says, or than an atlas."""
    if facts.unit == MICROMETRE and not NEIGHBOURS[0] <= facts.neighbour <= NEIGHBOURS[1]:
        apart = f"{facts.neighbour:{',.0f' if facts.neighbour >= 1000 else '.3g'}} um apart"
        detail = f"neighbouring nuclei are {apart}; is it really micrometres?"
        yield Oddity(facts.name, "unit looks wrong", detail)
    if atlas is None or atlas.unit == VOXEL != facts.unit:  # scales of voxels are found
        return
    differ = "unit differs from the atlas's"
    if (facts.unit, atlas.unit) == (VOXEL, MICROMETRE):
        yield Oddity(facts.name, differ, f"in {VOXEL}, the atlas in um; give --voxel-size")
        return
    factor = facts.spread / float(np.sqrt(atlas.means.var(axis=0).sum()))
    if not 1 / FAR < factor < FAR:
        yield Oddity(facts.name, "size far from the atlas's", _size_words(factor, "the atlas's"))
    elif (facts.unit, atlas.unit) == (UNKNOWN, MICROMETRE):
        yield Oddity(facts.name, differ, "none stated: add a column unit, or --voxel-size")


def _size_words(factor: float, whose: str) -> str:
    """Describe by how much a size differs, and the unit that would explain it."""
    for power, small, large in ((3, "millimetres", "nanometres"), (6, "metres", "picometres")):
        if factor > 0 and abs(abs(np.log10(factor)) - power) < 0.5:
            unit = large if factor > 1 else small
            times = 10.0**power if factor > 1 else 10.0**-power
            return f"about {times:,.6g} times {whose}: {unit} instead of micrometres?"
    return f"{factor:.3g} times {whose}; are unit and voxel size right?"


def odd_nuclei(specimen: Specimen) -> Iterator[Oddity]:
    """Yield what is odd about the nuclei of a specimen."""

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
    """Return (n,) bool, which nuclei have their centre at, or deep inside, another nucleus."""
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
    """Yield which specimens differ from the others of the cohort."""
    for facts in cohort:
        if facts.trouble:
            yield Oddity(facts.name, "no pose found", facts.trouble)
        elif facts.head_margin < SURE:
            detail = f"the other way round scores only {facts.head_margin:.2g} less"
            yield Oddity(facts.name, "head and tail hard to tell apart", detail)
    if len(cohort) == 2:
        first, second = cohort
        factor = second.spread / first.spread if first.spread > 0 else 1.0
        if not 1 / FAR < factor < FAR:
            detail = _size_words(factor, f"that of {first.name}")
            yield Oddity(second.name, "size far from the cohort's", detail)
    if len(cohort) < 3:
        return
    counts = np.array([facts.nuclei for facts in cohort], dtype=np.float64)
    usual = np.median(counts)
    for facts in cohort:
        if abs(facts.nuclei - usual) > max(COUNT * usual, 5 * _scatter(counts)):
            detail = f"{facts.nuclei} nuclei, the cohort has {usual:g}"
            yield Oddity(facts.name, "count far from the cohort's", detail)

    known = not all(np.isnan(facts.radius) for facts in cohort)
    for facts in cohort:
        if known and np.isnan(facts.radius):
            yield Oddity(facts.name, "no radius known", "others of the cohort have radii")

    spreads = np.log([facts.spread for facts in cohort])
    extents = np.log(np.maximum([facts.extent for facts in cohort], 1e-12))
    middle = np.median(extents, axis=0)
    # If poses differ, extents along x, y, z cannot be compared.
    posed = all(_scatter(column) < 0.15 for column in extents.T)
    for facts, spread, extent in zip(cohort, spreads, extents, strict=True):
        factor = np.exp(spread - np.median(spreads))
        if max(factor, 1 / factor) > max(SCALE, np.exp(5 * _scatter(spreads))):
            detail = _size_words(factor, "the cohort's")
            yield Oddity(facts.name, "size far from the cohort's", detail)
        elif posed and (order := _swapped(extent, middle)):
            detail = f"x, y, z look like the cohort's {order}; check the order of axes"
            yield Oddity(facts.name, "axes look swapped", detail)
        elif posed and np.abs(extent - middle).max() > np.log(2):
            axis = int(np.abs(extent - middle).argmax())
            detail = (
                f"along {'xyz'[axis]} {np.exp(extent - middle)[axis]:.2g} times the cohort's; is "
                "the voxel size right?"
            )
            yield Oddity(facts.name, "extent far from the cohort's", detail)


def odd_handedness(specimens: Sequence[Specimen]) -> Iterator[Oddity]:
    """Yield which specimens are mirror images of most others, where whole specimens show that."""
    from eutely.find.poses import most_are, settled_poses  # here: importing them is slow

    straight = []
    for specimen in specimens:
        with suppress(SpecimenError):  # without a pose
            straight.append(oriented(anonymous(specimen, specimen.name)))
    if len(straight) < FEWEST_TO_COMPARE:
        return
    frame = framed(straight, (), scale=True, smooth=True)
    sizes = np.array([one.poses[0].size for one in straight])
    known, mirrored = straight[0].specimen.unit != UNKNOWN, np.zeros(len(straight), bool)
    with open_executor(None) as executor, suppress(EutelyError):  # they match no common body
        found = Run(Config(), executor, Memory())(settled_poses, frame, sizes, known)
        mirrored = np.array([one.mirrored != (one.other_hand > 0.5) for one in found.specimens])
    for number in np.flatnonzero(mirrored != most_are(mirrored)).tolist():
        yield Oddity(
            straight[number].specimen.name,
            "mirror image of most specimens",
            "axes of its file have another handedness; build and annotate allow for it",
        )


def _scatter(values: NDArray[np.float64]) -> float:
    """Return the standard deviation, estimated robustly by the median absolute deviation."""
    return float(1.4826 * np.median(np.abs(values - np.median(values))))


def _swapped(extent: NDArray[np.float64], usual: NDArray[np.float64]) -> str:
    """Return the order of axes that fits log extents far better than x, y, z; "" if none."""

    def misfit(order: tuple[int, ...]) -> float:
        return float(np.abs(extent - usual[list(order)]).sum())

    best = min(permutations(range(3)), key=misfit)
    if misfit(best) + np.log(SCALE) < misfit((0, 1, 2)):
        return ", ".join("xyz"[axis] for axis in best)
    return ""


def summarised(oddities: Sequence[Oddity], at_most: int, specimens: int) -> Iterator[str]:
    """Yield a line per oddity, or one line for more than ``at_most`` specimens that share it."""
    kinds: dict[str, list[Oddity]] = {}
    for oddity in oddities:
        kinds.setdefault(oddity.kind, []).append(oddity)
    for kind, some in kinds.items():
        if len(some) <= at_most:
            yield from (f"{oddity.specimen}: {kind}: {oddity.detail}" for oddity in some)
            continue
        worst = max(some, key=lambda oddity: len(oddity.ids))
        yield (
            f"{kind}: {len(some)} of {specimens} specimens, for example {worst.specimen}: "
            f"{worst.detail}"
        )
