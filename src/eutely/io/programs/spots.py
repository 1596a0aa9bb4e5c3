"""Spots of Imaris (statistics *Position*) and Mastodon (three lines of headings), both CSV."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eutely.errors import ReadError
from eutely.io.programs.recording import Recording
from eutely.io.programs.rows import beginning, read_rows
from eutely.specimen import unit_word

IMARIS = ("Position X", "Position Y", "Position Z")
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
        table.points(IMARIS),
        unit=units[0] if units else "",
    )


MASTODON = ("Spot position X", "Spot position Y", "Spot position Z")
"""Columns of the centre of a spot: feature and projection."""

NO_FEATURES = {"Label", "ID", "Spot frame", "Spot radius", "Spot track ID", *MASTODON}
"""Columns that say which spot it is, and where."""

BELOW = 2
"""Lines of headings below the first: projections and units."""


def is_mastodon(path: Path) -> bool:
    """Return whether a text table holds spots of Mastodon."""
    first = beginning(path).partition("\n")[0].replace('"', "")
    return first.startswith("Label,ID,") and "Spot position" in first


def read_mastodon(path: Path) -> Recording:
    """Read a table of spots; it needs the features Spot position and Spot frame."""
    table, heads = read_rows(path, lambda _: True, below=BELOW, heading=_names)
    if "Spot frame" not in table.columns:
        raise ReadError(f"{path}: no column 'Spot frame'; compute it in Mastodon and export again")
    units = dict(zip(_names(heads), heads[-1], strict=False))
    labels, ids = table.text("Label"), table.text("ID")
    return Recording(
        "Mastodon",
        table.whole("Spot frame"),
        table.whole("ID"),
        table.points(MASTODON),
        radii=table.numbers("Spot radius") if "Spot radius" in table.columns else None,
        # A spot without a name is labelled by its number.
        names=["" if name == id_ else name for name, id_ in zip(labels, ids, strict=True)],
        features=table.features([key for key in table.columns if key not in NO_FEATURES]),
        unit=unit_word(units.get(MASTODON[0], "").strip("() ")),
    )


def _names(heads: Sequence[list[str]]) -> list[str]:
    """Return feature and projection of each column, as in ``Spot position X``."""
    first, second = heads[0], heads[1] + [""] * len(heads[0])
    return [
        key if not part or part == key else f"{key} {part}"
        for key, part in zip(first, second, strict=False)
    ]
