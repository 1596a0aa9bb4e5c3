"""The figures of the page as SVG text; colours come from the style of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from eutely.plots.compute import BARS, NAMED_OUTLIERS, UNSURE, Curve, Front, Ranked, Violin
from eutely.report.words import duration, percent

FEWEST_FOR_OUTLINE = 5
"""With fewer specimens than this, a distribution is shown by its dots alone."""

SLIM = 380
"""Width of figures for phones, about that of their screens: text keeps its size."""

ROW_HEIGHT = 26
"""Height of one bar of the figure of times, with the space around it."""


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers between ``low`` and ``high``, ``about`` that many."""
    span = high - low
    if not span > 0:
        return [low]
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    candidates = [power * factor for factor in (1, 2, 2.5, 5, 10)]
    step = min(candidates, key=lambda candidate: abs(candidate - raw))
    first = math.ceil(low / step - 1e-9)
    return [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]


def label(value: float, step: float) -> str:
    """Return ``value`` with the decimals that an axis with ticks every ``step`` needs."""
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 2
    if abs(step * 10**decimals - round(step * 10**decimals)) > 1e-6:
        decimals += 1
    return f"{value:,.{decimals}f}"


class Frame:
    """A figure with linear axes, to which marks are added.

    Parameters
    ----------
    x, y
        lowest and highest value of each axis.
    width, height
        of the drawing.
    margins
        between the axes and the edges of the drawing: top, right, bottom, left.
    """

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        width: float = 560,
        height: float = 250,
        margins: tuple[float, float, float, float] = (14, 16, 42, 74),
    ) -> None:
        self.width, self.height = width, height
        self.top, self.right, self.bottom, self.left = margins
        self.x, self.y = _widened(x), _widened(y)
        self.marks: list[str] = []

    def across(self, value: float) -> float:
        """Return the horizontal position of ``value`` of the x axis."""
        share = (value - self.x[0]) / (self.x[1] - self.x[0])
        return round(self.left + share * (self.width - self.left - self.right), 2)

    def up(self, value: float) -> float:
        """Return the vertical position of ``value`` of the y axis."""
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return round(self.height - self.bottom - share * (self.height - self.top - self.bottom), 2)

    def axes(self, x: str, y: str, *, in_percent: bool = False, ticks_across: int = 6) -> None:
        """Draw grid lines, ticks and the titles of the axes.

        Parameters
        ----------
        x, y
            titles.
        in_percent
            whether y is a share that is shown in percent.
        ticks_across
            approximate number of ticks of the x axis; 0 for none.
        """
        floor, end = self.height - self.bottom, self.width - self.right
        marks = ticks(*self.y)
        step = marks[1] - marks[0] if len(marks) > 1 else 1.0
        for tick in marks:
            at = self.up(tick)
            text = f"{label(100 * tick, 100 * step)}%" if in_percent else label(tick, step)
            self.add(f'<line class="grid" x1="{self.left}" x2="{end}" y1="{at}" y2="{at}"/>')
            self.text(self.left - 8, at + 4, text, "tick end")
        marks = ticks(*self.x, ticks_across) if ticks_across else []
        step = marks[1] - marks[0] if len(marks) > 1 else 1.0
        for tick in marks:
            self.text(self.across(tick), floor + 18, label(tick, step), "tick middle")
        self.baseline()
        self.text((self.left + end) / 2, self.height - 6, x, "name middle")
        middle = (self.top + floor) / 2
        turned = f'transform="rotate(-90 13 {middle})"'
        self.add(f'<text class="name middle" x="13" y="{middle}" {turned}>{escape(y)}</text>')

    def baseline(self) -> None:
        """Draw the line of the x axis."""
        floor, end = self.height - self.bottom, self.width - self.right
        self.add(f'<line class="axis" x1="{self.left}" x2="{end}" y1="{floor}" y2="{floor}"/>')

    def text(self, x: float, y: float, words: str, kind: str) -> None:
        """Write ``words`` at a position of the drawing."""
        if words:
            self.add(f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(words)}</text>')

    def dot(self, x: float, y: float, hint: str, kind: str = "dot", more: str = "") -> None:
        """Draw a dot at values ``x``, ``y``.

        Parameters
        ----------
        x, y
            values of the axes.
        hint
            text that appears under the mouse.
        kind
            class of the style.
        more
            further attributes, already escaped.
        """
        self.add(
            f'<circle class="{kind}" cx="{self.across(x)}" cy="{self.up(y)}" r="4" {more}>'
            f"<title>{escape(hint)}</title></circle>"
        )

    def line(self, points: Iterable[tuple[float, float]], kind: str) -> None:
        """Draw a line through points given as values of the axes."""
        self.add(f'<polyline class="{kind}" points="{self._path(points)}"/>')

    def area(self, points: Iterable[tuple[float, float]], kind: str) -> None:
        """Draw an area whose outline is given as values of the axes."""
        self.add(f'<polygon class="{kind}" points="{self._path(points)}"/>')

    def _path(self, points: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{self.across(x)},{self.up(y)}" for x, y in points)

    def add(self, mark: str) -> None:
        """Add SVG text, already escaped."""
        self.marks.append(mark)

    def svg(self, description: str) -> Markup:
        """Return the figure; screen readers read out its ``description``."""
        head = f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img"'
        return Markup(f'{head} aria-label="{escape(description)}">{"".join(self.marks)}</svg>')


def _widened(span: tuple[float, float]) -> tuple[float, float]:
    """Return ``span``, widened a little where it is a single value."""
    low, high = float(span[0]), float(span[1])
    if high > low:
        return low, high
    margin = abs(low) * 0.05 or 0.5
    return low - margin, high + margin


def both(draw: Callable[[bool], Markup]) -> Markup:
    """Return a figure twice, for wide screens and for phones; the style shows one of them.

    ``draw`` is told whether to draw it slim.
    """
    parts = zip(("wide", "slim"), (draw(False), draw(True)), strict=True)
    return Markup("").join(
        Markup('<div class="{}">{}</div>').format(kind, figure) for kind, figure in parts
    )


def ranked_dots(ranked: Ranked, numbers: Mapping[str, int], slim: bool = False) -> Markup:
    """Draw one dot per specimen, lowest value first; marked specimens with their names.

    Parameters
    ----------
    ranked
        what to draw; at least one specimen.
    numbers
        specimen -> its number on the page, so that a click on a dot shows the specimen.
    slim
        draw it for a phone.
    """
    count, low = len(ranked.values), float(ranked.values.min())
    frame = Frame(
        (-0.5, count - 0.5),
        (max(0.0, low - 0.05), 1.0),
        width=SLIM if slim else 1120,
        height=260,
        margins=(14, 12, 34, 64) if slim else (14, 110, 34, 74),
    )
    frame.axes(
        "specimens, least consistent first", "nuclei confirmed", in_percent=True, ticks_across=0
    )
    middle = float(np.median(ranked.values))
    frame.line([(-0.5, middle), (count - 0.5, middle)], "median")
    end, words = frame.width - frame.right, f"median {percent(middle)}"
    if slim:
        frame.text(end, frame.up(middle) + 16, words, "tick end")
    else:
        frame.text(end + 8, frame.up(middle) + 4, words, "tick")
    named = np.flatnonzero(ranked.marked)[:NAMED_OUTLIERS].tolist()
    for place, (name, value, marked) in enumerate(zip(*ranked, strict=True)):
        kind = "dot odd" if marked else "dot"
        frame.dot(place, value, f"{name}: {percent(value)}", kind, _link(name, numbers))
        if place in named:
            right = slim and place > count / 2
            x = frame.across(place) + (-8 if right else 8)
            frame.text(x, frame.up(value) + 4, name, "note end" if right else "note")
    return frame.svg("consistency of each specimen")


def violin(shape: Violin, numbers: Mapping[str, int], slim: bool = False) -> Markup:
    """Draw a horizontal violin with one dot per specimen and a line at the mean.

    Parameters
    ----------
    shape
        what to draw; values are shares.
    numbers, slim
        see `ranked_dots`.
    """
    low, high = max(0.0, float(shape.grid[0])), min(1.0, float(shape.grid[-1]))
    frame = Frame(
        (low, high),
        (-1.15, 1.15),
        width=SLIM if slim else 1120,
        height=230,
        margins=(10, 18, 42, 18) if slim else (10, 30, 42, 30),
    )
    upper = [
        (x, y)
        for x, y in zip(shape.grid.tolist(), shape.density.tolist(), strict=True)
        if low <= x <= high
    ]
    if len(shape.values) >= FEWEST_FOR_OUTLINE:
        frame.area([*upper, *((x, -y) for x, y in reversed(upper))], "body")
    mean = float(shape.values.mean())
    frame.line([(mean, -1.05), (mean, 1.05)], "median")
    frame.text(frame.across(mean), 9, f"mean {percent(mean)}", "tick middle")
    dots = zip(shape.names, shape.values.tolist(), shape.offsets.tolist(), strict=True)
    for name, value, offset in dots:
        frame.dot(value, offset, f"{name}: {percent(value)}", "dot", _link(name, numbers))
    _percent_axis(frame, low, high, 5 if slim else 10)
    return frame.svg("accuracy of each specimen")


def _link(name: str, numbers: Mapping[str, int]) -> str:
    """Return the attribute by which a click on a dot shows the specimen ``name``."""
    return f'data-specimen="{numbers[name]}"' if name in numbers else ""


def _percent_axis(frame: Frame, low: float, high: float, most: int) -> None:
    floor, span = frame.height - frame.bottom, high - low
    steps = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
    step = next(step for step in steps if span / step <= most)
    for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        text = f"{label(100 * k * step, 100 * step)}%"
        frame.text(frame.across(k * step), floor + 18, text, "tick middle")
    frame.baseline()
    frame.text(frame.width / 2, frame.height - 6, "nuclei named right", "name middle")


def histogram(values: NDArray[np.float64], slim: bool = False) -> Markup:
    """Draw a histogram of confidences; the bars of uncertain nuclei stand out."""
    counts, edges = np.histogram(values, bins=BARS, range=(0.0, 1.0))
    top = max(1.0, 1.05 * float(counts.max()))
    frame = Frame((0, 1), (0, top), width=SLIM if slim else 560, height=240)
    frame.axes("confidence", "nuclei")
    for count, left, right in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        x, y = frame.across(left) + 1, frame.up(count)
        size = f'width="{frame.across(right) - x - 1:.2f}" height="{frame.up(0) - y:.2f}"'
        kind = "bar odd" if right <= UNSURE + 1e-9 else "bar"
        hint = escape(f"{count:,} nuclei with confidence {left:.2f} to {right:.2f}")
        frame.add(f'<rect class="{kind}" x="{x:g}" y="{y:g}" {size}><title>{hint}</title></rect>')
    return frame.svg("confidence of all nuclei")


def learning_curve(curve: Curve) -> Markup:
    """Draw the loss of each trial as a dot and the lowest loss so far as a line."""
    losses = curve.losses
    # A few very poor trials would flatten all others: the axis ends at the upper quartile.
    low = float(losses.min())
    high = max(float(np.quantile(losses, 0.75)), low + 1e-9)
    margin = 0.06 * (high - low)
    frame = Frame((0, float(curve.numbers.max()) + 1), (low - margin, high + margin), width=360)
    frame.axes("trial", "loss", ticks_across=4)
    for number, loss in zip(curve.numbers.tolist(), losses.tolist(), strict=True):
        kind = "dot small" if loss <= high else "dot small beyond"
        frame.dot(number + 1, min(loss, high + margin), f"trial {number}: {loss:,.6g}", kind)
    stairs: list[tuple[float, float]] = []
    for number, best in zip(curve.numbers.tolist(), curve.best.tolist(), strict=True):
        height = min(float(best), high + margin)
        stairs += [(number + 1, stairs[-1][1]), (number + 1, height)] if stairs else [(1, height)]
    frame.line(stairs, "best")
    return frame.svg(f"learning, stage {curve.stage}")


def pareto(front: Front, slim: bool = False) -> Markup:
    """Draw trials by their two losses, the front as a line, the chosen trial ringed."""
    points = front.points
    best = points[front.on_front]
    low, high = points.min(axis=0), np.quantile(points, 0.9, axis=0)
    high = np.maximum(high, best.max(axis=0))
    margin = 0.05 * np.maximum(high - low, 1e-9)
    low, high = low - margin, high + margin
    frame = Frame((low[1], high[1]), (low[0], high[0]), width=SLIM if slim else 770, height=290)
    frame.axes(
        "allowed assignments per pair (fewer is faster)", "loss", ticks_across=3 if slim else 5
    )
    frame.line([(size, loss) for loss, size in best[np.argsort(best[:, 1])].tolist()], "best")
    for row, (loss, size) in enumerate(points.tolist()):
        if loss > high[0] or size > high[1]:
            continue
        kind = "dot small" if front.on_front[row] else "dot small faint"
        frame.dot(size, loss, f"loss {loss:,.6g}, {size:,.6g} assignments", kind)
    if front.chosen is not None:
        loss, size = points[front.chosen].tolist()
        ring = f'cx="{frame.across(size)}" cy="{frame.up(loss)}" r="9"'
        frame.add(f'<circle class="ring" {ring}><title>taken</title></circle>')
        frame.text(frame.across(size) + 13, frame.up(loss) - 8, "taken", "note")
    return frame.svg("loss against the number of allowed assignments")


def times(timings: Sequence[tuple[str, float]], slim: bool = False) -> Markup:
    """Draw one bar per (step, seconds), in order; a step that ran twice has two bars."""
    longest = max((seconds for _, seconds in timings), default=1.0) or 1.0
    rows = len(timings)
    frame = Frame(
        (0, 1.12 * longest),
        (0, rows),
        width=SLIM if slim else 760,
        height=ROW_HEIGHT * rows + 8,
        margins=(4, 60, 4, 130 if slim else 190),
    )
    for row, (step, seconds) in enumerate(timings):
        y = 4 + ROW_HEIGHT * row
        width = max(1.5, frame.across(seconds) - frame.left)
        frame.text(frame.left - 10, y + 16, step, "tick end")
        frame.add(f'<rect class="bar" x="{frame.left}" y="{y + 3}" width="{width:g}" height="17"/>')
        frame.text(frame.left + width + 8, y + 16, duration(seconds), "tick")
    return frame.svg("seconds of each step")
