"""Images of microscopes (CZI, ND2, LIF) by bioio, plane by plane."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError, install
from eutely.io.limits import check_regular
from eutely.io.volumes.volume import BROKEN, Volume, VoxelSize, broken

SUFFIXES = (".czi", ".nd2", ".lif")
"""Endings of files of microscopes."""

CZI = "pip install bioio-czi (under the GPL)"
"""How to install what reads CZI: plugins under the GPL are no part of the extra."""

AXES = "TCZYX"
"""Order in which bioio gives any image."""


@contextmanager
def open_bioio(path: Path) -> Iterator[Volume]:
    """Open the only scene of a file of a microscope."""
    check_regular(path)
    try:
        from bioio import BioImage
    except ImportError as error:
        raise ReadError(f"{path}: files of microscopes need bioio; {install('images')}") from error
    # bioio logs what each plugin says, and raises an error at the end.
    logger = logging.getLogger("bioio")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        image = BioImage(path)
    except Exception as error:  # plugins raise errors of their own kinds
        advice = CZI if path.suffix.lower() == ".czi" else install("images")
        raise ReadError(
            f"cannot read {path}: no plugin of bioio reads it; is it damaged? If a plugin is "
            f"missing: {advice}"
        ) from error
    finally:
        logger.setLevel(level)
    yield volume_of(path, image)


def volume_of(path: Path, image: Any) -> Volume:
    """Return an image of bioio as a volume that is read plane by plane."""
    try:
        if len(image.scenes) > 1:
            raise ReadError(
                f"{path}: {len(image.scenes)} scenes ({', '.join(image.scenes[:5])}); save one of "
                "them as OME-TIFF"
            )
        array = image.get_image_dask_data(AXES)
        sides = image.physical_pixel_sizes
        size = None if None in (sides.X, sides.Y, sides.Z) else (sides.X, sides.Y, sides.Z)
        names = tuple(map(str, image.channel_names or ()))
    except BROKEN as error:
        raise broken(path, error) from error
    shape = tuple(map(int, array.shape))
    return Volume(
        path=str(path),
        axes=AXES.lower(),
        stored=shape,
        dtype=np.dtype(array.dtype),
        voxel_size=_positive(size),
        parts=partial(_planes, array),
        part_bytes=shape[3] * shape[4] * array.dtype.itemsize,
        channels=names,
    )


def _positive(size: tuple[float, ...] | None) -> VoxelSize | None:
    if size is None or not min(size) > 0:
        return None
    x, y, z = map(float, size)
    return x, y, z


def _planes(array: Any) -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
    """Yield one plane after the other, channel by channel."""
    for t, c, z in np.ndindex(*array.shape[:3]):
        plane = array[t : t + 1, c : c + 1, z : z + 1].compute(scheduler="synchronous")
        yield np.asarray(plane), (t, c, z, 0, 0)
