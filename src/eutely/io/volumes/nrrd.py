"""Label volumes in NRRD, with the data in the same or in another file, raw or compressed."""

import bz2
import math
import warnings
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.limits import (
    DEFLATE,
    PIECE,
    Unpacked,
    beside,
    check_regular,
    check_unpacked,
)  # fmt: skip
from eutely.io.volumes.volume import (
    BROKEN,
    Volume,
    VoxelSize,
    broken,
    grid_steps,
    in_micrometres,
    plain,
    slabs,
)  # fmt: skip
from eutely.io.whole import new_file

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


_ENCODINGS = ("raw", "gzip", "gz", "bzip2", "bz2")
"""Encodings of the data."""

_ORDERS = {"little": "<", "big": ">"}
"""Orders of bytes by their names in NRRD headers."""

_HEADER = 2**20
"""Largest number of bytes of a header."""

_SKIP = 2**31
"""Largest number of bytes or lines between the header and the data."""


@contextmanager
def open_nrrd(path: Path) -> Iterator[Volume]:
    """Open a NRRD file (``.nrrd``) or header (``.nhdr``)."""
    import nrrd

    check_regular(path)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            header, start = _header(file)
            apart = header.get("data file", header.get("datafile"))
            if apart is not None:
                file = stack.enter_context(beside(path, str(apart)).open("rb"))
                start = 0
            volume = _volume(path, header, file, start)
        except (*BROKEN, nrrd.NRRDError) as error:
            raise broken(path, error) from error
        yield volume


def _header(file: IO[bytes]) -> tuple[dict[str, Any], int]:
    """Return the fields of a header, and where it ends."""
    import nrrd

    lines: list[bytes] = []
    # Line by line: what follows the header may be gigabytes without any end of a line.
    while (line := file.readline(_HEADER - file.tell())).strip():
        lines.append(line)
        if file.tell() >= _HEADER:
            raise ValueError(f"no blank line ends the header within {_HEADER} bytes")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a field given twice, for example
        try:
            header = nrrd.read_header(line.decode("ascii", "ignore") for line in lines)
        except Warning as warning:
            raise ValueError(str(warning)) from warning
    return cast("dict[str, Any]", header), file.tell()


def _volume(path: Path, header: dict[str, Any], file: IO[bytes], start: int) -> Volume:
    sizes = [int(length) for length in header["sizes"]]
    if len(sizes) != int(header["dimension"]) or min(sizes) < 1:
        raise ValueError(f"sizes {sizes} for dimension {header['dimension']}")
    dtype = np.dtype(_TYPES[str(header["type"])])
    encoding = str(header.get("encoding", "raw")).lower()
    if encoding not in _ENCODINGS:
        raise ReadError(f"{path}: encoding {plain(encoding)}; expected raw, gzip or bzip2")
    if dtype.itemsize > 1:
        endian = str(header.get("endian", "")).lower()
        if endian not in _ORDERS:
            raise ReadError(
                f"{path}: endian '{plain(endian)}' in the header; expected little or big"
            )
        dtype = np.dtype(_ORDERS[endian] + dtype.str[1:])
    # In NRRD the first axis varies fastest, so that the axes of the array are those of the header
    # reversed: z, y, x for x, y, z.
    long = [index for index, length in enumerate(sizes) if length > 1]
    axes = ["c"] * len(sizes)
    kinds = [str(kind).lower() for kind in header.get("kinds", [])]
    spatial = [index for index, kind in enumerate(kinds) if kind in {"domain", "space"}]
    if len(kinds) != len(sizes) or len(spatial) != 3:
        spatial = []
    if len(long) == 3 or len(sizes) == 3:
        for index, axis in zip(long if len(long) == 3 else range(3), "xyz", strict=True):
            axes[index] = axis
    elif len(long) == 4:  # with channels: as the header says, or the slowest axis
        for index, axis in zip(spatial or range(3), "xyz", strict=True):
            axes[index] = axis
    elif len(sizes) <= 2:
        axes = list("xy")[: len(sizes)]
    size, why = _voxel_size(header, axes)
    shape = tuple(reversed(sizes))
    return Volume(
        path=str(path),
        axes="".join(reversed(axes)),
        stored=shape,
        dtype=dtype,
        voxel_size=size,
        parts=lambda: _parts(_stream(path, header, file, start, shape, dtype), shape, dtype),
        why_unknown=why,
        part_bytes=math.prod(grid_steps(shape, dtype.itemsize)) * dtype.itemsize,
        named=len(spatial) == 3,
    )


def _stream(
    path: Path,
    header: dict[str, Any],
    file: IO[bytes],
    start: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> "IO[bytes] | Unpacked":
    """Return the stream of the voxels, at the first, after checks of what the header declares."""
    encoding = str(header.get("encoding", "raw")).lower()
    lines = int(header.get("line skip", header.get("lineskip", 0)))
    skip = int(header.get("byte skip", header.get("byteskip", 0)))
    if not (0 <= lines <= _SKIP and -1 <= skip <= _SKIP):
        raise ValueError(f"line skip {lines}, byte skip {skip}")
    need = math.prod(shape) * dtype.itemsize
    end = file.seek(0, 2)
    file.seek(start)
    for _ in range(lines):
        if not file.readline(_HEADER):
            raise EOFError(f"fewer than {lines} lines to skip")
    if encoding == "raw":
        if skip < 0:  # the data end the file
            skip = end - file.tell() - need
        found = end - file.tell() - skip
        if skip < 0 or found != need:
            raise ValueError(f"{max(0, found)} bytes of data, the header declares {need}")
        file.seek(skip, 1)
        return file
    if encoding in {"gzip", "gz"}:
        if need > DEFLATE * end:
            raise ValueError(f"{end} bytes of gzip cannot hold {need}")
        stream = Unpacked(file, lambda: zlib.decompressobj(31))
    else:
        check_unpacked(path, need, end)
        stream = Unpacked(file, bz2.BZ2Decompressor)
    while skip > 0:
        skip -= len(stream.read(min(skip, PIECE))) or skip
    return stream


def _parts(
    stream: "IO[bytes] | Unpacked", shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
    """Yield slabs in the order of the file."""
    for start, form in slabs(shape, dtype.itemsize):
        raw = stream.read(math.prod(form) * dtype.itemsize)
        yield np.frombuffer(raw, dtype).reshape(form), start
    if stream.read(1):  # this also verifies the checksum at the end
        raise ValueError("more data than the header declares")


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
    if len(lengths) != 3:
        return None, "NRRD header without three lengths"
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
    with new_file(path) as file:
        nrrd.write(file, labels, header, index_order="C")
