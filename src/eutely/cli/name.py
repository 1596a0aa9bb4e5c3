"""``eutely name``: names for the cells of an atlas."""

from pathlib import Path
from typing import Annotated

import typer

from eutely.cli.common import (
    AtlasFile,
    Dask,
    Inputs,
    Quiet,
    Verbose,
    VoxelSize,
    Workers,
    out,
    speak,
)


def name(
    atlas: AtlasFile,
    inputs: Inputs,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="F.h5", help="Atlas to write; else in place."),
    ] = None,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    dask: Dask = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Give the cells of an atlas names, from any named specimens.

    Each specimen is matched with the atlas; a cell gets the name that most of its nuclei have, the
    clearest cells first, and no name is given twice.

    Example: eutely name run/atlas.h5 named_worms/
    """
    speak(verbose, quiet)
    from eutely.cli.reading import read_all
    from eutely.cli.watching import steps, watching
    from eutely.io.atlas import open_atlas, write_atlas
    from eutely.tasks import name as name_cells

    found = open_atlas(atlas)
    specimens = [reading.specimen for reading in read_all(inputs, voxel_size, quiet)]
    with watching(quiet) as watch:
        named = name_cells(
            found, specimens, workers=workers, dask=dask, progress=steps(watch, "matching")
        )
    goal = output or Path(atlas)
    write_atlas(named, goal)
    if not quiet:
        count = sum(map(bool, named.names))
        out.print(
            f"{count} of {len(named)} cells named, in {goal}; "
            f"next: eutely annotate {goal} NEW_SPECIMENS -o DIR",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
