"""A label volume that stays in its file until it is read, block by block."""

import logging
import math
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.limits import check_memory

if TYPE_CHECKING:
    from eutely.nuclei import Block

log = logging.getLogger("eutely")

VoxelSize = tuple[float, float, float]
"""x, y, z in micrometres."""

BLOCK_BYTES = 2**23
"""Approximate number of bytes read at once, unless a chunk is larger."""

BROKEN = (
    OSError, ValueError, RuntimeError, LookupError, TypeError, EOFError, AttributeError,
    StopIteration, ArithmeticError, MemoryError, AssertionError, SyntaxError, BufferError,
    struct.error, zlib.error,
)  # fmt: skip
"""Errors that the libraries raise for truncated or otherwise damaged files."""

SMALLEST_SIDE, LARGEST_SIDE = 1e-6, 1e6
"""Bounds of the side of a voxel, in micrometres."""

MOST_VOXELS = 2**53
"""Voxels of a volume, all axes together; more are no measurement."""

EXACT = {2: 2**11, 4: 2**24, 8: 2**53}
"""Labels up to which floating-point numbers of so many bytes are exact."""

KNOWN_AXES = {"t": " (time)", "c": " (channels)", "s": " (colours)"}
"""What the letters of axes besides z, y, x mean."""

_METRES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "c": 1e-2}
"""Metres by prefix of the unit."""

_PREFIXES = {"nano": "n", "micro": "u", "milli": "m", "centi": "c", "µ": "u", "μ": "u"}
"""Prefixes of units, and their short forms."""


@dataclass(frozen=True)
class Volume:
    """A label volume in a file.

    Attributes
    ----------
    path
        of the file, followed by the path inside the file if there is one.
    axes
        names of the file's axes, as many as ``stored`` has entries: ``x``, ``y``, ``z``, others.
    stored
        shape in the file, by ``axes``.
    dtype
        of the labels.
    voxel_size
        x, y, z in micrometres, or None if the file does not specify it.
    parts
        function that yields arrays with the axes of the file, and the index of their first entry:
        a grid in C order.
    why_unknown
        why the file has no voxel size.
    part_bytes
        bytes of the largest array that ``parts`` yields.
    channels
        names of the channels of an image, () where the file does not specify them.
    named
        whether the file states which axis is which; otherwise ``axes`` is the usual order.
    """

    path: str
    axes: str
    stored: tuple[int, ...]
    dtype: np.dtype[np.generic]
    voxel_size: VoxelSize | None
    parts: Callable[[], Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]]
    why_unknown: str = "the file does not specify it"
    part_bytes: int = BLOCK_BYTES
    channels: tuple[str, ...] = ()
    named: bool = True

    @property
    def shape(self) -> tuple[int, int, int]:
        """Voxels along z, y, x."""
        z, y, x = (self.stored[self.axes.index(axis)] for axis in "zyx")
        return z, y, x

    @property
    def size(self) -> VoxelSize:
        """x, y, z in micrometres, of a checked volume."""
        assert self.voxel_size is not None
        return self.voxel_size

    def blocks(self) -> "Iterator[Block]":
        """Yield blocks: labels with axes z, y, x, and the index of their first voxel."""
        keep = [self.axes.index(axis) for axis in "zyx"]
        drop = tuple(index for index in range(len(self.axes)) if index not in keep)
        order = np.argsort(np.argsort(keep))
        try:
            for array, start in self.parts():
                z, y, x = (start[index] for index in keep)
                yield np.squeeze(array, drop).transpose(order), (z, y, x)
        except BROKEN as error:
            raise broken(self.path, error) from error

    def planes(self) -> Iterator[NDArray[np.integer]]:
        """Yield planes: labels (y, x) for each z, in order; absent blocks are background."""
        depth, height, width = self.shape
        empty: NDArray[np.integer] = np.zeros((height, width), self.dtype)
        slab, begin = empty[None][:0], 0
        for block, (z, y, x) in self.blocks():
            if z != begin or not len(slab):
                yield from slab
                yield from [empty] * (z - begin - len(slab))
                check_memory(self.path, len(block) * empty.nbytes, "a slab of planes")
                slab = np.zeros((len(block), height, width), block.dtype)
                begin = z
            slab[:, y : y + block.shape[1], x : x + block.shape[2]] = block
        yield from slab
        yield from [empty] * (depth - begin - len(slab))

    def checked(self, voxel_size: VoxelSize | None, fallback: VoxelSize | None = None) -> "Volume":
        """Return the volume with its final voxel size; raise unless it has labels in three axes.

        Parameters
        ----------
        voxel_size
            takes precedence over the file.
        fallback
            for a file that has none.
        """
        self._check_axes()
        if self.dtype.kind == "f" and self.dtype.itemsize in EXACT:
            return self._whole().checked(voxel_size, fallback)
        if self.dtype.kind not in "iu":
            raise ReadError(
                f"{self.path}: voxels are {self.dtype}, expected whole numbers (one label "
                "per nucleus); convert the segmentation to integers"
            )
        self._check_size(voxel_size or self.voxel_size)
        if voxel_size is None and self.voxel_size is None and fallback is not None:
            return replace(self, voxel_size=fallback)
        if voxel_size is None and self.voxel_size is None:
            raise ReadError(
                f"{self.path}: unknown voxel size ({self.why_unknown}); give --voxel-size X,Y,Z "
                "in micrometres"
            )
        if voxel_size is None:
            return self
        if self.voxel_size is not None and not np.allclose(voxel_size, self.voxel_size, rtol=1e-3):
            log.warning(
                "%s: the file has voxels of %s um, using %s um as requested",
                self.path, triple(self.voxel_size), triple(voxel_size),
            )  # fmt: skip
        return replace(self, voxel_size=voxel_size)

    def _whole(self) -> "Volume":
        """Return a volume of floating-point numbers as labels; parts that are none are errors."""
        parts, most = self.parts, EXACT[self.dtype.itemsize]
        dtype = np.dtype(np.int64 if self.dtype.itemsize == 8 else np.int32)

        def whole() -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
            for array, start in parts():
                # NaN is not equal to itself, and infinity is above any label.
                if (array != np.trunc(array)).any() or np.abs(array).max(initial=0) > most:
                    raise ReadError(
                        f"{self.path}: voxels are {self.dtype}, expected whole numbers (one label "
                        f"per nucleus, up to {most}); if it is the image, give it by --image"
                    )
                yield array.astype(dtype), start

        return replace(self, dtype=dtype, parts=whole)

    def _check_axes(self) -> None:
        """Raise unless every axis has one letter, x, y and z are long, and all others are not."""
        if len(self.axes) != len(self.stored) or any(self.axes.count(a) > 1 for a in "zyx"):
            raise ReadError(
                f"{self.path}: axes '{plain(self.axes)}' for {len(self.stored)} dimensions; "
                "expected one letter for each, and z, y, x once"
            )
        lengths = zip(self.axes, self.stored, strict=True)
        long = {axis: length for axis, length in lengths if axis not in "zyx" and length > 1}
        if long:
            raise ReadError(f"{self.path}: {self._too_many(long)}")
        missing = [axis for axis in "zyx" if axis not in self.axes]
        form = " x ".join(map(str, self.stored))
        if missing or min(self.shape) < 2:
            raise ReadError(f"{self.path}: a 2D image ({form}), expected a volume with z, y, x")
        if min(self.stored) < 1 or math.prod(self.stored) > MOST_VOXELS:
            raise ReadError(
                f"{self.path}: an array of {form} entries; is the file damaged? Export it again"
            )

    def _too_many(self, long: Mapping[str, int]) -> str:
        """Return what the axes besides z, y, x are, and how to choose an entry of each."""
        words = [f"axis {plain(axis)}{KNOWN_AXES.get(axis, '')} has {n} entries"
                 for axis, n in long.items()]  # fmt: skip
        found = f"{', '.join(words)}; expected a volume with axes z, y, x"
        if "s" in long:
            return f"{found}; a colour picture has no labels: save the numbers of the segments"
        if "z" not in self.axes:
            return f"{found}; if one of them is z, name it so in the file's metadata"
        if not all(axis.isascii() and axis.isalpha() for axis in long):
            return f"{found}; save one channel and one time point as a file"
        choice = ",".join(f"{axis}=0" for axis in long)
        return f"{found}; choose one, counted from 0: {Path(self.path).name}:{choice}"

    def _check_size(self, voxel_size: VoxelSize | None) -> None:
        """Raise if a block does not fit into memory, or a voxel has an absurd size."""
        z, y, x = self.shape
        # A block and its copy in the order z, y, x; pieces at the faces of all blocks.
        check_memory(self.path, 2 * self.part_bytes + 4 * (y * x + z * x + z * y), "a block")
        sides = voxel_size or (1.0, 1.0, 1.0)
        if not all(SMALLEST_SIDE <= side <= LARGEST_SIDE for side in sides):
            raise ReadError(
                f"{self.path}: voxels of {triple(sides)} um; expected sides from "
                f"{SMALLEST_SIDE:g} to {LARGEST_SIDE:g}; check the unit, or give --voxel-size"
            )


def triple(values: Sequence[float]) -> str:
    """Return x, y, z as text, such as 0.2 x 0.2 x 0.5."""
    return " x ".join(f"{value:.4g}" for value in values)


def plain(text: str) -> str:
    """Return text of a file for a message: one short line of printable characters."""
    return ascii(text)[1:-1][:60]


def broken(path: Path | str, error: BaseException) -> ReadError:
    """Return the error for a file that a library cannot read."""
    if isinstance(error, OSError) and error.strerror:
        return ReadError(f"cannot read {path}: {error.strerror}")
    words = " ".join(str(error).split()) or type(error).__name__
    return ReadError(
        f"cannot read {path}: damaged or cut off ({words[:160]}); copy or export it again"
    )


def in_micrometres(unit: str | None) -> float | None:
    r"""Return the length of a unit in micrometres, or None if it is no unit of length.

    >>> in_micrometres("nanometer"), in_micrometres("mm"), in_micrometres("\\u00B5m")
    (0.001, 1000.0, 1.0)
    """
    word = (unit or "").strip().strip('"').lower().replace("\\u00b5", "u")
    if word in {"micron", "microns"}:
        return 1.0
    if word in {"angstrom", "ångström", "å"}:
        return 1e-4
    word = re.sub(r"met(er|re)s?$", "m", word)
    for long, short in _PREFIXES.items():
        word = word.replace(long, short, 1) if word.startswith(long) else word
    if word.endswith("m") and word[:-1] in _METRES:
        return round(_METRES[word[:-1]] / 1e-6, 9)
    return None


class Sliceable(Protocol):
    """An array on disk."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Entries along each axis."""

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Type of the entries."""

    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[np.integer]:
        """Read a part."""


def grid_parts(
    array: Sliceable, chunks: Sequence[int] | None, present: NDArray[np.int64] | None = None
) -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
    """Yield an array on disk chunk by chunk, or slab by slab where it has no chunks.

    Parameters
    ----------
    array
        on disk.
    chunks
        shape of a chunk, or None.
    present
        (n, axes) indices of the chunks that are there; None if all are. Blocks without any are
        left out.
    """
    shape = array.shape
    steps = grid_steps(shape, array.dtype.itemsize, chunks)
    starts: Iterable[tuple[int, ...]] = product(
        *(range(0, length, step) for length, step in zip(shape, steps, strict=True))
    )
    if present is not None:
        first = present * np.asarray(chunks or steps)
        starts = map(tuple, (np.unique(first // steps, axis=0) * steps).tolist())
    for start in starts:
        part = tuple(slice(a, a + step) for a, step in zip(start, steps, strict=True))
        yield np.asarray(array[part]), start


def grid_steps(
    shape: Sequence[int], itemsize: int, chunks: Sequence[int] | None = None
) -> list[int]:
    """Return the shape of blocks: whole chunks, as many along the last axes as make a block."""
    steps = [max(1, int(step)) for step in chunks or (1,) * len(shape)]
    for axis in reversed(range(len(shape))):
        size = math.prod(steps) * itemsize
        steps[axis] *= max(1, min(-(-shape[axis] // steps[axis]), BLOCK_BYTES // max(1, size)))
    return steps


def slabs(shape: Sequence[int], itemsize: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield first entry and shape of parts that follow each other in a file in C order."""
    steps = grid_steps(shape, itemsize)
    for start in product(*(range(0, n, step) for n, step in zip(shape, steps, strict=True))):
        sides = zip(shape, start, steps, strict=True)
        yield start, tuple(min(step, n - first) for n, first, step in sides)


def slab_depth(shape: Sequence[int], itemsize: int) -> int:
    """Return how many entries of the first axis make a slab of about ``BLOCK_BYTES``."""
    return max(1, BLOCK_BYTES // max(1, math.prod(shape[1:]) * itemsize))


def warn_absent(path: Path | str, absent: int, total: int) -> None:
    """Warn that chunks are not in the file."""
    if absent:
        log.warning(
            "%s: %d of %d chunks are not there and count as background; normal where empty chunks "
            "are left out, else copy the file again",
            path, absent, total,
        )  # fmt: skip
