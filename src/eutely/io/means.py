"""Means of cells that others estimated: a table, or a statistical atlas of NeuroPAL_ID."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping
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

MATRIX, COMPRESSED, SPARSE, DEEPEST = 14, 15, 5, 30
"""Kinds of elements of a MATLAB file, the class of sparse arrays, and the most levels of cells."""


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
            _check_arrays(data, order, 0, len(data))


def _check_arrays(data: bytes, order: str, at: int, end: int, level: int = 0) -> None:
    """Raise a ValueError if an array, or one in its cells, has more entries than bytes."""
    if level > DEEPEST:
        raise ValueError("cells in cells in cells")
    while at + 8 <= end:
        kind, size = struct.unpack_from(f"{order}II", data, at)
        begin, at = at + 8, at + 8 + (size + -size % 8)
        if kind >> 16:  # a small element: kind, size and up to 4 bytes
            at = begin
            continue
        if begin + size > end:
            raise ValueError("an element goes beyond the end")
        if kind == MATRIX and size >= 24:
            what, count = struct.unpack_from(f"{order}8xI8xI", data, begin)
            number = min(count, size - 24) // 4
            sides = struct.unpack_from(f"{order}{number}i", data, begin + 24)
            if min(sides, default=0) < 0:
                raise ValueError("an array of negative length")
            if what & 0xFF != SPARSE and math.prod(sides) > size:
                raise ValueError(f"an array of {math.prod(sides)} entries in {size} bytes")
            _check_arrays(data, order, begin, begin + size, level + 1)
