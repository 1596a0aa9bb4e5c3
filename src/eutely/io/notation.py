"""Decimal commas and thousands separators: numbers of a table in one plain notation."""

import re
from collections.abc import Iterator, Mapping, Sequence

from eutely.errors import ReadError
from eutely.io.text import MISSING

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
