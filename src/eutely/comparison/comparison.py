"""The noun `Comparison`: what differs between groups of animals, as tables and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.comparison.answer import SPACINGS, Answer, Outcome
from eutely.comparison.body import MEASURES_AS_THEY_ARE
from eutely.comparison.design import Design
from eutely.comparison.measured import Measured
from eutely.comparison.scores import LEVEL
from eutely.comparison.sets import CellSet

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

COLUMNS = ("cell", "name", "test", "effect", "low", "high", "p", "q", "doubtful")
"""Columns of the table of cells; ``group`` follows if there is more than one contrast."""

DIGITS = 6
"""Significant digits of numbers in tables."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What differs between groups of animals: in cells, sets of cells, pairs, and as a whole.

    Attributes
    ----------
    atlas
        whose cells are compared.
    design
        of the comparison.
    labels
        groups, the reference first.
    animals
        N labels, the group of each animal.
    cells
        what was measured of each animal.
    sets, pairs, whole
        sets of cells; left and right cells; measures of whole animals, (N,) each.
    answers
        results, one per contrast.
    left_out
        animals that could not be compared -> why.
    """

    atlas: Atlas
    design: Design
    labels: tuple[str, ...]
    animals: tuple[str, ...]
    cells: Measured
    sets: tuple[CellSet, ...]
    pairs: tuple[tuple[int, int], ...]
    whole: dict[str, Array]
    answers: tuple[Answer, ...]
    left_out: dict[str, str]

    def __repr__(self) -> str:
        found = [f"{count(answer)} in {answer.contrast.name}" for answer in self.answers]
        more = "; ..." if len(found) > 2 else ""
        return f"<Comparison of {len(self.animals)} animals: {'; '.join(found[:2])}{more}>"

    def name(self, cell: int) -> str:
        """Return the name of a cell, or its number."""
        return self.atlas.names[cell] or f"cell {cell}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per cell and test: the table ``compare.csv``.

        Columns: cell, name, test, effect, low, high, p, q, doubtful; and group, if there are
        several contrasts.
        """
        return self._table([answer.cells for answer in self.answers], self._cells(), COLUMNS)

    def details(self) -> pd.DataFrame:
        """Return the same rows with all that is known about them: the table ``details.csv``.

        Further columns: unit (of effects), family (p adjusted for all cells of the test),
        detectable (effect that would be found in 80% of such experiments), dx, dy, dz (shift in
        the frame and unit of the atlas), then for each group the animals that have the cell and its
        mean confidence.
        """
        import pandas as pd

        table = self._table([answer.cells for answer in self.answers], self._cells())
        shifts = []
        for answer in self.answers:
            for outcome in answer.cells:
                full = np.full((len(self.atlas), 3), np.nan)
                full[:, : outcome.shifts.shape[1]] = outcome.shifts
                shifts.append(full)
        table[["dx", "dy", "dz"]] = rounded(np.concatenate(shifts))
        tests = [len(answer.cells) for answer in self.answers]
        for label in self.labels:
            inside = self.cells.weights[np.array(self.animals) == label]
            seen = (inside > 0).sum(axis=0)
            table[f"animals in {label}"] = np.tile(seen, sum(tests))
            mean = np.divide(inside.sum(axis=0), seen, out=np.full(len(seen), np.nan),
                             where=seen > 0)  # fmt: skip
            table[f"confidence in {label}"] = np.tile(mean.round(4), sum(tests))
        return pd.DataFrame(table)

    def set_frame(self) -> pd.DataFrame:
        """Return the results of sets of cells: the table ``sets.csv``."""
        what = {
            "kind": [entry.kind for entry in self.sets],
            "set": [entry.name for entry in self.sets],
            "cells": [len(entry.cells) for entry in self.sets],
        }
        return self._table([answer.sets for answer in self.answers], what)

    def pair_frame(self) -> pd.DataFrame:
        """Return the results of left-right pairs: the table ``pairs.csv``."""
        what = {
            "left": [self.name(left) for left, _ in self.pairs],
            "right": [self.name(right) for _, right in self.pairs],
        }
        return self._table([answer.pairs for answer in self.answers], what)

    def whole_frame(self) -> pd.DataFrame:
        """Return the results of whole animals: the table ``animals.csv``.

        Effects are ratios minus 1, but of the measures in `MEASURES_AS_THEY_ARE`.
        """
        table = self._table(
            [answer.whole for answer in self.answers], {"measure": list(self.whole)}
        )
        plain = table["measure"].isin(self.as_they_are)
        for key in ("effect", "low", "high", "detectable"):
            values = table[key].to_numpy(np.float64)
            table[key] = rounded(np.where(plain, values, np.expm1(np.clip(values, -50, 50))))
        table["unit"] = np.where(plain, "as measured", "ratio")
        return table

    @property
    def as_they_are(self) -> set[str]:
        """Measures of whole animals that are no logarithms."""
        features = {key for key in self.cells.levels if key not in self.cells.logarithmic}
        return {*MEASURES_AS_THEY_ARE, *(f"median {key}" for key in features)}

    def _cells(self) -> dict[str, Any]:
        return {"cell": range(len(self.atlas)), "name": list(self.atlas.names)}

    def _table(
        self,
        outcomes: list[tuple[Outcome, ...]],
        what: dict[str, Any],
        columns: tuple[str, ...] = (),
    ) -> pd.DataFrame:
        """Return the rows of outcomes of all contrasts, one after the other."""
        import pandas as pd

        numbers = ("effect", "low", "high", "p", "q", "family", "detectable")
        tables = []
        for answer, results in zip(self.answers, outcomes, strict=True):
            for outcome in results:
                rows = {key: rounded(getattr(outcome, key)) for key in numbers}
                table = pd.DataFrame({**what, "test": outcome.test, **rows})
                table["doubtful"] = outcome.doubtful.astype(int)
                table["unit"] = outcome.unit
                table["group"] = answer.contrast.labels[-1] if not self.design.trend else "trend"
                tables.append(table)
        if not tables:
            return pd.DataFrame(columns=[*what, "test", *numbers, "doubtful", "unit"])
        whole = pd.concat(tables, ignore_index=True)
        several = len(self.answers) > 1
        if columns:
            return whole[[*columns, *(["group"] if several else [])]]
        return whole if several else whole.drop(columns="group")


def count(answer: Answer, test: str | None = None, *, sure: bool = False) -> int:
    """Return the number of cells with a finding at 5% FDR, in any test or in one.

    With ``sure``, findings that rest on doubtful names do not count.
    """
    cells: set[int] = set()
    for outcome in answer.cells:
        if test in (None, outcome.test):
            cells |= set(findings(outcome, sure=sure).tolist())
    return len(cells)


def findings(outcome: Outcome, *, sure: bool = False) -> NDArray[np.int64]:
    """Return the cells with a finding at 5% FDR, the most significant first."""
    found = outcome.q <= LEVEL
    if sure:
        found &= ~outcome.doubtful
    cells = np.flatnonzero(found)
    size = np.abs(np.nan_to_num(outcome.effect[cells]))
    order = np.lexsort((-size, outcome.p[cells], outcome.q[cells]))
    return np.asarray(cells[order], dtype=np.int64)


def rounded(values: Array) -> Array:
    """Return values with six significant digits, so that tables are the same everywhere."""
    with np.errstate(divide="ignore", invalid="ignore"):
        power = DIGITS - 1 - np.floor(np.log10(np.abs(values)))
    usable = np.isfinite(power) & (np.abs(power) < 300)
    factor = 10.0 ** np.where(usable, power, 0.0)
    return np.where(usable, np.round(values * factor) / factor, values)


def effect_words(outcome: Outcome, thing: int) -> str:
    """Return an effect as people write it: "0.52 spacings", "+12%", "0.40 fewer per animal"."""
    value = float(outcome.effect[thing])
    if outcome.unit == SPACINGS:
        return f"{value:.2f} spacings"
    if outcome.unit == "ratio":
        return f"{100 * value:+.0f}%"
    if outcome.unit == "nuclei":
        return f"{abs(value):.2f} {'fewer' if value < 0 else 'more'} per animal"
    return f"{value:+.3g}"
