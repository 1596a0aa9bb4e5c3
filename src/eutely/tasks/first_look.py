"""What a command says about its input before it works: the checks that a wrong result may hang on.

`eutely check` says everything; here the few lines are that explain a result one would not expect:
units, axes, sizes, duplicates, and what an atlas knows that the specimens lack.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from eutely.atlas import Atlas
from eutely.features import BOOKKEEPING, RADII, feature_names
from eutely.informative import repeats
from eutely.meaning import matched
from eutely.specimen import Specimen
from eutely.tasks import inputs
from eutely.tasks.check import (
    Oddity,
    examine,
    odd_nuclei,
    odd_specimens,
    odd_units,
    odd_volume,
    summarised,
)

log = logging.getLogger("eutely")

VoxelSize = tuple[float, float, float]

MOST_LINES = 3
"""Lines that a command says at most."""

GRAVE = 0.2
"""Share of the nuclei from which an oddity of nuclei counts; `eutely check` lists any."""

MOST_NAMES = 3
"""Copies of a specimen that are named."""

OF_NUCLEI = ("nuclei overlap", "duplicate names")
"""Oddities of nuclei that change results where they are many."""


called: ContextVar[Mapping[str, str]] = ContextVar("called", default={})  # noqa: B039
"""Name of a specimen -> what messages call it, where it has another name for a while."""

_looked_at: WeakValueDictionary[int, Specimen] = WeakValueDictionary()
"""Specimens about which everything is said already, by their identity."""


class FeatureUse(NamedTuple):
    """A feature of some specimens.

    Attributes
    ----------
    name
        of the column.
    specimens
        how many have it.
    low, high
        range of all its values.
    use
        what uses it, in words; "" for nothing.
    """

    name: str
    specimens: int
    low: float
    high: float
    use: str


def feature_uses(specimens: Sequence[Specimen], atlas: Atlas | None = None) -> list[FeatureUse]:
    """Return the features of specimens, with range and what uses them; none of bookkeeping.

    Parameters
    ----------
    specimens
        of one cohort.
    atlas
        to annotate with; without one, what a build uses is said.
    """
    columns = sorted({key for one in specimens for key in one.features} - {*BOOKKEEPING})
    if atlas is None:
        built = dict.fromkeys(feature_names(specimens), "build")
        uses = [{c: built[n] for n, c in matched(list(built), s.features).items()}
                for s in specimens]  # fmt: skip
    else:
        wanted = [name for name in atlas.features if name not in RADII]
        uses = [
            {column: f"atlas: {name}" for name, column in matched(wanted, one.features).items()}
            for one in specimens
        ]
    result = []
    for column in columns:
        having = [one.features[column] for one in specimens if column in one.features]
        values = np.concatenate(having)
        values = values[np.isfinite(values)]
        used = next((table[column] for table in uses if column in table), "")
        low, high = (values.min(), values.max()) if len(values) else (np.nan, np.nan)
        words = used or ("says little more than the mean" if repeats(column, columns) else "")
        result.append(FeatureUse(column, len(having), float(low), float(high), words))
    return result


def looked_at(given: inputs.Specimens, atlas: Atlas | None = None) -> list[Specimen]:
    """Return the specimens that a user gave; warn, once, of what may spoil their results."""
    readings = inputs.the_readings(given)
    specimens = [reading.specimen for reading in readings]
    look(specimens, [reading.voxel_size for reading in readings], atlas)
    return specimens


def look(
    specimens: Sequence[Specimen],
    voxel_sizes: Sequence[VoxelSize | None],
    atlas: Atlas | None = None,
) -> None:
    """Warn, in a few lines, of what may spoil results; once for each specimen. See `first_look`."""
    if any(_looked_at.get(id(specimen)) is not specimen for specimen in specimens):
        _looked_at.update((id(specimen), specimen) for specimen in specimens)
        for line in first_look(specimens, voxel_sizes, atlas):
            log.warning("%s", line)


@contextmanager
def under_other_names(
    specimens: Sequence[Specimen], names: Sequence[str]
) -> Iterator[list[Specimen]]:
    """Yield specimens under other names; messages call them what they are called before."""
    renamed = [replace(one, name=name) for one, name in zip(specimens, names, strict=True)]
    _looked_at.update((id(specimen), specimen) for specimen in renamed)
    token = called.set(dict(zip(names, (one.name for one in specimens), strict=True)))
    try:
        yield renamed
    finally:
        called.reset(token)


def first_look(
    specimens: Sequence[Specimen],
    voxel_sizes: Sequence[VoxelSize | None],
    atlas: Atlas | None = None,
) -> list[str]:
    """Return what is odd about specimens in a few lines; [] for nothing.

    Parameters
    ----------
    specimens
        as they were read.
    voxel_sizes
        x, y, z of the label volume of each, None for other files.
    atlas
        that they are annotated with, if any.
    """
    oddities = list(_oddities(specimens, voxel_sizes, atlas))
    lines = list(summarised(oddities, 1, len(specimens)))
    if len(lines) <= MOST_LINES:
        return lines
    more = len(lines) - MOST_LINES + 1
    return [*lines[: MOST_LINES - 1], f"{more} more oddities: eutely check lists them"]


def _oddities(
    specimens: Sequence[Specimen],
    voxel_sizes: Sequence[VoxelSize | None],
    atlas: Atlas | None,
) -> Iterator[Oddity]:
    """Yield oddities, what spoils a result most first."""
    facts = [examine(specimen, pose=False) for specimen in specimens]
    for known, size in zip(facts, voxel_sizes, strict=True):
        yield from odd_volume(known, size)
    for known in facts:
        yield from odd_units(known, atlas)
    yield from odd_copies(specimens)
    yield from odd_specimens(facts)
    for specimen in specimens:
        for oddity in odd_nuclei(specimen):
            if oddity.kind in OF_NUCLEI and len(oddity.ids) > GRAVE * len(specimen):
                yield oddity


def odd_copies(specimens: Sequence[Specimen]) -> Iterator[Oddity]:
    """Yield which specimens hold the same nuclei, one oddity for all copies: files in twice."""
    alike: dict[bytes, list[str]] = {}
    for specimen in specimens:
        points = specimen.centroids
        key = points[np.lexsort(points.T)].tobytes()
        alike.setdefault(key, []).append(specimen.name)
    for first, *others in alike.values():
        if not others:
            continue
        if len(others) > MOST_NAMES + 1:
            more = f"{len(others) - MOST_NAMES} others"
            others = [*others[:MOST_NAMES], more]
        names = " and ".join([", ".join(others[:-1]), others[-1]] if others[1:] else others)
        word = "hold" if others[1:] else "holds"
        yield Oddity(first, "copies", f"{names} {word} the same nuclei; keep one of them")
