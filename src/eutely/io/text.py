"""Text files: encoding, exact numbers, decimal commas; errors name the line of anything else."""

import codecs
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
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


SPACES = r" '\u2019\u00a0\u202f\u2009"
"""Characters that only ever separate thousands."""


def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    groups = rf"[0-9]{{1,3}}(?:[{SPACES}{thousands}][0-9]{{3}})+"
    return re.compile(
        rf"(?=.*[0-9])[+\-\u2212]?(?:{groups}|[0-9]+)?(?:{decimal}[0-9]*)?(?:[eE][+\-]?[0-9]+)?",
        re.ASCII,
    )


POINT = _pattern(r"\.", ",")
"""Numbers such as 1,234.5."""

COMMA = _pattern(",", r"\.")
"""Numbers such as 1.234,5."""

DOUBTFUL_POINT = re.compile(r"[+\-\u2212]?[0-9]{1,3}\.[0-9]{3}")
"""1.234, which a table with decimal commas may mean as 1234."""

Fields = Mapping[str, Sequence[str]]


def plain_numbers(
    fields: Fields, needed: Sequence[str], semicolons: bool, where: str, lines: Sequence[int]
) -> dict[str, Sequence[str]]:
    """Return all columns, with decimal points and without thousands separators.

    The notation is the one that explains all numbers of the ``needed`` columns. Where both
    notations do, and mean different numbers, an error says so.

    Parameters
    ----------
    fields
        columns of a table as text.
    needed
        columns that must be numbers; any other one is changed only if all its fields are numbers.
        If the needed ones are whole numbers throughout, the others decide.
    semicolons
        whether fields are separated by semicolons, as is usual only with decimal commas.
    where, lines
        file, and line number of each row, for errors.
    """
    columns = {key: fields[key] for key in needed}
    if not any(map(_unusual, columns.values())):
        rest = {key: column for key, column in fields.items() if key not in columns}
        if any("." in field for column in columns.values() for field in column) or not any(
            map(_unusual, rest.values())
        ):
            return dict(fields)
        columns = {key: column for key, column in rest.items() if _only_numbers(column)}
    pattern = POINT
    if any("," in field for column in columns.values() for field in column):
        try:
            pattern = _notation(columns, semicolons, where, lines)
        except ReadError:
            if set(columns) & set(needed):
                raise
            return dict(fields)  # features of unclear numbers count as text
    changed = dict(fields)
    for key, column in fields.items():
        if key in needed or _only_numbers(column):
            changed[key] = [_plain(field, pattern) for field in column]
    return changed


def _unusual(column: Sequence[str]) -> bool:
    """Return whether any field has a comma, or a separator of thousands other than a point."""
    text = "".join(column)
    return not text.isascii() or "," in text or " " in text or "'" in text


def _only_numbers(column: Sequence[str]) -> bool:
    """Return whether all fields are missing or numbers in one of the notations."""
    words = {field.strip() for field in column}
    return all(
        word.lower() in MISSING or POINT.fullmatch(word) or COMMA.fullmatch(word) for word in words
    )


def _notation(
    columns: Fields, semicolons: bool, where: str, lines: Sequence[int]
) -> re.Pattern[str]:
    """Return the notation that explains all numbers of ``columns``, some of which have commas."""
    entries = list(_entries(columns, lines))
    if not any("," in field for *_, field in entries):
        return POINT  # commas are in fields that are no numbers in any notation
    point, comma = (_unexplained(entries, pattern) for pattern in (POINT, COMMA))
    if point and comma:
        raise ReadError(
            f"{where}: {comma} beside {point}: decimal points or decimal commas? Write all "
            "numbers with a decimal point and without thousands separators"
        )
    if comma:
        return POINT
    if not point and not (semicolons and all("," in field for *_, field in entries)):
        key, line, field = next(entry for entry in entries if "," in entry[2])
        raise ReadError(
            f"{where}: line {line}: {key} is '{field}', which may mean {field.replace(',', '.')} "
            f"or {field.replace(',', '')}; write it with a decimal point and without thousands "
            "separators"
        )
    clear = any(field.count(".") > 1 or {".", ","} <= set(field) for *_, field in entries)
    for key, line, field in entries:
        if DOUBTFUL_POINT.fullmatch(field) and not clear:
            raise ReadError(
                f"{where}: line {line}: {key} is '{field}' in a table with decimal commas, which "
                f"may mean {field} or {field.replace('.', '')}; write all numbers in one way"
            )
    return COMMA


def _entries(columns: Fields, lines: Sequence[int]) -> Iterator[tuple[str, int, str]]:
    """Yield column, line and text of each number."""
    for key, column in columns.items():
        for line, field in zip(lines, column, strict=True):
            word = field.strip()
            if word.lower() not in MISSING and (POINT.fullmatch(word) or COMMA.fullmatch(word)):
                yield key, line, word


def _unexplained(entries: Sequence[tuple[str, int, str]], pattern: re.Pattern[str]) -> str:
    """Describe the first number that is none in a notation; "" if all are."""
    for key, line, field in entries:
        if not pattern.fullmatch(field):
            return f"{key} is '{field}' in line {line}"
    return ""


def _plain(field: str, pattern: re.Pattern[str]) -> str:
    """Return a number in plain notation; what is no number in ``pattern`` stays as it is."""
    word = field.strip()
    if not pattern.fullmatch(word):
        return field
    word = re.sub(rf"[{SPACES}{',' if pattern is POINT else '.'}]", "", word)
    return word.replace(",", ".").replace("\u2212", "-")
