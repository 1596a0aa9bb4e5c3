"""Label volumes in HDF5, as written by ilastik and Fiji."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.volumes.volume import BROKEN, Volume, VoxelSize, broken, grid_parts

SUFFIXES = (".h5", ".hdf5", ".hdf")
"""Endings of HDF5 files."""

SIZE = "element_size_um"
"""Attribute with the voxel size z, y, x in micrometres."""


@contextmanager
def open_hdf5(path: Path, name: str | None = None) -> Iterator[Volume]:
    """Open the dataset ``name``, or the only dataset that can be a label volume."""
    import h5py

    try:
        file = h5py.File(path, "r")
    except BROKEN as error:
        raise broken(path, error) from error
    with file:
        try:
            dataset = _dataset(file, path) if name is None else file.get(name)
            if not isinstance(dataset, h5py.Dataset):
                raise ReadError(f"{path}: no dataset '{name}'; check its path in the file")
            volume = _volume(path, dataset)
        except BROKEN as error:
            raise broken(path, error) from error
        yield volume


def _dataset(file: Any, path: Path) -> Any:
    """Return the only dataset that can be a label volume; the error lists several."""
    import h5py

    datasets: list[Any] = []
    file.visititems(
        lambda _, node: datasets.append(node) if isinstance(node, h5py.Dataset) else None,
    )
    solid = [dataset for dataset in datasets if sum(n > 1 for n in dataset.shape or ()) >= 3]
    whole = [dataset for dataset in solid if dataset.dtype.kind in "iu"]
    # A single dataset that is no label volume is returned: the checks of a volume explain it.
    for some in (whole, solid, datasets):
        if len(some) == 1:
            return some[0]
        if some:
            names = ", ".join(str(dataset.name).lstrip("/") for dataset in some[:10])
            raise ReadError(
                f"{path}: several datasets ({names}); name one: {path}:{names.split(', ')[0]}"
            )
    raise ReadError(f"{path}: no dataset in the file, expected a label volume")


def _volume(path: Path, dataset: Any) -> Volume:
    size = None
    why = f"no attribute {SIZE}"
    if SIZE in dataset.attrs:
        sides = np.asarray(dataset.attrs[SIZE], dtype=np.float64).ravel()
        why = f"{SIZE} is {sides.tolist()}"
        if sides.shape == (3,) and (sides > 0).all() and np.isfinite(sides).all():
            z, y, x = sides.tolist()
            size = (x, y, z)
    return Volume(
        path=f"{path}:{dataset.name.lstrip('/')}",
        axes=_axes(dataset),
        stored=tuple(map(int, dataset.shape)),
        dtype=np.dtype(dataset.dtype),
        voxel_size=size,
        parts=lambda: grid_parts(dataset, dataset.chunks),
        why_unknown=why,
    )


def _axes(dataset: Any) -> str:
    """Return the names of the axes: those of ilastik, or z, y, x for axes longer than 1."""
    if "axistags" in dataset.attrs:
        tags = json.loads(dataset.attrs["axistags"])["axes"]
        if len(tags) == dataset.ndim:
            return "".join(tag["key"] for tag in tags)
    long = [index for index, length in enumerate(dataset.shape) if length > 1]
    if dataset.ndim <= 3 or len(long) != 3:
        return "tczyx"[-dataset.ndim :] if dataset.ndim <= 5 else "?" * dataset.ndim
    return "".join("zyx"[long.index(i)] if i in long else "c" for i in range(dataset.ndim))


def write_hdf5(labels: NDArray[np.integer], path: Path, voxel_size: VoxelSize) -> None:
    """Write the dataset ``labels``, chunked and compressed."""
    import h5py

    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("labels", data=labels, chunks=True, compression="gzip")
        dataset.attrs[SIZE] = np.array(voxel_size[::-1], dtype=np.float64)
