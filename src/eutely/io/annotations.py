"""Tables of annotated nuclei, one a specimen, and the list of those to look at first."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.errors import WriteError
from eutely.evaluation import score
from eutely.store.folder import versions
from eutely.tasks.outliers import outliers, warn
from eutely.tasks.story import Facts, names_of, write_page
from eutely.specimen import Specimen

FIRST = "look-here-first.csv"

COLUMNS = ("id", "cell", "name", "confidence", "alternatives")

COLUMNS = ("id", "cell", "name", "confidence", "alternatives")

DOUBTFUL = 0.1
"""Share of the nuclei of each specimen that are worth a look: the least certain ones."""


def write_annotations(
    found: Sequence[Annotation], names: Sequence[str], folder: Path, least: float = 0.0
) -> None:
    """Write ``<specimen>.csv`` for each specimen, and the list of doubtful nuclei.

    Parameters
    ----------
    found
        one for each specimen.
    names
        of the cells of the atlas, for the alternatives; a cell without one goes by its number.
    folder
        to write into; all tables appear or none.
    least
        confidence below which cell and name are left empty; the cell is then the first
        alternative.
    """
    tables = {f"{one.specimen}.csv": list(_rows(one, names, least)) for one in found}
    for name in tables:
        if Path(name).name != name or name.startswith(".") or name == FIRST:
            raise WriteError(f"'{name}' cannot be the name of a file; rename the specimen")
    heads: dict[str, tuple[str, ...]] = dict.fromkeys(tables, COLUMNS)
    tables[FIRST] = [row for one in found for row in _doubtful(one, names)]
    heads[FIRST] = ("specimen", *COLUMNS)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".") as aside:
            for name, rows in tables.items():
                with Path(aside, name).open("w", newline="", encoding="utf-8") as file:
                    writer = csv.writer(file, lineterminator="\n")
                    writer.writerow(heads[name])
                    writer.writerows(rows)
            for name in tables:
                Path(aside, name).replace(folder / name)
    except OSError as error:
        raise WriteError(f"cannot write into {folder}: {error.strerror or error}") from error


def report_annotations(
    found: Sequence[Annotation],
    atlas: Atlas,
    specimens: Sequence[Specimen],
    folder: Path,
    command: str = "",
) -> None:
    """Write the page about annotated specimens; accuracy where the specimens have names.

    Parameters
    ----------
    found, specimens
        annotations, and the specimens that they are about.
    atlas
        that they were made with.
    folder
        to write into.
    command
        that made them.
    """
    scores = [
        score(specimen, one.names)
        for specimen, one in zip(specimens, found, strict=True)
        if specimen.names and any(atlas.names)
    ]
    unlike = outliers(found, len(atlas))
    warn(unlike)
    facts = Facts(
        "annotate",
        found,
        [one.cells for one in found],
        names_of(specimens),
        np.full(len(found), np.nan),
        unlike,
        scores,
        {"versions": versions(), "command": command},
    )
    write_page(folder, atlas, facts)


def _rows(one: Annotation, names: Sequence[str], least: float) -> Iterator[tuple[Any, ...]]:
    for id_, cell, name, sure, others in zip(
        one.ids.tolist(),
        one.cells.tolist(),
        one.names,
        one.confidence.tolist(),
        one.alternatives,
        strict=True,
    ):
        if cell < 0:
            yield id_, "", "", "", _listed(others, names)
        elif sure < least:
            yield id_, "", "", "", _listed([(cell, sure), *others], names)
        else:
            yield id_, cell, name, f"{sure:.4f}", _listed(others, names)


def _listed(others: Iterable[tuple[int, float]], names: Sequence[str]) -> str:
    """Return cells and their probabilities as ``NAME:0.12;NAME:0.03``."""
    return ";".join(f"{names[cell] or cell}:{share:.3g}" for cell, share in others)


def _doubtful(one: Annotation, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the least certain nuclei, the worst first."""
    matched = np.flatnonzero(one.cells >= 0)
    count = int(np.ceil(DOUBTFUL * len(matched)))
    worst = matched[np.argsort(one.confidence[matched], kind="stable")[:count]]
    rows = list(_rows(one, names, 0.0))
    for nucleus in worst.tolist():
        yield one.specimen, *rows[nucleus]
