"""Means of cells that others estimated: a table, or a statistical atlas of NeuroPAL_ID."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.limits import Unpacked, check_memory, check_regular
from eutely.io.tables import read_table
from eutely.io.volumes.volume import BROKEN
from eutely.specimen import MICROMETRE, Specimen

COLOURS = ("R", "G", "B", "W")
"""Features of a statistical atlas of NeuroPAL_ID, after x, y, z."""

SPREADS = ("sx", "sy", "sz")
"""Columns of a table with the standard deviations along x, y, z."""

MATLAB = 10
"""Bytes of memory that an unpacked byte of a MATLAB file takes, once cells and structures are
objects and numbers are of 8 bytes."""

MATRIX, COMPRESSED, NUMBERS = 14, 15, {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18}
"""Kinds of elements of a MATLAB file: arrays, compressed ones, and those that hold numbers."""

HEAD = [6, 5, 1]
"""Kinds of the first elements of an array: what it is, its shape and its name."""

STRUCTURE, NESTED, PLAIN = 2, {1: [], 2: [5, 1]}, {4, *range(6, 16)}
"""Classes of arrays: structures; those of arrays, cells too, with the kinds of their next elements;
and those of characters and numbers."""

DEEPEST = 30
"""Levels of cells in cells at most."""


@dataclass(frozen=True, eq=False)
class Means:
    """Cells by their means.

    Attributes
    ----------
    specimen
        the cells as if they were the nuclei of a specimen: means, names, features.
    covariances
        (m, 3, 3) of their places, or None if not known.
    about
        words on where they come from.
    """

    specimen: Specimen
    covariances: NDArray[np.float64] | None = None
    about: Mapping[str, str] = field(default_factory=dict)


def read_means(path: Path, part: str = "head") -> Means:
    """Read means of cells.

    Parameters
    ----------
    path
        a table with the columns name, x, y, z, optionally ``sx``, ``sy``, ``sz`` (standard
        deviations), radii and features; or ``.mat`` of NeuroPAL_ID.
    part
        of the body, in a ``.mat`` that has several.
    """
    if path.suffix.lower() == ".mat":
        return _neuropal(path, part)
    [specimen, *others] = read_table(path, path.stem)
    if others or not any(specimen.names or ()):
        raise ReadError(f"{path}: expected one row per cell, with the columns name, x, y, z")
    spreads = [specimen.features.get(key) for key in SPREADS]
    covariances = None
    if all(spread is not None for spread in spreads):
        table = np.stack([spread for spread in spreads if spread is not None], axis=1)
        if not (table > 0).all():
            raise ReadError(f"{path}: sx, sy, sz must be positive for every cell; correct them")
        covariances = np.array([np.diag(row**2) for row in table])
    features = {key: values for key, values in specimen.features.items() if key not in SPREADS}
    bare = Specimen(
        specimen.name, specimen.ids, specimen.centroids, specimen.radii, None, features,
        specimen.names, specimen.unit,
    )  # fmt: skip
    return Means(bare, covariances)


def _neuropal(path: Path, part: str) -> Means:
    """Read ``atlas.<part>``: names ``N``, means ``model.mu`` and covariances ``model.sigma``."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    check_regular(path)
    try:
        _check_matlab(path)
        content: Any = loadmat(path, simplify_cells=True, variable_names=["atlas"])["atlas"]
        parts = [key for key, value in content.items() if isinstance(value, dict) and "N" in value]
        if part not in parts:
            raise ReadError(
                f"{path}: no part '{part}'; give --part one of: {', '.join(parts) or 'none'}"
            )
        names = [str(name) for name in np.atleast_1d(content[part]["N"])]
        means = np.atleast_2d(np.asarray(content[part]["model"]["mu"], dtype=np.float64))
        sigma = np.asarray(content[part]["model"]["sigma"], dtype=np.float64)
        if means.shape[0] != len(names) or means.shape[1] < 3 or sigma.shape[2:] != (len(names),):
            raise ValueError(f"{len(names)} names, means {means.shape}, covariances {sigma.shape}")
    except NotImplementedError as error:
        raise ReadError(f"{path}: MATLAB 7.3; save it with -v7") from error
    except (*BROKEN, MatReadError, NameError) as error:  # SciPy's own, of a damaged array
        raise ReadError(
            f"{path}: not a statistical atlas of NeuroPAL_ID ({error}); give its file atlas_*.mat, "
            "or a table with the columns name, x, y, z"
        ) from error
    features = {key: means[:, 3 + n] for n, key in enumerate(COLOURS[: means.shape[1] - 3])}
    specimen = Specimen.from_arrays(
        path.stem, means[:, :3], names=names, features=features, unit=MICROMETRE
    )
    about = {"organism": "C. elegans", "body part": part, "imaging": "NeuroPAL"}
    return Means(specimen, np.moveaxis(sigma[:3, :3], 2, 0), about)


def _check_matlab(path: Path) -> None:
    """Raise if a MATLAB file (5 to 7.2) unpacks to too much, or declares more than there is."""
    with path.open("rb") as file:
        head = file.read(128)
        order = {b"IM": "<", b"MI": ">"}.get(head[126:])
        if order is None:
            raise ValueError("no file of MATLAB 5 to 7.2")
        if head[124:126] in (b"\x00\x02", b"\x02\x00"):
            raise NotImplementedError
        total = 0

        def check(count: int) -> None:
            check_memory(path, MATLAB * (total + count), "what the file unpacks to")

        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            check(0 if kind == COMPRESSED else size)
            data = file.read(size)
            if len(data) < size:
                raise EOFError("the file is cut off")
            if kind == COMPRESSED:
                data = b"".join(Unpacked(BytesIO(data), zlib.decompressobj, check).pieces())
            else:
                data = tag + data
            total += len(data)
            for what, begin, length in _elements(data, order, 0, len(data)):
                if what == MATRIX:
                    _check_arrays(data, order, (begin, length))


def _elements(data: bytes, order: str, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield kind, first byte and size of the elements between two bytes."""
    while at + 8 <= end:
        kind, size = struct.unpack_from(f"{order}II", data, at)
        begin, at = at + 8, at + 8 + (size + -size % 8)
        if kind >> 16:  # a small element: kind, size and up to 4 bytes
            kind, size, begin, at = kind & 0xFFFF, kind >> 16, begin - 4, begin
        if begin + size > end:
            raise ValueError("an element goes beyond the end")
        yield kind, begin, size


def _check_arrays(data: bytes, order: str, whole: tuple[int, int], level: int = 0) -> None:
    """Raise a ValueError if SciPy could not read an array, or one in its cells, safely.

    It crashes where numbers are of no kind, and takes an array to be as long as it declares.
    """
    begin, size = whole
    parts = list(_elements(data, order, begin, begin + size))
    if [part[0] for part in parts[:3]] != HEAD or parts[0][2] != 8 or level > DEEPEST:
        raise ValueError("an array without a head, or cells in cells without end")
    what = struct.unpack_from(f"{order}I", data, parts[0][1])[0] & 0xFF
    _, at, length = parts[1]
    sides = struct.unpack_from(f"{order}{length // 4}i", data, at)
    _, name, letters = parts[2]
    if level == 0 and data[name : name + letters] != b"atlas":
        return  # it is not read
    count = math.prod(sides)
    if len(sides) < 2 or min(sides) < 0 or count > size:
        raise ValueError(f"an array of {sides} entries in {size} bytes")
    rest = parts[3:]
    if what in NESTED:
        head, rest = rest[: len(NESTED[what])], rest[len(NESTED[what]) :]
        if [part[0] for part in head] != NESTED[what]:
            raise ValueError("cells or fields without a head")
        if what == STRUCTURE:
            [letters] = struct.unpack_from(f"{order}I", data, head[0][1])
            count *= head[1][2] // max(1, letters)
        if len(rest) != count or any(part[0] != MATRIX for part in rest):
            raise ValueError(f"{len(rest)} cells or fields, expected {count}")
        for part in rest:
            if part[2]:
                _check_arrays(data, order, part[1:], level + 1)
    elif what not in PLAIN or not all(part[0] in NUMBERS for part in rest) or not rest:
        raise ValueError("an array of no kind of numbers, or of objects")
