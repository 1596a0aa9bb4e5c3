"""``eutely annotate``: the cell and the name of each nucleus of new specimens."""

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
    check_folder,
    command,
    progress_bar,
    read_specimens,
    say,
    start_log,
    threads_or_dask,
)

SURE = 0.9
"""Confidence from which the summary counts a nucleus as certain."""


def annotate(
    atlas: AtlasFile,
    inputs: Inputs,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the tables.")
    ],
    min_confidence: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="Leave nuclei with a lower confidence empty."),
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

    Writes DIR/<specimen>.csv with the columns id, cell, name, confidence, alternatives, one row per
    nucleus, empty where it is unmatched; DIR/look-here-first.csv, the least certain nuclei of each
    specimen; and DIR/report.html, a page to look at.

    Example: eutely annotate run/atlas.h5 new_worm.tif -o annotated
    """
    start_log(verbose, quiet)
    from eutely.io.annotations import read_pins, write_annotations
    from eutely.io.atlas import open_atlas
    from eutely.tasks.annotate import annotate as annotate_specimens
    from eutely.tasks.outputs import PAGE, report_of_annotations, write_page

    check_folder(output)
    run_on = threads_or_dask(workers, dask)
    cells = open_atlas(atlas)
    known = None if pins is None else read_pins(pins)
    specimens = read_specimens(inputs, voxel_size, quiet)
    with progress_bar(quiet) as progress:
        annotations = annotate_specimens(
            cells,
            specimens,
            alternatives=alternatives,
            adapt=adapt,
            pins=known,
            workers=run_on,
            progress=progress,
        )
    write_annotations(annotations, cells.names, output, min_confidence)
    write_page(output, cells, report_of_annotations(annotations, cells, specimens, command()))
    if not quiet:
        nuclei = sum(map(len, annotations))
        matched = sum(int((annotation.cells >= 0).sum()) for annotation in annotations)
        sure = sum(int((annotation.confidence >= SURE).sum()) for annotation in annotations)
        say(
            f"{matched} of {nuclei} nuclei of {len(annotations)} specimens have a cell, {sure} of "
            f"them with confidence {SURE} or more; look first at {output / PAGE}"
        )
