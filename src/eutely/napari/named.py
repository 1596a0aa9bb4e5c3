"""The annotated nuclei of one specimen: where, which cell, how sure, which colour; no Qt here."""

from __future__ import annotations

import colorsys
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import ndimage

from eutely.errors import ReadError

COLUMNS = ("id", "cell", "name", "confidence")
"""What tables of ``eutely annotate`` hold; more columns may follow."""

GREY = (0.5, 0.5, 0.5, 1.0)
"""Colour of nuclei without a cell."""

CLEAR = (0.0, 0.0, 0.0, 0.0)

Colour = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Named:
    """What a table of annotations says about ``n`` nuclei.

    Attributes
    ----------
    specimen
        its name.
    ids
        (n,) int64, label values.
    names
        n names; a cell without a name goes by its number, "" stands for no cell.
    confidence
        (n,) float64, NaN where there is no cell.
    alternatives
        n times what else a nucleus may be, as in the table.
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
        """Return the rows to look at: nuclei without a cell, then the least certain ones."""
        sureness = np.where(np.isfinite(self.confidence), self.confidence, -1.0)
        rows = np.flatnonzero(sureness < below)
        return rows[np.argsort(sureness[rows], kind="stable")][:most]

    def colours(self) -> dict[int | None, Colour]:
        """Return the colour of each label; the same name has the same one in every specimen."""
        return {
            label: colour_of(name)
            for label, name in zip(self.ids.tolist(), self.names, strict=True)
        }


def colour_of(name: str) -> Colour:
    """Return the colour of a cell, from its name alone; grey for none."""
    if not name:
        return GREY
    dice = hashlib.sha256(name.strip().upper().encode()).digest()
    lightness, saturation = 0.5 + 0.2 * dice[4] / 255, 0.6 + 0.35 * dice[5] / 255
    hue = int.from_bytes(dice[:4], "big") / 2**32
    return (*colorsys.hls_to_rgb(hue, lightness, saturation), 1.0)


def as_pin(name: str) -> str | int:
    """Return what a table of pins says of a cell: its name, or the number of one without a name."""
    numbered = re.fullmatch(r"cell (\d+)", name.strip(), re.IGNORECASE)
    return int(numbered[1]) if numbered else name.strip()


def is_annotation(path: Path) -> bool:
    """Tell whether ``path`` is a table of ``eutely annotate``, by its first line."""
    try:
        with path.open(encoding="utf-8") as file:
            return tuple(file.readline().strip().split(",")[: len(COLUMNS)]) == COLUMNS
    except (OSError, UnicodeDecodeError):
        return False


def read_named(path: Path | str) -> Named:
    """Read a table of ``eutely annotate``."""
    place = Path(path)
    if not is_annotation(place):
        raise ReadError(
            f"{place}: not a table of eutely annotate; expected the columns {', '.join(COLUMNS)}"
        )
    table = pd.read_csv(place, dtype=str, keep_default_na=False)
    try:
        ids = np.array([int(label) for label in table["id"]], dtype=np.int64)
        confidence = np.array([float(sure or "nan") for sure in table["confidence"]])
    except ValueError as error:
        raise ReadError(f"{place}: {error}; expected what eutely annotate wrote") from error
    others = table["alternatives"] if "alternatives" in table else pd.Series([""] * len(table))
    names = [
        name or (f"cell {cell}" if cell else "")
        for name, cell in zip(table["name"], table["cell"], strict=True)
    ]
    return Named(place.stem, ids, tuple(names), confidence, tuple(others))


def places(labels: NDArray[Any], ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the centroid (z, y, x), in voxels, of each label of a volume; NaN where absent."""
    whole = np.asarray(labels)
    found = np.full((len(ids), 3), np.nan)
    there = np.isin(ids, np.unique(whole))
    if there.any():
        ones = np.ones((1,) * whole.ndim)
        weights = np.broadcast_to(ones, whole.shape)
        found[there] = ndimage.center_of_mass(weights, whole, ids[there])
    return found
