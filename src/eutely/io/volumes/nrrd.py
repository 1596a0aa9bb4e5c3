"""Label volumes in NRRD, with the data in the same or in another file, raw or compressed."""

import bz2
import gzip
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.volumes.volume import (
    BROKEN,
    Volume,
    VoxelSize,
    broken,
    in_micrometres,
    slab_depth,
)  # fmt: skip

SUFFIXES = (".nrrd", ".nhdr")
"""Endings of NRRD files and headers."""

_TYPES = {
    "signed char": "i1", "int8": "i1", "int8_t": "i1",
    "uchar": "u1", "unsigned char": "u1", "uint8": "u1", "uint8_t": "u1",
    "short": "i2", "short int": "i2", "signed short": "i2", "signed short int": "i2",
    "int16": "i2", "int16_t": "i2",
    "ushort": "u2", "unsigned short": "u2", "unsigned short int": "u2",
    "uint16": "u2", "uint16_t": "u2",
    "int": "i4", "signed int": "i4", "int32": "i4", "int32_t": "i4",
    "uint": "u4", "unsigned int": "u4", "uint32": "u4", "uint32_t": "u4",
    "longlong": "i8", "long long": "i8", "long long int": "i8", "signed long long": "i8",
    "signed long long int": "i8", "int64": "i8", "int64_t": "i8",
    "ulonglong": "u8", "unsigned long long": "u8", "unsigned long long int": "u8",
    "uint64": "u8", "uint64_t": "u8",
    "float": "f4", "double": "f8",
}  # fmt: skip
"""NumPy types by their names in NRRD headers."""


@contextmanager
def open_nrrd(path: Path) -> Iterator[Volume]:
    """Open a NRRD file (``.nrrd``) or header (``.nhdr``)."""
    import nrrd

    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            header = cast("dict[str, Any]", nrrd.read_header(file))
            apart = header.get("data file", header.get("datafile"))
            if apart is not None:
                file = stack.enter_context((path.parent / str(apart)).open("rb"))
            volume = _volume(path, header, file)
        except (*BROKEN, nrrd.NRRDError) as error:
            raise broken(path, error) from error
        yield volume


def _volume(path: Path, header: dict[str, Any], file: IO[bytes]) -> Volume:
    sizes = [int(length) for length in header["sizes"]]
    order = "<" if header.get("endian", "little") == "little" else ">"
    dtype = np.dtype(order + _TYPES[str(header["type"])])
    start = file.tell()
    # In NRRD the first axis varies fastest, so that the axes of the array are those of the header
    # reversed: z, y, x for x, y, z.
    long = [index for index, length in enumerate(sizes) if length > 1]
    axes = ["c"] * len(sizes)
    if len(long) == 3 or len(sizes) == 3:
        for index, axis in zip(long if len(long) == 3 else range(3), "xyz", strict=True):
            axes[index] = axis
    elif len(sizes) <= 2:
        axes = list("xy")[: len(sizes)]
    size, why = _voxel_size(header, axes)
    return Volume(
        path=str(path),
        axes="".join(reversed(axes)),
        stored=tuple(reversed(sizes)),
        dtype=dtype,
        voxel_size=size,
        parts=lambda: _parts(header, file, start, tuple(reversed(sizes)), dtype),
        why_unknown=why,
    )


def _parts(
    header: dict[str, Any],
    file: IO[bytes],
    start: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
    """Yield slabs in the order of the file."""
    encoding = str(header.get("encoding", "raw")).lower()
    lines = int(header.get("line skip", header.get("lineskip", 0)))
    skip = int(header.get("byte skip", header.get("byteskip", 0)))
    file.seek(start)
    for _ in range(lines):
        file.readline()
    stream: IO[bytes]
    if encoding == "raw":
        stream = file
        if skip < 0:  # the data ends the file
            count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            file.seek(-count, 2)
            skip = 0
    elif encoding in {"gzip", "gz"}:
        stream = cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    elif encoding in {"bzip2", "bz2"}:
        stream = cast("IO[bytes]", bz2.BZ2File(file))
    else:
        raise ReadError(f"{file.name}: encoding {encoding}; expected raw, gzip or bzip2")
    stream.read(max(0, skip))
    step = slab_depth(shape, dtype.itemsize)
    entries = int(np.prod(shape[1:], dtype=np.int64))
    for first in range(0, shape[0], step):
        deep = min(step, shape[0] - first)
        raw = stream.read(deep * entries * dtype.itemsize)
        array = np.frombuffer(raw, dtype).reshape(deep, *shape[1:])
        yield array, (first, *(0 for _ in shape[1:]))


def _voxel_size(header: dict[str, Any], axes: list[str]) -> tuple[VoxelSize | None, str]:
    """Return x, y, z in micrometres, or None and the reason."""
    keep = [axes.index(axis) for axis in "xyz" if axis in axes]
    if len(keep) < 3:
        return None, "no three axes"
    if header.get("space directions") is not None:
        rows = [header["space directions"][index] for index in keep]
        lengths = [0.0 if row is None else float(np.linalg.norm(row)) for row in rows]
        units = list(header.get("space units", []))
    elif header.get("spacings") is not None:
        lengths = [float(header["spacings"][index]) for index in keep]
        units = [header["units"][index] for index in keep] if "units" in header else []
        units = units or list(header.get("space units", []))
    else:
        return None, "neither space directions nor spacings"
    scales = [in_micrometres(str(unit)) for unit in units]
    if len(scales) != 3 or None in scales:
        return None, "NRRD header without units of length"
    x, y, z = (length * (scale or 0.0) for length, scale in zip(lengths, scales, strict=True))
    if not (np.isfinite([x, y, z]).all() and min(x, y, z) > 0):
        return None, f"header says {x} x {y} x {z}"
    return (x, y, z), ""


def write_nrrd(labels: NDArray[np.integer], path: Path, voxel_size: VoxelSize) -> None:
    """Write a gzip-compressed NRRD with space directions in micrometres."""
    import nrrd

    header = {
        "space dimension": 3,
        "space directions": np.diag(voxel_size),
        "space units": ["microns"] * 3,
        "kinds": ["domain"] * 3,
        "encoding": "gzip",
    }
    nrrd.write(str(path), labels, header, index_order="C")
