"""Tables about animals and cells for a comparison: groups, covariates, sets of cells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eutely.errors import ReadError
from eutely.io.columns import read_columns

SPECIMEN, GROUP = "specimen", "group"

Table = dict[str, dict[str, str]]
"""Column -> specimen or cell -> value."""


def read_groups(path: Path) -> tuple[dict[str, str], Table]:
    """Read groups and covariates of animals.

    Parameters
    ----------
    path
        table with the columns ``specimen``, ``group``, and further ones as covariates.

    Returns
    -------
    groups
        specimen -> group.
    covariates
        column -> specimen -> value.
    """
    table = _keyed(path, (SPECIMEN, "individual"))
    if GROUP not in table:
        found = ", ".join(table) or "none"
        raise ReadError(
            f"{path}: no column group (beside specimen: {found}); rename the column of the groups"
        )
    groups = table.pop(GROUP)
    for specimen, group in groups.items():
        if not group:
            raise ReadError(f"{path}: {specimen} has no group; give it one, or leave the row out")
    return groups, table


def read_cell_groups(path: Path) -> Table:
    """Read sets of cells: a column ``name`` or ``cell``, and columns that each define sets."""
    table = _keyed(path, ("name", "cell"))
    table.pop("cell", None)
    if not table:
        raise ReadError(f"{path}: no column besides the cell; expected one that names sets")
    return table


def _keyed(path: Path, keys: tuple[str, ...]) -> Table:
    """Return the columns of a table by those of its rows' keys."""
    columns = read_columns(path)
    fields: Mapping[str, list[str]] = {
        key.strip().lower(): [value.strip() for value in values]
        for key, values in columns.fields.items()
        if key.strip()
    }
    key = next((key for key in keys if key in fields), None)
    if key is None:
        raise ReadError(
            f"{path}: no column {keys[0]} (found: {columns.found()}); rename the column"
        )
    names = fields[key]
    if not names:
        raise ReadError(f"{path} has no rows; add one for each {keys[0]}")
    seen: set[str] = set()
    for name, line in zip(names, columns.lines, strict=True):
        if not name:
            raise ReadError(f"{path}: line {line} has no {key}; fill it in, or remove the line")
        if name in seen:
            raise ReadError(f"{path}: line {line}: {name} is there twice; give it once")
        seen.add(name)
    return {
        column: dict(zip(names, values, strict=True))
        for column, values in fields.items()
        if column != key
    }
