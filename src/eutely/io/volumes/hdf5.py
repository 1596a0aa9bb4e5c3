"""Label volumes in HDF5, as written by ilastik and Fiji."""

import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.hdf5_gate import check_dataset, check_heaps, is_text, linked, stored_chunks
from eutely.io.limits import check_regular
from eutely.io.volumes.volume import (
    BROKEN,
    Volume,
    VoxelSize,
    broken,
    grid_parts,
    grid_steps,
    plain,
    warn_absent,
)  # fmt: skip
from eutely.io.whole import new_bytes

SUFFIXES = (".h5", ".hdf5", ".hdf")
"""Endings of HDF5 files."""

SIZE = "element_size_um"
"""Attribute with the voxel size z, y, x in micrometres."""


@contextmanager
def open_hdf5(path: Path, name: str | None = None, image: bool = False) -> Iterator[Volume]:
    """Open the dataset ``name``, or the only dataset that can be a label volume (or image)."""
    import h5py

    check_regular(path)
    try:
        file = h5py.File(path, "r")
    except BROKEN as error:
        raise broken(path, error) from error
    with file:
        try:
            dataset = _dataset(file, path, image) if name is None else linked(file, name)
            if not isinstance(dataset, h5py.Dataset):
                raise ReadError(f"{path}: no dataset '{name}'; check its path in the file")
            volume = volume_of(path, dataset)
        except BROKEN as error:
            raise broken(path, error) from error
        yield volume


def _dataset(file: Any, path: Path, image: bool) -> Any:
    """Return the only dataset that can be a label volume or image; the error lists several."""
    import h5py

    datasets: list[Any] = []
    file.visititems(
        lambda _, node: datasets.append(node) if isinstance(node, h5py.Dataset) else None,
    )
    solid = [dataset for dataset in datasets if sum(n > 1 for n in dataset.shape or ()) >= 3]
    whole = [dataset for dataset in solid if dataset.dtype.kind in ("iuf" if image else "iu")]
    # A single dataset that is no label volume is returned: the checks of a volume explain it.
    for some in (whole, solid, datasets):
        if len(some) == 1:
            return some[0]
        if some:
            names = ", ".join(plain(dataset.name.lstrip("/")) for dataset in some[:10])
            raise ReadError(
                f"{path}: several datasets ({names}); name one: {path}:{names.split(', ')[0]}"
            )
    raise ReadError(f"{path}: no dataset in the file, expected a volume")


def volume_of(path: Path, dataset: Any) -> Volume:
    """Return a dataset as a volume, after checks of where its data lie."""
    check_dataset(path, dataset)
    texts = (SIZE, "axistags")
    if any(key in dataset.attrs and is_text(dataset, key) for key in texts):
        begin = dataset.id.get_offset() or 0  # of voxels that are not in chunks
        check_heaps(path, (begin, begin + dataset.nbytes if begin else 0))
    size = None
    why = f"no attribute {SIZE}"
    if SIZE in dataset.attrs:
        sides = np.asarray(dataset.attrs[SIZE], dtype=np.float64).ravel()
        why = f"{SIZE} is {sides.tolist()}"
        if sides.shape == (3,) and (sides > 0).all() and np.isfinite(sides).all():
            z, y, x = sides.tolist()
            size = (x, y, z)
    steps = grid_steps(dataset.shape, dataset.dtype.itemsize, dataset.chunks)
    return Volume(
        path=f"{path}:{plain(dataset.name.lstrip('/'))}",
        axes=_axes(dataset),
        stored=tuple(map(int, dataset.shape)),
        dtype=np.dtype(dataset.dtype),
        voxel_size=size,
        parts=partial(_parts, path, dataset),
        why_unknown=why,
        part_bytes=math.prod(steps) * dataset.dtype.itemsize,
        named="axistags" in dataset.attrs,
    )


def _parts(path: Path, dataset: Any) -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
    """Yield the blocks in which there are chunks, after checks of these."""
    if dataset.chunks is None:
        if dataset.id.get_storage_size() < dataset.nbytes:
            raise EOFError(f"{dataset.id.get_storage_size()} of {dataset.nbytes} bytes are stored")
        return grid_parts(dataset, None)
    stored, total = stored_chunks(path, dataset)
    absent = total - len(stored)
    if not absent:
        return _found(path, dataset, stored, grid_parts(dataset, dataset.chunks))
    if dataset.fillvalue:
        raise ReadError(f"{path}: missing chunks have the value {dataset.fillvalue}, not 0")
    warn_absent(path, absent, total)
    offsets = np.array([chunk.chunk_offset for chunk in stored], dtype=np.int64)
    present = offsets.reshape(-1, dataset.ndim) // dataset.chunks
    return _found(path, dataset, stored, grid_parts(dataset, dataset.chunks, present))


def _found(
    path: Path,
    dataset: Any,
    stored: Sequence[Any],
    parts: Iterable[tuple[NDArray[np.integer], tuple[int, ...]]],
) -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
    """Yield blocks; raise a ReadError where a chunk that is stored was not found.

    HDF5 reads background there, without a word, if the index of the chunks is damaged.
    """
    offsets = {tuple(map(int, chunk.chunk_offset)) for chunk in stored}
    for block, start in parts:
        ranges = (range(0, n, step) for n, step in zip(block.shape, dataset.chunks, strict=True))
        for corner in product(*ranges):
            offset = tuple(a + b for a, b in zip(start, corner, strict=True))
            inside = tuple(slice(a, a + n) for a, n in zip(corner, dataset.chunks, strict=True))
            if offset not in offsets or (block[inside] != dataset.fillvalue).any():
                continue
            try:
                dataset.id.read_direct_chunk(offset)
            except (RuntimeError, OSError) as error:
                raise ReadError(
                    f"cannot read {path}: damaged (chunk {offset} is not found); copy it again"
                ) from error
        yield block, start


def _axes(dataset: Any) -> str:
    """Return the names of the axes: those of ilastik, or z, y, x for axes longer than 1."""
    if "axistags" in dataset.attrs:
        tags = json.loads(dataset.attrs["axistags"])["axes"]
        if len(tags) == dataset.ndim:
            axes = "".join(str(tag["key"])[:1] for tag in tags)
            if len(axes) != dataset.ndim:
                raise ReadError(f"axistags '{axes}' for {dataset.ndim} dimensions")
            return axes
    long = [index for index, length in enumerate(dataset.shape) if length > 1]
    if dataset.ndim <= 3 or len(long) != 3:
        return "tczyx"[-dataset.ndim :] if dataset.ndim <= 5 else "?" * dataset.ndim
    return "".join("zyx"[long.index(i)] if i in long else "c" for i in range(dataset.ndim))


def write_hdf5(labels: NDArray[np.integer], path: Path, voxel_size: VoxelSize) -> None:
    """Write the dataset ``labels``, chunked, compressed and with checksums."""
    import h5py

    # In memory first: HDF5 crashes where the disk is full.
    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        dataset = file.create_dataset(
            "labels", data=labels, chunks=True, compression="gzip", fletcher32=True
        )
        dataset.attrs[SIZE] = np.array(voxel_size[::-1], dtype=np.float64)
    new_bytes(path, memory.getbuffer())
