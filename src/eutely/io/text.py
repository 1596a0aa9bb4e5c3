"""Text files: their encoding, and exact numbers; errors name the line of anything else."""

import codecs
import logging
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.limits import check_memory, check_regular

log = logging.getLogger("eutely")

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""Fields (in lower case) that stand for an unknown number."""

SIGNS = frozenset("µ°²³±·…€§“”\u00d7\u2013\u2014\u2018\u2019\u00a0")
"""Characters besides letters that text in Windows-1252 may contain; others suggest noise."""

MEMORY = 20
"""Bytes of memory that a byte of a table takes, once its fields are apart."""

DIGITS = 19
"""Most digits of a 64-bit whole number."""


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, UTF-16 (with its mark) or Windows-1252.

    Windows-1252 is assumed only where the text is not UTF-8 and all other characters are letters
    or common signs; a line of the log says so.
    """
    check_regular(path)
    try:
        check_memory(path, MEMORY * path.stat().st_size, "the table")
        data = path.read_bytes()
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        text = "" if wide else _windows_text(data)
        if not text:
            raise ReadError(
                f"{path} is not a text table (UTF-8 expected, found {data[error.start]:#04x} at "
                f"byte {error.start}); save it as CSV in UTF-8"
            ) from error
        log.info("%s is not UTF-8; read as Windows-1252 (ANSI)", path)
    if "\0" in text:
        raise ReadError(
            f"{path} contains zero bytes, so it is not a text table, or UTF-16 without a mark; "
            "save it as CSV in UTF-8"
        )
    return text


def _windows_text(data: bytes) -> str:
    """Return text in Windows-1252, "" if it is unlikely to be that."""
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return ""
    unusual = {character for character in text if not character.isascii()}
    return text if all(sign.isalpha() or sign in SIGNS for sign in unusual) else ""


def short(field: str) -> str:
    """Return a field for an error: one line, not too long."""
    words = " ".join(field.split())
    return words if len(words) <= 40 else f"{words[:37]}..."


def floats(fields: Sequence[str]) -> NDArray[np.float64]:
    """Return (n,) float64, NaN for missing fields; raise ValueError if a field is no number."""
    # Python would read "2006_1" as 20061, although it is more likely a name.
    if "_" in "".join(fields):
        raise ValueError("not a number")
    try:
        values = list(map(float, fields))
    except ValueError:
        values = [np.nan if field.strip().lower() in MISSING else float(field) for field in fields]
    return np.array(values, dtype=np.float64)


def numbers(
    fields: Sequence[str], what: str, where: str, lines: Sequence[int]
) -> NDArray[np.float64]:
    """Return (n,) float64 like `floats`; the error names the line without a number."""
    try:
        return floats(fields)
    except ValueError:
        for field, line in zip(fields, lines, strict=True):
            try:
                floats([field])
            except ValueError:
                raise ReadError(
                    f"{where}: line {line}: {what} is '{short(field)}', expected a number"
                ) from None
        raise


def whole_numbers(
    fields: Sequence[str], what: str, where: str, lines: Sequence[int]
) -> NDArray[np.int64]:
    """Return (n,) int64; the error names the line without a whole number."""
    values = np.empty(len(fields), dtype=np.int64)
    for row, field in enumerate(fields):
        try:
            values[row] = whole_number(field)
        except (ValueError, OverflowError):
            raise ReadError(
                f"{where}: line {lines[row]}: {what} is '{short(field)}', expected a whole number"
            ) from None
    return values


def whole_number(field: str) -> int:
    """Return a whole number exactly, also of ``7.0``; raise ValueError if it is none.

    >>> whole_number("9007199254740993.0")
    9007199254740993
    """
    if "_" in field:  # Python would read "2006_1" as 20061
        raise ValueError(field)
    try:
        return int(field)
    except ValueError:
        try:
            value = Decimal(field.strip())
            if not value.is_finite() or value.adjusted() > DIGITS or value != int(value):
                raise ValueError(field) from None
        except InvalidOperation:
            raise ValueError(field) from None
        return int(value)
