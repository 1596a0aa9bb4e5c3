"""Mean, median, total and spread of each channel of an image in each region, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.intensities.regions import Regions

STATISTICS = ("mean", "median", "total", "sd")
"""What is measured, in this order; sd: standard deviation."""

Values = NDArray[np.generic]

FEW = 2**17
"""Values from which integers of up to 16 bits are counted instead of kept."""


class ImageBlock(NamedTuple):
    """A part of an image.

    Attributes
    ----------
    array
        contiguous, any order of axes.
    start
        index of its first entry: channel, z, y, x.
    shape
        entries along channel, z, y, x.
    strides
        entries of the array between neighbours along channel, z, y, x.
    """

    array: Values
    start: tuple[int, int, int, int]
    shape: tuple[int, int, int, int]
    strides: tuple[int, int, int, int]


class _Sample:
    """The values of one channel in one region, as far as they were read.

    Integers of up to 16 bits become a histogram where there are many, so that a region of any size
    takes half a megabyte; others are kept.
    """

    def __init__(self) -> None:
        self.pieces: list[Values] = []
        self.kept = 0
        self.count = 0
        self.histogram: NDArray[np.int64] | None = None

    def add(self, piece: Values) -> None:
        self.pieces.append(piece)
        self.kept += len(piece)
        self.count += len(piece)
        if self.kept > FEW and piece.dtype.kind in "iu" and piece.dtype.itemsize <= 2:
            if self.histogram is None:
                self.histogram = np.zeros(2**16, np.int64)
            low = int(np.iinfo(piece.dtype.str).min)
            values = np.concatenate(self.pieces).astype(np.int64) - low
            self.histogram += np.bincount(values, minlength=2**16)
            self.pieces, self.kept = [], 0

    def statistics(self, missing: int, kind: np.dtype[np.generic]) -> tuple[float, ...]:
        """Return mean, median, total, SD; ``missing`` values were not stored and are 0."""
        if missing:
            self.add(np.zeros(missing, kind))
        if self.histogram is None:
            return statistics(np.concatenate(self.pieces))
        low = int(np.iinfo(kind.str).min)
        if self.kept:
            rest = np.concatenate(self.pieces).astype(np.int64) - low
            self.histogram += np.bincount(rest, minlength=2**16)
        values = np.arange(2**16) + low
        below = np.cumsum(self.histogram)
        middle = [np.searchsorted(below, at, "right") for at in _middle(self.count)]
        sums = [int((self.histogram * values**power).sum()) for power in (1, 2)]
        return _summary(self.count, sums[0], sums[1], float(values[middle].mean()))


def statistics(values: Values) -> tuple[float, ...]:
    """Return mean, median, total and standard deviation, whatever the order of the values.

    >>> statistics(np.array([2, 4, 9], np.uint16))
    (5.0, 4.0, 15.0, 2.943920288775949)
    """
    count = len(values)
    if not count:
        return (math.nan,) * len(STATISTICS)
    if values.dtype.kind in "iu" and values.dtype.itemsize <= 2:
        at = _middle(count)
        middle = float(np.partition(values, at)[at].mean(dtype=np.float64))
        whole = values.astype(np.int64)
        return _summary(count, int(whole.sum()), int(np.dot(whole, whole)), middle)
    ordered = np.sort(values.astype(np.float64))
    ordered = ordered[np.isfinite(ordered)]
    if not len(ordered):
        return (math.nan,) * len(STATISTICS)
    middle = float(ordered[_middle(len(ordered))].mean())
    return float(ordered.mean()), middle, float(ordered.sum()), float(ordered.std())


def _middle(count: int) -> list[int]:
    """Return the two middle ranks, which are one if the count is odd."""
    return [(count - 1) // 2, count // 2]


def _summary(count: int, total: int, squares: int, median: float) -> tuple[float, ...]:
    """Return mean, median, total, SD of whole numbers, without rounding on the way."""
    variance = Fraction(count * squares - total * total, count * count)
    return float(Fraction(total, count)), median, float(total), math.sqrt(variance)


def intensities(
    blocks: Iterable[ImageBlock],
    regions: Regions,
    channels: int,
    check: Callable[[int], None] = lambda _: None,
) -> NDArray[np.float64]:
    """Measure an image in all regions.

    A region is summarised as soon as all its voxels were read, so that only the regions that a few
    blocks show are in memory. The result does not depend on the blocks. Voxels that no block has
    are 0, and voxels that are NaN or infinite are left out.

    Parameters
    ----------
    blocks
        of the image, which has the shape of the regions' volume.
    regions
        sets of voxels.
    channels
        of the image.
    check
        called with the number of bytes that values need; raises where these are too many.

    Returns
    -------
    array
        (channels, regions, 4), see ``STATISTICS``; NaN for a region without voxels.
    """
    found = np.full((channels, len(regions.counts), len(STATISTICS)), np.nan)
    done = np.zeros(found.shape[:2], np.bool_)
    samples: dict[tuple[int, int], _Sample] = {}
    kind: np.dtype[np.generic] = np.dtype(np.uint8)
    for array, start, shape, strides in blocks:
        kind = array.dtype.newbyteorder("=")
        flat = array.reshape(-1)
        high = tuple(a + b for a, b in zip(start[1:], shape[1:], strict=True))
        shown, bounds, places = regions.voxels(start[1:], high, strides[1:])
        ends = bounds.tolist()
        for channel in range(shape[0]):
            values = flat[places + channel * strides[0]].astype(kind, copy=False)
            for number, region in enumerate(shown.tolist()):
                key = start[0] + channel, region
                sample = samples.get(key) or samples.setdefault(key, _Sample())
                sample.add(values[ends[number] : ends[number + 1]].copy())
                if sample.count == regions.counts[region]:
                    found[key] = samples.pop(key).statistics(0, kind)
                    done[key] = True
        check(sum(sample.kept for sample in samples.values()) * kind.itemsize)
    for channel, region in np.argwhere(~done & (regions.counts > 0)).tolist():
        sample = samples.pop((channel, region), _Sample())
        missing = int(regions.counts[region]) - sample.count
        found[channel, region] = sample.statistics(missing, kind)
    return found
