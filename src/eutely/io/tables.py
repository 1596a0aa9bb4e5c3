"""Tables of nuclei (CSV, TSV, Parquet, Excel) of a specimen or a cohort, without loss."""

import csv
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError, WriteError
from eutely.io.columns import PARQUET, TEXT, Columns, read_columns
from eutely.io.headings import CENTROID, standard
from eutely.io.text import floats, plain_numbers, whole_numbers
from eutely.io.whole import new_file, new_text, whole
from eutely.io.written import tables_in
from eutely.specimen import UNKNOWN, Specimen, unit_word

log = logging.getLogger("eutely")

RADII = ("r1", "r2", "r3")
"""Columns of the three radii."""

AXES = tuple(f"a{axis}{along}" for axis in "123" for along in "xyz")
"""Columns of the unit vectors of the three axes."""

COHORT = ("specimen", "individual")
"""Columns with the name of the specimen; the first that exists counts."""

MOST_SPECIMENS = 10_000
"""Specimens of a table; more are likely another column, such as one number per row."""

RESERVED = {"id", "name", "unit", "series", "r", *CENTROID, *RADII, *AXES, *COHORT}
"""Columns that are not features."""

INDEX = re.compile(r"index|Unnamed: ?[0-9]+|__index_level_[0-9]+__")
"""Columns with the numbers of rows, which pandas writes; an order is no feature."""

TEXTS = ("name", "unit", "series", "alternatives", *COHORT)
"""Columns that are not numbers."""

ANNOTATED = ("cell", "confidence")
"""Columns that, together, say what an atlas made of a nucleus; they are no features."""

BESIDES = ("contested", "mirrored", "view")
"""Columns that come with them, and are no features either."""


def read_table(path: Path, name: str) -> list[Specimen]:
    """Read the specimens of a table.

    Parameters
    ----------
    path
        CSV, TSV (the delimiter follows from the header), Parquet or Excel; for columns see
        docs/formats.md.
    name
        of the specimen, if the table has no column ``specimen`` or ``individual``.
    """
    return specimens_of(read_columns(path), name)


def specimens_of(columns: Columns, name: str) -> list[Specimen]:
    """Return the specimens of a table that was read, see `read_table`."""
    table, path = standard(columns), columns.path
    absent = [key for key in CENTROID if key not in table.fields]
    if absent:
        advice = "rename the columns of the centroid to x, y, z"
        if len(absent) == 3 and {"id", "name"} <= set(table.fields):
            advice = "names belong beside a volume of the same name, or into --names"
        raise ReadError(f"{path}: no column {', '.join(absent)} (found: {table.found()}); {advice}")
    table = _plain(table)
    if 0 < len(set(RADII) & set(table.fields)) < 3:
        raise ReadError(f"{path}: not all of the columns r1, r2, r3; give all, or one column r")
    features = _features(table)
    cohort = next((key for key in COHORT if key in table.fields), None)
    if cohort is None:
        return [_specimen(table, name, features)]
    groups: dict[str, list[int]] = {}
    for row, key in enumerate(table.fields[cohort]):
        groups.setdefault(key.strip(), []).append(row)
    if len(groups) > MOST_SPECIMENS:
        raise ReadError(
            f"{path}: {len(groups)} specimens by column {cohort}, expected at most "
            f"{MOST_SPECIMENS}; is it the right column?"
        )
    if "" in groups:
        raise ReadError(
            f"{path}: line {table.lines[groups[''][0]]}: column {cohort} is empty; give each "
            "row the name of its specimen"
        )
    return [
        _specimen(table.rows(rows), key, {word: values[rows] for word, values in features.items()})
        for key, rows in groups.items()
    ]


def _plain(table: Columns) -> Columns:
    """Return a table without decimal commas and thousands separators."""
    fields = {key: column for key, column in table.fields.items() if key and key not in TEXTS}
    needed = [key for key in (*CENTROID, "r", *RADII, *AXES) if key in fields]
    plain = plain_numbers(fields, needed, table.delimiter == ";", str(table.path), table.lines)
    return replace(table, fields={**table.fields, **plain})


def _features(table: Columns) -> dict[str, NDArray[np.float64]]:
    """Return the other columns that contain only numbers."""
    features, ignored = {}, []
    annotated = {*ANNOTATED, *BESIDES} if set(ANNOTATED) <= set(table.fields) else set()
    for key in table.fields:
        if key in RESERVED or not key or key in annotated or INDEX.fullmatch(key):
            continue
        try:
            features[key] = floats(table.fields[key])
        except ValueError:
            ignored.append(key)
    if ignored:
        some = ", ".join(ignored[:10]) + (", ..." if len(ignored) > 10 else "")
        log.info("%s: columns without numbers ignored: %s", table.path, some)
    return features


def _specimen(table: Columns, name: str, features: Mapping[str, Any]) -> Specimen:
    """Build a specimen from all rows of ``table``."""
    fields, where = table.fields, str(table.path)
    points = np.stack([table.numbers(key) for key in CENTROID], axis=1)
    ids = whole_numbers(fields["id"], "id", where, table.lines) if "id" in fields else None
    if "r1" in fields:
        radii = np.stack([table.numbers(key) for key in RADII], axis=1)
    elif "r" in fields:
        radii = np.repeat(table.numbers("r")[:, None], 3, axis=1)
    else:
        radii = np.full((len(points), 3), np.nan)
    order = np.argsort(-radii, axis=1, kind="stable")
    axes = None
    if all(_known(fields.get(key, ())) for key in AXES):
        flat = np.stack([table.numbers(key) for key in AXES], axis=1)
        axes = np.take_along_axis(flat.reshape(-1, 3, 3), order[:, :, None], axis=1)
    units = sorted({unit_word(unit) for unit in fields.get("unit", ())} or {UNKNOWN})
    if len(units) > 1:
        raise ReadError(f"{where}: {name} has mixed units ({', '.join(units)}); convert to one")
    series = sorted(set(map(str.strip, fields.get("series", ()))) or {""})
    if len(series) > 1:
        raise ReadError(f"{where}: {name} is of several series ({', '.join(series)}); give one")
    return Specimen.from_arrays(
        name,
        points,
        ids=ids,
        radii=np.take_along_axis(radii, order, axis=1),
        names=fields.get("name"),
        axes=axes,
        features={key: values for key, values in features.items() if _known(fields[key])},
        unit=units[0],
        series=series[0],
    )


def _known(column: Sequence[str]) -> bool:
    """Return whether a column has any entry; a column without entries counts as absent."""
    return any(map(str.strip, column))


def write_table(specimens: Specimen | Sequence[Specimen], path: Path) -> None:
    """Write a specimen or a cohort, so that reading restores it bit for bit.

    Parameters
    ----------
    specimens
        one, or several with different names; a column ``specimen`` is written for several, and if
        the name of the file is not that of the specimen.
    path
        ``.csv``, ``.tsv`` or ``.parquet``; written completely or not at all.
    """
    cohort = [specimens] if isinstance(specimens, Specimen) else list(specimens)
    suffix = path.suffix.lower()
    if suffix not in TEXT + PARQUET:
        raise WriteError(f"cannot write {path}: expected a name that ends in .csv, .tsv, .parquet")
    columns = _columns(cohort, named=[specimen.name for specimen in cohort] != [path.stem])
    with whole(path) as aside:
        if suffix in PARQUET:
            import pyarrow
            import pyarrow.parquet

            with new_file(aside) as binary:
                pyarrow.parquet.write_table(pyarrow.table(columns), binary)
            return
        with new_text(aside) as file:
            delimiter = "," if suffix == ".csv" else "\t"
            writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*map(_texts, columns.values()), strict=True))


def write_tables(cohort: Sequence[Specimen], folder: Path, suffix: str = ".csv") -> None:
    """Write a table for each specimen into ``folder``, named after it; all tables or none.

    A table that a person changed or made there is kept as ``.bak``.
    """
    names = [f"{specimen.name}{suffix}" for specimen in cohort]
    for name in names:
        if Path(name).name != name or name.startswith("."):
            raise WriteError(f"'{name}' cannot be the name of a file; rename the specimen")
    with tables_in(folder) as aside:
        for specimen, name in zip(cohort, names, strict=True):
            write_table(specimen, aside / name)


def _texts(column: Sequence[Any]) -> list[str]:
    """Return each value as the shortest text from which it can be restored."""
    return ["" if value is None else str(value) for value in column]


def _columns(cohort: Sequence[Specimen], named: bool) -> dict[str, list[Any]]:
    """Return the columns as Python values, None where unknown; ``named`` adds ``specimen``."""
    features = list(dict.fromkeys(key for specimen in cohort for key in specimen.features))
    taken = RESERVED | ({*ANNOTATED, *BESIDES} if set(ANNOTATED) <= set(features) else set())
    for key in features:
        other = INDEX.fullmatch(key) or key.lower() in ("name", "series", *COHORT)
        if key in taken or not key or key != key.strip() or other:
            raise WriteError(f"a feature called '{key}' cannot be a column of a table; rename it")
    columns: dict[str, list[Any]] = {}

    def add(key: str, values: Sequence[Any], before: int) -> None:
        column = columns.setdefault(key, [])
        column += [None] * (before - len(column)) + list(values)

    before = 0
    for specimen in cohort:
        if named:
            add("specimen", [specimen.name] * len(specimen), before)
        add("id", specimen.ids.tolist(), before)
        for key, values in zip(CENTROID, specimen.centroids.T, strict=True):
            add(key, values.tolist(), before)
        for key, values in zip(RADII, specimen.radii.T, strict=True):
            add(key, _or_none(values), before)
        if specimen.names is not None:
            add("name", specimen.names, before)
        add("unit", [specimen.unit] * len(specimen), before)
        if specimen.series:
            add("series", [specimen.series] * len(specimen), before)
        if specimen.axes is not None:
            for key, values in zip(AXES, specimen.axes.reshape(-1, 9).T, strict=True):
                add(key, _or_none(values, present=True), before)
        for key in specimen.features:
            add(key, _or_none(specimen.features[key], present=True), before)
        before += len(specimen)
    if not any(value is not None for key in RADII for value in columns.get(key, ())):
        for key in RADII:
            columns.pop(key, None)
    for column in columns.values():
        column += [None] * (before - len(column))
    return columns


def _or_none(values: NDArray[np.float64], present: bool = False) -> list[float | None]:
    """Return values with NaN as None, unless all are NaN in a column that must be ``present``."""
    keep = present and np.isnan(values).all()
    return [value if keep or value == value else None for value in values.tolist()]
