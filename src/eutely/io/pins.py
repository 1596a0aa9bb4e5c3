"""Tables of pins: nuclei whose cell a person settled; plain, or a log that grows by each change.

A log has the columns specimen, id, name, cell, open, author, time. The last row of a nucleus
counts; ``open`` is 1 where its pin was taken back. So nothing that a person decided is lost, and
every command reads a log as it reads a plain table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from eutely.errors import ReadError, WriteError
from eutely.io.names import COHORT, read_nucleus_table
from eutely.io.text import whole_numbers
from eutely.io.whole import alone as alone
from eutely.io.whole import keep_copy, new_bytes, whole

PIN_COLUMNS = ("specimen", "id", "name")
"""Columns of a plain table of pins; ``cell`` follows if a cell goes by its number."""

LOG_COLUMNS = (*PIN_COLUMNS, "cell", "open", "author", "time")
"""Columns of a log of pins."""

Pins = dict[tuple[str, int], str | int]
"""(specimen, id of the nucleus) -> name or number of the cell; "" if it is no cell."""


class Change(NamedTuple):
    """One row of a log of pins.

    Attributes
    ----------
    specimen, id
        the nucleus.
    cell
        name or number of its cell, "" if it is none; None where its pin is taken back.
    author
        who decided, or "".
    time
        when, in UTC: 2026-03-01T12:30:00.123456Z; "" in rows of a plain table.
    """

    specimen: str
    id: int
    cell: str | int | None
    author: str = ""
    time: str = ""


def read_pins(path: Path) -> Pins:
    """Read nuclei whose cell is settled, by id, with a name or the number of a cell.

    A name counts more than a number; without either, the nucleus is no cell. A table that ``eutely
    annotate`` wrote is taken too: it belongs to the specimen that it is called after, and its empty
    rows stay open. Of a log the last row of each nucleus counts. Otherwise an id twice is an error,
    and so is a table with neither a column ``name`` nor ``cell``.
    """
    pins: Pins = {}
    for change in read_changes(path):
        key = change.specimen, change.id
        if change.cell is None:
            pins.pop(key, None)
        else:
            pins[key] = change.cell
    return pins


def read_changes(path: Path) -> list[Change]:
    """Read all rows of a table of pins, in the order of the file; see `read_pins`."""
    return _read(path)[0]


def _read(path: Path) -> tuple[list[Change], dict[str, list[str]]]:
    """Return the rows of a table of pins, and the columns of a person's own beside them."""
    rows = read_nucleus_table(path, expected="specimen, id, and name or cell", log_of="time")
    fields, lines = rows.table.fields, rows.table.lines
    annotated = "confidence" in fields
    if rows.specimens is None and not annotated:
        raise ReadError(
            f"{path}: no column specimen (found: {rows.table.found()}); expected specimen, id, and "
            "name or cell"
        )
    if not {"name", "cell"} & set(fields):
        raise ReadError(
            f"{path}: no column name or cell (found: {rows.table.found()}); expected specimen, id, "
            "name"
        )
    specimens = rows.specimens or [path.stem] * len(rows.ids)
    changes = []
    taken = {*LOG_COLUMNS, *COHORT, ""}
    own: dict[str, list[str]] = {key: [] for key in fields if key not in taken and not annotated}
    columns = [rows.column(key) for key in ("name", "cell", "open", "author", "time")]
    for row, (specimen, id_, name, number, open_, author, time, line) in enumerate(
        zip(specimens, rows.ids, *columns, lines, strict=True)
    ):
        cell: str | int | None = name
        if open_ not in ("", "0"):
            cell = None
        elif number and not name:
            cell = int(whole_numbers([number], "cell", str(path), [line])[0])
        elif not name and annotated:
            continue
        changes.append(Change(specimen, id_, cell, author, time))
        for key, values in own.items():
            values.append(fields[key][row])
    return changes, own


def write_pins(pins: Mapping[tuple[str, int], str | int], path: Path) -> None:
    """Write a plain table of pins, sorted, completely or not at all."""
    with whole(path) as aside:
        new_bytes(aside, _plain(pins, path))


def _plain(pins: Mapping[tuple[str, int], str | int], path: Path) -> bytes:
    """Return the content of a plain table of pins."""
    numbered = any(isinstance(cell, int) for cell in pins.values())
    rows: list[tuple[object, ...]] = [(*PIN_COLUMNS, "cell") if numbered else PIN_COLUMNS]
    for (specimen, label), cell in sorted(pins.items(), key=lambda pin: pin[0]):
        number = isinstance(cell, int)
        row = (specimen, label, "" if number else cell)
        rows.append((*row, cell if number else "") if numbered else row)
    return _lines(rows, path)


def identity(path: Path) -> tuple[int, ...] | None:
    """Return what tells a file from the one that replaces it; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def append_pins(changes: Iterable[Change], path: Path) -> None:
    """Add rows to a log of pins; when this returns, they are on disk.

    The file is replaced by its copy with the new rows, so at any moment, whatever happens, it has
    all of them or none. A plain table that is there becomes a log with all columns of a person's
    own; what eutely would have written differently is kept as ``.bak``. Hold `alone` where other
    programs may do the same.
    """
    content = path.read_bytes() if path.exists() else b""
    header = content.partition(b"\n")[0]
    if header.startswith(_LOG) and header[len(_LOG) :][:1] in b",\r" and b'"' not in header:
        further = header[len(_LOG) :].count(b",")
        content += b"" if content.endswith(b"\n") else b"\n"  # an editor left it out
    else:
        earlier, own = _read(path) if content.strip() else ([], {})
        if content.strip() and content != _plain(read_pins(path), path):
            keep_copy(path)
        beside = zip(*own.values(), strict=True) if own else [()] * len(earlier)
        rows = [(*_row(change), *more) for change, more in zip(earlier, beside, strict=True)]
        further = len(own)
        content = _lines([(*LOG_COLUMNS, *own), *rows], path)
    with whole(path) as aside:
        new_bytes(
            aside, content + _lines([(*_row(each), *[""] * further) for each in changes], path)
        )


def add_pins(pins: Mapping[tuple[str, int], str | int], path: Path) -> None:
    """Add pins to a table, whose other pins stay.

    A plain table as eutely writes it is written again; others grow as logs, see `append_pins`.
    """
    with alone(path):
        content = path.read_bytes() if path.exists() else b""
        known = read_pins(path) if content.strip() else {}
        if content.strip() and content != _plain(known, path):
            now = stamp()
            append_pins([Change(*key, cell, time=now) for key, cell in pins.items()], path)
        else:
            write_pins(known | dict(pins), path)


def stamp() -> str:
    """Return the time as logs of pins have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _row(change: Change) -> tuple[object, ...]:
    number = change.cell if isinstance(change.cell, int) else ""
    name = change.cell if isinstance(change.cell, str) else ""
    taken_back = "1" if change.cell is None else ""
    return change.specimen, change.id, name, number, taken_back, change.author, change.time


def _lines(rows: Iterable[Iterable[object]], path: Path) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    try:
        return text.getvalue().encode()
    except UnicodeEncodeError as error:
        raise WriteError(f"cannot write {path}: a name that is no text ({error.reason})") from error


_LOG = ",".join(LOG_COLUMNS).encode()
"""How a log begins."""
