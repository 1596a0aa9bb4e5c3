"""Tables of annotated nuclei, one per specimen, and of pins: nuclei whose cell a person settled."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from eutely.annotation import Annotation
from eutely.cliques import UNMATCHED
from eutely.errors import ReadError, WriteError
from eutely.io.whole import whole

COLUMNS = ("id", "cell", "name", "confidence", "alternatives")
"""Columns of the table of a specimen."""

FIRST = "look-here-first.csv"
"""Table of the least certain nuclei of all specimens; its first column is the specimen."""

DOUBTFUL = 0.1
"""Fraction of the matched nuclei of each specimen in that table: the least certain ones."""

PIN_COLUMNS = ("specimen", "id", "name")
"""Columns of a table of pins; ``cell`` follows if a cell goes by its number."""

Pins = dict[tuple[str, int], str | int]
"""(specimen, id of the nucleus) -> name or number of the cell; "" if it is no cell."""

Row = tuple[Any, ...]


def write_annotations(
    annotations: Sequence[Annotation],
    names: Sequence[str],
    folder: Path,
    min_confidence: float = 0.0,
) -> None:
    """Write ``<specimen>.csv`` for each specimen, and the table of doubtful nuclei.

    Parameters
    ----------
    annotations
        one per specimen.
    names
        of the cells of the atlas, for the alternatives; a cell without a name goes by its number.
    folder
        to write into; all tables appear or none.
    min_confidence
        nuclei with a lower confidence get no cell and no name; their cell becomes the first
        alternative.
    """
    tables: dict[str, list[Row]] = {}
    for annotation in annotations:
        name = f"{annotation.specimen}.csv"
        if Path(name).name != name or name.startswith(".") or name == FIRST:
            raise WriteError(f"'{name}' cannot be the name of a file; rename the specimen")
        tables[name] = [COLUMNS, *_rows(annotation, names, min_confidence)]
    doubtful = (row for annotation in annotations for row in _doubtful(annotation, names))
    tables[FIRST] = [("specimen", *COLUMNS), *doubtful]
    with ExitStack() as stack:  # the files appear when the stack is left
        for name, rows in tables.items():
            aside = stack.enter_context(whole(folder / name))
            with aside.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)


def _rows(
    annotation: Annotation, names: Sequence[str], min_confidence: float = 0.0
) -> Iterator[Row]:
    """Yield one row per nucleus, in input order."""
    for id_, cell, name, confidence, others in zip(
        annotation.ids.tolist(),
        annotation.cells.tolist(),
        annotation.names,
        annotation.confidence.tolist(),
        annotation.alternatives,
        strict=True,
    ):
        if cell == UNMATCHED:
            yield id_, "", "", "", _listed(others, names)
        elif confidence < min_confidence:
            yield id_, "", "", "", _listed([(cell, confidence), *others], names)
        else:
            yield id_, cell, name, f"{confidence:.4f}", _listed(others, names)


def _listed(alternatives: Iterable[tuple[int, float]], names: Sequence[str]) -> str:
    """Return cells and their shares as ``NAME:0.12;NAME:0.03``."""
    return ";".join(f"{names[cell] or cell}:{share:.3g}" for cell, share in alternatives)


def _doubtful(annotation: Annotation, names: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of the least certain nuclei, the worst first."""
    matched = np.flatnonzero(annotation.cells != UNMATCHED)
    count = int(np.ceil(DOUBTFUL * len(matched)))
    worst = matched[np.argsort(annotation.confidence[matched], kind="stable")[:count]]
    rows = list(_rows(annotation, names))
    for nucleus in worst.tolist():
        yield annotation.specimen, *rows[nucleus]


def read_pins(path: Path) -> Pins:
    """Read a table with the columns specimen, id, and name or cell.

    If both are given, the name counts; if neither is given, the nucleus is no cell.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _pins(csv.DictReader(file), path)
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ReadError(f"{path} is not a CSV table: {error}") from error


def _pins(reader: csv.DictReader[str], path: Path) -> Pins:
    columns = reader.fieldnames or ()
    if not {"specimen", "id"} <= set(columns):
        raise ReadError(
            f"{path}: no columns specimen and id (found: {', '.join(columns) or 'none'}); "
            "expected specimen, id, name"
        )
    pins: Pins = {}
    for row in reader:
        try:
            key = (row["specimen"].strip(), int(row["id"]))
            name = (row.get("name") or "").strip()
            cell = (row.get("cell") or "").strip()
            pins[key] = int(cell) if cell and not name else name
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            raise ReadError(
                f"{path}, line {reader.line_num}: expected the columns specimen, id (a whole "
                "number), and name or cell"
            ) from error
    return pins


def write_pins(pins: Mapping[tuple[str, int], str | int], path: Path) -> None:
    """Write pins, sorted, completely or not at all."""
    numbered = any(isinstance(cell, int) for cell in pins.values())
    with whole(path) as aside, aside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*PIN_COLUMNS, "cell") if numbered else PIN_COLUMNS)
        for (specimen, label), cell in sorted(pins.items(), key=lambda pin: pin[0]):
            number = isinstance(cell, int)
            row = (specimen, label, "" if number else cell)
            writer.writerow((*row, cell if number else "") if numbered else row)
