"""Pages and figures as files: what ``eutely view`` and ``eutely report`` share."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eutely.cli.common import command

if TYPE_CHECKING:
    from eutely.results import Story


def page_of_run(folder: Path) -> Path:
    """Return the page of a run, written again; or of annotations, as it is."""
    from eutely.tasks.story import FILE, PAGE, read_story, write_html

    page = folder / PAGE
    if (folder / FILE).exists() or not page.exists():
        write_html(folder, read_story(folder))
    return page


def page_of_atlas(atlas: Path, output: Path | None) -> Path:
    """Return a page about an atlas alone."""
    from eutely.io.atlas import open_atlas
    from eutely.tasks.story import PAGE, write_html
    from eutely.results import Story

    folder = _place(output)
    cells = open_atlas(str(atlas))
    write_html(folder, Story(cells, "atlas", command=command()))
    return folder / PAGE


def page_of_specimens(
    atlas: Path,
    inputs: Sequence[Path],
    output: Path | None,
    voxel_size: str | None,
    workers: int | None,
    quiet: bool,
) -> Path:
    """Return a page about specimens, annotated by an atlas (or by that of a run)."""
    from eutely.cli.reading import read_all
    from eutely.cli.watching import steps, watching
    from eutely.io.atlas import open_atlas
    from eutely.tasks import annotate
    from eutely.io.annotations import report_annotations
    from eutely.tasks.story import PAGE

    folder = _place(output)
    cells = open_atlas(str(atlas))
    specimens = [reading.specimen for reading in read_all(list(inputs), voxel_size, quiet)]
    with watching(quiet) as watch:
        found = annotate(cells, specimens, workers=workers, progress=steps(watch, "matching"))
    report_annotations(found, cells, specimens, folder, command())
    return folder / PAGE


def figures_of(story: Story) -> dict[str, bytes]:
    """Return every figure that the story holds something for, as files by name."""
    from eutely.plots.draw import all_figures, encoded

    return {
        f"{name}.{kind}": encoded(figure, kind)
        for name, figure in all_figures(story).items()
        for kind in ("svg", "pdf")
    }


def _place(output: Path | None) -> Path:
    """Return the folder that was asked for, or a new one that stays: a browser reads it later."""
    return Path(tempfile.mkdtemp(prefix="eutely-")) if output is None else output
