"""``eutely transfer``: names from one segmentation to another one of the same image."""

import json
from pathlib import Path
from typing import Annotated

import typer

from eutely.cli.common import Quiet, Verbose, VoxelSize, out, speak


def transfer(
    truth: Annotated[
        Path, typer.Argument(metavar="TRUTH", help="Label volume or table with the true nuclei.")
    ],
    predicted: Annotated[
        Path, typer.Argument(metavar="PREDICTED", help="Another segmentation of the same image.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="F.csv", help="Table of PREDICTED, named.")
    ],
    names: Annotated[
        Path | None,
        typer.Option("--names", metavar="F.csv", help="Names of TRUTH: columns id and name."),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            metavar="D",
            help="Tables: largest distance of nuclei taken for the same; else the median radius.",
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="F", help="File for all figures.")
    ] = None,
    voxel_size: VoxelSize = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Give the nuclei of a segmentation the names of another one of the same image.

    Two label volumes are compared voxel by voxel: each predicted nucleus goes to the true one with
    which it shares the most voxels, and each true one to the predicted one with the most. Otherwise
    the nearest nuclei are taken for the same, up to a distance. Labels stand for names where TRUTH
    has none.

    Example: eutely transfer expert.tif stardist.tif --names expert.csv -o stardist_named.csv
    """
    speak(verbose, quiet)
    from dataclasses import replace

    import numpy as np

    from eutely.cli.reading import parse_voxel_size
    from eutely.errors import ReadError
    from eutely.io.read import paired_planes, read, read_names, sources
    from eutely.io.tables import write_table
    from eutely.io.whole import whole
    from eutely.tasks.transfer import by_distance, by_overlap

    size = parse_voxel_size(voxel_size)
    one, other = (read(path, voxel_size=size) for path in (truth, predicted))
    if len(one) != 1 or len(other) != 1:
        raise ReadError("transfer takes one specimen on each side; give single files")
    if names is not None:
        known = read_names(names)
        one = [replace(one[0], names=tuple(known.get(id_, "") for id_ in one[0].ids.tolist()))]
    files = sources([truth])[0], sources([predicted])[0]
    if all(file.kind == "volume" for file in files) and limit is None:
        with paired_planes(*files, size) as planes:
            result = by_overlap(one[0], other[0], planes)
    else:
        result = by_distance(one[0], other[0], limit)
    figures = {
        "true": len(one[0]),
        "predicted": len(other[0]),
        "found": result.found,
        "missed": len(result.missed),
        "spurious": result.spurious,
        "missed_ids": result.missed.tolist(),
        "spurious_ids": other[0].ids[result.partners < 0].tolist(),
        "iou": None if np.isnan(result.overlap) else result.overlap,
        "iou_of_found": None
        if np.isnan(result.overlaps).all()
        else float(np.nanmean(result.overlaps)),
        "limit": None if np.isnan(result.limit) else result.limit,
    }
    write_table(result.predicted, output)
    if json_file is not None:
        with whole(json_file) as aside:
            aside.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if not quiet:
        how = (
            f"within {result.limit:.3g} {one[0].unit}"
            if figures["iou"] is None
            else f"IoU {result.overlap:.3f}, of found nuclei {figures['iou_of_found'] or 0:.3f}"
        )
        out.print(
            f"{result.found} of {len(one[0])} true nuclei found ({how}), {len(result.missed)} "
            f"missed, {result.spurious} spurious; named table: {output}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
