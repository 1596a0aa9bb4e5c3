"""``eutely extract``: tables from label volumes; ``eutely transfer``: names for a segmentation."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eutely.cli.common import (
    Inputs,
    NameFile,
    Quiet,
    SkipBad,
    Verbose,
    VoxelSize,
    check_folder,
    counted,
    expect_input,
    files_read,
    parse_voxel_size,
    read_specimens,
    say,
    start_log,
)
from eutely.errors import ReadError

if TYPE_CHECKING:
    from eutely.specimen import Specimen
    from eutely.tasks.transfer import Transfer


class Format(StrEnum):
    """Format of a table: the suffix of its file."""

    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"


def extract(
    inputs: Inputs,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables.")],
    format: Annotated[Format, typer.Option("--format", help="Format of the tables.")] = Format.CSV,
    names: NameFile = None,
    skip_bad: SkipBad = False,
    voxel_size: VoxelSize = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Turn label volumes into tables of nuclei: position, size and orientation of each.

    One table per specimen, named after it. If any input is bad, no table is written, unless
    --skip-bad leaves it out. Tables in the
    folder that were changed by hand are kept as .bak.

    Example: eutely extract segmentations/ -o nuclei --voxel-size 0.1,0.1,0.5
    """
    start_log(verbose, quiet)
    expect_input(*inputs)
    from eutely.io.read import sources
    from eutely.io.tables import write_tables
    from eutely.io.written import refuse_folder, refuse_to_replace

    check_folder(output)
    refuse_folder(output, inputs)
    read = files_read(inputs, names)
    refuse_to_replace([output / f"{file.name}.{format}" for file in sources(inputs)], read)
    specimens = read_specimens(inputs, voxel_size, quiet, names=names, skip_bad=skip_bad)
    refuse_to_replace([output / f"{specimen.name}.{format}" for specimen in specimens], read)
    write_tables(specimens, output, f".{format}")
    if not quiet:
        nuclei = counted(sum(map(len, specimens)), "nucleus", "nuclei")
        tables = counted(len(specimens), "table")
        say(f"{nuclei}, {tables} in {output}; next: eutely check {output}")


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
            help="Compare by distance: the largest distance of two nuclei that are the same.",
            show_default="the median radius",
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="F", help="File for all numbers.")
    ] = None,
    voxel_size: VoxelSize = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Give the nuclei of a segmentation the names of another segmentation of the same image.

    Two label volumes are compared voxel by voxel: a predicted nucleus and the true nucleus with
    which it shares the most voxels are the same. Tables are compared by distance: the nearest
    nuclei are the same, up to a limit. Where TRUTH has no names, its labels take their place.

    Example: eutely transfer expert.tif stardist.tif --names expert.csv -o stardist_named.csv
    """
    start_log(verbose, quiet)
    expect_input(truth)
    from dataclasses import replace

    from eutely.io.read import paired_planes, read_names, sources
    from eutely.io.tables import write_table
    from eutely.io.whole import write_text
    from eutely.io.written import refuse_other_kind, refuse_to_replace, table_at

    read = [truth, predicted, *([] if names is None else [names])]
    refuse_to_replace([output, *([] if json_file is None else [json_file])], read)
    if json_file is not None:
        refuse_other_kind(json_file, ["missed_ids", "spurious_ids"])
    size = parse_voxel_size(voxel_size)
    true, guess = read_single(truth, size), read_single(predicted, size)
    if names is not None:
        known = read_names(names)
        true = replace(true, names=tuple(known.get(label, "") for label in true.ids.tolist()))
    files = sources([truth])[0], sources([predicted])[0]
    from eutely.tasks.transfer import by_distance, by_overlap  # after errors: it is slow

    if all(file.kind == "volume" for file in files) and limit is None:
        with paired_planes(*files, size) as planes:
            result = by_overlap(true, guess, planes)
    else:
        result = by_distance(true, guess, limit)
    with table_at(output) as aside:
        write_table(result.predicted, aside)
    numbers = summary(true, guess, result)
    if json_file is not None:
        write_text(json_file, json.dumps(numbers, indent=2) + "\n")
    if not quiet:
        how = (
            f"within {result.limit:.3g} {true.unit}"
            if numbers["iou"] is None
            else f"IoU {result.overlap:.3f}, of found nuclei {numbers['iou_of_found'] or 0:.3f}"
        )
        say(
            f"{result.found} of {len(true)} true nuclei found ({how}), {len(result.missed)} "
            f"missed, {result.spurious} spurious; named table: {output}"
        )


def read_single(path: Path, voxel_size: list[float] | None) -> "Specimen":
    """Read the only specimen of a file."""
    from eutely.io import read

    cohort = read(path, voxel_size=voxel_size)
    if len(cohort) != 1:
        raise ReadError(f"{path} holds {len(cohort)} specimens, expected one; give a single file")
    return cohort[0]


def summary(truth: "Specimen", predicted: "Specimen", result: "Transfer") -> dict[str, Any]:
    """Return the numbers of a transfer, for JSON."""
    import numpy as np

    paired = result.overlaps[np.isfinite(result.overlaps)]
    return {
        "true": len(truth),
        "predicted": len(predicted),
        "found": result.found,
        "missed": len(result.missed),
        "spurious": result.spurious,
        "missed_ids": result.missed.tolist(),
        "spurious_ids": predicted.ids[result.partners < 0].tolist(),
        "iou": None if np.isnan(result.overlap) else result.overlap,
        "iou_of_found": float(paired.mean()) if len(paired) else None,
        "limit": None if np.isnan(result.limit) else result.limit,
    }
