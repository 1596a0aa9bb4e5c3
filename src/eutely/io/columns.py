"""Tables of any format (CSV, TSV, Parquet, Excel) as columns of text: one parser for all."""

from __future__ import annotations

import csv
import io
import logging
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.limits import check_memory, check_regular, open_zip
from eutely.io.text import MEMORY, numbers, read_text, short

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("eutely")

TEXT = (".csv", ".tsv", ".tab", ".txt")
"""Suffixes of text tables."""

PARQUET = (".parquet", ".pq")
"""Suffixes of Parquet tables."""

EXCEL = (".xlsx", ".xlsm")
"""Suffixes of Excel workbooks."""

OLD_EXCEL = ".xls"
"""Suffix of old Excel workbooks, and of text tables that ImageJ writes."""

SUFFIXES = (*TEXT, *PARQUET, *EXCEL, OLD_EXCEL)
"""Suffixes of all tables."""

EXACT = 2**53
"""Whole numbers up to which all are exact in floating point."""

FIELD = 64
"""Bytes of memory that a field of a table takes as text."""

_SEPARATOR = re.compile(r"sep=([,;\t])\r?\n")
"""A first line by which Excel marks the separator."""


@dataclass(frozen=True)
class Columns:
    """A table as text: every field is a string, empty if unknown."""

    path: Path
    fields: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    """line number of each row in the file"""
    delimiter: str = ""
    """between fields, of a text table"""

    def rows(self, chosen: Sequence[int]) -> Columns:
        """Return the table with only the ``chosen`` rows."""
        return Columns(
            self.path,
            {key: [column[row] for row in chosen] for key, column in self.fields.items()},
            [self.lines[row] for row in chosen],
            self.delimiter,
        )

    def numbers(self, key: str) -> NDArray[np.float64]:
        """Return column ``key`` as (n,) float64."""
        return numbers(self.fields[key], key, str(self.path), self.lines)

    def found(self) -> str:
        """Return the names of the columns, for errors."""
        keys = [short(key) for key in self.fields if key]
        return ", ".join(keys[:20]) + (", ..." if len(keys) > 20 else "") if keys else "none"


def read_columns(path: Path) -> Columns:
    """Read a table; its format follows from the suffix, a delimiter from the header."""
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        return _parquet(path)
    return _excel(path) if suffix in EXCEL else _text(path)


def _text(path: Path) -> Columns:
    """Read a text table; the delimiter is the most frequent one in the header."""
    if path.suffix.lower() == OLD_EXCEL:
        check_regular(path)
        _refuse_old_excel(path)
    text = read_text(path)
    marked = _SEPARATOR.match(text)
    file = io.StringIO(text, newline="")
    file.seek(marked.end() if marked else 0)
    delimiter = marked[1] if marked else max(",;\t", key=file.readline().count)
    file.seek(marked.end() if marked else 0)
    before = 1 if marked else 0
    rows, lines = [], []
    reader = csv.reader(file, delimiter=delimiter)
    try:
        header = [key.strip() for key in next(reader, [])]
        for row in reader:
            if not any(row):
                continue
            if len(row) != len(header):
                if len(row) < len(header) or any(row[len(header) :]):
                    raise _uneven(path, before + reader.line_num, len(row), len(header), delimiter)
                row = row[: len(header)]
            rows.append(row)
            lines.append(before + reader.line_num)
    except csv.Error as error:
        raise ReadError(f"{path} is not a text table: {error}; save it as CSV") from error
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    return Columns(path, _unique(path, header, columns), lines, delimiter)


def _uneven(path: Path, line: int, fields: int, expected: int, delimiter: str) -> ReadError:
    """Return the error for a line with too few or too many fields."""
    advice = "is the file complete?"
    if fields > expected and delimiter == ",":
        advice = "for decimal commas, separate fields by semicolons or tabs"
    return ReadError(
        f"{path}: line {line} has {fields} fields, expected {expected} as in the header; {advice}"
    )


def _unique(
    path: Path, header: Sequence[str], columns: Sequence[Sequence[str]]
) -> dict[str, Sequence[str]]:
    """Return columns by name; an error if a name occurs twice. Further nameless ones are left out.

    Spreadsheets write nameless columns beside a table.
    """
    twice = sorted(key for key, count in Counter(header).items() if key and count > 1)
    if twice:
        raise ReadError(
            f"{path}: column {', '.join(map(short, twice[:5]))} occurs twice; rename one"
        )
    result: dict[str, Sequence[str]] = {}
    for key, column in zip(header, columns, strict=True):
        result.setdefault(key, column)
    return result


def _refuse_old_excel(path: Path) -> None:
    """Raise an error if a file is a binary Excel workbook; ImageJ writes text of that suffix."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
    if start == b"\xd0\xcf\x11\xe0":
        raise ReadError(f"{path} is a workbook of an old Excel; save it as .xlsx or .csv")


def _parquet(path: Path) -> Columns:
    """Read a Parquet table as text, which is exact for numbers too."""
    import pyarrow
    import pyarrow.parquet

    check_regular(path)
    fields = {}
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            size, schema = file.metadata, file.schema_arrow
        groups = [size.row_group(number) for number in range(size.num_row_groups)]
        need = FIELD * size.num_rows * size.num_columns + sum(g.total_byte_size for g in groups)
        check_memory(path, need, "the table")
        # A text that is stored once for many rows is kept once.
        texts = [field.name for field in schema if pyarrow.types.is_string(field.type)
                 or pyarrow.types.is_binary(field.type)]  # fmt: skip
        table = pyarrow.parquet.read_table(path, read_dictionary=texts)
        for key, column in zip(table.column_names, table.columns, strict=True):
            values = [value for chunk in column.chunks for value in _values(chunk)]
            if pyarrow.types.is_floating(column.type):
                _refuse_rounded(path, key, values)
            fields[key] = ["" if value is None else str(value) for value in values]
    except (OSError, ValueError, LookupError, OverflowError, pyarrow.ArrowException) as error:
        raise ReadError(
            f"cannot read {path} as Parquet: {_first_line(error)}; write it again"
        ) from error
    return Columns(path, fields, range(1, table.num_rows + 1))


def columns_of(frame: pd.DataFrame, path: Path) -> Columns:
    """Return a pandas table as text; a named index is a column, a nameless one is not.

    Parameters
    ----------
    frame
        one row per nucleus.
    path
        what the table is called, for errors.
    """
    if any(frame.index.names):
        frame = frame.reset_index()
    keys = [str(key).strip() for key in frame.columns]
    columns = []
    for number in range(len(keys)):
        column = frame.iloc[:, number]
        values, known = column.tolist(), column.notna().tolist()
        columns.append([str(v) if there else "" for v, there in zip(values, known, strict=True)])
    return Columns(path, _unique(path, keys, columns), range(1, len(frame) + 1))


def _values(chunk: Any) -> list[Any]:
    """Return the values of a part of a column; those of a dictionary are shared."""
    import pyarrow

    if not pyarrow.types.is_dictionary(chunk.type):
        return list(chunk.to_pylist())
    values = chunk.dictionary.to_pylist()
    return [None if at is None else values[at] for at in chunk.indices.to_pylist()]


def _excel(path: Path) -> Columns:
    """Read the first sheet of an Excel workbook that is not empty."""
    try:
        import openpyxl
    except ImportError as error:
        raise ReadError(
            f"{path}: Excel files need openpyxl; run pip install 'eutely[excel]' (in a checkout: "
            "pip install '.[excel]'), or save the table as .csv"
        ) from error
    check_regular(path)
    broken = (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        SyntaxError,
        EOFError,
        zlib.error,
    )
    try:
        with open_zip(path) as parts:
            unpacked = sum(part.file_size for part in parts.infolist())
            check_memory(path, MEMORY * unpacked, "the workbook")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            for sheet in book.worksheets:
                rows, cells = [], 0
                sheet.reset_dimensions()  # what it declares would be filled up
                for line, row in enumerate(sheet.iter_rows(values_only=True), start=1):
                    if row.count(None) < len(row):
                        rows.append((line, row))
                        cells += len(row)
                        check_memory(path, 8 * cells, "the rows of the sheet")
                if rows:
                    if len(book.worksheets) > 1:
                        log.info("%s: sheet '%s' is read, no other", path, sheet.title)
                    return _sheet(path, rows)
        finally:
            book.close()
    except (*broken, zipfile.BadZipFile, NotImplementedError) as error:
        raise ReadError(
            f"cannot read {path} as an Excel workbook: {_first_line(error)}; save it again"
        ) from error
    return Columns(path, {}, [])


def _sheet(path: Path, rows: Sequence[tuple[int, Sequence[Any]]]) -> Columns:
    """Return the columns of a sheet whose first row is the header."""
    (_, first), *rest = rows
    header = ["" if value is None else str(value).strip() for value in first]
    columns = []
    for column, key in enumerate(header):
        values = [row[column] if column < len(row) else None for _, row in rest]
        _refuse_rounded(path, key, values)
        dates = [value for value in values if isinstance(value, date)]
        if dates and key.lower() == "name":
            raise ReadError(
                f"{path}: Excel made a date of a name ({dates[0]}); format the column as text and "
                "correct it"
            )
        columns.append(["" if value is None else str(value) for value in values])
    return Columns(path, _unique(path, header, columns), [line for line, _ in rest])


def _refuse_rounded(path: Path, key: str, values: Sequence[Any]) -> None:
    """Raise an error if ids are stored in floating point that cannot hold them exactly."""
    if key.strip().lower() not in {"id", "label"}:
        return
    for value in values:
        if isinstance(value, float) and abs(value) >= EXACT:
            raise ReadError(
                f"{path}: {key} {value:.0f} is stored as a rounded number; store ids as whole "
                "numbers or text"
            )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
