"""The annotated nuclei of one specimen: cells, confidence, colours, centroids; no Qt here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.annotations import COLUMNS
from eutely.io.columns import read_columns
from eutely.io.relabel import Colour, colour_of
from eutely.io.text import whole_numbers

REQUIRED = COLUMNS[:4]
"""Columns that a table of ``eutely annotate`` begins with; more may follow."""

CLEAR = (0.0, 0.0, 0.0, 0.0)
"""Colour of the background."""


@dataclass(frozen=True, eq=False)
class Named:
    """The content of a table of annotations: ``n`` nuclei.

    Attributes
    ----------
    specimen
        name of the individual.
    ids
        (n,) int64, label values.
    names
        n names; a cell without a name goes by its number; "" if the nucleus has no cell.
    confidence
        (n,) float64, NaN if the nucleus has no cell.
    alternatives
        n texts: the next best cells of each nucleus, in the form of the table.
    """

    specimen: str
    ids: NDArray[np.int64]
    names: tuple[str, ...]
    confidence: NDArray[np.float64]
    alternatives: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of nuclei."""
        return len(self.ids)

    def uncertain(self, below: float = 0.9, most: int = 200) -> NDArray[np.intp]:
        """Return the rows to check: nuclei without a cell, then the least certain ones.

        Parameters
        ----------
        below
            confidence from which a nucleus is certain.
        most
            rows to return at most.
        """
        confidence = np.where(np.isfinite(self.confidence), self.confidence, -1.0)
        rows = np.flatnonzero(confidence < below)
        return rows[np.argsort(confidence[rows], kind="stable")][:most]

    def colours(self) -> dict[int, Colour]:
        """Return the colour of each label; a name has the same colour in every specimen."""
        return {
            label: colour_of(name)
            for label, name in zip(self.ids.tolist(), self.names, strict=True)
        }


def as_pin(name: str) -> str | int:
    """Return the entry of a cell in a table of pins: its name, or its number if it has none."""
    numbered = re.fullmatch(r"cell (\d+)", name.strip(), re.IGNORECASE)
    return int(numbered[1]) if numbered else name.strip()


def is_annotation(path: Path) -> bool:
    """Tell whether ``path`` is a table of ``eutely annotate``, by its first line."""
    try:
        with path.open(encoding="utf-8") as file:
            return tuple(file.readline().strip().split(",")[: len(REQUIRED)]) == REQUIRED
    except (OSError, UnicodeDecodeError):
        return False


def read_named(path: Path | str) -> Named:
    """Read a table of ``eutely annotate``."""
    file = Path(path)
    if not is_annotation(file):
        raise ReadError(
            f"{file}: not a table of eutely annotate; expected the columns {', '.join(REQUIRED)}"
        )
    table = read_columns(file)
    fields = table.fields
    if not set(REQUIRED) <= set(fields):
        raise ReadError(f"{file}: columns {table.found()}; expected {', '.join(REQUIRED)}")
    ids = whole_numbers(fields["id"], "id", str(file), table.lines)
    confidence = table.numbers("confidence")
    if (confidence < 0).any() or (confidence > 1).any():
        raise ReadError(f"{file}: a confidence that is no probability; annotate again")
    alternatives = fields.get("alternatives", [""] * len(ids))
    names = [
        name or (f"cell {cell}" if cell else "")
        for name, cell in zip(fields["name"], fields["cell"], strict=True)
    ]
    return Named(file.stem, ids, tuple(names), confidence, tuple(alternatives))
