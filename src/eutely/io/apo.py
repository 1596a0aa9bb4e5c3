"""Vaa3D point clouds: ``.apo``, ``.ano.txt`` with the same columns but no header, ``.marker``."""

import csv
from io import StringIO
from pathlib import Path

import numpy as np

from eutely.errors import ReadError
from eutely.io.text import numbers, read_text, whole_numbers
from eutely.specimen import VOXEL, Specimen

REJECTED = "NOUSE"
"""Mark of a manually rejected segment, in its name or comment."""

LANDMARKS = frozenset(f"F{number}" for number in range(1, 11))
"""Names of points that are landmarks and not nuclei."""

COLUMNS = ["no", "order", "name", "comment", "z", "x", "y", "max", "mean", "sd", "size", "mass"]
"""Columns of the file, in order; further columns are ignored."""

INTENSITIES = ("max", "mean", "sd", "mass")
"""Columns that become features."""


def read_apo(path: Path, name: str, *, keep_rejected: bool = False) -> Specimen:
    """Read the nuclei of a specimen, in voxels: the file does not contain the voxel size.

    Parameters
    ----------
    path
        ``.apo``, ``.ano.txt`` or ``.ano.ano.txt``.
    name
        of the specimen.
    keep_rejected
        keep manually rejected segments, without a name and with the feature ``rejected`` = 1:
        realistic spurious segments.

    Returns
    -------
    Specimen
        names in upper case; radius of the sphere with the segment's number of voxels, NaN where it
        is 0; features ``max``, ``mean``, ``sd``, ``mass`` of the intensity.
    """
    rows, lines, rejected = [], [], []
    for line, row in _rows(path):
        fields = dict(zip(COLUMNS, row, strict=False))
        bad = REJECTED in (fields["name"] + fields["comment"]).upper()
        word = fields["name"].upper().replace(f"*{REJECTED}*", "").strip()
        if word in LANDMARKS or (bad and not keep_rejected):
            continue
        fields["name"] = "" if bad else word
        rows.append(fields)
        lines.append(line)
        rejected.append(bad)

    def column(key: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return numbers([row[key] for row in rows], key, str(path), lines)

    ids = whole_numbers([row["no"] for row in rows], "the number", str(path), lines)
    size = column("size")
    features = {key: column(key) for key in INTENSITIES}
    if keep_rejected:
        features["rejected"] = np.array(rejected, dtype=np.float64)
    return Specimen.from_arrays(
        name,
        np.stack([column("x"), column("y"), column("z")], axis=1),
        ids=ids if len(set(ids)) == len(ids) else None,
        radii=np.where(size > 0, np.cbrt(3 * size / (4 * np.pi)), np.nan),
        names=[row["name"] for row in rows],
        features=features,
        unit=VOXEL,
    )


def read_marker(path: Path, name: str) -> Specimen:
    """Read markers of Vaa3D (also those of CRF_ID), in voxels counted from 0.

    Columns x, y, z (counted from 1 in the file), radius, shape, name, comment, colour; colours are
    those of the display, not of the image, and no features.
    """
    rows = _rows(path, least=3)
    lines = [line for line, _ in rows]

    def column(number: int, what: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        fields = [row[number] if number < len(row) else "" for _, row in rows]
        return numbers(fields, what, str(path), lines)

    radii = column(3, "radius")
    return Specimen.from_arrays(
        name,
        np.stack([column(0, "x"), column(1, "y"), column(2, "z")], axis=1) - 1,
        radii=np.where(radii > 0, radii, np.nan),
        names=[row[5].strip() if len(row) > 5 else "" for _, row in rows],
        unit=VOXEL,
    )


def _rows(path: Path, least: int = len(COLUMNS)) -> list[tuple[int, list[str]]]:
    """Return line number and fields of each row, at least so many."""
    text = StringIO(read_text(path), newline="")
    try:
        rows = list(enumerate(csv.reader(text, skipinitialspace=True), start=1))
    except csv.Error as error:
        raise ReadError(
            f"{path} is not a Vaa3D point cloud: {error}; save it in Vaa3D again"
        ) from error
    kept = [(line, row) for line, row in rows if any(row) and not row[0].startswith("#")]
    for line, row in kept:
        if len(row) < least:
            raise ReadError(
                f"{path}: line {line} has {len(row)} fields, expected at least {least} of a "
                "Vaa3D point cloud; is the file complete?"
            )
    return kept
