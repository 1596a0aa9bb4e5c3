"""What a person gave a run folder survives a new build: names of cells, and pins."""

from __future__ import annotations

import csv
import logging
from collections import Counter
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from eutely.atlas import Atlas
from eutely.errors import EutelyError, ReadError
from eutely.io.atlas import cells_of, read_atlas
from eutely.io.pins import read_pins, write_pins
from eutely.io.text import read_text
from eutely.io.whole import alone, keep_copy, remove
from eutely.io.written import hash_of, manifest_of
from eutely.store.folder import RunFolder
from eutely.tasks.pins import PINS, Pins

if TYPE_CHECKING:
    from eutely.tasks.build import Built

log = logging.getLogger("eutely")

ATLAS, CLIQUES = "atlas.h5", "cliques.csv"

SAME = 0.5
"""Share of the nuclei of an old and of a new cell that must be common for them to be the same."""


def pins_of_run(run: RunFolder, given: Pins | None, digests: Mapping[str, str]) -> Pins:
    """Return the pins of a build: those given, else those that its folder remembers.

    Specimens that are not what they were in the build before, by the digests of their content, are
    said: other nuclei may have their ids.
    """
    if given is not None:
        return given
    path = run.path / PINS
    known = read_pins(path) if path.exists() else {}
    if known:
        count = "1 pin" if len(known) == 1 else f"{len(known)} pins"
        log.info("%s of %s; --no-pins builds without them", count, path)
    before = run.inputs() if known else {}
    pinned = sorted({name for name, _ in known})
    changed = [name for name in pinned if before.get(name, "") not in ("", digests.get(name, ""))]
    if changed := [name for name in changed if name in digests]:
        log.warning(
            "%s: %s changed since the build before; check that the ids of nuclei are the same",
            path, ", ".join(changed),
        )  # fmt: skip
    return known


def remember_pins(run: RunFolder, pins: Pins) -> None:
    """Keep the pins of a build in its folder; a table that changes is kept as ``pins.csv.bak``.

    So is a log of which all pins were taken back: it says who decided what.
    """
    path = run.path / PINS
    with alone(path):
        _remember(pins, path)


def _remember(pins: Pins, path: Path) -> None:
    known = read_pins(path) if path.exists() else {}
    if dict(pins) == known:
        return
    if path.exists():
        kept = keep_copy(path).name
        log.info(
            "%s: %d pins instead of %d, which are kept as %s", path, len(pins), len(known), kept
        )
    if pins:
        write_pins(pins, path)
    else:
        remove(path)


def with_kept_names(built: Built, run: RunFolder) -> Atlas:
    """Return the atlas of a build with the names that the atlas in its folder has.

    A cell keeps its name if it has more than half of its nuclei in common with the cell of that
    name. An error says how many names would be lost, or that the atlas is not of the same build as
    ``cliques.csv``, unless the folder was opened with ``force``; then the named atlas is kept as
    ``atlas.h5.bak``.
    """
    before = _atlas_before(run.path)
    if before is None or not any(before.names):
        return built.atlas
    if any(built.atlas.names):  # of a supervised build
        if before.names != built.atlas.names:
            copy = keep_copy(run.path / ATLAS)
            log.warning("the atlas in %s had other names; it is kept as %s", run.path, copy.name)
        return built.atlas
    apart = False
    if cells_of(before) == cells_of(built.atlas):
        names = list(before.names)
    else:
        cells = _cells_before(run.path)
        apart = not _of_one_build(run.path, before, cells)
        partners = {} if apart else same_cells(cells, built)
        names = [before.names[cell] if (cell := partners.get(new, -1)) >= 0 else ""
                 for new in range(len(built.atlas))]  # fmt: skip
    named, kept = sum(map(bool, before.names)), sum(map(bool, names))
    if kept < named:
        if not run.force:
            why = f"{CLIQUES} there is of another build" if apart else "its cells have changed"
            raise EutelyError(
                f"{run.path} holds an atlas with {named} names, of which {named - kept} would be "
                f"lost, since {why}; build into another folder, or add --force"
            )
        copy = keep_copy(run.path / ATLAS)
        log.warning(
            "%d of %d names are lost; the named atlas is %s", named - kept, named, copy.name
        )
    log.info("%d of %d names carried over from the atlas before", kept, named)
    return built.atlas.named(names)


def same_cells(before: dict[tuple[str, int], int], built: Built) -> dict[int, int]:
    """Return new cell -> old cell that it is the same as.

    Parameters
    ----------
    before
        (specimen, id) -> old cell.
    built
        the new cells.
    """
    common: Counter[tuple[int, int]] = Counter()
    new_sizes: Counter[int] = Counter()
    for specimen, cells in zip(built.specimens, built.cells, strict=True):
        for id_, new in zip(specimen.ids.tolist(), cells.tolist(), strict=True):
            if new >= 0:
                new_sizes[new] += 1
                old = before.get((specimen.name, id_))
                if old is not None:
                    common[new, old] += 1
    old_sizes = Counter(before.values())
    return {
        new: old
        for (new, old), count in common.items()
        if count > SAME * new_sizes[new] and count > SAME * old_sizes[old]
    }


def _atlas_before(folder: Path) -> Atlas | None:
    try:
        return read_atlas(folder / ATLAS) if (folder / ATLAS).exists() else None
    except ReadError as error:
        log.warning("%s; it is kept as %s", error, keep_copy(folder / ATLAS).name)
        return None


def _of_one_build(folder: Path, atlas: Atlas, cells: Mapping[tuple[str, int], int]) -> bool:
    """Return whether ``cliques.csv`` of a folder, read as ``cells``, tells the cells of its atlas.

    The manifest says of which cells it is. Where a person has saved it again, or the folder is
    older, each cell must have as many nuclei as the atlas has seen.
    """
    known = manifest_of(folder)
    if known.cells and known.cells != cells_of(atlas):
        return False
    if known.cells and known.files.get(CLIQUES) == hash_of(folder / CLIQUES):
        return True
    count = Counter(cells.values())
    return all(count[cell] == seen for cell, seen in enumerate(atlas.seen.tolist()))


def _cells_before(folder: Path) -> dict[tuple[str, int], int]:
    """Read ``cliques.csv`` of the build before: (specimen, id) -> cell."""
    path = folder / CLIQUES
    try:
        rows = list(csv.DictReader(StringIO(read_text(path), newline="")))
        return {(row["specimen"], int(row["id"])): int(row["cell"]) for row in rows if row["cell"]}
    except (ReadError, ValueError, KeyError, TypeError, csv.Error) as error:
        log.warning("cannot read %s (%s): names cannot be carried over", path, error)
        return {}
