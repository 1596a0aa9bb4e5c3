"""Tables of annotated nuclei."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eutely.annotation import Annotation
from eutely.errors import WriteError
from eutely.io.whole import new_bytes, new_text
from eutely.io.written import OURS, tables_in
from eutely.specimen import UNMATCHED, Specimen

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("id", "cell", "name", "confidence", "alternatives", "contested", "mirrored")
"""Columns of the table of a specimen: ``contested`` is 1 for a nucleus that more likely is a cell
that another nucleus has, ``mirrored`` is the same for all its nuclei."""

FIRST = "look-here-first.csv"
"""Table of the least certain nuclei of all specimens; its first column is the specimen."""

ALL, FORMATS = "annotations", ("csv", "parquet")
"""Table of all nuclei of all specimens, with their coordinates, and its formats."""

DOUBTFUL = 0.1
"""Fraction of the matched nuclei of each specimen in that table: the least certain ones."""

Row = tuple[Any, ...]


def write_annotations(
    annotations: Sequence[Annotation],
    names: Sequence[str],
    folder: Path,
    min_confidence: float = 0.0,
    *,
    specimens: Sequence[Specimen] = (),
    table: str = "csv",
    given: bool = False,
) -> None:
    """Write ``<specimen>.csv`` for each specimen, the doubtful nuclei, and one table of all.

    Tables in the folder that a person has changed are kept as ``.bak``.

    Parameters
    ----------
    annotations
        one per specimen.
    names
        of the cells of the atlas, for the alternatives; a cell without a name goes by its number.
    folder
        to write into; all tables appear or none.
    min_confidence
        nuclei with a lower confidence get no cell and no name; their cell becomes the first
        alternative.
    specimens
        that the annotations are about, for the table of all: coordinates, radii and features; ()
        for no such table.
    table
        format of the table of all: ``csv`` or ``parquet``.
    given
        whether the table of all has the names of the specimens too, in a column ``given``.
    """
    check_names([annotation.specimen for annotation in annotations])
    tables: dict[str, list[Row]] = {}
    for annotation in annotations:
        nuclei = _rows(annotation, names, min_confidence)
        tables[f"{annotation.specimen}.csv"] = [COLUMNS, *nuclei]
    doubtful = (row for annotation in annotations for row in _doubtful(annotation, names))
    tables[FIRST] = [("specimen", *COLUMNS), *doubtful]
    with tables_in(folder, instead_of=other_tables(table) if specimens else ()) as aside:
        for name, rows in tables.items():
            with new_text(aside / name) as file:
                csv.writer(file, lineterminator="\n").writerows(rows)
        if specimens:
            whole_table = tidy(annotations, specimens, min_confidence, given=given)
            if table == "parquet":
                content = whole_table.to_parquet(index=False)
            else:
                text = whole_table.to_csv(index=False, lineterminator="\n")
                content = text.encode(errors="backslashreplace")
            new_bytes(aside / f"{ALL}.{table}", content)


def written_files(specimens: Iterable[str], table: str = "csv") -> list[str]:
    """Return the names of the files that `write_annotations` writes about these specimens."""
    return [*(f"{name}.csv" for name in specimens), FIRST, f"{ALL}.{table}"]


def other_tables(table: str) -> list[str]:
    """Return the files that the table of all nuclei is in, in other formats than ``table``."""
    return [f"{ALL}.{form}" for form in FORMATS if form != table]


def check_names(specimens: Iterable[str]) -> None:
    """Raise an error if a specimen's name cannot be that of its table."""
    for specimen in specimens:
        name = f"{specimen}.csv"
        if Path(name).name != name or name.startswith("."):
            raise WriteError(f"'{name}' cannot be the name of a file; rename the specimen")
        if specimen.casefold() in OURS:  # some file systems do not tell letters by their case
            raise WriteError(f"{name} is a file of eutely's own; rename the specimen {specimen}")


def tidy(
    annotations: Sequence[Annotation],
    specimens: Sequence[Specimen],
    min_confidence: float = 0.0,
    *,
    given: bool = False,
) -> pd.DataFrame:
    """Return one table of all specimens, one row per nucleus in input order.

    Columns: specimen, id, cell, name, confidence, x, y, z, unit (coordinates of the input), r1,
    r2, r3, then all features, then contested, mirrored and view (the share of the atlas's cells
    that the specimen shows), then with ``given`` the names of the specimens. A feature that has the
    name of one of these columns gets the prefix ``input_``.
    """
    import pandas as pd

    tables = []
    for annotation, specimen in zip(annotations, specimens, strict=True):
        withheld = annotation.confidence < min_confidence
        known = (annotation.cells != UNMATCHED) & ~withheld
        cells = pd.array(np.where(known, annotation.cells, 0), dtype="Int64")
        cells[~known] = pd.NA
        named = zip(annotation.names, known.tolist(), strict=True)
        columns: dict[str, Any] = {
            "specimen": specimen.name,
            "id": specimen.ids,
            "cell": cells,
            "name": [name if sure else "" for name, sure in named],
            "confidence": np.where(known, annotation.confidence.round(4), np.nan),
            **dict(zip("xyz", specimen.centroids.T, strict=True)),
            "unit": specimen.unit,
            **dict(zip(("r1", "r2", "r3"), specimen.radii.T, strict=True)),
        }
        taken = {*columns, "contested", "mirrored", "view", "given"}
        features = {
            f"input_{key}" if key in taken else key: values
            for key, values in specimen.features.items()
        }
        last: dict[str, Any] = {
            "contested": (annotation.contested & ~withheld).astype(int),
            "mirrored": int(annotation.mirrored),
            "view": round(annotation.shown, 4),
        }
        if given:
            last["given"] = list(specimen.names or [""] * len(specimen))
        tables.append(pd.DataFrame(columns | features).assign(**last))
    return pd.concat(tables, ignore_index=True)


def _rows(
    annotation: Annotation, names: Sequence[str], min_confidence: float = 0.0
) -> Iterator[Row]:
    """Yield one row per nucleus, in input order."""
    hand = int(annotation.mirrored)
    for id_, cell, name, confidence, others, contested in zip(
        annotation.ids.tolist(),
        annotation.cells.tolist(),
        annotation.names,
        annotation.confidence.tolist(),
        annotation.alternatives,
        annotation.contested.tolist(),
        strict=True,
    ):
        if cell == UNMATCHED:
            yield id_, "", "", "", _listed(others, names), int(contested), hand
        elif confidence < min_confidence:
            yield id_, "", "", "", _listed([(cell, confidence), *others], names), 0, hand
        else:
            probability = f"{confidence:.4f}"
            yield id_, cell, name, probability, _listed(others, names), int(contested), hand


def _listed(alternatives: Iterable[tuple[int, float]], names: Sequence[str]) -> str:
    """Return cells and their shares as ``NAME:0.12;NAME:0.03``."""
    return ";".join(f"{names[cell] or cell}:{share:.3g}" for cell, share in alternatives)


def _doubtful(annotation: Annotation, names: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of the least certain nuclei, the worst first."""
    matched = np.flatnonzero(annotation.cells != UNMATCHED)
    count = int(np.ceil(DOUBTFUL * len(matched)))
    worst = matched[np.argsort(annotation.confidence[matched], kind="stable")[:count]]
    rows = list(_rows(annotation, names))
    for nucleus in worst.tolist():
        yield annotation.specimen, *rows[nucleus]
