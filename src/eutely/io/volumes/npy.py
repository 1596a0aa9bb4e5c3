"""Volumes in NumPy's ``.npy``: an array z, y, x (or with channels) without a voxel size."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.limits import check_regular
from eutely.io.volumes.volume import BROKEN, Volume, broken, grid_steps, slabs

SUFFIXES = (".npy",)
"""Endings of NumPy files."""

AXES = {2: "yx", 3: "zyx", 4: "czyx"}
"""Usual order of axes, by their number."""


@contextmanager
def open_npy(path: Path) -> Iterator[Volume]:
    """Open an array; Fortran order is the same array with its axes the other way round."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            shape, fortran, dtype = _header(file)
            begin = file.tell()
            if dtype.hasobject or dtype.fields:
                raise ReadError(f"{path}: an array of {dtype}, expected numbers; save it as such")
            need, size = math.prod(shape) * dtype.itemsize, path.stat().st_size - begin
            if need != size:
                raise EOFError(f"{need} bytes of voxels, the file has {size}")
            order = -1 if fortran else 1
            stored = tuple(shape)[::order]
            yield Volume(
                path=str(path),
                axes=AXES.get(len(shape), "?" * len(shape))[::order],
                stored=stored,
                dtype=dtype.newbyteorder("="),
                voxel_size=None,
                parts=partial(_parts, file, begin, stored, dtype),
                why_unknown=".npy files have none",
                part_bytes=math.prod(grid_steps(stored, dtype.itemsize)) * dtype.itemsize,
                named=False,
            )
    except BROKEN as error:
        raise broken(path, error) from error


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether in Fortran order, and dtype."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        shape, fortran, dtype = read(file)
    except TokenError as error:
        raise ValueError(f"a header that is none ({error.args[0]})") from error
    return tuple(int(n) for n in shape), bool(fortran), np.dtype(dtype)


def _parts(
    file: IO[bytes], begin: int, stored: tuple[int, ...], dtype: np.dtype[Any]
) -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
    """Yield slabs, in the order of the file."""
    file.seek(begin)
    for start, form in slabs(stored, dtype.itemsize):
        slab = np.empty(form, dtype)
        if file.readinto(slab.reshape(-1).view(np.uint8)) != slab.nbytes:  # type: ignore[attr-defined]
            raise EOFError(f"the file ends before entry {start} of {stored}")
        yield slab, start
