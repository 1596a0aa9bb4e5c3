"""The figures of the page, drawn from what `eutely.plots.compute` says they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from eutely.plots.compute import UNSURE, Curve, Front, Ranked, Violin
from eutely.report.svg import Frame, label
from eutely.report.words import percent

NAMED = 8
"""Outliers that are named in the figure itself."""

FEW = 5
"""Specimens below which a distribution is shown by its dots alone."""

BARS = 20
"""Bars of a histogram."""


def ranked_dots(ranked: Ranked, numbers: Mapping[str, int]) -> Markup:
    """Draw specimens from the lowest to the highest value, the marked ones with their names.

    ``numbers`` tells which specimen of the page a dot belongs to, so that a click shows it.
    """
    count, low = len(ranked.values), float(ranked.values.min())
    frame = Frame(
        (-0.5, count - 0.5),
        (max(0.0, low - 0.05), 1.0),
        width=1120,
        height=260,
        margins=(14, 110, 34, 74),
    )
    frame.axes("specimens, the least consistent first", "nuclei confirmed", percent=True, across=0)
    middle = float(np.median(ranked.values))
    frame.line([(-0.5, middle), (count - 0.5, middle)], "median")
    end = frame.width - frame.right + 8
    frame.text(end, frame.up(middle) + 4, f"median {percent(middle)}", "tick")
    written = 0
    for place, (name, value, marked) in enumerate(zip(*ranked, strict=True)):
        kind = "dot odd" if marked else "dot"
        more = f'data-specimen="{numbers[name]}"' if name in numbers else ""
        frame.dot(place, value, f"{name}: {percent(value)}", kind, more)
        if marked and written < NAMED:
            frame.text(frame.across(place) + 8, frame.up(value) + 4, name, "note")
            written += 1
    return frame.svg("consistency of each specimen")


def violin(shape: Violin, numbers: Mapping[str, int]) -> Markup:
    """Draw a lying violin with a dot for each specimen and a line at the mean."""
    low, high = max(0.0, float(shape.grid[0])), min(1.0, float(shape.grid[-1]))
    frame = Frame((low, high), (-1.15, 1.15), width=1120, height=230, margins=(10, 30, 42, 30))
    upper = [
        (x, y)
        for x, y in zip(shape.grid.tolist(), shape.density.tolist(), strict=True)
        if low <= x <= high
    ]
    outline = [*upper, *((x, -y) for x, y in reversed(upper))]
    path = " ".join(f"{frame.across(x)},{frame.up(y)}" for x, y in outline)
    if len(shape.values) >= FEW:
        frame.add(f'<polygon class="body" points="{path}"/>')
    mean = float(shape.values.mean())
    frame.line([(mean, -1.05), (mean, 1.05)], "median")
    frame.text(frame.across(mean), 9, f"mean {percent(mean)}", "tick middle")
    inside = np.interp(shape.values, shape.grid, shape.density)
    for place, (name, value) in enumerate(zip(shape.names, shape.values.tolist(), strict=True)):
        # Golden-ratio steps spread the dots evenly over the height of the violin.
        height = (2 * ((place * 0.618034) % 1) - 1) * 0.8 * float(inside[place])
        more = f'data-specimen="{numbers[name]}"' if name in numbers else ""
        frame.dot(value, height, f"{name}: {percent(value)}", "dot", more)
    _percent_axis(frame, low, high)
    return frame.svg("accuracy of each specimen")


def _percent_axis(frame: Frame, low: float, high: float) -> None:
    floor = frame.height - frame.bottom
    span = high - low
    step = next(s for s in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if span / s <= 10)
    for k in range(int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9)) + 1):
        frame.text(
            frame.across(k * step),
            floor + 18,
            f"{label(100 * k * step, 100 * step)}%",
            "tick middle",
        )
    frame.add(
        f'<line class="axis" x1="{frame.left}" x2="{frame.width - frame.right}" '
        f'y1="{floor}" y2="{floor}"/>'
    )
    frame.text(frame.width / 2, frame.height - 6, "nuclei named right", "name middle")


def histogram(values: NDArray[np.float64]) -> Markup:
    """Draw how many nuclei have which confidence; bars of uncertain ones stand out."""
    counts, edges = np.histogram(values, bins=BARS, range=(0.0, 1.0))
    frame = Frame((0, 1), (0, max(1.0, 1.05 * float(counts.max()))), height=240)
    frame.axes("confidence", "nuclei")
    for count, left, right in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        x, y = frame.across(left) + 1, frame.up(count)
        size = f'width="{frame.across(right) - x - 1:.2f}" height="{frame.up(0) - y:.2f}"'
        kind = "bar odd" if right <= UNSURE + 1e-9 else "bar"
        hint = escape(f"{count:,} nuclei with confidence {left:.2f} to {right:.2f}")
        frame.add(f'<rect class="{kind}" x="{x:g}" y="{y:g}" {size}><title>{hint}</title></rect>')
    return frame.svg("confidence of all nuclei")


def learning_curve(curve: Curve) -> Markup:
    """Draw the loss of each trial as a dot and the best so far as a line."""
    losses = curve.losses
    # Trials that match next to nothing would flatten the rest: show up to the upper quartile.
    low = float(losses.min())
    high = max(float(np.quantile(losses, 0.75)), low + 1e-9)
    pad = 0.06 * (high - low)
    frame = Frame((0, float(curve.numbers.max()) + 1), (low - pad, high + pad), width=360)
    frame.axes("trial", "loss", across=4)
    for number, loss in zip(curve.numbers.tolist(), losses.tolist(), strict=True):
        kind = "dot small" if loss <= high else "dot small beyond"
        frame.dot(number + 1, min(loss, high + pad), f"trial {number}: {loss:,.6g}", kind)
    steps: list[tuple[float, float]] = []
    for number, best in zip(curve.numbers.tolist(), curve.best.tolist(), strict=True):
        height = min(float(best), high + pad)
        steps += [(number + 1, steps[-1][1]), (number + 1, height)] if steps else [(1, height)]
    frame.line(steps, "best")
    return frame.svg(f"learning, stage {curve.stage}")


def pareto(front: Front) -> Markup:
    """Draw trials by their two losses, the front as a line, the one taken ringed."""
    points = front.points
    on = points[front.on_front]
    low, high = points.min(axis=0), np.quantile(points, 0.9, axis=0)
    high = np.maximum(high, on.max(axis=0))
    pad = 0.05 * np.maximum(high - low, 1e-9)
    across, up = (low[1] - pad[1], high[1] + pad[1]), (low[0] - pad[0], high[0] + pad[0])
    frame = Frame(across, up, width=770, height=290)
    frame.axes("allowed assignments of a pair (fewer is faster)", "loss", across=5)
    frame.line([(b, a) for a, b in on[np.argsort(on[:, 1])].tolist()], "best")
    for number, (loss, size) in enumerate(points.tolist()):
        if loss > high[0] + pad[0] or size > high[1] + pad[1]:
            continue
        kind = "dot small" if front.on_front[number] else "dot small faint"
        frame.dot(size, loss, f"loss {loss:,.6g}, {size:,.6g} assignments", kind)
    if front.chosen is not None:
        loss, size = points[front.chosen].tolist()
        ring = f'cx="{frame.across(size)}" cy="{frame.up(loss)}" r="9"'
        frame.add(f'<circle class="ring" {ring}><title>taken</title></circle>')
        frame.text(frame.across(size) + 13, frame.up(loss) - 8, "taken", "note")
    return frame.svg("loss against the number of allowed assignments")


def times(timings: Sequence[tuple[str, float]]) -> Markup:
    """Draw the seconds of each stage as bars."""
    longest = max((seconds for _, seconds in timings), default=1.0) or 1.0
    rows = len(timings)
    frame = Frame(
        (0, 1.12 * longest), (0, rows), width=760, height=26 * rows + 8, margins=(4, 60, 4, 190)
    )
    for row, (stage, seconds) in enumerate(timings):
        y = 4 + 26 * row
        width = max(1.5, frame.across(seconds) - frame.left)
        frame.text(frame.left - 10, y + 16, stage, "tick end")
        frame.add(f'<rect class="bar" x="{frame.left}" y="{y + 3}" width="{width:g}" height="17"/>')
        frame.text(frame.left + width + 8, y + 16, duration(seconds), "tick")
    return frame.svg("seconds of each stage")


def duration(seconds: float) -> str:
    """Return a time in the words of a person."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
