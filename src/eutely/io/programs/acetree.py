"""AceTree: lineages of embryos, as a zip of ``nuclei/t001-nuclei``, and the CD tables of EPIC."""

import csv
import re
import zipfile
import zlib
from io import StringIO
from pathlib import Path
from xml.parsers import expat

import numpy as np

from eutely.errors import ReadError
from eutely.io.limits import check_memory, check_regular, open_zip
from eutely.io.programs.recording import PLANES, Recording, VoxelSize
from eutely.io.programs.rows import beginning, read_rows
from eutely.io.text import MEMORY, numbers, read_text, whole_numbers

_ENTRY = re.compile(r"(?:.*/)?nuclei/t(?P<time>\d{1,9})-nuclei")
"""A time point in the zip."""

_PLACEHOLDER = re.compile(r"Nuc\w*\d+|\d+", re.IGNORECASE)
"""What AceTree calls a nucleus that has no name."""

ID, STATUS, X, Y, Z, DIAMETER, IDENTITY, WEIGHT, ASSIGNED = 0, 1, 5, 6, 7, 8, 9, 10, 14
"""Fields of a line; further ones are not used."""

CD = "cellTime,cell,time,"
"""How the CD tables of EPIC begin."""

EXPRESSION = ("none", "global", "local", "blot", "cross", "gweight")
"""Columns of a CD table that become features: expression by several corrections, and the weight."""

BROKEN = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, NotImplementedError,
          ValueError)  # fmt: skip
"""Errors that a damaged zip leads to."""


def is_acetree(path: Path) -> bool:
    """Return whether a zip holds the nuclei of an embryo."""
    try:
        with open_zip(path) as archive:
            return any(_ENTRY.fullmatch(name) for name in archive.namelist())
    except (*BROKEN, ReadError):
        return False


def read_acetree(path: Path) -> Recording:
    """Read the nuclei of all time points; positions in pixels and planes.

    The size of a voxel is that of ``<resolution xyRes zRes>`` in an AceTree file ``.xml`` of the
    same name beside the zip, if there is one.
    """
    check_regular(path)
    rows, lines, times = [], [], []
    try:
        with open_zip(path) as archive:
            entries = [
                (int(match["time"]), entry)
                for entry in archive.infolist()
                if (match := _ENTRY.fullmatch(entry.filename))
            ]
            check_memory(path, MEMORY * sum(entry.file_size for _, entry in entries), "the lineage")
            for time, entry in sorted(entries, key=lambda item: item[0]):
                text = archive.read(entry).decode("utf-8", errors="replace")
                for line, row in enumerate(csv.reader(StringIO(text), skipinitialspace=True), 1):
                    fields = [value.strip() for value in row]
                    if not any(fields):
                        continue
                    if len(fields) <= WEIGHT:
                        raise ReadError(
                            f"{path}: {entry.filename}, line {line} has {len(fields)} fields, "
                            f"expected at least {WEIGHT + 1}; is the file complete?"
                        )
                    if fields[STATUS] == "1":
                        rows.append(fields)
                        lines.append(line)
                        times.append(time)
    except (*BROKEN, csv.Error) as error:
        raise ReadError(
            f"cannot read {path} as a lineage of AceTree: {error}; save it there again"
        ) from error

    def column(number: int, what: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return numbers([row[number] for row in rows], what, str(path), lines)

    return Recording(
        "AceTree",
        np.array(times, dtype=np.int64),
        whole_numbers([row[ID] for row in rows], "the number", str(path), lines),
        np.stack([column(X, "x"), column(Y, "y"), column(Z, "z")], axis=1),
        radii=_radii(column(DIAMETER, "the size")),
        names=[_name(row) for row in rows],
        features={"weight": column(WEIGHT, "the weight")},
        unit=PLANES,
        voxel_size=_resolution(path.with_suffix(".xml")),
    )


def _name(row: list[str]) -> str:
    """Return the name that a person assigned, else that of the lineage; "" for placeholders."""
    name = (row[ASSIGNED] if len(row) > ASSIGNED else "") or row[IDENTITY]
    return "" if _PLACEHOLDER.fullmatch(name) else name


def _radii(
    diameters: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return radii; NaN where no size was given."""
    return np.where(diameters > 0, diameters / 2, np.nan)


def _resolution(path: Path) -> VoxelSize | None:
    """Return x, y, z in micrometres from an AceTree file; None where it is absent or silent."""
    if not path.is_file():
        return None
    found: list[dict[str, str]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "resolution":
            found.append(attributes)

    def refuse(*_: object) -> None:
        raise ReadError(f"{path}: entities in an AceTree file; give --voxel-size instead")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(read_text(path).encode(), True)
        across, along = float(found[0]["xyRes"]), float(found[0]["zRes"])
    except (expat.ExpatError, ValueError, LookupError):
        return None
    usable = 0 < across < np.inf and 0 < along < np.inf
    return (across, across, along) if usable else None


def is_epic(path: Path) -> bool:
    """Return whether a text table is a CD table of EPIC."""
    return beginning(path).startswith(CD)


def read_epic(path: Path) -> Recording:
    """Read a CD table: one row per cell and time point, in pixels and planes."""
    table, _ = read_rows(path, lambda fields: fields[:1] == ["cellTime"])
    times = table.whole("time")
    # A table has no numbers of nuclei; in each time point they are counted.
    ids = np.zeros(len(times), dtype=np.int64)
    for time in np.unique(times):
        rows = np.flatnonzero(times == time)
        ids[rows] = np.arange(1, len(rows) + 1)
    return Recording(
        "EPIC (CD table)",
        times,
        ids,
        table.points(("x", "y", "z")),
        radii=_radii(table.numbers("size")),
        names=["" if _PLACEHOLDER.fullmatch(name) else name for name in table.text("cell")],
        features=table.features([key for key in EXPRESSION if key in table.columns]),
        unit=PLANES,
    )
