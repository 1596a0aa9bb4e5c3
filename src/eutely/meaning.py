"""Features by meaning: which column of a specimen is which feature of an atlas.

Programs and laboratories spell the same channel differently: ``R``, ``red``, ``R_mean``,
``mNeptune2.5``. A column is compared by what is left without words that only say how it was
measured, and by one table of synonyms. ``ch0`` or ``channel1`` mean nothing by themselves: the
image says what they are, or ``--channels``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import NamedTuple

SYNONYMS: dict[str, tuple[str, ...]] = {
    "red": ("R", "red", "mNeptune2.5", "mNeptune", "Neptune"),
    "green": ("G", "green", "CyOFP1", "CyOFP"),
    "blue": ("B", "blue", "mTagBFP2", "mTagBFP", "TagBFP2", "TagBFP", "BFP"),
    "white": ("W", "white", "TagRFP-T", "TagRFP", "panneuronal"),
}
"""Meaning -> spellings, the preferred ones first: colours, and the proteins that have them in
NeuroPAL."""

AVERAGES = ("mean", "average", "avg", "median")
"""Words for a measurement that stands for the channel, the preferred ones first."""

FILLING = {"intensity", "channel", "ch", "colour", "color", "signal"}
"""Words that say nothing about which channel it is."""

OTHERWISE = {"total", "sum", "sd", "std", "var", "min", "max", "background"}
"""Words for measurements that do not stand for the channel."""

as_called: ContextVar[bool] = ContextVar("as_called", default=False)
"""Whether a person has said which column is which channel, so that nothing speaks against it."""

MOST_NAMED = 5
"""Columns not used that a line names."""

_IMAGE_CHANNEL = re.compile(r"channel\d+_(mean|median)")
"""What is measured in a channel of an image that has no name."""

_WORDS = re.compile(r"[^a-z0-9.]+|\.(?![0-9])|(?<![0-9])\.")


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


_KNOWN = {
    _letters(spelling): (meaning, rank)
    for meaning, spellings in SYNONYMS.items()
    for rank, spelling in enumerate(spellings)
}


@lru_cache(maxsize=4096)
def meaning(column: str) -> tuple[str, tuple[int, int]] | None:
    """Return what a column is about, and how it ranks among columns of that meaning.

    None where it is no measurement that stands for a channel.

    >>> meaning("R_mean"), meaning("mNeptune 2.5"), meaning("Mean intensity (red)")
    (('red', (1, 0)), ('red', (0, 2)), ('red', (1, 1)))
    >>> meaning("R_total"), meaning("channel1"), meaning("gfp_mean")
    (None, None, ('gfp', (1, 0)))
    """
    words = [word for word in _WORDS.split(column.lower()) if word]
    averages = [AVERAGES.index(word) + 1 for word in words if word in AVERAGES]
    rest = [word for word in words if word not in FILLING and word not in AVERAGES]
    base = _letters("".join(rest))
    if not base or OTHERWISE & set(rest) or re.fullmatch(r"(ch|channel|c)?\d+", base):
        return None
    known, rank = _KNOWN.get(base, (base, 0))
    return known, (max(averages, default=0), rank)


def matched(wanted: Sequence[str], columns: Iterable[str]) -> dict[str, str]:
    """Return for each wanted feature the column that has it; those that have none are left out.

    A column of the very name counts first, then one of the same meaning; none counts twice.

    >>> matched(("B", "G", "R"), ["red", "green_mean", "green_sd", "G_median", "voxels"])
    {'G': 'green_mean', 'R': 'red'}
    """
    there = list(columns)
    found = {name: name for name in wanted if name in there}
    free = [column for column in there if column not in found]
    ranked: dict[str, list[tuple[tuple[int, int], str]]] = {}
    for column in free:
        about = meaning(column)
        if about is not None:
            ranked.setdefault(about[0], []).append((about[1], column))
    for same in ranked.values():
        same.sort(reverse=True)
    for name in wanted:
        about = meaning(name)
        if name not in found and about is not None and ranked.get(about[0]):
            found[name] = ranked[about[0]].pop()[1]
    return {name: found[name] for name in wanted if name in found}


def one_spelling(cohort: Sequence[Iterable[str]]) -> list[str]:
    """Return the columns of all specimens, sorted; of spellings of one meaning the usual one.

    Spellings are one where no specimen has two of them.
    """
    tables = [set(columns) for columns in cohort]
    counts: dict[str, int] = {}
    for table in tables:
        for column in table:
            counts[column] = counts.get(column, 0) + 1
    same: dict[str, list[str]] = {}
    for column in sorted(counts):
        about = meaning(column)
        same.setdefault(column if about is None else f"{about[0]}\0", []).append(column)
    kept = []
    for spellings in same.values():
        apart = all(len(table & set(spellings)) <= 1 for table in tables)
        kept += [min(spellings, key=lambda name: (-counts[name], name))] if apart else spellings
    return sorted(kept)


class Told(NamedTuple):
    """What specimens have of the features of an atlas: one line, "" where all is there by name.

    Attributes
    ----------
    line
        for people.
    lacking
        whether a feature of the atlas is absent in any specimen.
    """

    line: str
    lacking: bool


def told(wanted: Sequence[str], cohort: Sequence[Iterable[str]]) -> Told:
    """Return what specimens have of the features of an atlas.

    Parameters
    ----------
    wanted
        features of the atlas that are columns.
    cohort
        columns of each specimen.
    """
    tables = [set(columns) for columns in cohort]
    found = [matched(wanted, sorted(columns)) for columns in tables]
    sources = {name: sorted({one[name] for one in found if name in one}) for name in wanted}
    parts = [
        ", ".join(f"{name} is {' or '.join(columns)}" for name, columns in sources.items()
                  if columns and columns != [name])
    ]  # fmt: skip
    lacking = [name for name in wanted if not sources[name]]
    if lacking:
        who = "this specimen does" if len(tables) == 1 else "these specimens do"
        taken = {column for columns in sources.values() for column in columns}
        free = [c for c in dict.fromkeys(c for one in cohort for c in one) if c not in taken]
        advice = _advice(free, lacking)
        parts.append(f"the atlas has {', '.join(lacking)}, {who} not: names are less sure{advice}")
    for name, columns in sources.items():
        count = sum(name not in one for one in found)
        if columns and count:
            parts.append(f"{name} is absent in {count} of {len(tables)} specimens")
    words = "; ".join(part for part in parts if part)
    complete = all(name in one for one in found for name in wanted)
    return Told(f"features: {words}" if words else "", not complete)


def _advice(free: Sequence[str], lacking: Sequence[str]) -> str:
    """Return how a person may say which of the columns not used are the features not found."""
    free = [c for c in free if not OTHERWISE & set(_WORDS.split(c.lower()))]
    if any(_IMAGE_CHANNEL.fullmatch(column) for column in free):
        return "; --channels names the channels of the image in their order, such as R,G,B"
    if not free:
        return ""
    some = ", ".join([*free[:MOST_NAMED], *(["..."] if free[MOST_NAMED:] else [])])
    which = "is it one" if len(lacking) == 1 else "are they some"
    renamed = ",".join(f"NAME={name}" for name in lacking)
    return f"; {which} of {some}? --features-map {renamed}"


def is_channel(name: str) -> bool:
    """Return whether a feature is a channel of an image: a known colour, or the mean of one.

    >>> is_channel("R"), is_channel("gfp_mean"), is_channel("volume"), is_channel("radius 1")
    (True, True, False, False)
    """
    about = meaning(name)
    return about is not None and (about[0] in SYNONYMS or about[1][0] > 0)
