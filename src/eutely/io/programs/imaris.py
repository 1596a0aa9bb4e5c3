"""Imaris: the statistics *Position* of spots or surfaces, exported as CSV."""

from pathlib import Path

import numpy as np

from eutely.errors import ReadError
from eutely.io.programs.recording import Recording
from eutely.io.programs.rows import beginning, read_rows
from eutely.specimen import unit_word

POSITION = ("Position X", "Position Y", "Position Z")
"""Columns of the position."""


def is_imaris(path: Path) -> bool:
    """Return whether a text table is the statistics *Position* of Imaris."""
    return any(line.startswith("Position X,") for line in beginning(path).splitlines()[:8])


def read_imaris(path: Path) -> Recording:
    """Read positions, below the title that Imaris writes."""
    table, _ = read_rows(path, lambda fields: fields[:1] == ["Position X"])
    units = sorted({unit_word(unit) for unit in table.text("Unit")})
    if len(units) > 1:
        raise ReadError(f"{path}: mixed units ({', '.join(units)}); export again in one unit")
    count = len(table.lines)
    return Recording(
        "Imaris",
        table.whole("Time") if "Time" in table.columns else np.ones(count, dtype=np.int64),
        table.whole("ID") if "ID" in table.columns else np.arange(count),
        table.points(POSITION),
        unit=units[0] if units else "",
    )
