"""Label volumes, opened without reading them: one module per format behind `open_volume`."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError, WriteError
from eutely.io.volumes import hdf5, npy, nrrd, tiff, zarr
from eutely.io.volumes.choice import chosen, split_choice
from eutely.io.volumes.volume import Volume, VoxelSize
from eutely.io.whole import whole

__all__ = ["SUFFIXES", "Volume", "is_zarr", "open_volume", "opened", "write_volume"]

is_zarr = zarr.is_zarr

SUFFIXES = (*tiff.SUFFIXES, *zarr.SUFFIXES, *hdf5.SUFFIXES, *nrrd.SUFFIXES, *npy.SUFFIXES)
"""Endings of the names of label volumes, longer endings first."""


@contextmanager
def open_volume(
    path: Path,
    voxel_size: VoxelSize | None = None,
    part: str | None = None,
    fallback: VoxelSize | None = None,
) -> Iterator[Volume]:
    """Open a label volume for reading block by block; see `Volume`.

    Parameters
    ----------
    path
        TIFF, OME-Zarr, HDF5, NRRD or ``.npy``.
    voxel_size
        x, y, z in micrometres; takes precedence over the file.
    part
        path inside an HDF5 file that holds several volumes; then, or alone, the channel or time
        point of a file that has several, as in ``labels:t=3,c=0``.
    fallback
        voxel size of a file that does not specify it.

    Raises
    ------
    ReadError
        if the file is damaged, is no three-dimensional array of whole numbers (of any
        type), or if neither the
        file nor ``voxel_size`` gives the size of a voxel.
    """
    with opened(path, part) as volume:
        yield volume.checked(voxel_size, fallback)


@contextmanager
def opened(path: Path, part: str | None = None, image: bool = False) -> Iterator[Volume]:
    """Open a file with the reader of its format; nothing is checked yet.

    Parameters
    ----------
    path, part
        see `open_volume`.
    image
        open an image, not the labels beside it.
    """
    place, choice = split_choice(part)
    if place is not None and not path.name.lower().endswith(hdf5.SUFFIXES):
        raise ReadError(
            f"{path}: {place} is no channel or time point; expected {path}:t=0 or {path}:c=0"
        )
    with _reader(path, place, image) as volume:
        yield chosen(volume, choice)


def _reader(path: Path, dataset: str | None, image: bool) -> AbstractContextManager[Volume]:
    """Return the reader of a format."""
    if is_zarr(path):
        return zarr.open_zarr(path, image)
    if path.name.lower().endswith(hdf5.SUFFIXES):
        return hdf5.open_hdf5(path, dataset, image)
    if path.name.lower().endswith(nrrd.SUFFIXES):
        return nrrd.open_nrrd(path)
    if path.name.lower().endswith(npy.SUFFIXES):
        return npy.open_npy(path)
    return tiff.open_tiff(path)


_Writer = Callable[[NDArray[np.integer], Path, VoxelSize], None]


def write_volume(
    labels: NDArray[np.integer], path: str | Path, voxel_size: VoxelSize | float
) -> None:
    """Write a label volume, completely or not at all, in the format of the name's suffix.

    Parameters
    ----------
    labels
        (depth, height, width), axes z, y, x; whole numbers, 0 for the background.
    path
        ``.ome.tif`` / ``.tif``, ``.ome.zarr`` / ``.zarr``, ``.h5`` or ``.nrrd``.
    voxel_size
        x, y, z in micrometres, or one number.
    """
    path = Path(path)
    array = np.asarray(labels)
    if array.ndim != 3 or array.dtype.kind not in "iu":
        raise WriteError(
            f"cannot write {path}: labels are {array.dtype} of shape {array.shape}, "
            "expected whole numbers (z, y, x)"
        )
    x, y, z = np.broadcast_to(np.asarray(voxel_size, dtype=np.float64), (3,)).tolist()
    writers: dict[tuple[str, ...], _Writer] = {
        zarr.SUFFIXES: zarr.write_zarr,
        tiff.SUFFIXES: tiff.write_tiff,
        hdf5.SUFFIXES: hdf5.write_hdf5,
        nrrd.SUFFIXES: nrrd.write_nrrd,
    }
    for suffixes, write in writers.items():
        if path.name.lower().endswith(suffixes):
            with whole(path) as aside:
                write(array, aside, (x, y, z))
            return
    raise WriteError(f"cannot write {path}: expected a name that ends in .tif, .zarr, .h5 or .nrrd")
