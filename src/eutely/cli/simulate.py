"""``eutely simulate``: a cohort with known truth, as tables or label volumes."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eutely.cli.common import Quiet, Verbose, check_folder, counted, say, start_log
from eutely.errors import EutelyError, ReadError, WriteError

if TYPE_CHECKING:
    from eutely.specimen import Specimen

log = logging.getLogger("eutely")

RECORD = "simulation.json"
"""File with the parameters of the simulation and the entries of its folder."""

TRUTH = Path("truth", "truth.csv")
"""Table with the true names, unless the tables of the specimens hold them."""


class Format(StrEnum):
    """Format of a specimen: the suffix of its file."""

    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    TIF = "tif"
    ZARR = "zarr"
    H5 = "h5"
    NRRD = "nrrd"


class Pose(StrEnum):
    """Poses that individuals may have."""

    ANY = "any"
    AXIS = "axis"
    NONE = "none"


TABLES = (Format.CSV, Format.TSV, Format.PARQUET)
"""Formats that are tables; the others are label volumes."""


def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    specimens: Annotated[int, typer.Option(help="Number of individuals.")] = 30,
    cells: Annotated[int, typer.Option(help="Number of cells of the organism.")] = 558,
    seed: Annotated[int, typer.Option(help="Seed of the individuals.")] = 0,
    plan_seed: Annotated[int, typer.Option(help="Seed of the organism's body plan.")] = 0,
    spacing: Annotated[
        float, typer.Option(help="Median distance of neighbours, in micrometres.")
    ] = 13.0,
    variation: Annotated[
        float, typer.Option(help="Differences between individuals; 1: as in real worms.")
    ] = 1.0,
    pose: Annotated[
        Pose | None,
        typer.Option(
            help="Rotation: any; axis: body along x, any roll; none.",
            show_default="any; axis for volumes",
        ),
    ] = None,
    missing: Annotated[float, typer.Option(help="Share of nuclei that are missing.")] = 0.0,
    spurious: Annotated[
        float, typer.Option(help="Spurious nuclei, as a share of the true nuclei.")
    ] = 0.0,
    split: Annotated[float, typer.Option(help="Share of nuclei that are split into two.")] = 0.0,
    merged: Annotated[
        float, typer.Option(help="Share of nuclei that are merged with a neighbour.")
    ] = 0.0,
    shift: Annotated[float, typer.Option(help="SD of centroid errors, in micrometres.")] = 0.0,
    radius_noise: Annotated[float, typer.Option(help="Relative SD of radius errors.")] = 0.0,
    format: Annotated[
        Format, typer.Option("--format", help="Tables; from tif on label volumes.")
    ] = Format.CSV,
    voxel_size: Annotated[
        str,
        typer.Option(
            metavar="X,Y,Z", help="Voxel size of volumes in micrometres (one number: cubic)."
        ),
    ] = "1",
    names: Annotated[
        bool, typer.Option(help="Write true names into tables; else into truth/truth.csv.")
    ] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a folder whatever it holds.")
    ] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a cohort with known truth, one file per specimen.

    Label volumes hold no names; theirs are in truth/truth.csv, a table of the whole cohort.

    Example: eutely simulate -o cohort --specimens 20 --missing 0.02 --spurious 0.02
    """
    parameters = {
        key: value
        for key, value in locals().items()
        if key not in ("output", "force", "verbose", "quiet")
    }
    start_log(verbose, quiet)
    import eutely
    from eutely.simulation import body_plan

    volume = format not in TABLES
    parameters["pose"] = pose or (Pose.AXIS if volume else Pose.ANY)
    refuse_to_destroy(output, force)
    cohort = eutely.simulate(
        specimens,
        body_plan(cells, seed=plan_seed, spacing=spacing),
        seed=seed,
        variation=variation,
        pose=parameters["pose"],
        missing=missing,
        spurious=spurious,
        split=split,
        merged=merged,
        shift=shift,
        radius_noise=radius_noise,
    )
    write_cohort(cohort, output, parameters, format=format, voxel_size=voxel_size, names=names)
    if not quiet:
        files = counted(len(cohort), "label volume" if volume else "table")
        where = "" if names and not volume else f" (truth in {output / TRUTH})"
        say(f"{files} in {output}{where}; next: eutely check {output}")


def write_cohort(
    cohort: "Sequence[Specimen]",
    output: Path,
    parameters: Mapping[str, object],
    *,
    format: Format = Format.CSV,
    voxel_size: str = "1",
    names: bool = True,
) -> None:
    """Write a simulated cohort as the folder ``output``, completely or not at all.

    Parameters
    ----------
    cohort
        specimens with their true names.
    output
        replaced if it is there already, see `refuse_to_destroy`.
    parameters
        of the simulation, for `RECORD`.
    format, voxel_size, names
        see `simulate`.
    """
    from eutely import __version__
    from eutely.io.tables import write_table
    from eutely.io.whole import new_bytes, new_folder, whole
    from eutely.io.written import hash_of

    with whole(output.resolve()) as folder:
        new_folder(folder)
        truth: Sequence[Specimen] = cohort
        if format in TABLES:
            for specimen in cohort:
                shown = specimen if names else specimen.without_names()
                write_table(shown, folder / f"{specimen.name}.{format}")
        else:
            truth = list(write_volumes(cohort, folder, format, voxel_size))
        if format not in TABLES or not names:
            new_folder((folder / TRUTH).parent)
            write_table(truth, folder / TRUTH)
        entries = sorted(folder.iterdir())
        record = {
            "eutely": __version__,
            "parameters": dict(parameters),
            "entries": sorted([RECORD, *(entry.name for entry in entries)]),
            "hashes": {entry.name: hash_of(entry) for entry in entries},
        }
        new_bytes(folder / RECORD, (json.dumps(record, indent=1) + "\n").encode())


def write_volumes(
    cohort: "Sequence[Specimen]", folder: Path, format: Format, voxel_size: str
) -> "Iterator[Specimen]":
    """Write label volumes; yield each specimen in the coordinates of its volume."""
    import numpy as np

    from eutely.io.volumes import write_volume
    from eutely.simulation.volume import draw

    try:
        size = [float(part) for part in voxel_size.split(",")]
    except ValueError:
        size = []
    if len(size) not in (1, 3):
        raise EutelyError(f"voxel size {voxel_size}: expected one or three positive numbers")
    x, y, z = size * (3 // len(size))
    for specimen in cohort:
        labels, origin = draw(specimen, (x, y, z))
        write_volume(labels, folder / f"{specimen.name}.{format}", (x, y, z))
        log.debug("%s: %s voxels", specimen.name, " x ".join(map(str, labels.shape[::-1])))
        yield specimen.moved(np.eye(3), -origin)


def refuse_to_destroy(output: Path, force: bool) -> None:
    """Raise an error if a folder holds anything but an earlier simulation, unless ``force``."""
    from eutely.io.written import hash_of

    check_folder(output)
    if not output.is_dir():
        return
    if Path.cwd().resolve().is_relative_to(output.resolve()):
        raise WriteError(f"{output} is the current folder or holds it; give another folder")
    made = hashes_of_simulation(output)
    foreign = sorted(
        entry.name
        for entry in output.iterdir()
        if entry.name not in made or made[entry.name] not in ("", hash_of(entry))
    )
    if foreign and not force:
        raise WriteError(
            f"{output} holds {foreign[0]}, which no earlier simulation wrote like that; give "
            "another folder, or --force to replace this folder with all that is in it"
        )


def hashes_of_simulation(folder: Path) -> dict[str, str]:
    """Return the entries of a simulated folder and their hashes, "" where not known."""
    from eutely.io.limits import small_file

    try:
        record = json.loads(small_file(folder / RECORD))
        hashes = record.get("hashes", {})
        return {str(name): str(hashes.get(name, "")) for name in record["entries"]}
    except (ReadError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
