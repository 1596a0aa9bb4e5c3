"""The figures for papers, by matplotlib; what they show comes from `eutely.plots.compute`."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.errors import EutelyError
from eutely.plots import compute
from eutely.results import Story

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAIN, PALE, ODD, SOFT = "#16708a", "#cfe3e8", "#d0561c", "#5b6673"
"""Colours of the page, so that page and paper look alike."""

STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # words stay words that an editor can change
    "pdf.fonttype": 42,
    "svg.hashsalt": "eutely",  # the same figure, the same bytes
}


P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Let ``draw`` draw in the style of the package, whatever that of the session is."""

    @wraps(draw)
    def drawn(*arguments: P.args, **options: P.kwargs) -> Figure:
        with _matplotlib().rc_context(STYLE):
            return draw(*arguments, **options)

    return drawn


@styled
def consistency(story: Story) -> Figure:
    """Draw the share of each specimen's nuclei that the others confirm, the lowest first."""
    ranked = compute.consistency(story.specimens)
    _need(len(ranked.values), "the consistency of a specimen")
    figure, axes = _figure(12, 5)
    places = np.arange(len(ranked.values))
    for marked, colour in ((False, MAIN), (True, ODD)):
        own = ranked.marked == marked
        axes.scatter(places[own], 100 * ranked.values[own], s=9, color=colour)
    for place in np.flatnonzero(ranked.marked)[:8].tolist():
        where = (place, 100 * float(ranked.values[place]))
        axes.annotate(
            ranked.names[place], where, (4, -3), textcoords="offset points", color=ODD, fontsize=7
        )
    axes.axhline(100 * float(np.median(ranked.values)), color=SOFT, lw=0.8, ls="--")
    axes.set(
        xlabel="specimens, the least consistent first", ylabel="nuclei confirmed (%)", xticks=[]
    )
    return figure


@styled
def accuracy(story: Story) -> Figure:
    """Draw a violin of the specimens' accuracies, with a dot each."""
    _need(story.evaluation is not None, "an evaluation")
    assert story.evaluation is not None
    shape = compute.accuracy(story.evaluation)
    figure, axes = _figure(6, 7)
    possible = shape.grid <= 1
    grid, density = 100 * shape.grid[possible], shape.density[possible]
    axes.fill_betweenx(grid, -density, density, color=PALE, lw=0)
    inside = np.interp(shape.values, shape.grid, shape.density)
    # Golden-ratio steps spread the dots evenly over the width of the violin.
    across = (2 * ((np.arange(len(inside)) * 0.618034) % 1) - 1) * 0.8 * inside
    axes.scatter(across, 100 * shape.values, s=7, color=MAIN, alpha=0.8, lw=0)
    mean = 100 * float(shape.values.mean())
    axes.hlines(mean, -1, 1, color=SOFT, lw=0.8, ls="--")
    axes.set(ylabel="nuclei named right (%)", xticks=[], title=f"mean {mean:.1f}%")
    axes.set_ylim(top=min(100.5, 100 * float(shape.grid[-1])))
    return figure


@styled
def confidence(story: Story) -> Figure:
    """Draw how many nuclei have which confidence."""
    values = compute.confidences(story.specimens)
    _need(len(values), "a confidence")
    figure, axes = _figure(8, 5)
    edges = np.linspace(0, 1, 21)
    for low, colour in ((True, ODD), (False, MAIN)):
        axes.hist(values[(values < compute.UNSURE) == low], bins=edges.tolist(), color=colour)
    axes.set(xlabel="confidence", ylabel="nuclei", xlim=(0, 1))
    return figure


@styled
def learning(story: Story) -> Figure:
    """Draw the loss of each trial and the best so far, a panel for each stage."""
    curves = compute.learning_curves(story.trials)
    _need(len(curves), "a trial of learning")
    figure = _empty(6 * len(curves), 5)
    for column, curve in enumerate(curves):
        axes = figure.add_subplot(1, len(curves), column + 1)
        axes.scatter(curve.numbers + 1, curve.losses, s=4, color=MAIN, alpha=0.5, lw=0)
        axes.step(curve.numbers + 1, curve.best, color=MAIN, where="post")
        low, high = float(curve.losses.min()), float(np.quantile(curve.losses, 0.75))
        pad = 0.06 * (high - low) or 1.0
        axes.set(title=curve.stage, xlabel="trial", ylim=(low - pad, high + pad))
    figure.axes[0].set_ylabel("loss")
    return figure


@styled
def pareto(story: Story) -> Figure:
    """Draw the two losses of the trials of the stage that has two, and the one taken."""
    fronts = compute.pareto_fronts(story.trials, story.chosen)
    _need(len(fronts), "a stage of learning with two losses")
    front = fronts[0]
    figure, axes = _figure(9, 6)
    on = front.points[front.on_front]
    on = on[np.argsort(on[:, 1])]
    axes.scatter(front.points[:, 1], front.points[:, 0], s=5, color=MAIN, alpha=0.25, lw=0)
    axes.plot(on[:, 1], on[:, 0], color=MAIN, marker="o", ms=2.5, lw=1)
    if front.chosen is not None:
        loss, size = front.points[front.chosen]
        axes.scatter([size], [loss], s=60, facecolors="none", edgecolors=ODD, lw=1.5)
    high = max(float(np.quantile(front.points[:, 0], 0.9)), float(on[:, 0].max()))
    low = float(on[:, 0].min())
    pad = 0.05 * (high - low) or 1.0
    axes.set(xlabel="allowed assignments of a pair", ylabel="loss", ylim=(low - pad, high + pad))
    return figure


@styled
def atlas(source: Atlas | Story, *, deviations: float = 2.0) -> Figure:
    """Draw the cells as ellipses from two sides, so many standard deviations in radius."""
    from matplotlib.collections import EllipseCollection

    cells = source.atlas if isinstance(source, Story) else source
    extent = np.ptp(cells.means, axis=0)
    width = 17.0
    tall = float(width * (extent[1] + extent[2]) / max(float(extent[0]), 1e-9))
    figure = _empty(width, min(max(1.6 * tall + 2.5, 5.0), 20.0))
    shade = (cells.means[:, 0].argsort().argsort() + 0.5) / len(cells)
    for row, (axis, name) in enumerate(((1, "y"), (2, "z"))):
        axes = figure.add_subplot(2, 1, row + 1)
        flat = cells.covariances[:, [0, axis]][:, :, [0, axis]]
        wide, high, turn = ellipses(flat, deviations)
        order = np.argsort(cells.means[:, 3 - axis])
        shapes: Any = EllipseCollection(
            wide[order],
            high[order],
            turn[order],
            units="xy",
            offsets=cells.means[order][:, [0, axis]],
            offset_transform=axes.transData,
            cmap="turbo",
            edgecolors="white",
            linewidths=0.2,
            alpha=0.85,
        )
        shapes.set_array(shade[order])
        axes.add_collection(shapes)
        axes.set_aspect("equal")
        axes.autoscale_view()
        axes.set_ylabel(f"{name} ({cells.unit})")
    figure.axes[-1].set_xlabel(f"x ({cells.unit})")
    return figure


def ellipses(
    covariances: NDArray[np.float64], deviations: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return widths, heights and angles (degrees) of ellipses of ``covariances`` (m, 2, 2)."""
    values, vectors = np.linalg.eigh(covariances)
    angles = np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
    sizes = 2 * deviations * np.sqrt(values)
    return sizes[:, 1], sizes[:, 0], angles


FIGURES: dict[str, Callable[[Story], Figure]] = {
    "atlas": atlas,
    "consistency": consistency,
    "confidence": confidence,
    "accuracy": accuracy,
    "learning": learning,
    "pareto": pareto,
}
"""All figures by name; each takes a story."""


class NothingToShowError(EutelyError):
    """A story does not hold what a figure shows."""


def all_figures(story: Story) -> dict[str, Figure]:
    """Draw every figure that the story holds something for."""
    found = {}
    for name, draw in FIGURES.items():
        try:
            found[name] = draw(story)
        except NothingToShowError:
            continue
    return found


def encoded(figure: Figure, kind: str) -> bytes:
    """Return the figure as a file: ``svg``, ``pdf`` or ``png``; the same bytes every time."""
    buffer = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with _matplotlib().rc_context(STYLE):
        figure.savefig(buffer, format=kind, metadata=undated, dpi=200)
    return buffer.getvalue()


def _need(there: object, what: str) -> None:
    if not there:
        raise NothingToShowError(f"this story does not hold {what}; the figure needs one")


def _matplotlib() -> Any:
    try:
        import matplotlib.figure
    except ImportError as error:
        raise EutelyError(
            "figures need matplotlib, which is not installed; run: pip install 'eutely[plots]'"
        ) from error
    return matplotlib


def _empty(width: float, height: float) -> Figure:
    """Return an empty figure of so many centimetres."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width / 2.54, height / 2.54), layout="constrained")


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = _empty(width, height)
    return figure, figure.add_subplot()
