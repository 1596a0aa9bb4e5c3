"""NeuroPAL_ID: neurons with colours and names, exported as CSV."""

from pathlib import Path

import numpy as np

from eutely.io.programs.recording import Recording
from eutely.io.programs.rows import beginning, read_rows
from eutely.specimen import MICROMETRE

POSITION = ("Real X (um)", "Real Y (um)", "Real Z (um)")
"""Columns of the position."""

NAME = "User ID"
"""Column of the name that a person gave; what the program proposes (Auto ID) is not used."""

COLOURS = {
    "R": ("Real Red", "Z-Scored Red"),
    "G": ("Real Green", "Z-Scored Green"),
    "B": ("Real Blue", "Z-Scored Blue"),
    "W": ("Real White", "Z-Scored White"),
    "GFP": ("GFP", "Max GFP"),
}
"""Features, and the columns that hold them in older and newer files."""


def is_neuropal(path: Path) -> bool:
    """Return whether a text table is an export of NeuroPAL_ID."""
    text = beginning(path)
    return NAME in text and POSITION[0] in text


def read_neuropal(path: Path) -> Recording:
    """Read neurons, below the thresholds that the program writes first."""
    table, _ = read_rows(path, lambda fields: POSITION[0] in fields)
    features = {}
    for feature, columns in COLOURS.items():
        column = next((key for key in columns if key in table.columns), None)
        if column is not None:
            features[feature] = table.numbers(column)
    count = len(table.lines)
    return Recording(
        "NeuroPAL_ID",
        np.zeros(count, dtype=np.int64),
        np.arange(1, count + 1),
        table.points(POSITION),
        names=table.text(NAME),
        features=features,
        unit=MICROMETRE,
    )
