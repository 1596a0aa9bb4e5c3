"""An image that belongs to label volumes or points: channels, and blocks with any order of axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from eutely.errors import ReadError
from eutely.io.limits import check_memory
from eutely.io.volumes.volume import BROKEN, Volume, VoxelSize, broken, plain, triple

if TYPE_CHECKING:
    from eutely.intensities import ImageBlock

MOST_CHANNELS = 64
"""Channels of an image; more are no channels."""

SAME_SIZE = 0.01
"""Relative difference up to which two voxel sizes are the same."""


@dataclass(frozen=True)
class Image:
    """An image with channels in a file.

    Attributes
    ----------
    volume
        the file, with the axes ``z``, ``y``, ``x``, at most one longer axis ``c``, and others of
        length 1.
    channels
        name of each channel; "" for one to leave out.
    """

    volume: Volume
    channels: tuple[str, ...]

    def blocks(self) -> Iterator[ImageBlock]:
        """Yield all parts of the image, in the order of the file."""
        from eutely.intensities import ImageBlock

        axes = self.volume.axes
        channel = axes.find("c")
        keep = [axes.index(axis) for axis in "zyx"]
        try:
            for given, start in self.volume.parts():
                array = np.ascontiguousarray(given)
                steps = [stride // array.itemsize for stride in array.strides]
                z, y, x = keep
                has = channel >= 0
                yield ImageBlock(
                    array,
                    (start[channel] if has else 0, start[z], start[y], start[x]),
                    (
                        array.shape[channel] if has else 1,
                        array.shape[z], array.shape[y], array.shape[x],
                    ),
                    (steps[channel] if has else 0, steps[z], steps[y], steps[x]),
                )  # fmt: skip
        except BROKEN as error:
            raise broken(self.volume.path, error) from error


def image_of(
    volume: Volume, like: tuple[int, int, int] | None = None, names: Sequence[str] = ()
) -> Image:
    """Return an opened file as an image, after checks of what it declares.

    Parameters
    ----------
    volume
        as a reader opened it.
    like
        voxels of the labels along z, y, x, which the image must have; where the file does not
        state which axis is which, they tell. None for an image without labels.
    names
        of the channels, "" or "-" for those to leave out; () for the names in the file, or
        ``channel1``, ``channel2``, ...

    Raises
    ------
    ReadError
        if it is no such image: another shape, several time points, wrong number of names.
    """
    volume = replace(volume, axes=_axes(volume, like))
    form = " x ".join(map(str, volume.stored))
    for axis, length in zip(volume.axes, volume.stored, strict=True):
        if axis not in "czyx" and length > 1:
            raise ReadError(
                f"{volume.path}: axis {plain(axis)} has {length} entries, expected channels and z, "
                "y, x of one time point; save that one as a file"
            )
    if any(volume.axes.count(axis) != 1 for axis in "zyx") or volume.axes.count("c") > 1:
        raise ReadError(
            f"{volume.path}: axes '{plain(volume.axes)}' ({form}), expected z, y, x and channels"
        )
    if volume.dtype.kind not in "iufb":
        raise ReadError(f"{volume.path}: voxels are {volume.dtype}, expected numbers")
    if min(volume.stored) < 1 or math.prod(volume.stored) > 2**53:
        raise ReadError(f"{volume.path}: an array of {form} entries; is the file damaged?")
    if like is not None and volume.shape != like:
        shapes = [" x ".join(map(str, shape)) for shape in (volume.shape, like)]
        raise ReadError(
            f"{volume.path} has {shapes[0]} voxels (z, y, x), the labels {shapes[1]}; expected the "
            "image that was segmented, at the same resolution"
        )
    check_image_memory(volume)
    count = volume.stored[volume.axes.index("c")] if "c" in volume.axes else 1
    return Image(volume, _names(volume, count, tuple(names)))


def check_image_memory(volume: Volume) -> None:
    """Raise an error if a block, or an index of all rows along x, does not fit into memory."""
    z, y, _ = volume.shape
    check_memory(volume.path, 2 * volume.part_bytes, "a block")
    check_memory(volume.path, 32 * z * y, f"an index of {z} x {y} rows")


def _axes(volume: Volume, like: tuple[int, int, int] | None) -> str:
    """Return the axes of an image: samples are channels; axes without names go by the labels."""
    axes = volume.axes
    if "s" in axes and not (set(axes) & {"c"} and volume.stored[axes.index("c")] > 1):
        axes = axes.replace("c", "?").replace("s", "c")
    if volume.named or like is None:
        return axes
    long = [index for index, length in enumerate(volume.stored) if length > 1]
    fits = []
    for channel in [None] if len(long) == 3 else long:
        spatial = [index for index in long if index != channel]
        if tuple(volume.stored[index] for index in spatial) == like:
            letters = dict(zip(spatial, "zyx", strict=True)) | {channel: "c"}
            fits.append("".join(letters.get(i, "?") for i in range(len(volume.stored))))
    if len(fits) > 1:
        raise ReadError(
            f"{volume.path}: the file does not say which of its axes "
            f"({' x '.join(map(str, volume.stored))}) are channels, and the labels fit in "
            f"{len(fits)} ways; save it with named axes (OME-TIFF, OME-Zarr)"
        )
    return fits[0] if fits else axes


def _names(volume: Volume, count: int, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return one name per channel, all different."""
    if count > MOST_CHANNELS:
        raise ReadError(f"{volume.path}: {count} channels, expected at most {MOST_CHANNELS}")
    if names and len(names) != count:
        raise ReadError(
            f"--channels: {len(names)} names ({', '.join(names)}) for the {count} channels of "
            f"{volume.path}; give one for each, - for one to leave out"
        )
    given = names or (volume.channels if len(volume.channels) == count else ())
    words = ["_".join(plain(name).split()) for name in given]
    words = ["" if word == "-" else word for word in words]
    kept = [word for word in words if word]
    if len(set(kept)) < len(kept):
        if names:
            raise ReadError(f"--channels {','.join(names)}: a name occurs twice")
        words = []
    return tuple(words) or tuple(f"channel{number + 1}" for number in range(count))


def check_voxel_size(image: Volume, labels: str, size: VoxelSize) -> None:
    """Raise an error if an image states another voxel size than its labels (``size``)."""
    if image.voxel_size is not None and not np.allclose(image.voxel_size, size, rtol=SAME_SIZE):
        raise ReadError(
            f"{image.path} has voxels of {triple(image.voxel_size)} um, {labels} of "
            f"{triple(size)} um; give the right one: --voxel-size X,Y,Z"
        )
