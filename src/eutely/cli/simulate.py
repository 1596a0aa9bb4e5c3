"""``eutely simulate``: a cohort with known truth, as tables or label volumes."""

import json
import logging
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eutely.cli.common import Quiet, Verbose, out, speak
from eutely.errors import EutelyError, WriteError

if TYPE_CHECKING:
    from eutely.specimen import Specimen

log = logging.getLogger("eutely")

RECORD = "simulation.json"
TRUTH = Path("truth", "truth.csv")


class Format(StrEnum):
    """How a specimen is written: the ending of its file."""

    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    TIF = "tif"
    ZARR = "zarr"
    H5 = "h5"
    NRRD = "nrrd"


class Pose(StrEnum):
    """What the pose of an individual may be."""

    ANY = "any"
    AXIS = "axis"
    NONE = "none"


TABLES = (Format.CSV, Format.TSV, Format.PARQUET)


def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    specimens: Annotated[int, typer.Option(help="How many individuals.")] = 30,
    cells: Annotated[int, typer.Option(help="Cells of the organism.")] = 558,
    seed: Annotated[int, typer.Option(help="Of the individuals.")] = 0,
    plan_seed: Annotated[int, typer.Option(help="Of the organism's body plan.")] = 0,
    spacing: Annotated[
        float, typer.Option(help="Median distance of neighbours, micrometres.")
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
    missing: Annotated[float, typer.Option(help="Share of nuclei not found.")] = 0.0,
    spurious: Annotated[float, typer.Option(help="Made-up nuclei, by true ones.")] = 0.0,
    split: Annotated[float, typer.Option(help="Share of nuclei found as two.")] = 0.0,
    merged: Annotated[float, typer.Option(help="Share found as one with a neighbour.")] = 0.0,
    shift: Annotated[float, typer.Option(help="SD of centroid errors, micrometres.")] = 0.0,
    radius_noise: Annotated[float, typer.Option(help="Relative SD of radius errors.")] = 0.0,
    format: Annotated[
        Format, typer.Option("--format", help="Tables, or label volumes from tif on.")
    ] = Format.CSV,
    voxel_size: Annotated[
        str, typer.Option(metavar="X,Y,Z", help="Of volumes, micrometres (one number: cubic).")
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
    """Simulate a cohort with known truth, one file a specimen.

    Label volumes hold no names; theirs are in truth/truth.csv, a table of the whole cohort.

    Example: eutely simulate -o cohort --specimens 20 --missing 0.02 --spurious 0.02
    """
    speak(verbose, quiet)
    parameters = {
        key: value
        for key, value in locals().items()
        if key not in ("output", "force", "verbose", "quiet")
    }
    volume = format not in TABLES
    parameters["pose"] = pose or (Pose.AXIS if volume else Pose.ANY)
    written = write(output, parameters, force=force)
    if not quiet:
        kind = "label volumes" if volume else "tables"
        where = "" if names and not volume else f" (truth in {output / TRUTH})"
        out.print(
            f"{written} {kind} in {output}{where}; next: eutely check {output}",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip


def write(output: Path, parameters: dict[str, object], *, force: bool) -> int:
    """Simulate and write the folder ``output``, whole or not at all; return the specimens."""
    import eutely
    from eutely.io.tables import write_table
    from eutely.io.whole import whole
    from eutely.simulation import body_plan

    refuse_to_destroy(output, force)
    rest: dict[str, Any] = dict(parameters)
    plan = body_plan(rest.pop("cells"), seed=rest.pop("plan_seed"), spacing=rest.pop("spacing"))
    for key in ("format", "voxel_size", "names"):
        del rest[key]
    cohort = eutely.simulate(cells=plan, **rest)
    ending = str(parameters["format"])
    with whole(output.resolve()) as folder:
        folder.mkdir()
        truth: Sequence[Specimen] = cohort
        if ending in TABLES:
            for one in cohort:
                shown = one if parameters["names"] else one.without_names()
                write_table(shown, folder / f"{one.name}.{ending}")
        else:
            truth = list(drawn(cohort, folder, ending, str(parameters["voxel_size"])))
        if ending not in TABLES or not parameters["names"]:
            (folder / TRUTH).parent.mkdir()
            write_table(truth, folder / TRUTH)
        record = {
            "eutely": eutely.__version__,
            "parameters": parameters,
            "entries": sorted([RECORD, *(entry.name for entry in folder.iterdir())]),
        }
        (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return len(cohort)


def drawn(
    cohort: "Sequence[Specimen]", folder: Path, ending: str, voxel_size: str
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
    for one in cohort:
        labels, origin = draw(one, (x, y, z))
        write_volume(labels, folder / f"{one.name}.{ending}", (x, y, z))
        log.debug("%s: %s voxels", one.name, " x ".join(map(str, labels.shape[::-1])))
        yield one.moved(np.eye(3), -origin)


def refuse_to_destroy(output: Path, force: bool) -> None:
    """Refuse a folder that holds anything but an earlier simulation."""
    if output.exists() and not output.is_dir():
        raise WriteError(f"{output} is a file; give a folder")
    if not output.is_dir():
        return
    if Path.cwd().resolve().is_relative_to(output.resolve()):
        raise WriteError(f"{output} is the folder you are in; give another one")
    here = {entry.name for entry in output.iterdir()}
    try:
        ours = set(json.loads((output / RECORD).read_text(encoding="utf-8"))["entries"])
    except (OSError, ValueError, KeyError, TypeError):
        ours = set()
    foreign = sorted(here - ours)
    if foreign and not force:
        raise WriteError(
            f"{output} holds {foreign[0]}, which is of no earlier simulation; give another folder, "
            "or --force to replace this one and all that is in it"
        )
