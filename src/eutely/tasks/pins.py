"""Pins: cells of nuclei that a person has settled, as rows and numbers of an atlas or a cohort."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eutely.align.affine import least_squares
from eutely.atlas import Atlas
from eutely.cells import Cells
from eutely.costs.near import FREE, NOBODYS
from eutely.errors import AtlasError, EutelyError
from eutely.evaluation import comparable, majority_names
from eutely.geometry import spacing
from eutely.io.annotations import ALL, FORMATS
from eutely.io.atlas import cells_of
from eutely.io.pins import read_pins
from eutely.io.read import read
from eutely.io.written import manifest_of
from eutely.specimen import UNMATCHED, Specimen

log = logging.getLogger("eutely")

PINS = "pins.csv"
"""The pins that a folder remembers."""

FEWEST = 8
"""Nuclei by which it is told whether a specimen is the same."""

Pins = Mapping[tuple[str, int], str | int]
"""(specimen, id of the nucleus) -> name or number of the cell, "" for what is no cell."""


def pins_of_specimens(pins: Pins, specimens: Sequence[Specimen]) -> list[dict[int, str | int]]:
    """Return for each specimen: row of the nucleus -> name or number of the cell.

    An id that a specimen does not have is an error; specimens that are not there are reported.
    """
    rows = {
        specimen.name: {id_: row for row, id_ in enumerate(specimen.ids.tolist())}
        for specimen in specimens
    }
    by_name: dict[str, dict[int, str | int]] = {name: {} for name in rows}
    absent = set()
    for (name, id_), what in pins.items():
        if name not in rows:
            absent.add(name)
        elif id_ not in rows[name]:
            raise EutelyError(f"pins: {name} has no nucleus with id {id_}; correct the table")
        else:
            by_name[name][rows[name][id_]] = what
    if absent:
        log.warning("pins of specimens that are not there: %s", ", ".join(sorted(absent)))
    return [by_name[specimen.name] for specimen in specimens]


def pins_of_folder(folder: Path, atlas: Atlas, specimens: Sequence[Specimen]) -> Pins | None:
    """Return the corrections of these specimens in a folder of annotations; None without any.

    Cells by their numbers are an error where the folder is of other cells than the atlas.
    """
    path = folder / PINS
    known = manifest_of(folder)
    if not path.exists() or PINS in known.files:  # the table of a specimen of that name
        return None
    names = {specimen.name for specimen in specimens}
    pins = {key: cell for key, cell in read_pins(path).items() if key[0] in names}
    numbered = any(isinstance(cell, int) and cell != UNMATCHED for cell in pins.values())
    if numbered and known.cells not in ("", cells_of(atlas)):
        raise EutelyError(
            f"{path} tells cells of another atlas by their numbers; add --no-pins, or give -o "
            "another folder"
        )
    _check_places(path, specimens, pins)
    if pins:
        count = "1 pin" if len(pins) == 1 else f"{len(pins)} pins"
        log.info("%s of %s; --no-pins annotates without them", count, path)
    return pins or None


def annotated_specimens(folder: Path) -> dict[str, Specimen]:
    """Return the specimens of a folder of annotations by name, from its table of all nuclei.

    Of two formats, the one that the manifest knows is of the last command.
    """
    names = [f"{ALL}.{form}" for form in FORMATS if (folder / f"{ALL}.{form}").exists()]
    if not names:
        return {}
    known = manifest_of(folder).files
    table = folder / min(names, key=lambda name: name not in known)
    return {specimen.name: specimen.without_names() for specimen in read(table)}


def _check_places(path: Path, specimens: Sequence[Specimen], pins: Pins) -> None:
    """Raise an error if a pinned nucleus lies elsewhere than when the folder was annotated.

    Then other nuclei have the ids, as after a new segmentation. In other units, turned or
    stretched, specimens are the same.
    """
    before = annotated_specimens(path.parent) if pins else {}
    for specimen in specimens:
        known = before.get(specimen.name)
        pinned = [id_ for name, id_ in pins if name == specimen.name]
        if known is None or not pinned:
            continue
        _, old, new = np.intersect1d(known.ids, specimen.ids, return_indices=True)
        if len(new) < FEWEST:
            continue
        places = specimen.centroids[new]
        matrix, shift = least_squares(known.centroids[old], places)
        apart = np.linalg.norm(known.centroids[old] @ matrix.T + shift - places, axis=1)
        far = specimen.ids[new][apart > spacing(places)]
        moved = np.intersect1d(far, pinned)
        if len(moved):
            raise EutelyError(
                f"{path} settles nucleus {moved[0]} of {specimen.name}, which lies elsewhere now: "
                "other nuclei have the ids of then; add --no-pins, or give -o another folder"
            )


def pinned_nuclei(
    atlas: Atlas,
    specimen: Specimen,
    pins: Mapping[int, str | int],
    order: NDArray[np.intp],
) -> NDArray[np.int32] | None:
    """Return (n,), the cell that each nucleus must be, see `eutely.solver.softassign.Rules`.

    Parameters
    ----------
    atlas
        whose cells are meant.
    specimen
        whose nuclei are pinned.
    pins
        row of the nucleus -> name or number of the cell.
    order
        (n,), the rows of the specimen in the order of the result.

    Returns
    -------
    pinned
        None without any pin.
    """
    if not pins:
        return None
    number = {comparable(name): cell for cell, name in enumerate(atlas.names) if name}
    pinned = np.full(len(specimen), FREE, np.int32)
    for row, what in pins.items():
        if what == "":
            pinned[row] = NOBODYS
        elif isinstance(what, int):
            if not UNMATCHED <= what < len(atlas):
                raise AtlasError(
                    f"{specimen.name}: id {specimen.ids[row]} is pinned to cell {what}, but the "
                    f"atlas has cells 0 to {len(atlas) - 1} (-1 for none)"
                )
            pinned[row] = NOBODYS if what == UNMATCHED else what
        elif comparable(what) in number:
            pinned[row] = number[comparable(what)]
        else:
            raise EutelyError(f"pins: the atlas has no cell called {what}; correct the table")
    used = pinned[pinned >= 0]
    if len(np.unique(used)) < len(used):
        twice = int(np.flatnonzero(np.bincount(used) > 1)[0])
        raise AtlasError(
            f"{specimen.name}: two nuclei are pinned to cell {twice}; keep one of them"
        )
    return pinned[order]


def with_pins(cells: Cells, pins: Sequence[Mapping[int, str | int]]) -> Cells:
    """Return cells with pinned nuclei in the cells of their names.

    A name means the cell that most of the nuclei pinned to it are in already. A nucleus that is in
    the way changes places; a name whose nuclei are in no cell gets a new one.

    Parameters
    ----------
    cells
        that were found.
    pins
        for each specimen: row of the nucleus -> name, "" where it is no cell.
    """
    if any(isinstance(what, int) for rows in pins for what in rows.values()):
        raise EutelyError("pins: cells have no numbers before an atlas is built; pin names")
    nuclei = np.stack(cells.nuclei)
    rows = [np.array(sorted(pinned), dtype=np.int64) for pinned in pins]
    names = [[str(pinned[row]) for row in sorted(pinned)] for pinned in pins]
    now = [labels[row] for labels, row in zip(cells.labels(), rows, strict=True)]
    given = majority_names(now, names, nuclei.shape[1])
    number = {comparable(name): cell for cell, name in enumerate(given) if name}
    for name in sorted({comparable(name) for row in names for name in row if name}):
        number.setdefault(name, nuclei.shape[1])
        if number[name] == nuclei.shape[1]:
            empty = np.full((len(nuclei), 1), UNMATCHED, nuclei.dtype)
            nuclei = np.concatenate([nuclei, empty], axis=1)
    for specimen, row, words in zip(nuclei, rows, names, strict=True):
        goals = [number[comparable(word)] if word else UNMATCHED for word in words]
        used = [goal for goal in goals if goal != UNMATCHED]
        if len(set(used)) < len(used):
            raise EutelyError("pins: one specimen has two nuclei of the same name; keep one")
        for nucleus, goal in zip(row.tolist(), goals, strict=True):
            _move(specimen, nucleus, goal)
    return cells.with_nuclei(nuclei[:, (nuclei >= 0).any(axis=0)])


def _move(specimen: NDArray[np.int32], nucleus: int, goal: int) -> None:
    """Put a nucleus into a cell of its specimen (m,); the nucleus that was there gets its place."""
    before = np.flatnonzero(specimen == nucleus)
    if goal == UNMATCHED:
        specimen[before] = UNMATCHED
        return
    if len(before):
        specimen[before[0]] = specimen[goal]
    specimen[goal] = nucleus
