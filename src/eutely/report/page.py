"""The page: a story in, one HTML file out that needs nothing else."""

from __future__ import annotations

import jinja2

from eutely.report.story import Story

TITLES = {
    "build": "An atlas from {} specimens",
    "annotate": "{} specimens annotated",
    "atlas": "An atlas of {} specimens",
}


def render(story: Story) -> str:
    """Return the page of ``story``: HTML that loads nothing from anywhere."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("eutely.report", "assets"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    count = len(story.specimens) or story.atlas.specimens
    title = story.title or TITLES[story.kind].format(count)
    return environment.get_template("page.html").render(story=story, title=title)
