"""The page of a curation: its parts are those of the report's 3D viewer, and some more."""

from __future__ import annotations

from importlib.resources import files

import jinja2

from eutely.atlas import Atlas
from eutely.report.data import page_data
from eutely.results import Report

SHARED = ("shaders", "viewer", "colours", "common")
"""Scripts of the report that the page uses as they are."""

OWN = ("scene", "slices", "card", "queue", "main")
"""Scripts of the page; each needs those before it, and the shared ones."""

ASSETS = {
    **{f"{name}.js": "eutely.report" for name in SHARED},
    **{f"{name}.js": "eutely.curate" for name in ("start", *OWN)},
    "style.css": "eutely.report",
    "curate.css": "eutely.curate",
}
"""File -> package that has it."""


def asset(name: str) -> str:
    """Return one of `ASSETS`."""
    return (files(ASSETS[name]) / "assets" / name).read_text(encoding="utf-8")


def render(atlas: Atlas) -> str:
    """Return the page as HTML; specimens are asked for by its scripts."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("eutely.curate", "assets"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page.html").render(
        scripts=[f"{name}.js" for name in (*SHARED, *OWN)],
        data=page_data(atlas, Report(kind="atlas")),
    )
