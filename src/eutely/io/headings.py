"""Columns as other programs name them (Fiji, scikit-image, napari), under the names used here."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from eutely.errors import ReadError
from eutely.io.columns import Columns
from eutely.io.text import MISSING, whole_number
from eutely.specimen import MICROMETRE, VOXEL, unit_word

log = logging.getLogger("eutely")

CENTROID = ("x", "y", "z")
"""Columns of the centroid."""

WORDS = ("id", "name", "unit", "specimen", "individual", "series")
"""Columns of a table of nuclei that are found in any case of their letters."""

_LETTER = re.compile(
    r"(?P<before>(?:centroid|position|pos|cent(?:er|re))[ ._-]?)?(?P<axis>[xyz])(?P<mass>m?)"
    r"(?:\s*[\[(]\s*(?P<unit>[^\])]+?)\s*[\])]|"
    r"[ _](?P<word>[uµμ]m|microns?|[nm]m|px|pixels?|voxels?))?",
    re.IGNORECASE,
)
"""A coordinate by its letter: X, XM, X (microns), x_um, Centroid.X."""

_NUMBER = re.compile(r"(?P<what>centroid|axis)-(?P<axis>\d+)", re.IGNORECASE)
"""A coordinate by the number of its axis, slowest first: z, y, x."""

_NO_FEATURE = re.compile(
    r"(\w*centroid\w*|axis|bbox|coords)-\d+|b[xyz]|b-(width|height|depth)|index|slice|frame|"
    r"unnamed: ?\d+",
    re.IGNORECASE,
)
"""Columns of other programs that say where a nucleus lies, not what it looks like."""


_ALIGNED = re.compile(r"aligned[ _]", re.IGNORECASE)
"""Columns of NeuroPAL tables that were computed from the true names, and would leak them."""


@dataclass(frozen=True)
class Headings:
    """Which columns of a table hold coordinates.

    Attributes
    ----------
    columns
        of x, y, z.
    unit
        of the coordinates, "" if the headings do not say.
    others
        columns that are no features.
    """

    columns: tuple[str, str, str]
    unit: str = ""
    others: frozenset[str] = field(default=frozenset())


def standard(table: Columns) -> Columns:
    """Return a table with the columns ``x``, ``y``, ``z``, ``id``, ... of this package.

    A line of the log says which columns were taken. Without coordinates, only the other columns
    are renamed.
    """
    table = _with_names(with_words(table))
    headings = coordinates(table)
    fields = {key: column for key, column in table.fields.items() if not _ALIGNED.match(key)}
    taken = {}
    candidates = [key for key in fields if key.lower() == "label"]
    if headings is not None:
        taken = dict(zip(CENTROID, headings.columns, strict=True))
        # Fiji numbers rows in a nameless column, napari in one called index.
        candidates += [key for key in ("index", "") if key in fields]
        unit = [headings.unit] * len(table.lines)
        fields = {key: column for key, column in fields.items() if key not in headings.others}
        fields |= {key: table.fields[column] for key, column in taken.items()}
        if headings.unit:
            fields.setdefault("unit", unit)
    if "id" not in fields:
        label = next((key for key in candidates if _identifies(table, key)), None)
        if label is not None:
            fields.pop(label, None)
            fields["id"] = table.fields[label]
            taken["id"] = label or "the first column"
    if taken:
        words = ", ".join(f"{key} is {column}" for key, column in taken.items())
        said = f" (in {headings.unit})" if headings is not None and headings.unit else ""
        log.info("%s: %s%s", table.path, words, said)
    return replace(table, fields=fields)


def _with_names(table: Columns) -> Columns:
    """Return a table whose ``id`` holds names of cells (as in WormND) with a column ``name``."""
    ids = [value.strip() for value in table.fields.get("id", ())]
    words = [id_ for id_ in ids if id_.lower() not in MISSING]
    if "name" in table.fields or not words or not all(map(_is_word, words)):
        return table
    log.info("%s: the column ID holds names, so it is read as the name", table.path)
    fields = {"name" if key == "id" else key: column for key, column in table.fields.items()}
    return replace(table, fields=fields)


def _is_word(field: str) -> bool:
    """Return whether a field begins with a letter and is no number, such as inf."""
    try:
        float(field)
    except ValueError:
        return field[:1].isalpha()
    return False


def _is_whole(field: str) -> bool:
    try:
        whole_number(field)
    except ValueError:
        return False
    return True


def with_words(table: Columns, words: Sequence[str] = WORDS) -> Columns:
    """Return a table whose columns ``words`` are in lower case."""
    renamed: dict[str, str] = {}
    for word in words:
        same = [key for key in table.fields if key.lower() == word]
        if word in same or not same:
            continue
        if len(same) > 1:
            raise ReadError(f"{table.path}: columns {' and '.join(same)}; rename one")
        renamed[same[0]] = word
    if not renamed:
        return table
    fields = {renamed.get(key, key): column for key, column in table.fields.items()}
    return replace(table, fields=fields)


def coordinates(table: Columns) -> Headings | None:
    """Return the columns of the coordinates of another program.

    None if the table has x, y, z as they are, or none at all.
    """
    fields = table.fields
    if set(CENTROID) <= set(fields):
        return None
    groups: dict[tuple[bool, bool, str], dict[str, str]] = {}
    others = {key for key in fields if _NO_FEATURE.fullmatch(key)}
    for key in fields:
        match = _LETTER.fullmatch(key)
        if match is None:
            continue
        unit = _unit(match["unit"] or match["word"] or "")
        group = groups.setdefault((bool(match["mass"]), bool(match["before"]), unit), {})
        group.setdefault(match["axis"].lower(), key)
        others.add(key)
    complete = [key for key, group in groups.items() if len(group) == 3]
    if complete:
        best = min(complete, key=lambda key: (key[0], key[2] != MICROMETRE, key[2] != "", key[1]))
        x, y, z = (groups[best][axis] for axis in CENTROID)
        return Headings((x, y, z), best[2], frozenset(others))
    _refuse_mixed(table, groups)
    return _numbered(table, frozenset(others))


def _unit(text: str) -> str:
    """Return the package's word for the unit of a heading."""
    if not text:
        return ""
    return VOXEL if text.lower() in {"px", "pix", "vox"} else unit_word(text)


def _refuse_mixed(
    table: Columns, groups: Mapping[tuple[bool, bool, str], Mapping[str, str]]
) -> None:
    """Raise an error if x, y, z are all there, but in different units."""
    for kind in {key[:2] for key in groups}:
        same = {key[2]: group for key, group in groups.items() if key[:2] == kind}
        if len(same) > 1 and {axis for group in same.values() for axis in group} == set(CENTROID):
            names = ", ".join(name for group in same.values() for name in group.values())
            raise ReadError(f"{table.path}: mixed units ({names}); convert x, y, z to one unit")


def _numbered(table: Columns, others: frozenset[str]) -> Headings | None:
    """Return the columns centroid-0, ... or axis-0, ...; the last three are z, y, x."""
    for what in ("centroid", "axis"):
        axes = {
            int(match["axis"]): key
            for key in table.fields
            if (match := _NUMBER.fullmatch(key)) and match["what"].lower() == what
        }
        count = len(axes)
        if not axes or sorted(axes) != list(range(count)):
            continue
        if count < 3:
            raise ReadError(
                f"{table.path}: positions in {count}D ({', '.join(axes.values())}), expected three "
                "axes z, y, x; measure the whole volume, not its planes"
            )
        for axis in range(count - 3):
            values = len(set(table.fields[axes[axis]]))
            if values > 1:
                raise ReadError(
                    f"{table.path}: {count} axes, and {axes[axis]} has {values} values; keep the "
                    "rows of one time point or channel, the last three axes are z, y, x"
                )
        z, y, x = (axes[axis] for axis in range(count - 3, count))
        return Headings((x, y, z), VOXEL, others)
    return None


def _identifies(table: Columns, key: str) -> bool:
    """Return whether a column can be the id: whole numbers that differ within each specimen."""
    values = table.fields[key]
    if not all(map(_is_whole, values)):
        return False
    cohort = table.fields.get("specimen", table.fields.get("individual"))
    different = set(values) if cohort is None else set(zip(cohort, values, strict=True))
    if len(different) < len(values):
        log.info("%s: %s has equal values, so it is not the id", table.path, key or "first column")
        return False
    return True
