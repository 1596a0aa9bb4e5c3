"""``eutely report``: the page of a run, written again."""

from pathlib import Path
from typing import Annotated

import typer

from eutely.cli.common import Quiet, Verbose, out, speak


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of eutely build.")],
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write each figure as SVG and PDF, too (needs the extra plots)."
        ),
    ] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Write RUN/report.html again, for example after the cells got names.

    Example: eutely report run --figures figures
    """
    speak(verbose, quiet)
    from eutely.cli.pages import figures_of
    from eutely.io.whole import whole
    from eutely.tasks.story import PAGE, read_story, write_html

    story = read_story(run)
    write_html(run, story)
    written = [str(run / PAGE)]
    if figures is not None:
        for name, content in figures_of(story).items():
            with whole(figures / name) as aside:
                aside.write_bytes(content)
        written.append(f"figures in {figures}")
    if not quiet:
        out.print(", ".join(written), markup=False, highlight=False, soft_wrap=True)
