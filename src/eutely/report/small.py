"""A small 3D view of an atlas for notebooks: a frame that needs nothing else."""

from __future__ import annotations

from html import escape

from eutely.atlas import Atlas
from eutely.report.data import page_data
from eutely.report.page import assembled
from eutely.results import Report

SCRIPTS = ("shaders", "viewer", "colours", "common", "small")
"""The scripts of the view; each needs those before it."""

HEIGHT = 320
"""Height of the frame in pixels; it is as wide as the notebook."""


def small_view(atlas: Atlas) -> str:
    """Return an HTML frame in which an atlas can be turned; names of cells are text."""
    page = assembled("small.html", SCRIPTS, data=page_data(atlas, Report("atlas")))
    # Scripts of the frame can reach neither the notebook nor the network.
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" width="100%" '
        f'height="{HEIGHT}" style="border: 0" title="Atlas of {len(atlas)} cells"></iframe>'
    )
