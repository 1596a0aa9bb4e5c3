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
    Handedness,
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
    expect_input,
    files_read,
    listed,
    progress_of,
    read_inputs,
    say,
    start_log,
    threads_or_dask,
)
from eutely.cli.images import given as given_images
from eutely.cli.progress import Stop
from eutely.errors import EutelyError

if TYPE_CHECKING:
    from eutely.annotation import Annotation
    from eutely.io.read import Reading, Source
    from eutely.io.volumes import Volume
    from eutely.tasks.pins import Pins

log = logging.getLogger("eutely")

SURE = 0.9
"""Confidence from which the summary counts a nucleus as certain."""


MOST_NOTES = 10
"""Specimens whose view the summary tells."""


class LabelFormat(StrEnum):
    """Format of the copies of label volumes; ``auto``: Zarr for Zarr, TIFF for all others."""

    AUTO = "auto"
    TIF = "tif"
    ZARR = "zarr"


class Table(StrEnum):
    """Format of the table of all specimens: its suffix."""

    CSV = "csv"
    PARQUET = "parquet"


def annotate(
    context: typer.Context,
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
    label_format: Annotated[
        LabelFormat,
        typer.Option("--label-format", help="Format of these copies; auto: as the input."),
    ] = LabelFormat.AUTO,
    h5ad: Annotated[
        Path | None,
        typer.Option(
            "--h5ad",
            metavar="F.h5ad",
            help="Also write all nuclei as AnnData, and F.cells.h5ad: cells x specimens.",
        ),
    ] = None,
    nwb: Annotated[
        bool,
        typer.Option("--nwb", help="Also copy NWB files, with cell, name and confidence."),
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
    no_pins: Annotated[
        bool, typer.Option("--no-pins", help="Leave corrections in DIR/pins.csv aside.")
    ] = False,
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
    DIR/<specimen>.csv with the columns id, cell, name, confidence, alternatives, contested,
    mirrored, one row per nucleus, empty where it is unmatched; DIR/annotations.csv, all nuclei of
    all specimens with their coordinates; DIR/look-here-first.csv, the least certain nuclei of each
    specimen; and DIR/report.html, a page to look at. With --labels also DIR/labels/<specimen>.tif,
    or .ome.zarr with the names for viewers; with --nwb DIR/<specimen>.nwb; with --h5ad AnnData.
    Tables that were corrected by hand since are kept as .bak; inputs are never replaced. What was
    corrected in DIR with eutely curate stays. Names of nuclei are not looked at; those of --names
    are written beside the names found, in the column given.

    Example: eutely annotate run/atlas.h5 new_worm.tif -o annotated
    """
    start_log(verbose, quiet)
    if pins is not None and no_pins:
        raise EutelyError("--pins and --no-pins exclude each other; give one of them")
    expect_input(*inputs)
    from eutely.io.annotations import check_names, write_annotations, written_files
    from eutely.io.atlas import atlas_path, check_file, open_atlas
    from eutely.io.names import with_names
    from eutely.io.nwb_write import check_pynwb
    from eutely.io.pins import read_pins
    from eutely.io.read import sources
    from eutely.io.relabel import FOLDER
    from eutely.io.sources import remembered, write_files
    from eutely.io.written import PAGE, refuse_folder, refuse_run, refuse_to_replace, tables_in

    check_folder(output)
    refuse_folder(output, inputs)
    refuse_run(output)
    if output.exists():
        from eutely.store.folder import not_curated

        context.with_resource(not_curated(output))  # until the command ends
    run_on = threads_or_dask(workers, dask)
    files = sources(inputs)
    images = given_images.get()
    read = files_read(inputs, atlas_file(atlas), pins, names)

    def refuse(specimens: Sequence[str]) -> None:
        """Refuse to replace what was read, by the names of specimens."""
        endings = (".tif", ".ome.zarr")
        copies = [output / FOLDER / f"{name}{end}" for name in specimens for end in endings]
        tables = [output / name for name in [*written_files(specimens, table), PAGE]]
        copies = copies if labels else []
        copies += [output / f"{name}.nwb" for name in specimens if nwb]
        refuse_to_replace([*tables, *copies], read)

    refuse([file.name for file in files])  # before anything is read
    by_cell = None if h5ad is None else h5ad_files(h5ad, read)[1]
    if labels and not any(file.kind == "volume" for file in files):
        raise EutelyError("--labels: no input is a label volume; leave it out")
    if nwb:
        check_pynwb()
        if not any(file.kind == "nwb" for file in files):
            raise EutelyError("--nwb: no input is an NWB file; leave it out")
    check_file(atlas_path(atlas))
    known: Pins | None = None if pins is None else read_pins(pins)
    readings = read_inputs(inputs, voxel_size, quiet, skip_bad=skip_bad)
    specimens = [reading.specimen for reading in readings]
    if names is not None:
        specimens = with_names(specimens, names)
    check_names(specimen.name for specimen in specimens)
    cells = open_atlas(atlas)
    # What is wrong with the input was said above, before imports that take a second.
    from eutely.io.h5ad import cells_anndata, nuclei_anndata, write_h5ad
    from eutely.series.channels import in_true_order
    from eutely.tasks.annotate import annotate as annotate_specimens
    from eutely.tasks.first_look import look
    from eutely.tasks.outputs import report_of_annotations, write_annotated_page
    from eutely.tasks.pins import PINS, pins_of_folder
    from eutely.tasks.relabel import with_minimum, write_label_copies

    refuse([specimen.name for specimen in specimens])
    look(specimens, [reading.voxel_size for reading in readings], cells)
    if not any(cells.names):
        log.warning(
            "%s has no names: the column name will be empty; give its cells names with "
            "'eutely name %s NAMED_SPECIMENS'", atlas, atlas,
        )  # fmt: skip
    if known is None and not no_pins:
        known = pins_of_folder(output, cells, specimens)
    elif pins is not None and (own := output / PINS).exists() and not own.samefile(pins):
        log.warning("%s is left aside: --pins gives others", own)
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
        specimens = in_true_order(specimens, annotations)
        progress("writing", 0, 1, "")
        content = report_of_annotations(annotations, cells, specimens, command(), known)
        with tables_in(output):
            write_annotations(
                annotations,
                cells.names,
                output,
                min_confidence,
                specimens=specimens,
                table=table,
                given=names is not None,
            )
            write_annotated_page(output, cells, content)
            origin = remembered(files, readings)
            if images is not None:
                origin = images.remembered(origin, [one.name for one in specimens])
            write_files(output, origin.exchanged([one.exchanged for one in annotations]))
        warn_of_earlier(output, [one.name for one in specimens], table)
        Stop.kept = f"the tables in {output} are complete; the same command writes the rest"
        if h5ad is not None and by_cell is not None:
            about = {"command": command()}
            chosen = [with_minimum(annotation, min_confidence) for annotation in annotations]
            write_h5ad(nuclei_anndata(chosen, specimens, cells, about), h5ad)
            write_h5ad(cells_anndata(chosen, specimens, cells, about), by_cell)
        if nwb:
            write_nwb_copies(output, files, annotations, min_confidence)
        if labels:
            chosen = [with_minimum(annotation, min_confidence) for annotation in annotations]
            copies = volumes_of(files, readings, label_format)
            write_label_copies(output / FOLDER, copies, chosen, cells.names, progress)
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
            say(
                f"{len(noted) - MOST_NOTES} more are mirrored, may be, show a part or have "
                "exchanged channels: see the page"
            )
        say(f"next: eutely curate {output}")


def warn_of_earlier(output: Path, specimens: Sequence[str], table: str) -> None:
    """Say which tables in a folder are of earlier commands, maybe by another atlas."""
    from eutely.io.annotations import other_tables, written_files
    from eutely.io.written import manifest_of

    known = [name for name in manifest_of(output).files if name.endswith(".csv")]
    earlier = {*known, *other_tables(table)} - {*written_files(specimens, table)}
    there = sorted(name for name in earlier if (output / name).exists())
    if there:
        log.warning("%s: of an earlier command, and not on the page: %s", output, listed(there))


def h5ad_files(path: Path, read: Sequence[Path]) -> tuple[Path, Path]:
    """Return the files of nuclei and of cells, after checks that they can be written."""
    from eutely.io.h5ad import check_anndata
    from eutely.io.written import refuse_to_replace

    if path.suffix != ".h5ad":
        raise EutelyError(f"--h5ad {path}: expected a name that ends in .h5ad")
    files = path, path.with_name(f"{path.stem}.cells.h5ad")
    refuse_to_replace(files, read)
    check_anndata()
    return files


def write_nwb_copies(
    output: Path,
    files: "Sequence[Source]",
    annotations: "Sequence[Annotation]",
    min_confidence: float,
) -> None:
    """Write a copy of each NWB file with the annotations as new columns."""
    from eutely.io.nwb_write import write_annotated
    from eutely.io.written import tables_in
    from eutely.tasks.relabel import with_minimum

    by_name = {file.name: file for file in files if file.kind == "nwb"}
    with tables_in(output) as aside:
        for annotation in annotations:
            file = by_name.get(annotation.specimen)
            if file is None:
                log.warning("%s is no NWB file: no copy of it", annotation.specimen)
                continue
            chosen = with_minimum(annotation, min_confidence)
            write_annotated(file.path, aside / f"{file.name}.nwb", chosen, file.part)


def volumes_of(
    files: "Sequence[Source]",
    readings: "Sequence[Reading]",
    form: LabelFormat,
) -> "list[tuple[Callable[[], AbstractContextManager[Volume]], str] | None]":
    """Return for each specimen how to open its label volume, and the ending of its copy.

    None where it came from a table.
    """
    from eutely.io.volumes import is_zarr, open_volume

    # The size that was read: of the file, the option, or the image.
    sizes = {reading.specimen.name: reading.voxel_size for reading in readings}
    by_name = {file.name: file for file in files if file.kind == "volume"}

    def copied(name: str) -> "tuple[Callable[[], AbstractContextManager[Volume]], str] | None":
        file = by_name.get(name)
        if file is None:
            return None
        zarr = form is LabelFormat.ZARR or (form is LabelFormat.AUTO and is_zarr(file.path))
        opener = partial(open_volume, file.path, sizes[name], file.part)
        return opener, ".ome.zarr" if zarr else ".tif"

    return [copied(reading.specimen.name) for reading in readings]


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
