"""Manual corrections: nuclei whose cell is known with certainty."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from eutely.errors import ReadError
from eutely.io.whole import whole

COLUMNS = ("specimen", "id", "name")
"""Columns of the table that `write_pins` always writes."""

Pins = dict[tuple[str, int], str | int]
"""(specimen, id of the nucleus) -> name or number of the cell; "" if it is no cell."""


def read_pins(path: Path) -> Pins:
    """Read a table with the columns specimen, id, and name or cell.

    If both are given, the name counts; if neither is given, the nucleus is no cell.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            pins: Pins = {}
            if not {"specimen", "id"} <= set(reader.fieldnames or ()):
                raise ReadError(
                    f"{path}: no columns specimen and id (found: "
                    f"{', '.join(reader.fieldnames or ()) or 'none'}); expected specimen, id, name"
                )
            for row in reader:
                try:
                    key = (row["specimen"].strip(), int(row["id"]))
                    name = (row.get("name") or "").strip()
                    cell = (row.get("cell") or "").strip()
                    pins[key] = int(cell) if cell and not name else name
                except (KeyError, AttributeError, TypeError, ValueError) as error:
                    raise ReadError(
                        f"{path}, line {reader.line_num}: expected the columns specimen, id "
                        "(a whole number), and name or cell"
                    ) from error
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ReadError(f"{path} is not a CSV table: {error}") from error
    return pins


def write_pins(pins: Mapping[tuple[str, int], str | int], path: Path) -> None:
    """Write pins, sorted, completely or not at all."""
    numbered = any(isinstance(cell, int) for cell in pins.values())
    with whole(path) as aside, aside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*COLUMNS, "cell") if numbered else COLUMNS)
        for (specimen, label), cell in sorted(pins.items(), key=lambda pin: pin[0]):
            number = isinstance(cell, int)
            row = (specimen, label, "" if number else cell)
            writer.writerow((*row, cell if number else "") if numbered else row)
