"""The page: a story in, one HTML file out that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from eutely.plots import compute
from eutely.report import charts, words
from eutely.report.data import page_data
from eutely.results import Story

SCRIPTS = ("shaders", "viewer", "colours", "common", "atlas", "specimen", "links")
"""The page's own scripts, in the order in which they need each other."""

STAGES = {
    "linear": "Stage 1: positions and sizes",
    "sparsity": "Stage 2: which assignments to allow",
    "offsets": "Stage 3: offsets between neighbours",
}
"""What the stages of learning are about."""

DOUBTFUL = 8
"""Cells in the table of those that are hardest to tell."""


def render(story: Story) -> str:
    """Return the page of ``story``: HTML that loads nothing from anywhere."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("eutely.report", "assets"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        story=story,
        headline=words.headline(story),
        tiles=words.tiles(story),
        checks=words.checks(story),
        parameters=flat(story.parameters),
        unit=words.unit_of(story.atlas),
        provenance=sorted(story.atlas.provenance.items()),
        doubtful=_doubtful(story),
        confusions=compute.confusions(story.atlas, story.specimens),
        style=_asset("style.css"),
        script=Markup("\n").join(_asset(f"{name}.js") for name in SCRIPTS),
        data=page_data(story),
        total=charts.duration(sum(story.timings.values())),
        **_figures(story),
    )


def _figures(story: Story) -> dict[str, Any]:
    numbers = {one.name: number for number, one in enumerate(story.specimens)}
    ranked = compute.consistency(story.specimens)
    sure = compute.confidences(story.specimens)
    curves = compute.learning_curves(story.trials)
    fronts = compute.pareto_fronts(story.trials, story.chosen)
    return {
        "consistency": charts.ranked_dots(ranked, numbers) if len(ranked.values) else "",
        "confidence": charts.histogram(sure) if len(sure) else "",
        "accuracy": charts.violin(compute.accuracy(story.evaluation), numbers)
        if story.evaluation
        else "",
        "curves": [(_stage(curve.stage), charts.learning_curve(curve)) for curve in curves],
        "fronts": [charts.pareto(front) for front in fronts],
        "times": charts.times(list(story.timings.items())) if story.timings else "",
    }


def _stage(name: str) -> str:
    return STAGES.get(name, name)


def _doubtful(story: Story) -> list[dict[str, Any]]:
    """Return rows of the cells with the lowest mean confidence."""
    atlas = story.atlas
    sure, spread = compute.cell_confidence(atlas, story.specimens), compute.spreads(atlas)
    ranked = [cell for cell in np.argsort(sure, kind="stable").tolist() if np.isfinite(sure[cell])]
    return [
        {
            "cell": cell,
            "name": atlas.names[cell] or f"cell {cell}",
            "confidence": words.percent(float(sure[cell])),
            "spread": f"{spread[cell]:.1f}",
            "seen": f"{atlas.seen[cell]} of {atlas.specimens}",
        }
        for cell in ranked[:DOUBTFUL]
    ]


def flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Return nested values as rows of (dotted key, words)."""
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            rows += flat(value, f"{before}{key}.")
        else:
            rows.append((f"{before}{key}", _words(value)))
    return rows


def _words(value: object) -> str:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"({', '.join(_words(one) for one in value)})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _asset(name: str) -> Markup:
    """Return a style or script as it is; these files are ours, nothing in them is to escape."""
    return Markup((files("eutely.report") / "assets" / name).read_text(encoding="utf-8"))
