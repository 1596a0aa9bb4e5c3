"""``eutely atlas``: look at, share, import and change atlases; ``eutely atlases``: list them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eutely.cli.common import (
    AtlasFile,
    Quiet,
    Verbose,
    atlas_file,
    counted,
    help_text,
    say,
    start_log,
)
from eutely.errors import EutelyError, WriteError

if TYPE_CHECKING:
    from eutely.atlas import Atlas

Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="F.h5", help="Atlas to write.", show_default=False)
]

group = typer.Typer(
    name="atlas", help="Look at, share, import and change atlases.", no_args_is_help=True
)


def atlases(verbose: Verbose = False, quiet: Quiet = False) -> None:
    """List the atlases that have a name; other commands take it in place of a file.

    Those of the package, and those in the folders and files of EUTELY_ATLASES.

    Example: eutely annotate celegans-l1 worm.tif -o named
    """
    start_log(verbose, quiet)
    from eutely.io.atlas import known_atlases, read_atlas

    for name, path in known_atlases().items():
        try:
            atlas = read_atlas(path)
        except EutelyError as error:
            say(f"{name}  not readable: {error}")
            continue
        named = sum(map(bool, atlas.names))
        words = [atlas.provenance.get(key, "") for key in ("organism", "stage", "body part")]
        about = ", ".join(filter(None, words)) or "no description"
        say(f"{name}  {about}: {counted(len(atlas), 'cell')}, {named} named, "
            f"from {counted(atlas.specimens, 'specimen')}")  # fmt: skip


def show(atlas: AtlasFile, verbose: Verbose = False, quiet: Quiet = False) -> None:
    """Print what an atlas is, what it holds and where it comes from.

    Example: eutely atlas show celegans-l1
    """
    start_log(verbose, quiet)
    from eutely.io.atlas import open_atlas
    from eutely.tasks.atlases import summary

    rows = summary(open_atlas(atlas))
    width = max(map(len, rows))
    for key, text in rows.items():
        say(f"{key:<{width}}  {text}")


def export(
    atlas: AtlasFile,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="New folder.")],
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Write an atlas as CSV and JSON, which any program reads; 'import' reads them again.

    Example: eutely atlas export celegans-l1 -o celegans-l1
    """
    start_log(verbose, quiet)
    from eutely.io.atlas import open_atlas
    from eutely.io.exchange import export_atlas, is_export_of

    content = open_atlas(atlas)
    if not is_export_of(content, output):
        if output.exists():
            raise WriteError(f"{output} is there already; give -o a new folder")
        export_atlas(content, output)
    if not quiet:
        files = "cells.csv, edges.csv, neighbours.csv, description.json"
        say(f"{counted(len(content), 'cell')} in {output}: {files}")


def import_(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|F.csv|F.mat",
            help="Exported atlas, table of means (name, x, y, z), or atlas of NeuroPAL_ID.",
        ),
    ],
    output: Output,
    part: Annotated[str, typer.Option(help="Part of the body, in a .mat.")] = "head",
    specimens: Annotated[
        int, typer.Option(min=1, help="Specimens that means were estimated from.")
    ] = 1,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Make an atlas of files of others.

    Example: eutely atlas import atlas_xx_rgb.mat -o head.h5
    """
    start_log(verbose, quiet)
    from eutely.tasks.atlases import import_atlas

    if not source.exists():
        raise EutelyError(f"{source} does not exist")
    _save(import_atlas(source, part=part, specimens=specimens), output, [source], quiet)


def rename(
    atlas: AtlasFile,
    names: Annotated[
        Path, typer.Argument(metavar="F.csv", help="Columns name (or cell, a number) and new.")
    ],
    output: Output,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Change names of cells.

    Example: eutely atlas rename run/atlas.h5 synonyms.csv -o renamed.h5
    """
    start_log(verbose, quiet)
    from eutely.io.atlas import open_atlas
    from eutely.tasks.atlases import new_names, renamed

    _save(renamed(open_atlas(atlas), new_names(names)), output, [atlas_file(atlas), names], quiet)


def merge_names(
    atlas: AtlasFile,
    other: AtlasFile,
    output: Output,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Give cells without a name that of the same cell in OTHER; names that are there stay.

    Example: eutely atlas merge-names run/atlas.h5 celegans-l1 -o named.h5
    """
    start_log(verbose, quiet)
    from eutely.io.atlas import open_atlas
    from eutely.tasks.atlases import merge_names as merged_names

    merged = merged_names(open_atlas(atlas), open_atlas(other))
    _save(merged.atlas, output, [atlas_file(atlas), atlas_file(other)], quiet)
    if quiet:
        return
    say(f"{counted(merged.added, 'name')} added")
    if merged.differing:
        some = ", ".join(f"{mine} ({theirs})" for mine, theirs in [*merged.differing.items()][:5])
        say(f"{counted(len(merged.differing), 'cell')} with another name there, kept: {some}")


def subset(
    atlas: AtlasFile,
    patterns: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Names, or patterns such as 'AV*'.")
    ],
    output: Output,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Keep some cells of an atlas.

    Example: eutely atlas subset celegans-adult-head 'AV*' RID -o some.h5
    """
    start_log(verbose, quiet)
    from eutely.io.atlas import open_atlas
    from eutely.tasks.atlases import subset as cells_of

    _save(cells_of(open_atlas(atlas), patterns), output, [atlas_file(atlas)], quiet)


def describe(
    atlas: AtlasFile,
    words: Annotated[
        list[str], typer.Argument(metavar="KEY=TEXT...", help="Such as 'stage=L1 larva'.")
    ],
    output: Output,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Say what an atlas is: organism, strain, stage, sex, body part, imaging, licence, citation.

    Example: eutely atlas describe run 'organism=C. elegans' licence=CC-BY-4.0 -o shared.h5
    """
    start_log(verbose, quiet)
    from eutely.io.atlas import open_atlas

    pairs = [word.partition("=") for word in words]
    wrong = next((key for key, equals, _ in pairs if not equals or not key), None)
    if wrong is not None:
        raise EutelyError(f"'{wrong}': expected KEY=TEXT, like 'stage=L1 larva'")
    described = open_atlas(atlas).described(**{key: text.strip() for key, _, text in pairs})
    _save(described, output, [atlas_file(atlas)], quiet)


def _save(atlas: "Atlas", output: Path, read: Sequence[Path], quiet: bool) -> None:
    """Write an atlas; one there with other content is kept, and inputs are not replaced."""
    from eutely.cli.naming import keep_atlas
    from eutely.io.atlas import write_atlas
    from eutely.io.written import refuse_to_replace

    if output.is_dir():
        raise WriteError(f"{output} is a folder; give a file, like {output / 'atlas.h5'}")
    refuse_to_replace([output], [path for path in read if path.exists()])
    keep_atlas(output, atlas)
    write_atlas(atlas, output)
    if not quiet:
        say(f"{counted(len(atlas), 'cell')}, {sum(map(bool, atlas.names))} named, in {output}")


for function in (show, export, import_, rename, merge_names, subset, describe):
    name = function.__name__.strip("_").replace("_", "-")
    group.command(name, help=help_text(function))(function)
