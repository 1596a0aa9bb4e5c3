"""Figures of a comparison for papers: volcano plots, shifts in the atlas, detectable shifts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.comparison import Comparison
from eutely.comparison.answer import RELATIVE, Answer, Outcome
from eutely.comparison.comparison import findings
from eutely.plots.draw import MAIN, ODD, PALE, SOFT, empty_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

NAMED = 6
"""Findings whose names are written into a volcano plot."""

ENLARGED = 3.0
"""Times by which arrows are longer than shifts."""


class Volcano(NamedTuple):
    """A volcano plot of the cells of one test.

    Attributes
    ----------
    test, axis
        name of the test, and of its effects.
    cells
        (k,) int64, those that were tested.
    effects, strengths
        (k,) float64, effects and -log10 of pooled p-values.
    found, doubtful
        (k,) bool, findings, and those that rest on doubtful names.
    named
        rows of the most significant findings.
    """

    test: str
    axis: str
    cells: NDArray[np.int64]
    effects: Array
    strengths: Array
    found: NDArray[np.bool_]
    doubtful: NDArray[np.bool_]
    named: list[int]


def volcano(outcome: Outcome) -> Volcano:
    """Return what a volcano plot shows."""
    known = np.flatnonzero(np.isfinite(outcome.p) & np.isfinite(outcome.effect))
    place = {int(cell): row for row, cell in enumerate(known)}
    found = np.isin(known, findings(outcome))
    ratio = outcome.unit == "ratio"
    first = [cell for cell in findings(outcome).tolist() if cell in place]
    return Volcano(
        outcome.test,
        "change (%)" if ratio else f"difference ({outcome.unit})",
        np.asarray(known, dtype=np.int64),
        outcome.effect[known] * (100 if ratio else 1),
        -np.log10(outcome.pooled[known]),
        found,
        outcome.doubtful[known] & found,
        [place[cell] for cell in first[:NAMED]],
    )


@styled
def draw_volcanoes(comparison: Comparison, answer: Answer) -> Figure:
    """Draw the volcano plots of all tests of a contrast."""
    shown = [volcano(outcome) for outcome in answer.cells]
    shown = [one for one in shown if len(one.cells)]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = empty_figure(6 * columns, 5 * rows)
    for number, one in enumerate(shown):
        axes = figure.add_subplot(rows, columns, number + 1)
        for chosen, colour, size in (
            (~one.found, PALE, 4),
            (one.found & ~one.doubtful, MAIN, 9),
            (one.doubtful, ODD, 9),
        ):
            axes.scatter(one.effects[chosen], one.strengths[chosen], s=size, color=colour, lw=0)
        for row in one.named:
            where = (float(one.effects[row]), float(one.strengths[row]))
            axes.annotate(
                comparison.name(int(one.cells[row])), where, (3, -2),
                textcoords="offset points", fontsize=6,
            )  # fmt: skip
        axes.set(title=one.test, xlabel=one.axis, ylabel="-log10 p")
    return figure


@styled
def draw_shifts(comparison: Comparison, answer: Answer) -> Figure:
    """Draw the cells of the atlas, seen along z and along y, with arrows of significant shifts."""
    outcome = next(one for one in answer.cells if one.test == RELATIVE)
    means, moved = comparison.atlas.means, findings(outcome)
    extent = np.ptp(means, axis=0)
    height = 17.0 * (extent[1] + extent[2]) / max(float(extent[0]), 1e-9)
    figure = empty_figure(17.0, min(max(1.6 * height + 2.5, 5.0), 20.0))
    for row, (axis, name) in enumerate(((1, "y"), (2, "z"))):
        axes = figure.add_subplot(2, 1, row + 1)
        axes.scatter(means[:, 0], means[:, axis], s=3, color=PALE, lw=0)
        for doubtful, colour in ((False, MAIN), (True, ODD)):
            cells = moved[outcome.doubtful[moved] == doubtful]
            if len(cells):
                shift = ENLARGED * outcome.shifts[cells]
                axes.quiver(
                    means[cells, 0], means[cells, axis], shift[:, 0], shift[:, axis],
                    angles="xy", scale_units="xy", scale=1, color=colour, width=0.002,
                )  # fmt: skip
        axes.set_aspect("equal")
        axes.set_ylabel(f"{name} ({comparison.atlas.unit})")
    figure.axes[-1].set_xlabel(
        f"x ({comparison.atlas.unit}); shifts relative to neighbours, {ENLARGED:g} times as long"
    )
    return figure


@styled
def draw_detectable(comparison: Comparison, answer: Answer) -> Figure:  # noqa: ARG001
    """Draw how many cells would show a shift of each size with a probability of 80%."""
    outcome = next(one for one in answer.cells if one.test == RELATIVE)
    sizes = np.sort(outcome.detectable[np.isfinite(outcome.detectable)])
    figure = empty_figure(8, 5)
    axes = figure.add_subplot()
    axes.plot(sizes, 100 * np.arange(1, len(sizes) + 1) / max(len(sizes), 1), color=MAIN)
    axes.axhline(50, color=SOFT, lw=0.8, ls="--")
    axes.set(xlabel="shift (spacings)", ylabel="cells in which it is found (%)", ylim=(0, 101))
    if len(sizes):
        axes.set_xlim(0, 1.5 * float(np.median(sizes)))
    return figure


FIGURES = {"volcano": draw_volcanoes, "shifts": draw_shifts, "detectable": draw_detectable}
"""Figures of each contrast, by name."""


def comparison_figures(comparison: Comparison) -> dict[str, Figure]:
    """Draw all figures; with several contrasts their names end in a number."""
    several = len(comparison.answers) > 1
    return {
        f"{name}-{number + 1}" if several else name: draw(comparison, answer)
        for number, answer in enumerate(comparison.answers)
        for name, draw in FIGURES.items()
    }
