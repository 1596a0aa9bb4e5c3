"""Names of nuclei in tables of their own: ``id, name``, or what ``eutely annotate`` writes."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eutely.errors import ReadError
from eutely.io.columns import SUFFIXES, Columns, read_columns
from eutely.io.headings import CENTROID, coordinates, with_words
from eutely.io.text import whole_numbers
from eutely.specimen import Specimen

log = logging.getLogger("eutely")

COHORT = ("specimen", "individual")
"""Columns with the name of the specimen; the first that exists counts."""

WORDS = ("id", "name", "cell", "confidence", *COHORT)
"""Columns that are found in any case of their letters."""


@dataclass(frozen=True)
class NucleusTable:
    """A table with one row per nucleus, of one or several specimens.

    Attributes
    ----------
    table
        with its columns in lower case.
    specimens
        name of the specimen of each row, or None if the table has no such column.
    ids
        of each row; unique within a specimen.
    """

    table: Columns
    specimens: Sequence[str] | None
    ids: Sequence[int]

    def column(self, key: str) -> list[str]:
        """Return the texts of a column, "" in all rows if there is none."""
        values = self.table.fields.get(key) or [""] * len(self.ids)
        return [value.strip() for value in values]


def read_nucleus_table(path: Path, *, expected: str, log_of: str = "") -> NucleusTable:
    """Read a table of nuclei that are known by their ids, without coordinates.

    Parameters
    ----------
    path
        in any format of a table.
    expected
        columns of such a table, for errors.
    log_of
        a table with a column of this name lists changes: an id may occur several times.
    """
    table = with_words(read_columns(path), WORDS)
    fields = dict(table.fields)
    label = next((key for key in fields if key.lower() == "label"), None)
    if "id" not in fields and label is not None:
        fields["id"] = fields.pop(label)
    table = replace(table, fields=fields)
    if "id" not in fields:
        cohort = expected.startswith(COHORT) and not set(COHORT) & set(fields)
        absent = "columns specimen and id" if cohort else "column id"
        raise ReadError(f"{path}: no {absent} (found: {table.found()}); expected {expected}")
    ids = whole_numbers(fields["id"], "id", str(path), table.lines).tolist()
    key = next((key for key in COHORT if key in fields), None)
    specimens = None if key is None else [name.strip() for name in fields[key]]
    seen: dict[tuple[str, int], int] = {}
    for row, (id_, line) in enumerate(zip(ids, table.lines, strict=True)):
        specimen = "" if specimens is None else specimens[row]
        if key is not None and not specimen:
            raise ReadError(f"{path}: line {line}: column {key} is empty; name the specimen")
        first = seen.setdefault((specimen, id_), line)
        if first != line and log_of not in fields:
            whose = f" of {specimen}" if specimen else ""
            raise ReadError(f"{path}: id {id_}{whose} is in lines {first} and {line}; keep one")
    return NucleusTable(table, specimens, ids)


def is_name_table(path: Path) -> bool:
    """Return whether a table has ids and names, but no coordinates."""
    try:
        table = with_words(read_columns(path), WORDS)
        placed = coordinates(table) is not None or set(CENTROID) <= set(table.fields)
    except ReadError:
        return False
    identified = "id" in table.fields or any(key.lower() == "label" for key in table.fields)
    return identified and "name" in table.fields and not placed


def names_beside(folder: Path, stem: str) -> Path | None:
    """Return the table of names called ``stem`` in a folder, or None."""
    for suffix in SUFFIXES:
        path = folder / f"{stem}{suffix}"
        if path.is_file() and is_name_table(path):
            return path
    return None


def _read(path: Path) -> NucleusTable:
    expected = "id, name, and specimen where there are several"
    rows = read_nucleus_table(path, expected=expected)
    if "name" not in rows.table.fields:
        raise ReadError(
            f"{path}: no column name (found: {rows.table.found()}); expected {expected}"
        )
    return rows


def read_names(path: Path) -> dict[int, str]:
    """Read the names of a specimen, id -> name, from a table with the columns ``id``, ``name``."""
    rows = _read(path)
    if rows.specimens is not None and len(set(rows.specimens)) > 1:
        raise ReadError(f"{path} has names of several specimens, expected one; keep its rows only")
    return {id_: name for id_, name in zip(rows.ids, rows.column("name"), strict=True) if name}


def with_names(specimens: Sequence[Specimen], path: Path) -> list[Specimen]:
    """Return specimens with the names of a table, or of a folder of tables named after them.

    A nucleus that the table has gets its name, also if that is empty; others keep what they have.

    Parameters
    ----------
    specimens
        to name.
    path
        a table with the columns ``id`` and ``name``, such as ``eutely annotate`` writes: of the
        specimen that the file is called after, or of the only one; or with a column ``specimen``.
    """
    named = _by_folder(specimens, path) if path.is_dir() else named_by(specimens, path)
    count = sum(sum(map(bool, specimen.names or ())) for specimen in named)
    of = "1 specimen" if len(named) == 1 else f"{len(named)} specimens"
    log.info("%s: %d nuclei of %s have names now", path, count, of)
    return named


def named_by(specimens: Sequence[Specimen], path: Path) -> list[Specimen]:
    """Return specimens with the names of one table, see `with_names`."""
    rows = _read(path)
    names = rows.column("name")
    by_name: dict[str, dict[int, str]] = {}
    if rows.specimens is None:
        known = {specimen.name for specimen in specimens}
        if path.stem not in known and len(specimens) != 1:
            raise ReadError(
                f"{path} has no column specimen, and none of the {len(specimens)} specimens is "
                f"called {path.stem}; add the column, or name the file after its specimen"
            )
        owner = path.stem if path.stem in known else specimens[0].name
        by_name[owner] = dict(zip(rows.ids, names, strict=True))
    else:
        for owner, id_, name in zip(rows.specimens, rows.ids, names, strict=True):
            by_name.setdefault(owner, {})[id_] = name
        absent = sorted(set(by_name) - {specimen.name for specimen in specimens})
        if len(absent) == len(by_name):
            raise ReadError(
                f"{path} names nuclei of {', '.join(absent[:3]) or 'no specimen'}, none of which "
                f"was read (first: {specimens[0].name}); correct the column specimen"
            )
        if absent:
            log.warning("%s: names of specimens that are not there: %s", path, ", ".join(absent))
    return [_named(specimen, by_name.get(specimen.name, {}), path) for specimen in specimens]


def _by_folder(specimens: Sequence[Specimen], folder: Path) -> list[Specimen]:
    result, without = [], []
    for specimen in specimens:
        path = names_beside(folder, specimen.name)
        if path is None:
            without.append(specimen.name)
            result.append(specimen)
        else:
            result += named_by([specimen], path)
    if len(without) == len(specimens):
        raise ReadError(
            f"{folder}: no table of names for any of {len(specimens)} specimens; expected files "
            f"like {specimens[0].name}.csv with the columns id and name"
        )
    if without:
        log.warning("%s: no names for %s", folder, ", ".join(without))
    return result


def _named(specimen: Specimen, names: Mapping[int, str], path: Path) -> Specimen:
    """Return a specimen with the given names, by id."""
    if not names:
        return specimen
    ids = specimen.ids.tolist()
    absent = sorted(set(names) - set(ids))
    if absent:
        some = ", ".join(map(str, absent[:5])) + (", ..." if len(absent) > 5 else "")
        raise ReadError(
            f"{path}: {specimen.name} has no nucleus with id {some} ({len(absent)} of {len(names)} "
            "ids); correct the table, or give the right one"
        )
    earlier = specimen.names or ("",) * len(specimen)
    given = [names.get(id_, before) for id_, before in zip(ids, earlier, strict=True)]
    return replace(specimen, names=tuple(given))
