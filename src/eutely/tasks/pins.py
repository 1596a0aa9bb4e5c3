"""Pins: cells of nuclei that a person has settled, as rows and numbers of an atlas or a cohort."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.errors import EutelyError
from eutely.evaluation import comparable, majority_names
from eutely.find.refine import Cohort
from eutely.specimen import Specimen

log = logging.getLogger("eutely")

NO_CELL = -1


def by_specimen(
    pins: Mapping[tuple[str, int], str | int], specimens: Sequence[Specimen]
) -> list[dict[int, str | int]]:
    """Return for each specimen: row of the nucleus -> name or cell.

    An id that a specimen does not have is an error; specimens that are not there are reported.
    """
    rows = {one.name: {id_: row for row, id_ in enumerate(one.ids.tolist())} for one in specimens}
    found: dict[str, dict[int, str | int]] = {name: {} for name in rows}
    absent = set()
    for (name, id_), what in pins.items():
        if name not in rows:
            absent.add(name)
        elif id_ not in rows[name]:
            raise EutelyError(f"pins: {name} has no nucleus with id {id_}; correct the table")
        else:
            found[name][rows[name][id_]] = what
    if absent:
        log.warning("pins of specimens that are not there: %s", ", ".join(sorted(absent)))
    return [found[one.name] for one in specimens]


def cells_of(atlas: Atlas, pins: Mapping[int, str | int]) -> dict[int, int]:
    """Return row of the nucleus -> cell of the atlas, -1 where it is none."""
    number = {comparable(name): cell for cell, name in enumerate(atlas.names) if name}
    found = {}
    for row, what in pins.items():
        if isinstance(what, int):
            found[row] = what
        elif not what:
            found[row] = NO_CELL
        elif comparable(what) in number:
            found[row] = number[comparable(what)]
        else:
            raise EutelyError(f"pins: the atlas has no cell called {what}; correct the table")
    return found


def pinned(cohort: Cohort, pins: Sequence[Mapping[int, str | int]]) -> Cohort:
    """Return the cohort with pinned nuclei in the cells of their names.

    A name means the cell that most of the nuclei pinned to it are in already. Whoever is in the
    way changes places; a name whose nuclei are in no cell gets a new one.

    Parameters
    ----------
    cohort
        after its cells were found.
    pins
        for each specimen: row of the nucleus -> name, "" where it is no cell.
    """
    if any(isinstance(what, int) for own in pins for what in own.values()):
        raise EutelyError("pins: cells have no numbers before an atlas is built; pin names")
    nuclei = np.stack(cohort.nuclei)
    labels = cohort.labels()
    rows = [np.array(sorted(own), dtype=np.int64) for own in pins]
    names = [[str(own[row]) for row in sorted(own)] for own in pins]
    cells = [label[row] for label, row in zip(labels, rows, strict=True)]
    given = majority_names(cells, names, nuclei.shape[1])
    number = {comparable(name): cell for cell, name in enumerate(given) if name}
    for name in sorted({comparable(name) for row in names for name in row if name}):
        number.setdefault(name, nuclei.shape[1])
        if number[name] == nuclei.shape[1]:
            lone = np.full((len(nuclei), 1), NO_CELL, nuclei.dtype)
            nuclei = np.concatenate([nuclei, lone], axis=1)
    for own, row, words in zip(nuclei, rows, names, strict=True):
        goals = [number[comparable(word)] if word else NO_CELL for word in words]
        used = [goal for goal in goals if goal != NO_CELL]
        if len(set(used)) < len(used):
            raise EutelyError("pins: one specimen has two nuclei of the same name; keep one")
        for nucleus, goal in zip(row.tolist(), goals, strict=True):
            _move(own, nucleus, goal)
    kept = (nuclei >= 0).any(axis=0)
    return replace(cohort, nuclei=tuple(np.ascontiguousarray(nuclei[:, kept])))


def _move(own: NDArray[np.int32], nucleus: int, goal: int) -> None:
    """Put a nucleus into a cell; the one that was there gets its place."""
    before = np.flatnonzero(own == nucleus)
    if goal == NO_CELL:
        own[before] = NO_CELL
        return
    if len(before):
        own[before[0]] = own[goal]
    own[goal] = nucleus
