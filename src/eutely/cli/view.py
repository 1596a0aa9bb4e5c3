"""``eutely view``: the page of a run, of an atlas, or of specimens beside an atlas."""

from pathlib import Path
from typing import Annotated

import typer

from eutely.cli.common import Quiet, Verbose, VoxelSize, Workers, out, speak


def view(
    what: Annotated[
        Path, typer.Argument(metavar="RUN|ATLAS", help="Folder of a run, or an atlas file (.h5).")
    ],
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[INPUT...]", help="Specimens to show beside the atlas."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Where to keep a page that is made."),
    ] = None,
    open_it: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Look at a run or an atlas in the browser, with specimens beside it if any are given.

    Example: eutely view run
    Example: eutely view run/atlas.h5 new_worms/
    """
    speak(verbose, quiet)
    from eutely.cli.pages import page_of_atlas, page_of_run, page_of_specimens

    if inputs:
        page = page_of_specimens(what, inputs, output, voxel_size, workers, quiet)
    elif what.is_dir():
        page = page_of_run(what)
    else:
        page = page_of_atlas(what, output)
    out.print(str(page), markup=False, highlight=False, soft_wrap=True)
    if open_it:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
