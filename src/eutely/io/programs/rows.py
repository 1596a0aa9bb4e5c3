"""Text tables with more than one line of headings, and recognition of files by their beginning."""

import codecs
import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.text import numbers, read_text, whole_numbers

HEAD = 4096
"""Bytes at the beginning of a file by which its program is recognised."""


@dataclass(frozen=True)
class Rows:
    """A text table as columns: their names, their texts, and the line number of each row."""

    path: Path
    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]

    def text(self, key: str) -> list[str]:
        """Return the texts of a column, "" in all rows if there is none."""
        return [value.strip() for value in self.columns.get(key, [""] * len(self.lines))]

    def numbers(self, key: str) -> NDArray[np.float64]:
        """Return a column as (n,) float64, NaN where empty."""
        return numbers(self._needed(key), key, str(self.path), self.lines)

    def whole(self, key: str) -> NDArray[np.int64]:
        """Return a column of whole numbers as (n,) int64."""
        return whole_numbers(self._needed(key), key, str(self.path), self.lines)

    def points(self, keys: Sequence[str]) -> NDArray[np.float64]:
        """Return three columns as (n, 3) float64."""
        return np.stack([self.numbers(key) for key in keys], axis=1)

    def features(self, keys: Sequence[str]) -> dict[str, NDArray[np.float64]]:
        """Return those of the columns that hold numbers only."""
        kept = {}
        for key in keys:
            try:
                kept[key] = self.numbers(key)
            except ReadError:
                continue
        return kept

    def _needed(self, key: str) -> Sequence[str]:
        if key not in self.columns:
            raise ReadError(f"{self.path}: no column '{key}'; export the table with it")
        return self.columns[key]


def read_rows(
    path: Path,
    starts: Callable[[list[str]], bool],
    *,
    below: int = 0,
    heading: Callable[[Sequence[list[str]]], list[str]] | None = None,
) -> tuple[Rows, list[list[str]]]:
    """Read the table that begins at the first line for which ``starts`` holds.

    Parameters
    ----------
    path
        text file, separated by commas.
    starts
        whether the fields of a line are the first headings.
    below
        number of further lines of headings.
    heading
        names of the columns from all lines of headings; by default the first line.

    Returns
    -------
    Rows
        the rows; shorter lines are an error, surplus empty fields are not.
    list
        fields of all lines of headings.
    """
    reader = csv.reader(StringIO(read_text(path), newline=""))
    heads: list[list[str]] = []
    rows, lines = [], []
    try:
        for row in reader:
            fields = [value.strip() for value in row]
            if not heads and not starts(fields):
                continue
            if len(heads) <= below:
                heads.append(fields)
            elif any(fields):
                rows.append(fields)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise ReadError(f"{path} is not a text table: {error}; export it again") from error
    if len(heads) <= below:
        raise ReadError(f"{path}: the table has no rows; is the file complete?")
    names = heads[0] if heading is None else heading(heads)
    for row, line in zip(rows, lines, strict=True):
        if len(row) < len(names) - 1 or any(row[len(names) :]):
            raise ReadError(
                f"{path}: line {line} has {len(row)} fields, expected {len(names)}; is the file "
                "complete?"
            )
    columns: dict[str, Sequence[str]] = {}
    for number, name in enumerate(names):
        if name:
            columns.setdefault(name, [row[number] if number < len(row) else "" for row in rows])
    return Rows(path, columns, lines), heads


def beginning(path: Path) -> str:
    """Return the beginning of a text file; "" if it cannot be read."""
    if not path.is_file():  # reading from a pipe may never end
        return ""
    try:
        with path.open("rb") as file:
            data = file.read(HEAD)
    except OSError:
        return ""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if wide else "utf-8-sig", errors="replace")
