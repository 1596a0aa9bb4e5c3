"""Sets of voxels as runs along x: of labels, of ellipsoids, of shells around them.

A nucleus of a few thousand voxels is a few hundred runs, so that the regions of a whole specimen
fit into a few megabytes, and an image can be read in blocks of any shape, in any order::

    row z, y:   . . 7 7 7 7 . . 4 4 .        runs  7: [2, 6)   4: [8, 10)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import kernel
from eutely.nuclei import skip_background, unsigned
from eutely.specimen import Specimen

GAP, REACH = 1.25, 2.0
"""A shell begins and ends at these multiples of the semi-axes: light of the nucleus itself blurs
beyond its border, and the background changes within a few micrometres."""

EDGE = 1e-9
"""Relative error of squared distances: voxels on the border are inside, however it is rounded."""

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions of a volume, by runs of voxels along x.

    Attributes
    ----------
    shape
        of the volume, z, y, x.
    starts
        (z * y + 1,), first run of each row; the row of z, y is ``z * shape[1] + y``.
    runs
        (k, 3) int64: first x, last x + 1, region.
    counts
        (r,), voxels of each region. Regions may overlap.
    """

    shape: tuple[int, int, int]
    starts: Index
    runs: Index
    counts: Index

    @classmethod
    def from_runs(cls, shape: tuple[int, int, int], found: Index, regions: int) -> Regions:
        """Sort runs (k, 4): row, first x, last x + 1, region."""
        found = found[np.lexsort((found[:, 1], found[:, 0]))]
        rows = shape[0] * shape[1]
        starts = np.zeros(rows + 1, np.int64)
        np.cumsum(np.bincount(found[:, 0], minlength=rows), out=starts[1:])
        lengths = found[:, 2] - found[:, 1]
        counts = np.zeros(regions, np.int64)
        np.add.at(counts, found[:, 3], lengths)
        return cls(shape, starts, np.ascontiguousarray(found[:, 1:]), counts)

    def joined(self, other: Regions) -> Regions:
        """Return the regions of both; those of ``other`` follow."""
        rows = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        others = np.repeat(np.arange(len(other.starts) - 1), np.diff(other.starts))
        shift = np.array([0, 0, len(self.counts)])
        runs = np.concatenate(
            [np.c_[rows, self.runs], np.c_[others, other.runs + shift]],
        )
        return self.from_runs(self.shape, runs, len(self.counts) + len(other.counts))

    def voxels(
        self, low: tuple[int, ...], high: tuple[int, ...], strides: tuple[int, ...]
    ) -> tuple[Index, Index, Index]:
        """Return the voxels of a block, region by region.

        Parameters
        ----------
        low, high
            first and last + 1 index of the block, z, y, x.
        strides
            entries of the block's array between neighbours along z, y, x.

        Returns
        -------
        tuple of arrays
            regions that the block shows; (regions + 1,) where the voxels of each begin in the
            third; their places in the flat array.
        """
        counts = np.zeros(len(self.counts), np.int64)
        box = np.array([*low, *high])
        count_voxels(self.starts, self.runs, self.shape[1], box, counts)
        shown = np.flatnonzero(counts)
        bounds = np.zeros(len(shown) + 1, np.int64)
        np.cumsum(counts[shown], out=bounds[1:])
        next_place = counts
        next_place[shown] = bounds[:-1]
        places = np.empty(bounds[-1], np.int64)
        list_voxels(
            self.starts, self.runs, self.shape[1], box, np.array(strides), next_place, places
        )
        return shown, bounds, places


class RunCollector:
    """Collects the runs of a label volume, block by block, beside other work on the blocks."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.shape = shape
        self.parts: list[Index] = []

    def add(self, block: NDArray[np.integer], start: tuple[int, int, int]) -> None:
        """Add the runs of a block that begins at voxel z, y, x."""
        voxels, words, _ = unsigned(block)
        table = np.empty((4096, 4), np.int64)
        row, used, rows = 0, 0, voxels.shape[0] * voxels.shape[1]
        while row < rows:
            if used + voxels.shape[2] > len(table):
                larger = np.empty((2 * (used + voxels.shape[2]), 4), np.int64)
                larger[:used] = table[:used]
                table = larger
            row, used = scan_runs(voxels, words, np.array(start), self.shape[1], row, used, table)
        self.parts.append(table[:used].copy())

    @property
    def nbytes(self) -> int:
        """Bytes of the runs so far."""
        return sum(part.nbytes for part in self.parts)

    def regions(self, labels: Index) -> Regions:
        """Return the region of each label (n,), in ascending order; all labels must be there."""
        runs = np.concatenate([np.empty((0, 4), np.int64), *self.parts])
        runs[:, 3] = np.searchsorted(labels, runs[:, 3])
        return Regions.from_runs(self.shape, runs, len(labels))


def inside(
    specimen: Specimen, shape: tuple[int, int, int], voxel_size: tuple[float, float, float]
) -> Regions:
    """Return the voxels in the ellipsoid of each nucleus, the nearest one at least.

    Parameters
    ----------
    specimen
        with radii, in the unit of ``voxel_size``; a nucleus without any has no voxels.
    shape
        of the image, z, y, x.
    voxel_size
        x, y, z; the voxel of index i has its centre at ``i * voxel_size``.
    """
    return _ellipsoids(specimen, shape, voxel_size, (0.0, 1.0), None)


def shells(specimen: Specimen, regions: Regions, voxel_size: tuple[float, float, float]) -> Regions:
    """Return the voxels around each nucleus that belong to no nucleus (``regions``)."""
    return _ellipsoids(specimen, regions.shape, voxel_size, (GAP, REACH), regions)


def _ellipsoids(
    specimen: Specimen,
    shape: tuple[int, int, int],
    voxel_size: tuple[float, float, float],
    bounds: tuple[float, float],
    taken: Regions | None,
) -> Regions:
    """Return the voxels between two multiples of the ellipsoids, without those that are taken."""
    sides = np.asarray(voxel_size, np.float64)
    radii = np.maximum(specimen.radii, sides.min() / 2)
    axes = np.full((len(specimen), 3, 3), np.nan) if specimen.axes is None else specimen.axes
    axes = np.where(np.isfinite(axes), axes, np.eye(3))
    # x^T form x = 1 on the border, x in voxels.
    form = np.einsum("nki,nk,nkj->nij", axes, radii**-2.0, axes) * sides * sides[:, None]
    known = np.isfinite(form).all(axis=(1, 2))
    spread = np.einsum("nki,nk,nki->ni", axes, radii**2.0, axes)
    reach = np.where(known[:, None], bounds[1] * np.sqrt(spread) / sides, -1.0)
    box = np.array(shape[::-1])
    centres = specimen.centroids / sides
    known &= ((centres > -0.5 - reach) & (centres < box - 0.5 + reach)).all(axis=1)
    reach = np.minimum(reach, box)
    starts = np.zeros(shape[0] * shape[1] + 1, np.int64) if taken is None else taken.starts
    runs = np.zeros((0, 3), np.int64) if taken is None else taken.runs
    found = np.empty((4096, 4), np.int64)
    parts = []
    for number in np.flatnonzero(known).tolist():
        while (
            used := ellipsoid_runs(
                centres[number], form[number], reach[number], np.array(bounds), box,
                starts, runs, found,
            )
        ) > len(found):  # fmt: skip
            found = np.empty((2 * used, 4), np.int64)
        found[:used, 3] = number
        parts.append(found[:used].copy())
    return Regions.from_runs(
        shape, np.concatenate([np.empty((0, 4), np.int64), *parts]), len(specimen)
    )


@kernel
def scan_runs(
    block: NDArray[np.unsignedinteger],
    words: NDArray[np.uint64],
    origin: Index,
    height: int,
    row: int,
    used: int,
    table: Index,
) -> tuple[int, int]:
    """Add the runs of equal labels of a block, from ``row`` on; stop where the table is full.

    Parameters: see `eutely.nuclei.scan_block`; ``height`` is that of the whole volume, ``table``
    (k, 4) gets row of the volume, first x, last x + 1, label.
    """
    width = block.shape[2]
    per_word = 8 // block.itemsize
    while row < block.shape[0] * block.shape[1]:
        if used + width > len(table):
            return row, used
        z, y = row // block.shape[1], row % block.shape[1]
        line = block[z, y]
        start = 0
        while True:
            start = skip_background(line, start, words, row * width, per_word)
            if start == width:
                break
            end = start + 1
            while end < width and line[end] == line[start]:
                end += 1
            table[used, 0] = (origin[0] + z) * height + origin[1] + y
            table[used, 1] = origin[2] + start
            table[used, 2] = origin[2] + end
            table[used, 3] = np.int64(line[start])
            used += 1
            start = end
        row += 1
    return row, used


@kernel
def count_voxels(starts: Index, runs: Index, height: int, box: Index, counts: Index) -> None:
    """Add the number of voxels of each region in a box (low z, y, x, high z, y, x)."""
    for z in range(box[0], box[3]):
        for row in range(z * height + box[1], z * height + box[4]):
            for run in range(starts[row], starts[row + 1]):
                length = min(runs[run, 1], box[5]) - max(runs[run, 0], box[2])
                if length > 0:
                    counts[runs[run, 2]] += length


@kernel
def list_voxels(
    starts: Index, runs: Index, height: int, box: Index, strides: Index, place: Index, places: Index
) -> None:
    """List the voxels of a box by their place in its array; ``place`` is the next of a region."""
    for z in range(box[0], box[3]):
        for y in range(box[1], box[4]):
            row = z * height + y
            base = (z - box[0]) * strides[0] + (y - box[1]) * strides[1]
            for run in range(starts[row], starts[row + 1]):
                region = runs[run, 2]
                for x in range(max(runs[run, 0], box[2]), min(runs[run, 1], box[5])):
                    places[place[region]] = base + (x - box[2]) * strides[2]
                    place[region] += 1


@kernel
def ellipsoid_runs(
    centre: NDArray[np.float64],
    form: NDArray[np.float64],
    reach: NDArray[np.float64],
    bounds: NDArray[np.float64],
    box: Index,
    starts: Index,
    runs: Index,
    found: Index,
) -> int:
    """Write the runs of the voxels p with bounds[0] < sqrt((p - c)^T form (p - c)) <= bounds[1].

    Parameters
    ----------
    centre, reach
        (3,), x, y, z in voxels; ``reach``: half the sides of the box around the ellipsoid.
    form
        (3, 3), symmetric.
    bounds
        inner and outer multiple; an inner one of 0 includes the centre.
    box
        (3,), voxels of the volume along x, y, z.
    starts, runs
        voxels that are taken, see `Regions`.
    found
        (k, 4), gets row, first x, last x + 1; the fourth column is left.

    Returns
    -------
    int
        how many runs there are; more than ``len(found)`` if they did not fit.
    """
    used = 0
    inner_square, outer_square = bounds * bounds * (1 + EDGE)
    low = np.maximum(0, np.ceil(centre - reach * (1 + EDGE))).astype(np.int64)
    high = np.minimum(box, np.floor(centre + reach * (1 + EDGE)) + 1).astype(np.int64)
    for z in range(low[2], high[2]):
        dz = z - centre[2]
        for y in range(low[1], high[1]):
            dy = y - centre[1]
            b = form[0, 1] * dy + form[0, 2] * dz
            c = form[1, 1] * dy * dy + 2 * form[1, 2] * dy * dz + form[2, 2] * dz * dz
            outer = b * b - form[0, 0] * (c - outer_square)
            if outer < 0:
                continue
            half = np.sqrt(outer) / form[0, 0]
            middle = centre[0] - b / form[0, 0]
            first = max(0, int(np.ceil(middle - half)))
            last = min(box[0], int(np.floor(middle + half)) + 1)
            hole_first, hole_last = last, last
            inner = b * b - form[0, 0] * (c - inner_square)
            if bounds[0] > 0 and inner >= 0:
                half = np.sqrt(inner) / form[0, 0]
                hole_first = int(np.ceil(middle - half))
                hole_last = int(np.floor(middle + half)) + 1
            row = z * box[1] + y
            for begin, end in ((first, min(hole_first, last)), (max(hole_last, first), last)):
                x = begin
                run = starts[row]
                while x < end:
                    while run < starts[row + 1] and runs[run, 1] <= x:
                        run += 1
                    stop = end
                    if run < starts[row + 1]:
                        stop = min(end, max(x, runs[run, 0]))
                    if stop > x:
                        if used < len(found):
                            found[used, 0], found[used, 1], found[used, 2] = row, x, stop
                        used += 1
                    x = stop
                    if run < starts[row + 1] and runs[run, 0] <= x:
                        x = max(x, runs[run, 1])
    if used == 0 and bounds[0] == 0:  # smaller than a voxel: the nearest one
        x, y, z = np.floor(centre + 0.5).astype(np.int64)
        if 0 <= x < box[0] and 0 <= y < box[1] and 0 <= z < box[2]:
            if used < len(found):
                found[0, 0], found[0, 1], found[0, 2] = z * box[1] + y, x, x + 1
            used = 1
    return used
