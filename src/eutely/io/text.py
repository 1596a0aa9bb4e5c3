"""Numbers in text files: exact, with the line number of anything else in errors."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""Fields (in lower case) that stand for an unknown number."""


def floats(fields: Sequence[str]) -> NDArray[np.float64]:
    """Return (n,) float64, NaN for missing fields; raise ValueError if a field is no number."""
    # Python would read "2006_1" as 20061, although it is more likely a name.
    if any("_" in field for field in fields):
        raise ValueError("not a number")
    return np.array(
        [np.nan if field.strip().lower() in MISSING else float(field) for field in fields],
        dtype=np.float64,
    )


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
                    f"{where}: line {line}: {what} is '{field}', expected a number"
                ) from None
        raise


def whole_numbers(
    fields: Sequence[str], what: str, where: str, lines: Sequence[int]
) -> NDArray[np.int64]:
    """Return (n,) int64; the error names the line without a whole number."""
    values = np.empty(len(fields), dtype=np.int64)
    for row, field in enumerate(fields):
        try:
            values[row] = _whole(field)
        except (ValueError, OverflowError):
            raise ReadError(
                f"{where}: line {lines[row]}: {what} is '{field}', expected a whole number"
            ) from None
    return values


def _whole(field: str) -> int:
    try:
        return int(field)
    except ValueError:
        value = float(field)
        if value != int(value) or "_" in field:
            raise ValueError(field) from None
        return int(value)
