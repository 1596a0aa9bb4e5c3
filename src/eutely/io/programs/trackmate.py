"""TrackMate: spots as a CSV of its tables, and as the XML that it saves."""

import re
from collections.abc import Mapping
from pathlib import Path
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.programs.recording import Recording
from eutely.io.programs.rows import Rows, beginning, read_rows
from eutely.io.text import read_text
from eutely.specimen import VOXEL, unit_word

POSITION = ("POSITION_X", "POSITION_Y", "POSITION_Z")
"""Columns of the centre of a spot."""

NO_FEATURES = {
    "LABEL", "ID", "TRACK_ID", "QUALITY", *POSITION, "POSITION_T", "FRAME", "RADIUS", "VISIBILITY",
    "MANUAL_SPOT_COLOR", "name",
}  # fmt: skip
"""Columns that say which spot it is, and where."""

HEADINGS = 3
"""Lines of headings below the first: names, short names, units."""

_DEFAULT = re.compile(r"ID\d+")
"""What TrackMate calls a spot that has no name."""

DEEPEST = 64
"""Elements inside each other."""


def is_trackmate_table(path: Path) -> bool:
    """Return whether a text table holds spots of TrackMate."""
    first = beginning(path).partition("\n")[0].upper().split(",")
    return {"ID", *POSITION[:2], "FRAME"} <= {field.strip().strip('"') for field in first}


def read_trackmate_table(path: Path) -> Recording:
    """Read a table of spots; the unit is in the fourth line of headings, if that is there."""
    below = HEADINGS if _has_units(path) else 0
    table, heads = read_rows(
        path, lambda _: True, below=below, heading=lambda rows: [key.upper() for key in rows[0]]
    )
    units = dict(zip((key.upper() for key in heads[0]), heads[-1], strict=False))
    unit = units.get("POSITION_X", "").strip("() ") if below else ""
    return _recording(table, unit)


def _has_units(path: Path) -> bool:
    """Return whether the line below the headings is one of names, not of numbers."""
    lines = beginning(path).splitlines()
    return len(lines) > 1 and "Spot ID" in lines[1]


def is_trackmate_xml(path: Path) -> bool:
    """Return whether an XML file is one that TrackMate saved."""
    return "<TrackMate" in beginning(path)


def read_trackmate_xml(path: Path) -> Recording:
    """Read the spots of a file that TrackMate saved."""
    spots: list[Mapping[str, str]] = []
    unit, depth = "", 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal unit, depth
        depth += 1
        if depth > DEEPEST:
            raise ReadError(f"{path}: nested more than {DEEPEST} deep; is it of TrackMate?")
        if tag == "Model":
            unit = attributes.get("spatialunits", "")
        elif tag == "Spot":
            spots.append(attributes)

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise ReadError(f"{path}: entities in a file of TrackMate; save it again with TrackMate")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(read_text(path).encode(), True)
    except expat.ExpatError as error:
        raise ReadError(
            f"cannot read {path} as XML of TrackMate: {error}; save it there again"
        ) from error
    keys = dict.fromkeys(key for spot in spots for key in spot)
    columns = {key: [spot.get(key, "") for spot in spots] for key in keys}
    if "name" in columns:
        columns["LABEL"] = columns.pop("name")
    return _recording(Rows(path, columns, range(1, len(spots) + 1)), unit)


def _recording(table: Rows, unit: str) -> Recording:
    """Return the visible spots of a table; 2D recordings are an error."""
    points = table.points(POSITION)
    if len(points) and not np.ptp(points[:, 2]):
        raise ReadError(f"{table.path}: all spots have the same z; expected a recording in 3D")
    visible = np.ones(len(points), dtype=bool)
    if "VISIBILITY" in table.columns:
        visible = table.numbers("VISIBILITY") != 0
    names = ["" if _DEFAULT.fullmatch(name) else name for name in table.text("LABEL")]
    features = table.features([key for key in table.columns if key not in NO_FEATURES])

    def kept(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values[visible]

    word = unit_word(unit)
    return Recording(
        "TrackMate",
        table.whole("FRAME")[visible],
        table.whole("ID")[visible],
        kept(points),
        radii=kept(table.numbers("RADIUS")) if "RADIUS" in table.columns else None,
        names=[name for name, shown in zip(names, visible, strict=True) if shown],
        features={key: kept(values) for key, values in features.items()},
        unit=VOXEL if word in {"pix", "px"} else word,
    )
