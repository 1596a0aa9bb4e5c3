"""The page: an atlas and a report in, one HTML file out that needs nothing else.

Which specimens of a large cohort the page carries: it must stay small enough to open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from importlib.resources import files
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from eutely.atlas import Atlas
from eutely.plots import compute
from eutely.report import charts, words
from eutely.report.data import page_data
from eutely.report.words import Check
from eutely.results import Report

MOST_NUCLEI = 150_000
"""Nuclei that a page carries, about 35 bytes each; figures and tables are about all of them."""


def sampled(report: Report) -> tuple[int, ...]:
    """Return the specimens whose nuclei the page carries, all where they are few enough.

    Outliers come first, then the rest from the least to the most consistent at even steps: what
    should be looked at is there, and what is usual is represented.
    """
    sizes = [len(shown) for shown in report.specimens]
    if sum(sizes) <= MOST_NUCLEI:
        return tuple(range(len(sizes)))
    consistency = np.nan_to_num([shown.consistency for shown in report.specimens], nan=1.0)
    by_rank = np.argsort(consistency, kind="stable").tolist()
    outliers = [number for number in by_rank if report.specimens[number].outlier]
    usual = [number for number in by_rank if not report.specimens[number].outlier]
    room = MOST_NUCLEI - sum(sizes[number] for number in outliers)
    count = int(max(room, 0) / np.mean(sizes))
    even = np.linspace(0, len(usual) - 1, min(count, len(usual))).round().astype(int)
    wanted = [*outliers, *(usual[at] for at in np.unique(even).tolist())]
    kept: list[int] = []
    total = 0
    for number in wanted:
        if kept and total + sizes[number] > MOST_NUCLEI:
            continue
        kept.append(number)
        total += sizes[number]
    return tuple(sorted(kept))


def with_specimens(report: Report, kept: Sequence[int]) -> Report:
    """Return a report of some of its specimens."""
    return replace(report, specimens=tuple(report.specimens[number] for number in kept))


def among(checks: Sequence[Check], kept: Sequence[int]) -> list[Check]:
    """Return checks that point to specimens by their numbers among those that are kept."""
    numbers = {number: at for at, number in enumerate(kept)}
    return [
        check._replace(specimens=tuple(numbers[one] for one in check.specimens if one in numbers))
        for check in checks
    ]


SCRIPTS = ("shaders", "viewer", "colours", "common", "atlas", "specimen", "links")
"""The scripts of the page; each needs those before it."""

STAGES = {
    "linear": "Stage 1: positions and sizes",
    "sparsity": "Stage 2: which assignments to allow",
    "offsets": "Stage 3: offsets between neighbours",
}
"""Titles of the stages of learning."""

DOUBTFUL_ROWS = 8
"""Number of rows in the table of the cells with the lowest confidence."""


def render(atlas: Atlas, report: Report) -> str:
    """Return the page as HTML that loads nothing from anywhere.

    Parameters
    ----------
    atlas
        the cells.
    report
        everything else that the page shows; its cells must be cells of ``atlas``.
    """
    report.check(atlas)
    timings = tuple(row for row in report.timings if np.isfinite(row[1]))
    report = replace(report, timings=timings)  # times that are not known are left out
    kept = sampled(report)
    return assembled(
        "page.html",
        SCRIPTS,
        atlas=atlas,
        report=with_specimens(report, kept),
        cohort=len(report.specimens),
        headline=words.headline(atlas, report),
        tiles=words.tiles(atlas, report),
        checks=among(words.checks(atlas, report), kept),
        parameters=flat(report.parameters),
        unit=words.unit_of(atlas),
        grouping=words.grouping(atlas),
        provenance=sorted(atlas.provenance.items()),
        doubtful=_doubtful(atlas, report),
        confusions=compute.confusions(atlas, report.specimens),
        style=asset("style.css"),
        data=page_data(atlas, report, kept),
        total=words.duration(sum(seconds for _, seconds in report.timings)),
        **_figures(report, kept),
    )


def assembled(template: str, scripts: Sequence[str], **values: Any) -> str:
    """Return a page from a template, with scripts of the package and values; all text is escaped.

    Parameters
    ----------
    template
        file name in ``assets``.
    scripts
        names of scripts in ``assets``, without ``.js``; the template has them as ``script``.
    values
        everything else that the template uses.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("eutely.report", "assets"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = Markup("\n").join(asset(f"{name}.js") for name in scripts)
    return environment.get_template(template).render(script=script, **values)


def _figures(report: Report, kept: Sequence[int]) -> dict[str, Any]:
    """Return the figures by name, "" where the report contains nothing to draw.

    Dots of the specimens that the page has ``kept`` lead to them.
    """
    numbers = {report.specimens[number].name: at for at, number in enumerate(kept)}
    ranked = compute.consistency(report.specimens)
    confidences = compute.confidences(report.specimens)
    accuracy = compute.accuracy(report.evaluation) if report.evaluation else None
    curves = compute.learning_curves(report.trials)
    fronts = compute.pareto_fronts(report.trials, report.chosen)
    return {
        "consistency": charts.both(partial(charts.ranked_dots, ranked, numbers))
        if len(ranked.values)
        else "",
        "confidence": charts.both(partial(charts.histogram, confidences))
        if len(confidences)
        else "",
        "accuracy": charts.both(partial(charts.violin, accuracy, numbers))
        if accuracy is not None
        else "",
        "curves": [
            (STAGES.get(curve.stage, curve.stage), charts.learning_curve(curve)) for curve in curves
        ],
        "fronts": [charts.both(partial(charts.pareto, front)) for front in fronts],
        "times": charts.both(partial(charts.times, report.timings)) if report.timings else "",
    }


def _doubtful(atlas: Atlas, report: Report) -> list[dict[str, Any]]:
    """Return table rows of the cells with the lowest mean confidence, lowest first."""
    confidence = compute.cell_confidence(atlas, report.specimens)
    spread = compute.spreads(atlas)
    order = np.argsort(confidence, kind="stable").tolist()
    ranked = [cell for cell in order if np.isfinite(confidence[cell])]
    return [
        {
            "cell": cell,
            "name": atlas.names[cell] or f"cell {cell}",
            "confidence": words.percent(float(confidence[cell])),
            "spread": f"{spread[cell]:.1f}",
            "seen": f"{atlas.seen[cell]} of {atlas.specimens}",
        }
        for cell in ranked[:DOUBTFUL_ROWS]
    ]


def flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested values as rows of (dotted key, value as text)."""
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            rows += flat(value, f"{prefix}{key}.")
        else:
            rows.append((f"{prefix}{key}", _text(value)))
    return rows


def _text(value: object) -> str:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"({', '.join(_text(item) for item in value)})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def asset(name: str) -> Markup:
    """Return a style or script unescaped: these files are part of the package and trusted."""
    return Markup((files("eutely.report") / "assets" / name).read_text(encoding="utf-8"))


SMALL_SCRIPTS = ("shaders", "viewer", "colours", "common", "small")
"""The scripts of the small view; each needs those before it."""

SMALL_HEIGHT = 320
"""Height of the small view in pixels; it is as wide as the notebook."""


def small_view(atlas: Atlas) -> str:
    """Return an HTML frame for notebooks in which an atlas can be turned; it needs nothing else."""
    page = assembled("small.html", SMALL_SCRIPTS, data=page_data(atlas, Report("atlas")))
    # Scripts of the frame can reach neither the notebook nor the network.
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" width="100%" '
        f'height="{SMALL_HEIGHT}" style="border: 0" title="Atlas of {len(atlas)} cells"></iframe>'
    )
