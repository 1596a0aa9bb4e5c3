"""``eutely evaluate``: how many nuclei an atlas names right."""

import json
from pathlib import Path
from typing import Annotated

import typer

from eutely.cli.common import (
    Adapt,
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


def evaluate(
    atlas: AtlasFile,
    inputs: Inputs,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="F", help="File for all figures.")
    ] = None,
    adapt: Adapt = None,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    dask: Dask = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Compare the names that an atlas gives with those that specimens have.

    The accuracy of a specimen is the share of its named nuclei that get their own name; the names
    are not looked at before that.

    Example: eutely evaluate run/atlas.h5 named_worms/ --json accuracy.json
    """
    speak(verbose, quiet)
    from eutely.cli.reading import read_all
    from eutely.cli.watching import steps, watching
    from eutely.io.atlas import open_atlas
    from eutely.io.whole import whole
    from eutely.tasks import evaluate as evaluate_all

    found = open_atlas(atlas)
    specimens = [reading.specimen for reading in read_all(inputs, voxel_size, quiet)]
    with watching(quiet) as watch:
        result = evaluate_all(
            found,
            specimens,
            adapt=adapt,
            workers=workers,
            dask=dask,
            progress=steps(watch, "matching"),
        ).as_dict()
    if json_file is not None:
        with whole(json_file) as aside:
            aside.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    for row in result["specimens"]:
        right = "no names" if row["accuracy"] is None else f"{row['accuracy']:.4f}"
        line = f"{row['specimen']}\t{right}\t{row['correct']} of {row['named']}"
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    total = result["accuracy"]
    out.print(
        f"mean {total['mean']:.4f}  sd {total['std']:.4f}  median {total['median']:.4f}  "
        f"({total['n']} specimens)",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
