"""``eutely annotate``: the cell and the name of each nucleus of new specimens."""

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eutely.cli.common import (
    Adapt,
    AtlasFile,
    Dask,
    Inputs,
    NameFile,
    PinFile,
    Quiet,
    SkipBad,
    Verbose,
    VoxelSize,
    Workers,
    atlas_file,
    check_folder,
    command,
    counted,
    files_read,
    parse_voxel_size,
    progress_of,
    read_inputs,
    say,
    start_log,
    threads_or_dask,
)
from eutely.cli.progress import Stop
from eutely.errors import EutelyError

if TYPE_CHECKING:
    from eutely.annotation import Annotation
    from eutely.io.read import Reading, Source
    from eutely.io.volumes import Volume

log = logging.getLogger("eutely")

SURE = 0.9
"""Confidence from which the summary counts a nucleus as certain."""


MOST_NOTES = 10
"""Specimens whose view the summary tells."""


class Handedness(StrEnum):
    """Whether specimens are mirror images."""

    AUTO = "auto"
    AS_IS = "as-is"
    MIRRORED = "mirrored"


class Table(StrEnum):
    """Format of the table of all specimens: its suffix."""

    CSV = "csv"
    PARQUET = "parquet"


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
    table: Annotated[
        Table, typer.Option("--table", help="Format of the table of all specimens.")
    ] = Table.CSV,
    labels: Annotated[
        bool,
        typer.Option("--labels", help="Also copy label volumes: number of the cell + 1 as value."),
    ] = False,
    json_summary: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON.")
    ] = False,
    handedness: Annotated[
        Handedness,
        typer.Option("--handedness", help="Whether the specimens are mirror images."),
    ] = Handedness.AUTO,
    adapt: Adapt = None,
    pins: PinFile = None,
    names: NameFile = None,
    skip_bad: SkipBad = False,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    dask: Dask = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Name the nuclei of new specimens by an atlas.

    Specimens may be mirror images and show a part of the body; the summary says which. Writes
    DIR/<specimen>.csv with the columns id, cell, name, confidence, alternatives, mirrored, one row
    per nucleus, empty where it is unmatched; DIR/annotations.csv, all nuclei of all specimens with
    their coordinates; DIR/look-here-first.csv, the least certain nuclei of each specimen; and
    DIR/report.html, a page to look at. With --labels also DIR/labels/<specimen>.tif. Tables that
    were corrected by hand since are kept as .bak; inputs are never replaced. Names of nuclei are
    not looked at; those of --names are written beside the names found, in the column given.

    Example: eutely annotate run/atlas.h5 new_worm.tif -o annotated
    """
    start_log(verbose, quiet)
    from eutely.io.annotations import check_names, read_pins, write_annotations, written_files
    from eutely.io.atlas import open_atlas
    from eutely.io.names import with_names
    from eutely.io.read import sources
    from eutely.io.relabel import FOLDER
    from eutely.io.written import refuse_folder, refuse_to_replace
    from eutely.tasks.annotate import annotate as annotate_specimens
    from eutely.tasks.outputs import PAGE, report_of_annotations, write_annotated_page
    from eutely.tasks.relabel import with_minimum, write_label_copies

    check_folder(output)
    refuse_folder(output, inputs)
    run_on = threads_or_dask(workers, dask)
    files = sources(inputs)
    read = files_read(inputs, atlas_file(atlas), pins, names)

    def refuse(specimens: Sequence[str]) -> None:
        """Refuse to replace what was read, by the names of specimens."""
        copies = [output / FOLDER / f"{name}.tif" for name in specimens if labels]
        tables = [output / name for name in [*written_files(specimens, table), PAGE]]
        refuse_to_replace([*tables, *copies], read)

    refuse([file.name for file in files])  # before anything is read
    if labels and not any(file.kind == "volume" for file in files):
        raise EutelyError("--labels: no input is a label volume; leave it out")
    cells = open_atlas(atlas)
    known = None if pins is None else read_pins(pins)
    readings = read_inputs(inputs, voxel_size, quiet, skip_bad=skip_bad)
    specimens = [reading.specimen for reading in readings]
    if names is not None:
        specimens = with_names(specimens, names)
    check_names(specimen.name for specimen in specimens)
    refuse([specimen.name for specimen in specimens])
    if not any(cells.names):
        log.warning(
            "%s has no names: the column name will be empty; give its cells names with "
            "'eutely name %s NAMED_SPECIMENS'", atlas, atlas,
        )  # fmt: skip
    with progress_of("labels" if labels else "annotate", quiet) as progress:
        annotations = annotate_specimens(
            cells,
            specimens,
            handedness=handedness.value,
            adapt=adapt,
            pins=known,
            workers=run_on,
            progress=progress,
        )
        annotations = [annotation.with_alternatives(alternatives) for annotation in annotations]
        progress("writing", 0, 1, "")
        write_annotations(
            annotations,
            cells.names,
            output,
            min_confidence,
            specimens=specimens,
            table=table,
            given=names is not None,
        )
        Stop.kept = f"the tables in {output} are complete"
        if labels:
            chosen = [with_minimum(annotation, min_confidence) for annotation in annotations]
            copies = volumes_of(files, readings, voxel_size)
            write_label_copies(output / FOLDER, copies, chosen, cells.names, progress)
    content = report_of_annotations(annotations, cells, specimens, command(), known)
    write_annotated_page(output, cells, content)
    notes = {annotation.specimen: annotation.note(cells) for annotation in annotations}
    numbers = summary(annotations, output, notes)
    if json_summary:
        typer.echo(json.dumps(numbers, indent=1))
    elif not quiet:
        say(
            f"{numbers['matched']} of {counted(numbers['nuclei'], 'nucleus', 'nuclei')} of "
            f"{counted(len(annotations), 'specimen')} have a cell, {numbers['confident']} of "
            f"them with confidence {SURE} or more; look first at {output / PAGE}"
        )
        noted = [f"{name}: {note}" for name, note in notes.items() if note]
        for line in noted[:MOST_NOTES]:
            say(line)
        if len(noted) > MOST_NOTES:
            say(f"{len(noted) - MOST_NOTES} more are mirrored or show a part: see the page")


def volumes_of(
    files: "Sequence[Source]", readings: "Sequence[Reading]", voxel_size: str | None
) -> "list[Callable[[], AbstractContextManager[Volume]] | None]":
    """Return for each specimen how to open its label volume; None where it came from a table."""
    from eutely.io.read import voxel_triple
    from eutely.io.volumes import open_volume

    size = voxel_triple(parse_voxel_size(voxel_size))
    by_name = {file.name: file for file in files if file.kind == "volume"}
    found = [by_name.get(reading.specimen.name) for reading in readings]
    return [
        None if file is None else partial(open_volume, file.path, size, file.part) for file in found
    ]


def summary(
    annotations: "Sequence[Annotation]", output: Path, notes: dict[str, str]
) -> dict[str, Any]:
    """Return the numbers of an annotation, for JSON; with a note on the view of each specimen."""
    specimens: list[dict[str, Any]] = [
        {
            "specimen": annotation.specimen,
            "nuclei": len(annotation),
            "matched": int((annotation.cells >= 0).sum()),
            "named": sum(map(bool, annotation.names)),
            "confident": int((annotation.confidence >= SURE).sum()),
            "cost": annotation.cost,
            "mirrored": annotation.mirrored,
            "support": annotation.support,
            "view": notes[annotation.specimen],
        }
        for annotation in annotations
    ]
    keys = ("nuclei", "matched", "named", "confident")
    return {
        "output": str(output),
        **{key: sum(row[key] for row in specimens) for key in keys},
        "confident_from": SURE,
        "specimens": specimens,
    }
