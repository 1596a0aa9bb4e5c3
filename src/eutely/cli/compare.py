"""``eutely compare``: which cells differ between groups of animals."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eutely.cli.common import (
    Dask,
    Quiet,
    SkipBad,
    Verbose,
    VoxelSize,
    Workers,
    check_folder,
    command,
    counted,
    expect_input,
    files_read,
    progress_of,
    read_specimens,
    say,
    start_log,
    threads_or_dask,
)
from eutely.errors import CompareError

if TYPE_CHECKING:
    from eutely.specimen import Specimen


def compare(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="A B...", help="Folder or file of each group; the first is the reference."
        ),
    ],
    atlas: Annotated[
        str,
        typer.Option(
            "--atlas", metavar="ATLAS", help="Atlas file (.h5), run folder, or name of a built-in."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for tables and page.")
    ],
    groups: Annotated[
        Path | None,
        typer.Option(
            "--groups",
            metavar="F.csv",
            help="Groups instead: columns specimen, group; further ones are covariates.",
        ),
    ] = None,
    trend: Annotated[
        bool, typer.Option("--trend", help="Groups are an order (ages): test the trend over all.")
    ] = False,
    cell_groups: Annotated[
        Path | None,
        typer.Option(
            "--cell-groups",
            metavar="F.csv",
            help="Sets of cells: column name (or cell), and columns that each define sets.",
        ),
    ] = None,
    given_names: Annotated[
        bool,
        typer.Option("--given-names", help="Names in the tables are right, not to be found."),
    ] = False,
    permutations: Annotated[
        int, typer.Option(metavar="N", min=19, max=10_000_000, help="Permutations of the animals.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the permutations.")] = 0,
    adapt: Annotated[
        bool,
        typer.Option("--adapt", help="Name all animals as one series, not each by itself."),
    ] = False,
    skip_bad: SkipBad = False,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    dask: Dask = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Find the cells that differ between groups of animals.

    Animals are named by the atlas without knowledge of their groups. Writes DIR/compare.csv with
    the columns cell, name, test, effect, low, high, p, q, doubtful; DIR/compare.html, a page to
    look at; details.csv, sets.csv, pairs.csv, animals.csv, methods.txt; figures as SVG and PDF.

    Example: eutely compare wild_type/ mutant/ --atlas celegans-l1 -o compared
    Example: eutely compare worms/ --groups groups.csv --atlas run -o compared
    """
    start_log(verbose, quiet)
    expect_input(*inputs)
    from eutely.io.groups import read_cell_groups, read_groups
    from eutely.io.written import refuse_folder, refuse_to_replace

    check_folder(output)
    refuse_folder(output, inputs)
    run_on = threads_or_dask(workers, dask)
    read = files_read(inputs, Path(atlas), groups, cell_groups)
    if groups is None:
        check_inputs(inputs)
    membership, covariates = ({}, {}) if groups is None else read_groups(groups)
    sets = {} if cell_groups is None else read_cell_groups(cell_groups)
    if groups is None:
        animals = {
            group_name(path): read_specimens([path], voxel_size, quiet, skip_bad=skip_bad)
            for path in inputs
        }
    else:
        everyone = read_specimens(inputs, voxel_size, quiet, skip_bad=skip_bad)
        animals = grouped(everyone, membership, groups)
    # What is wrong with the input was said above, before imports that take a second.
    from eutely.comparison import Design
    from eutely.comparison.words import found_words
    from eutely.io.atlas import open_atlas
    from eutely.tasks.compare import check_groups
    from eutely.tasks.compare import compare as compare_groups
    from eutely.tasks.compared import PAGE, write_comparison, written_files

    refuse_to_replace([output / name for name in written_files()], read)
    cells = open_atlas(atlas)
    design = Design(
        covariates=covariates,
        trend=trend,
        cell_groups=sets,
        given_names=given_names,
        adapt=adapt,
        permutations=permutations,
        seed=seed,
    )
    check_groups(animals)
    with progress_of("compare", quiet) as progress:
        comparison = compare_groups(
            cells, animals, design=design, workers=run_on, progress=progress
        )
        write_comparison(comparison, output, command(), progress)
    if not quiet:
        for answer in comparison.answers:
            say(f"{answer.contrast.name}:", "bold")
            for line in found_words(comparison, answer):
                say(f"  {line}")
        sizes = ", ".join(f"{label} {comparison.animals.count(label)}" for label in animals)
        say(f"{counted(len(comparison.animals), 'animal')} ({sizes}); look at {output / PAGE}")


def check_inputs(inputs: list[Path]) -> None:
    """Raise an error unless there are two groups or more, of different files."""
    if len(inputs) < 2:
        raise CompareError("one group; give two folders or more, or --groups F.csv")
    seen: dict[Path, Path] = {}
    names: dict[str, Path] = {}
    for path in inputs:
        if path.resolve() in seen:
            raise CompareError(
                f"{seen[path.resolve()]} and {path} are the same files; give another group"
            )
        seen[path.resolve()] = path
        name = group_name(path)
        if name in names:
            raise CompareError(
                f"{names[name]} and {path} have the same name '{name}'; rename one, or use --groups"
            )
        names[name] = path


def group_name(path: Path) -> str:
    """Return the name of a group: that of its folder, or of its file without the suffix."""
    whole = path.resolve()
    return whole.name if whole.is_dir() else whole.name.split(".")[0]


def grouped(
    specimens: "list[Specimen]", membership: dict[str, str], path: Path
) -> "dict[str, list[Specimen]]":
    """Return specimens by group, in the order of the table; others are left out with a word."""
    import logging

    by_name = {specimen.name: specimen for specimen in specimens}
    missing = [name for name in membership if name not in by_name]
    if missing:
        there = ", ".join(sorted(by_name)[:3])
        raise CompareError(
            f"{path}: {missing[0]} is not among the inputs ({there}, ...); {len(missing)} of "
            f"{len(membership)} are missing"
        )
    others = len(set(by_name) - set(membership))
    if others:
        found = counted(others, "specimen has", "specimens have")
        logging.getLogger("eutely").warning("%s no group, and no part in this comparison", found)
    result: dict[str, list[Specimen]] = {}
    for name, group in membership.items():
        result.setdefault(group, []).append(by_name[name])
    return result
