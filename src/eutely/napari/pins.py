"""Corrections by hand: nuclei whose name is known for sure, as ``--pins`` takes them."""

from __future__ import annotations

import csv
from pathlib import Path

from eutely.errors import ReadError
from eutely.io.whole import whole

COLUMNS = ("specimen", "id", "name")

Pins = dict[tuple[str, int], str]
"""(specimen, id of the nucleus) -> name."""


def read_pins(path: Path) -> Pins:
    """Read pins that were written before; none where there is no file yet."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    try:
        return {(row["specimen"], int(row["id"])): row["name"] for row in rows}
    except (KeyError, TypeError, ValueError) as error:
        raise ReadError(f"{path}: expected the columns {', '.join(COLUMNS)} ({error})") from error


def write_pins(pins: Pins, path: Path) -> None:
    """Write pins, in order, whole or not at all."""
    with whole(path) as aside, aside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (specimen, label), name in sorted(pins.items()):
            writer.writerow((specimen, label, name))
