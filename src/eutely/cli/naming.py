"""``eutely name``: names for the cells of an atlas; ``eutely evaluate``: how many are right."""

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eutely.cli.common import (
    Adapt,
    AtlasFile,
    Dask,
    Inputs,
    NameFile,
    Quiet,
    SkipBad,
    Verbose,
    VoxelSize,
    Workers,
    atlas_file,
    counted,
    expect_input,
    files_read,
    progress_of,
    read_specimens,
    say,
    start_log,
    threads_or_dask,
)
from eutely.errors import EutelyError, ReadError, WriteError

if TYPE_CHECKING:
    from eutely.atlas import Atlas

log = logging.getLogger("eutely")

NOT_RIGHT = {"wrong": "wrong", "unnamed": "of a cell without a name", "unmatched": "without a cell"}
"""Nuclei that did not get their name: key in the JSON -> words."""


def name(
    context: typer.Context,
    atlas: AtlasFile,
    inputs: Inputs,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="F.h5",
            help="Atlas to write; a built-in ATLAS needs it.",
            show_default="ATLAS itself",
        ),
    ] = None,
    names: NameFile = None,
    skip_bad: SkipBad = False,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    dask: Dask = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Give the cells of an atlas names, from any named specimens.

    Each specimen is matched with the atlas; a cell gets the name that most of its nuclei have, the
    clearest cells first, and no name is given twice. Without -o the file ATLAS is replaced, in a
    run folder its atlas.h5; an atlas that had other names is kept as .bak.

    Example: eutely name run named_worms/
    """
    start_log(verbose, quiet)
    from eutely.io.atlas import open_atlas, write_atlas
    from eutely.io.written import refuse_to_replace, tables_in
    from eutely.store.folder import LOCK, locked

    target = named_file(atlas, output)
    if is_of_run(target):  # a build that ends meanwhile would carry over the names of before
        context.with_resource(locked(target.parent / LOCK))
    run_on = threads_or_dask(workers, dask)
    unnamed = open_atlas(atlas)
    refuse_to_replace([target], files_read(inputs, names))
    refuse_other_run(target, unnamed)  # before any work, as is another kind of file
    specimens = read_specimens(inputs, voxel_size, quiet, names=names, skip_bad=skip_bad)
    from eutely.tasks.evaluate import name as name_cells  # after errors: it is slow

    with progress_of("match", quiet) as progress:
        named = name_cells(unnamed, specimens, workers=run_on, progress=progress)
    refuse_other_run(target, named)  # a build may have replaced it meanwhile
    keep_atlas(target, named)
    if is_of_run(target):
        with tables_in(target.parent):  # the page shows the names of the atlas
            write_atlas(named, target)
            renew_page(target.parent, named)
    else:
        write_atlas(named, target)
    if not quiet:
        say(
            f"{sum(map(bool, named.names))} of {len(named)} cells named, in {target}; "
            f"next: eutely annotate {target} NEW_SPECIMENS -o DIR"
        )


def is_of_run(target: Path) -> bool:
    """Return whether an atlas is that of a finished run."""
    from eutely.io.written import REPORT

    return target == atlas_file(str(target.parent)) and (target.parent / REPORT).exists()


def refuse_other_run(target: Path, atlas: "Atlas") -> None:
    """Raise an error if ``target`` is the atlas of a run, and of other cells than ``atlas``."""
    from eutely.io.atlas import cells_of

    before = atlas_at(target)
    if before is not None and is_of_run(target) and cells_of(before) != cells_of(atlas):
        raise WriteError(
            f"{target} is the atlas of a run, of other cells; give -o another file, or name that "
            "run itself"
        )


def renew_page(folder: Path, atlas: "Atlas") -> None:
    """Write the page of a run again, with the names of its atlas."""
    from eutely.io.atlas import cells_of
    from eutely.tasks.outputs import read_report, write_page

    try:
        before, report = read_report(folder)
        report.check(atlas)
        if cells_of(before) != cells_of(atlas):
            raise ReadError("the atlas has other cells")
        write_page(folder, atlas, report)
    except EutelyError as error:
        log.warning("the page of %s shows no new names (%s)", folder, error)


def atlas_at(target: Path) -> "Atlas | None":
    """Return the atlas that is about to be replaced; None where there is none."""
    from eutely.io.atlas import read_atlas

    if not target.exists():
        return None
    try:
        return read_atlas(target)
    except ReadError as error:
        raise WriteError(f"{target} is there already and is no atlas; give -o another") from error


def keep_atlas(target: Path, atlas: "Atlas") -> None:
    """Keep a copy of the atlas at ``target`` if the new one lacks a name, a word or its cells."""
    import numpy as np

    from eutely.io.whole import keep_copy

    before = atlas_at(target)
    if before is None:
        return
    same = len(before) == len(atlas) and np.array_equal(before.means, atlas.means)
    pairs = zip(before.names, atlas.names, strict=False)
    if not same:
        what = f"another atlas of {counted(len(before), 'cell')}, which is"
    elif any(old and old != new for old, new in pairs):
        what = f"{counted(sum(map(bool, before.names)), 'name')} already, which are"
    elif any(atlas.provenance.get(key) != text for key, text in before.provenance.items()):
        what = "another description, which is"
    else:
        return
    log.warning("%s had %s replaced; it is kept as %s", target, what, keep_copy(target).name)


def named_file(atlas: str, output: Path | None) -> Path:
    """Return the file to write a named atlas to; an error where there is none."""
    from eutely.io.atlas import known_atlases

    if output is not None:
        if output.is_dir():
            raise WriteError(f"{output} is a folder; give -o a file, like {output / 'named.h5'}")
        return output
    path = atlas_file(atlas)
    if not path.exists() and atlas in known_atlases():
        raise WriteError(f"{atlas} is a built-in atlas and stays as it is; give -o F.h5")
    return path


def evaluate(
    atlas: AtlasFile,
    inputs: Inputs,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="F", help="File for all numbers.")
    ] = None,
    adapt: Adapt = None,
    names: NameFile = None,
    skip_bad: SkipBad = False,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    dask: Dask = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Compare the names that an atlas gives with the names that specimens have.

    The accuracy of a specimen is the share of its named nuclei that get the same name from the
    atlas. Nuclei of cells without a name and nuclei without a cell are counted apart from wrong
    ones. Names are not used to match.

    Example: eutely evaluate run/atlas.h5 named_worms/ --json accuracy.json
    """
    start_log(verbose, quiet)
    expect_input(*inputs)
    from eutely.io.atlas import atlas_path, check_file, open_atlas
    from eutely.io.whole import write_text
    from eutely.io.written import refuse_other_kind, refuse_to_replace

    if json_file is not None:
        refuse_to_replace([json_file], files_read(inputs, names, atlas_file(atlas)))
        refuse_other_kind(json_file, ["accuracy", "specimens"])
    run_on = threads_or_dask(workers, dask)
    check_file(atlas_path(atlas))
    specimens = read_specimens(inputs, voxel_size, quiet, names=names, skip_bad=skip_bad)
    named = open_atlas(atlas)
    from eutely.tasks.evaluate import evaluate as evaluate_specimens  # after errors: it is slow

    with progress_of("match", quiet) as progress:
        result = evaluate_specimens(
            named, specimens, adapt=adapt, workers=run_on, progress=progress
        ).as_dict()
    if json_file is not None:
        write_text(json_file, json.dumps(result, indent=2) + "\n")
    for row in result["specimens"]:
        accuracy = "no names" if row["accuracy"] is None else f"{row['accuracy']:.4f}"
        rest = [
            f"{row[key]} {words}" for key, words in NOT_RIGHT.items() if row[key] and row["named"]
        ]
        right = f"{row['correct']} of {row['named']}"
        typer.echo("\t".join([row["specimen"], accuracy, right, *rest]))
    total = result["accuracy"]
    say(
        f"mean {total['mean']:.4f}  sd {total['std']:.4f}  median {total['median']:.4f}  "
        f"({counted(total['n'], 'specimen')})"
    )
    unnamed = sum(row["unnamed"] for row in result["specimens"])
    if unnamed:
        say(
            f"{counted(unnamed, 'nucleus is', 'nuclei are')} of cells that have no name in the "
            "atlas: not right, but not wrong either; more named specimens for 'eutely name' help"
        )
