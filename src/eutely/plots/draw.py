"""Figures for papers, drawn with matplotlib from the numbers of `eutely.plots.compute`."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.errors import EutelyError, install
from eutely.plots import compute
from eutely.results import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAIN = "#16708a"
"""Colour of dots, bars and lines, that of the page."""

PALE = "#cfe3e8"
"""Colour of areas behind dots, that of the page."""

ODD = "#d0561c"
"""Colour of what stands out, that of the page."""

SOFT = "#5b6673"
"""Colour of reference lines, that of the page."""

STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # text stays text that an editor can change
    "pdf.fonttype": 42,  # the same for PDF
    "svg.hashsalt": "eutely",  # equal figures give equal bytes
}
"""Settings of matplotlib with which all figures are drawn."""

P = ParamSpec("P")


class NothingToShowError(EutelyError):
    """The report does not contain what a figure shows."""


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Make ``draw`` use the style of the package, whatever the style of the session."""

    @wraps(draw)
    def drawn(*arguments: P.args, **options: P.kwargs) -> Figure:
        with _matplotlib().rc_context(STYLE):
            return draw(*arguments, **options)

    return drawn


@styled
def consistency(report: Report) -> Figure:
    """Draw the consistency of each specimen, lowest first: nuclei that other specimens confirm."""
    ranked = compute.consistency(report.specimens)
    _need(len(ranked.values), "the consistency of a specimen")
    figure, axes = _figure(12, 5)
    places = np.arange(len(ranked.values))
    for marked, colour in ((False, MAIN), (True, ODD)):
        chosen = ranked.marked == marked
        axes.scatter(places[chosen], 100 * ranked.values[chosen], s=9, color=colour)
    for place in np.flatnonzero(ranked.marked)[: compute.NAMED_OUTLIERS].tolist():
        where = (place, 100 * float(ranked.values[place]))
        axes.annotate(
            ranked.names[place], where, (4, -3), textcoords="offset points", color=ODD, fontsize=7
        )
    axes.axhline(100 * float(np.median(ranked.values)), color=SOFT, lw=0.8, ls="--")
    axes.set(xlabel="specimens, least consistent first", ylabel="nuclei confirmed (%)", xticks=[])
    return figure


@styled
def accuracy(report: Report) -> Figure:
    """Draw a violin of accuracies, with one dot per specimen."""
    if report.evaluation is None:
        raise NothingToShowError(_missing("an evaluation"))
    shape = compute.accuracy(report.evaluation)
    figure, axes = _figure(6, 7)
    possible = shape.grid <= 1
    grid, density = 100 * shape.grid[possible], shape.density[possible]
    axes.fill_betweenx(grid, -density, density, color=PALE, lw=0)
    axes.scatter(shape.offsets, 100 * shape.values, s=7, color=MAIN, alpha=0.8, lw=0)
    mean = 100 * float(shape.values.mean())
    axes.hlines(mean, -1, 1, color=SOFT, lw=0.8, ls="--")
    axes.set(ylabel="nuclei named right (%)", xticks=[], title=f"mean {mean:.1f}%")
    axes.set_ylim(top=min(100.5, 100 * float(shape.grid[-1])))
    return figure


@styled
def confidence(report: Report) -> Figure:
    """Draw a histogram of the confidences of all nuclei."""
    values = compute.confidences(report.specimens)
    _need(len(values), "a confidence")
    figure, axes = _figure(8, 5)
    edges = np.linspace(0, 1, compute.BARS + 1)
    for unsure, colour in ((True, ODD), (False, MAIN)):
        axes.hist(values[(values < compute.UNSURE) == unsure], bins=edges.tolist(), color=colour)
    axes.set(xlabel="confidence", ylabel="nuclei", xlim=(0, 1))
    return figure


@styled
def learning(report: Report) -> Figure:
    """Draw the loss of each trial and the lowest loss so far, one panel per stage."""
    curves = compute.learning_curves(report.trials)
    _need(len(curves), "a trial of learning")
    figure = empty_figure(6 * len(curves), 5)
    for column, curve in enumerate(curves):
        axes = figure.add_subplot(1, len(curves), column + 1)
        axes.scatter(curve.numbers + 1, curve.losses, s=4, color=MAIN, alpha=0.5, lw=0)
        axes.step(curve.numbers + 1, curve.best, color=MAIN, where="post")
        # A few very poor trials would flatten all others: the axis ends at the upper quartile.
        low, high = float(curve.losses.min()), float(np.quantile(curve.losses, 0.75))
        margin = 0.06 * (high - low) or 1.0
        axes.set(title=curve.stage, xlabel="trial", ylim=(low - margin, high + margin))
    figure.axes[0].set_ylabel("loss")
    return figure


@styled
def pareto(report: Report) -> Figure:
    """Draw the Pareto front of the stage with two losses, with the chosen trial ringed."""
    fronts = compute.pareto_fronts(report.trials, report.chosen)
    _need(len(fronts), "a stage of learning with two losses")
    front = fronts[0]
    figure, axes = _figure(9, 6)
    best = front.points[front.on_front]
    best = best[np.argsort(best[:, 1])]
    axes.scatter(front.points[:, 1], front.points[:, 0], s=5, color=MAIN, alpha=0.25, lw=0)
    axes.plot(best[:, 1], best[:, 0], color=MAIN, marker="o", ms=2.5, lw=1)
    if front.chosen is not None:
        loss, size = front.points[front.chosen]
        axes.scatter([size], [loss], s=60, facecolors="none", edgecolors=ODD, lw=1.5)
    high = max(float(np.quantile(front.points[:, 0], 0.9)), float(best[:, 0].max()))
    low = float(best[:, 0].min())
    margin = 0.05 * (high - low) or 1.0
    limits = (low - margin, high + margin)
    axes.set(xlabel="allowed assignments per pair", ylabel="loss", ylim=limits)
    return figure


@styled
def atlas(atlas: Atlas, *, deviations: float = 2.0) -> Figure:
    """Draw the cells as ellipses, seen along z and along y.

    Parameters
    ----------
    atlas
        to draw.
    deviations
        radius of the ellipses, in standard deviations of a cell's position.
    """
    from matplotlib.collections import EllipseCollection

    extent = np.ptp(atlas.means, axis=0)
    width = 17.0
    height = float(width * (extent[1] + extent[2]) / max(float(extent[0]), 1e-9))
    figure = empty_figure(width, min(max(1.6 * height + 2.5, 5.0), 20.0))
    shade = (atlas.means[:, 0].argsort().argsort() + 0.5) / len(atlas)
    for row, (axis, name) in enumerate(((1, "y"), (2, "z"))):
        axes = figure.add_subplot(2, 1, row + 1)
        projected = atlas.covariances[:, [0, axis]][:, :, [0, axis]]
        widths, heights, angles = ellipses(projected, deviations)
        back_to_front = np.argsort(atlas.means[:, 3 - axis])
        shapes: Any = EllipseCollection(
            widths[back_to_front],
            heights[back_to_front],
            angles[back_to_front],
            units="xy",
            offsets=atlas.means[back_to_front][:, [0, axis]],
            offset_transform=axes.transData,
            cmap="turbo",
            edgecolors="white",
            linewidths=0.2,
            alpha=0.85,
        )
        shapes.set_array(shade[back_to_front])
        axes.add_collection(shapes)
        axes.set_aspect("equal")
        axes.autoscale_view()
        axes.set_ylabel(f"{name} ({atlas.unit})")
    figure.axes[-1].set_xlabel(f"x ({atlas.unit})")
    return figure


def ellipses(
    covariances: NDArray[np.float64], deviations: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return widths, heights and angles (degrees), (m,) each, of ellipses.

    Parameters
    ----------
    covariances
        (m, 2, 2), of which the ellipses are level sets.
    deviations
        radius of the ellipses, in standard deviations.
    """
    values, vectors = np.linalg.eigh(covariances)
    angles = np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
    sizes = 2 * deviations * np.sqrt(values)
    return sizes[:, 1], sizes[:, 0], angles


FIGURES: dict[str, Callable[[Atlas, Report], Figure]] = {
    "atlas": lambda cells, _: atlas(cells),
    "consistency": lambda _, report: consistency(report),
    "confidence": lambda _, report: confidence(report),
    "accuracy": lambda _, report: accuracy(report),
    "learning": lambda _, report: learning(report),
    "pareto": lambda _, report: pareto(report),
}
"""All figures by name, each as a function of an atlas and a report."""


def all_figures(atlas: Atlas, report: Report) -> dict[str, Figure]:
    """Draw every figure for which the report contains data; figures by name."""
    report.check(atlas)
    figures = {}
    for name, draw in FIGURES.items():
        try:
            figures[name] = draw(atlas, report)
        except NothingToShowError:
            continue
    return figures


def encoded(figure: Figure, kind: str) -> bytes:
    """Return the bytes of a ``svg``, ``pdf`` or ``png`` file; equal figures give equal bytes."""
    buffer = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with _matplotlib().rc_context(STYLE):
        figure.savefig(buffer, format=kind, metadata=undated, dpi=200)
    return buffer.getvalue()


def _need(available: object, what: str) -> None:
    if not available:
        raise NothingToShowError(_missing(what))


def _missing(what: str) -> str:
    return f"the report does not contain {what}, which this figure needs"


def _matplotlib() -> Any:
    try:
        import matplotlib.figure
    except ImportError as error:
        raise EutelyError(
            f"figures need matplotlib, which is not installed; {install('plots')}"
        ) from error
    return matplotlib


def empty_figure(width: float, height: float) -> Figure:
    """Return an empty figure; width and height in centimetres."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width / 2.54, height / 2.54), layout="constrained")


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = empty_figure(width, height)
    return figure, figure.add_subplot()
