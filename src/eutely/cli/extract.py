"""``eutely extract``: label volumes become tables of nuclei."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from eutely.cli.common import Inputs, Quiet, Verbose, VoxelSize, out, speak
from eutely.cli.reading import read_all
from eutely.errors import WriteError


class Format(StrEnum):
    """How a table is written: the ending of its file."""

    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"


def extract(
    inputs: Inputs,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables.")],
    format: Annotated[Format, typer.Option("--format", help="Of the tables.")] = Format.CSV,
    voxel_size: VoxelSize = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Turn label volumes into tables of nuclei: position, size and direction of each.

    One table a specimen, named after it; all are written, or none when something is wrong.

    Example: eutely extract segmentations/ -o nuclei --voxel-size 0.1,0.1,0.5
    """
    speak(verbose, quiet)
    from eutely.io.tables import write_tables

    if output.exists() and not output.is_dir():
        raise WriteError(f"{output} is a file; give a folder")
    found = read_all(inputs, voxel_size, quiet)
    write_tables([reading.specimen for reading in found], output, f".{format}")
    if not quiet:
        nuclei = sum(len(reading.specimen) for reading in found)
        out.print(
            f"{nuclei} nuclei, {len(found)} tables in {output}; next: eutely check {output}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
