"""Figures as SVG text: a frame with axes, and marks in it; colours come from the page's style."""

from __future__ import annotations

import math
from collections.abc import Iterable

from markupsafe import Markup, escape


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers between ``low`` and ``high``, about so many."""
    span = high - low
    if not span > 0:
        return [low]
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = min((power * nice for nice in (1, 2, 2.5, 5, 10)), key=lambda s: abs(s - raw))
    first = math.ceil(low / step - 1e-9)
    return [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]


def label(value: float, step: float) -> str:
    """Return ``value`` with as many decimals as its axis needs."""
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 2
    if abs(step * 10**decimals - round(step * 10**decimals)) > 1e-6:
        decimals += 1
    return f"{value:,.{decimals}f}"


class Frame:
    """A rectangle of a figure with linear axes; ``width`` x ``height`` units of the drawing."""

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
        self.x, self.y = _wide(x), _wide(y)
        self.marks: list[str] = []

    def across(self, value: float) -> float:
        """Return where ``value`` of the x axis is drawn."""
        share = (value - self.x[0]) / (self.x[1] - self.x[0])
        return round(self.left + share * (self.width - self.left - self.right), 2)

    def up(self, value: float) -> float:
        """Return where ``value`` of the y axis is drawn."""
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return round(self.height - self.bottom - share * (self.height - self.top - self.bottom), 2)

    def axes(self, x: str = "", y: str = "", *, percent: bool = False, across: int = 6) -> None:
        """Draw grid lines, numbers and the names of the axes; y in percent if asked for."""
        floor, end = self.height - self.bottom, self.width - self.right
        marks = ticks(*self.y)
        step = marks[1] - marks[0] if len(marks) > 1 else 1.0
        for tick in marks:
            at = self.up(tick)
            text = f"{label(100 * tick, 100 * step)}%" if percent else label(tick, step)
            self.add(f'<line class="grid" x1="{self.left}" x2="{end}" y1="{at}" y2="{at}"/>')
            self.text(self.left - 8, at + 4, text, "tick end")
        marks = ticks(*self.x, across) if across else []
        step = marks[1] - marks[0] if len(marks) > 1 else 1.0
        for tick in marks:
            self.text(self.across(tick), floor + 18, label(tick, step), "tick middle")
        self.add(f'<line class="axis" x1="{self.left}" x2="{end}" y1="{floor}" y2="{floor}"/>')
        self.text((self.left + end) / 2, self.height - 6, x, "name middle")
        if y:
            middle = (self.top + floor) / 2
            turned = f'transform="rotate(-90 13 {middle})"'
            self.add(f'<text class="name middle" x="13" y="{middle}" {turned}>{escape(y)}</text>')

    def text(self, x: float, y: float, words: str, kind: str) -> None:
        """Write ``words`` at a place of the drawing."""
        if words:
            self.add(f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(words)}</text>')

    def dot(self, x: float, y: float, hint: str, kind: str = "dot", more: str = "") -> None:
        """Draw a dot at values ``x``, ``y`` that says ``hint`` under the mouse."""
        self.add(
            f'<circle class="{kind}" cx="{self.across(x)}" cy="{self.up(y)}" r="4" {more}>'
            f"<title>{escape(hint)}</title></circle>"
        )

    def line(self, points: Iterable[tuple[float, float]], kind: str) -> None:
        """Draw a line through values."""
        path = " ".join(f"{self.across(x)},{self.up(y)}" for x, y in points)
        self.add(f'<polyline class="{kind}" points="{path}"/>')

    def add(self, mark: str) -> None:
        """Add SVG text, already escaped."""
        self.marks.append(mark)

    def svg(self, what: str) -> Markup:
        """Return the figure; ``what`` is read out to those who cannot see it."""
        head = f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img"'
        return Markup(f'{head} aria-label="{escape(what)}">{"".join(self.marks)}</svg>')


def _wide(span: tuple[float, float]) -> tuple[float, float]:
    """Return ``span``, opened a little where it is a single value."""
    low, high = float(span[0]), float(span[1])
    if high > low:
        return low, high
    pad = abs(low) * 0.05 or 0.5
    return low - pad, high + pad
