"""``eutely build``: from specimens to an atlas without names; ``eutely demo``: the whole method."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eutely.cli.common import (
    Dask,
    Inputs,
    NameFile,
    PinFile,
    Quiet,
    SkipBad,
    Verbose,
    VoxelSize,
    Workers,
    command,
    counted,
    expect_input,
    listed,
    progress_of,
    read_inputs,
    say,
    start_log,
    threads_or_dask,
)
from eutely.cli.progress import Stop
from eutely.errors import ConfigError, EutelyError

if TYPE_CHECKING:
    from eutely.specimen import Specimen
    from eutely.store.folder import RunFolder
    from eutely.tasks.build import Built

TRAIN, NAMED, NEW = 12, 3, 3
"""Specimens of the demo: to build from, those of them that give the cells names, and new ones."""

CELLS = 558
"""Cells of the simulated organism of the demo."""

STAGES = ("trials_linear", "trials_sparsity", "trials_offsets")
"""Settings that the option --trials changes."""


def build(
    inputs: Inputs,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="RUN", help="Folder of the run.")
    ],
    config: Annotated[
        Path | None, typer.Option("--config", metavar="F.toml", help="Settings of the run.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Settings to start from: default, paper or paper-plus."),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Trials in each stage of learning (method learn)."),
    ] = None,
    learn_on: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, help="Specimens to learn the costs on (method learn)."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Columns to use besides positions: all, none, or names such as R,G,B.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all random choices.")] = None,
    supervised: Annotated[
        bool, typer.Option("--supervised", help="Take the cells from the names of the nuclei.")
    ] = False,
    pins: PinFile = None,
    no_pins: Annotated[
        bool, typer.Option("--no-pins", help="Forget the pins that RUN remembers.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Drop names that cannot be carried over.")
    ] = False,
    names: NameFile = None,
    skip_bad: SkipBad = False,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    dask: Dask = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Find the cells that all specimens share, and build their atlas.

    Writes RUN/atlas.h5, cliques.csv (specimen, id, cell, mirrored), parameters.json and
    report.html. The same command again continues where it stopped, also after a crash. Names that
    the atlas in RUN was given stay with their cells; pins are remembered in RUN/pins.csv. Specimens
    may be mirror images of each other, and some may show a part of the body only.

    Example: eutely build worms/ -o run
    """
    start_log(verbose, quiet)
    if pins is not None and no_pins:
        raise EutelyError("--pins and --no-pins exclude each other; give one of them")
    expect_input(*inputs)
    from eutely.io.pins import read_pins

    run_on = threads_or_dask(workers, dask)
    overrides: dict[str, int | str | None] = {f"learn.{stage}": trials for stage in STAGES}
    overrides |= {"learn.specimens": learn_on, "seed": seed, "estimate.features": features}
    chosen = [config, preset, *overrides.values()]
    # Settings that nobody chose are not wrong: they wait until the input is read.
    readings = None
    if all(choice is None for choice in chosen):
        readings = read_inputs(inputs, voxel_size, quiet, skip_bad=skip_bad)
    from eutely.io.config import load_config

    settings = load_config(config, preset, overrides)
    if settings.method != "learn" and (trials is not None or learn_on is not None):
        raise ConfigError(
            "--trials and --learn-on need the method 'learn'; add --preset paper, or leave them out"
        )
    if config is not None and config.resolve() == (output / "config.toml").resolve():
        raise ConfigError(
            f"{config} is written by the run itself; copy it to another place and give that"
        )
    if readings is None:
        readings = read_inputs(inputs, voxel_size, quiet, skip_bad=skip_bad)
    specimens = [reading.specimen for reading in readings]
    if names is not None:
        from eutely.io.names import with_names

        specimens = with_names(specimens, names)
    known = {} if no_pins else None if pins is None else read_pins(pins)
    # What is wrong with the input was said above, before imports that take a second.
    from eutely.cli.warm import warmed
    from eutely.tasks.build import build as build_atlas
    from eutely.tasks.first_look import look

    look(specimens, [reading.voxel_size for reading in readings])
    Stop.kept = f"{output} keeps its finished steps: the same command continues"
    plan = "named" if supervised else settings.method
    with (
        warmed(["estimates", "orders"]),
        run_folder(output, command(), force) as run,
        progress_of(plan, quiet) as progress,
    ):
        built = build_atlas(
            specimens,
            run,
            config=settings,
            supervised=supervised,
            pins=known,
            workers=run_on,
            progress=progress,
        )
    if not quiet:
        summarise(built, output)


@contextmanager
def run_folder(path: Path, command: str, force: bool = False) -> "Iterator[RunFolder]":
    """Open a run folder; a new one is removed if bad input ends the build before its first step."""
    from eutely.io.whole import remove
    from eutely.store.folder import open_run

    new = not path.exists()
    try:
        with open_run(path, command=command, force=force) as run:
            yield run
    except EutelyError:
        if new and not any((path / "stages").glob("*")):
            remove(path)
        raise


def summarise(built: "Built", output: Path) -> None:
    """Print what a build found, and what to do next."""
    from eutely.annotation import NOT_CLEAR
    from eutely.tasks.outliers import doubtful_hands, sides_alike

    atlas = built.atlas
    rare = f" ({int(atlas.rare.sum())} of them rare)" if atlas.rare.any() else ""
    say(
        f"{counted(len(atlas), 'cell')}{rare} in {len(built.specimens)} specimens; an atlas of "
        f"other specimens confirms {built.consistency().mean():.1%} of their nuclei"
    )
    doubtful = doubtful_hands(built.fits)
    alike = sides_alike(built.fits)
    for found, names in (
        ("mirror images of the others", [fit.specimen for fit in built.fits if fit.mirrored]),
        ("parts of the body", [fit.specimen for fit in built.fits if fit.view is not None]),
        (f"{NOT_CLEAR}, most in doubt first", [] if alike else doubtful),
    ):
        if names:
            say(f"{found}: {len(names)} of {len(built.fits)} specimens ({listed(names)})")
    if alike:
        apart = f"; most in doubt: {listed(doubtful)}" if doubtful else ""
        say("left and right look alike in these specimens: none shows whether it is a mirror "
            f"image{apart}")  # fmt: skip
    say(f"atlas: {output / 'atlas.h5'}, report: {output / 'report.html'}")
    if built.outliers:
        say(f"check these specimens, they are unlike the others: {', '.join(built.outliers)}")
    if not any(atlas.names):
        say(f"next: eutely name {output} NAMED_SPECIMENS")


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")
    ] = Path("eutely-demo"),
    workers: Workers = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Run the whole method on simulated specimens, in a minute or two.

    Simulates a cohort, builds its atlas without names, names its cells after a few specimens,
    annotates new specimens, and counts the nuclei with their true name. The same command again
    continues where it stopped.

    Example: eutely demo
    """
    start_log(verbose, quiet)
    import eutely
    from eutely.cli.naming import keep_atlas
    from eutely.evaluation import evaluation, score
    from eutely.io.annotations import write_annotations
    from eutely.io.atlas import write_atlas
    from eutely.io.written import tables_in
    from eutely.tasks.outputs import report_of_annotations, write_annotated_page

    def report(line: str) -> None:
        if not quiet:
            say(line)

    run, named, annotated = output / "run", output / "named.h5", output / "annotated"
    train = simulated(output / "cohort", TRAIN, 0)
    new = simulated(output / "new", NEW, 1)
    report(f"{TRAIN} simulated specimens of {CELLS} cells in {output / 'cohort'}, {NEW} new ones")
    Stop.kept = f"{output} keeps its finished steps: the same command continues"
    with run_folder(run, "eutely demo") as folder, progress_of("refine", quiet) as progress:
        built = eutely.build(train, folder, workers=workers, progress=progress)
    with progress_of("match", quiet) as progress:
        report(f"{len(built.atlas)} cells found without any name: {run / 'atlas.h5'}")
        atlas = eutely.name(built.atlas, train[:NAMED], workers=workers, progress=progress)
        keep_atlas(named, atlas)
        write_atlas(atlas, named)
        report(f"{sum(map(bool, atlas.names))} cells named after {NAMED} specimens: {named}")
        annotations = eutely.annotate(atlas, new, workers=workers, progress=progress)
    annotations = [annotation.with_alternatives() for annotation in annotations]
    page = report_of_annotations(annotations, atlas, new, "eutely demo")
    with tables_in(annotated):
        write_annotations(annotations, atlas.names, annotated, specimens=new)
        write_annotated_page(annotated, atlas, page)
    accuracy = evaluation(
        score(specimen, annotation.names)
        for specimen, annotation in zip(new, annotations, strict=True)
    )
    report(f"{accuracy.mean:.1%} of the nuclei of the new specimens get their true name")
    report(f"look at {run / 'report.html'} and {annotated / 'report.html'}")


def simulated(folder: Path, specimens: int, seed: int) -> "list[Specimen]":
    """Return the simulated cohort in ``folder``, which is written unless it is there already."""
    import eutely
    from eutely.cli.simulate import write_cohort

    if not folder.is_dir():
        cohort = eutely.simulate(specimens, CELLS, seed=seed)
        write_cohort(cohort, folder, {"specimens": specimens, "cells": CELLS, "seed": seed})
    return eutely.read(folder)
