"""``eutely annotate``: what the nuclei of new specimens are."""

from pathlib import Path
from typing import Annotated

import typer

from eutely.cli.common import (
    Adapt,
    AtlasFile,
    Dask,
    Inputs,
    PinFile,
    Quiet,
    Verbose,
    VoxelSize,
    Workers,
    command,
    out,
    speak,
)


def annotate(
    atlas: AtlasFile,
    inputs: Inputs,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the tables.")
    ],
    min_confidence: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="Leave nuclei empty that are less certain than this."),
    ] = 0.0,
    alternatives: Annotated[
        int, typer.Option(metavar="N", min=0, help="Next best cells to list for each nucleus.")
    ] = 3,
    adapt: Adapt = None,
    pins: PinFile = None,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    dask: Dask = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Name the nuclei of new specimens by an atlas.

    Writes DIR/<specimen>.csv with the columns id, cell, name, confidence, alternatives: a row for
    every nucleus, empty where it stays unmatched; DIR/look-here-first.csv, the least certain nuclei
    of each specimen; and DIR/report.html, a page to look at.

    Example: eutely annotate run/atlas.h5 new_worm.tif -o annotated
    """
    speak(verbose, quiet)
    from eutely.cli.reading import read_all
    from eutely.cli.watching import steps, watching
    from eutely.errors import WriteError
    from eutely.io.atlas import open_atlas
    from eutely.io.pins import read_pins
    from eutely.tasks import annotate as annotate_all
    from eutely.io.annotations import report_annotations, write_annotations

    if output.exists() and not output.is_dir():
        raise WriteError(f"{output} is a file; give a folder")
    cells = open_atlas(atlas)
    specimens = [reading.specimen for reading in read_all(inputs, voxel_size, quiet)]
    with watching(quiet) as watch:
        found = annotate_all(
            cells,
            specimens,
            alternatives=alternatives,
            adapt=adapt,
            pins=None if pins is None else read_pins(pins),
            workers=workers,
            dask=dask,
            progress=steps(watch, "matching"),
        )
    write_annotations(found, cells.names, output, min_confidence)
    report_annotations(found, cells, specimens, output, command())
    if not quiet:
        nuclei = sum(len(one.ids) for one in found)
        matched = sum(int((one.cells >= 0).sum()) for one in found)
        sure = sum(int((one.confidence >= 0.9).sum()) for one in found)
        out.print(
            f"{matched} of {nuclei} nuclei of {len(found)} specimens have a cell, {sure} of them "
            f"with confidence 0.9 or more; look first at {output / 'report.html'}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
