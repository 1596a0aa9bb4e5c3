"""The page of a comparison: the atlas with arrows, a volcano plot, tables, points, methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eutely.comparison import Comparison
from eutely.comparison.answer import RELATIVE, Answer, Outcome
from eutely.comparison.comparison import count, findings
from eutely.comparison.relative import positions
from eutely.comparison.scores import LEVEL
from eutely.comparison.words import NOTHING, found, headline, methods, power_words
from eutely.report.data import packed, page_data
from eutely.report.page import SCRIPTS, assembled, asset
from eutely.report.words import Tile, grouping, unit_of
from eutely.results import Report

STEPS = 65534
"""Values are whole numbers 0 .. STEPS; `UNKNOWN` stands for those that are not known."""

UNKNOWN = 65535

MOST_ROWS = 25
"""Sets and pairs in the tables of the page: the most significant ones."""


def render_comparison(comparison: Comparison, version: str, command: str = "") -> str:
    """Return the page as HTML that loads nothing from anywhere.

    Parameters
    ----------
    comparison
        what to show.
    version
        of eutely, for the methods.
    command
        that repeats it; "" if it is not known.
    """
    atlas = comparison.atlas
    data = page_data(atlas, Report(kind="atlas")) | {"compare": compare_data(comparison)}
    return assembled(
        "compare.html",
        (*SCRIPTS, "compare", "points"),
        style=asset("style.css"),
        data=data,
        atlas=atlas,
        headline=headline(comparison),
        tiles=tiles(comparison),
        found=[(answer.contrast.name, found(comparison, answer), power_words(answer))
               for answer in comparison.answers],
        nothing=NOTHING,
        unit=unit_of(atlas),
        grouping=grouping(atlas),
        methods=methods(comparison, version).split("\n"),
        whole=_rows(comparison.whole_frame(), ["measure"]),
        sets=_rows(comparison.set_frame(), ["kind", "set", "cells", "test"], MOST_ROWS),
        pairs=_rows(comparison.pair_frame(), ["left", "right"], MOST_ROWS),
        several=len(comparison.answers) > 1,
        left_out=comparison.left_out,
        command=command,
    )  # fmt: skip


def tiles(comparison: Comparison) -> list[Tile]:
    """Return the numbers of the first screen, about the first contrast."""
    answer = comparison.answers[0]
    numbers = ", ".join(f"{comparison.animals.count(label)} {label}" for label in comparison.labels)
    total, sure = count(answer), count(answer, sure=True)
    relative = count(answer, RELATIVE)
    family = {
        int(cell)
        for outcome in answer.cells
        for cell in np.flatnonzero(outcome.family <= LEVEL).tolist()
    }
    every = "all permutations" if answer.exact else "random permutations"
    return [
        Tile(f"{len(comparison.animals)}", "animals", numbers),
        Tile(f"{total}", "cells differ", f"in any test at 5% FDR; {sure} of them on sure names"),
        Tile(f"{relative}", "moved", "relative to their neighbours, at 5% FDR"),
        Tile(f"{len(family)}", "family-wise", "cells at 5% family-wise in one of the tests"),
        Tile(_p(answer.any_difference), "any difference", f"p of all tests together; {every}"),
    ]


def compare_data(comparison: Comparison) -> dict[str, Any]:
    """Return what the scripts of the page draw."""
    here = positions(comparison.atlas, comparison.cells)
    known = np.isfinite(here.relative)
    # Relative places in spacings; the scripts show them along x, y and z.
    scaled = np.where(known, here.relative / comparison.cells.spacing, np.nan)
    shown = {RELATIVE: scaled, **comparison.cells.values}
    return {
        "spacing": comparison.cells.spacing,
        "labels": list(comparison.labels),
        "animals": [comparison.labels.index(label) for label in comparison.animals],
        "specimens": list(comparison.cells.specimens),
        "weights": packed(np.rint(250 * comparison.cells.weights), "u1"),
        "values": {key: _whole_numbers(values) for key, values in shown.items()},
        "contrasts": [_contrast_data(answer) for answer in comparison.answers],
    }


def _contrast_data(answer: Answer) -> dict[str, Any]:
    return {
        "name": answer.contrast.name,
        "labels": list(answer.contrast.labels),
        "tests": [_test_data(outcome) for outcome in answer.cells],
    }


def _test_data(outcome: Outcome) -> dict[str, Any]:
    numbers = ("effect", "low", "high", "p", "q", "family", "pooled", "detectable")
    return {
        "test": outcome.test,
        "unit": outcome.unit,
        **{key: packed(getattr(outcome, key), "f4") for key in numbers},
        "doubtful": packed(outcome.doubtful, "u1"),
        "shifts": packed(outcome.shifts, "f4") if outcome.shifts.shape[1] else "",
        "found": len(findings(outcome)),
    }


def _whole_numbers(values: NDArray[np.float64]) -> dict[str, Any]:
    """Return values as whole numbers of 16 bits, with the lowest value and the step."""
    known = np.isfinite(values)
    low = float(values[known].min()) if known.any() else 0.0
    step = (float(values[known].max()) - low) / STEPS if known.any() else 1.0
    whole = np.rint((np.where(known, values, low) - low) / (step or 1.0))
    return {"low": low, "step": step or 1.0,
            "values": packed(np.where(known, whole, UNKNOWN), "u2")}  # fmt: skip


def _rows(table: pd.DataFrame, keys: Sequence[str], most: int | None = None) -> list[list[str]]:
    """Return rows of a table as texts, the most significant first if only ``most`` are wanted."""
    if most is not None:
        table = table.sort_values(["q", "p"], kind="stable").head(most)
    rows = []
    for row in table.to_dict("records"):
        effect = _amount(row["effect"], row["unit"])
        bounds = f"{_amount(row['low'], row['unit'])} to {_amount(row['high'], row['unit'])}"
        given = [str(row[key]) for key in keys]
        last = [str(row["group"])] if "group" in row else []
        rows.append([*given, effect, bounds, _p(row["p"]), _p(row["q"]), *last])
    return rows


def _amount(value: float, unit: str) -> str:
    if not np.isfinite(value):
        return "-"
    if unit == "ratio":
        return f"{100 * value:+.1f}%"
    return f"{value:.2f}" if unit == "spacings" else f"{value:+.3g}"


def _p(value: float) -> str:
    if not np.isfinite(value):
        return "-"
    return f"{value:.4f}" if value >= 1e-3 else f"{value:.1e}"
