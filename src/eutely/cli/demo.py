"""``eutely demo``: the whole method on a simulated cohort, in a minute or two."""

from pathlib import Path
from typing import Annotated

import typer

from eutely.cli.common import Quiet, Verbose, Workers, out, speak

TRAIN, NAMED, NEW = 12, 3, 3
"""Specimens to build from, those of them that give the cells names, and new ones to annotate."""

CELLS = 558


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")
    ] = Path("eutely-demo"),
    workers: Workers = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a cohort, build its atlas without names, annotate new specimens, and count.

    Running it again goes on where it stopped.

    Example: eutely demo
    """
    speak(verbose, quiet)
    import eutely
    from eutely.cli.simulate import write
    from eutely.cli.watching import steps, watching
    from eutely.evaluation import evaluation, score
    from eutely.io.atlas import write_atlas
    from eutely.io.annotations import report_annotations, write_annotations

    def say(text: str) -> None:
        if not quiet:
            out.print(text, markup=False, highlight=False, soft_wrap=True)

    def simulated(folder: str, specimens: int, seed: int) -> list[eutely.Specimen]:
        place = output / folder
        if not place.is_dir():
            body = {"specimens": specimens, "cells": CELLS, "seed": seed}
            files = {"format": "csv", "voxel_size": "1", "names": True}
            write(place, body | files, force=False)
        return eutely.read(place)

    train = simulated("cohort", TRAIN, 0)
    new = simulated("new", NEW, 1)
    say(f"{TRAIN} simulated specimens of {CELLS} cells in {output / 'cohort'}, {NEW} new ones")
    with watching(quiet) as watch:
        built = eutely.build(
            train, output / "run", workers=workers, watch=watch, command="eutely demo"
        )
        say(f"{len(built.atlas)} cells found without any name: {output / 'run' / 'atlas.h5'}")
        atlas = eutely.name(
            built.atlas, train[:NAMED], workers=workers, progress=steps(watch, "naming")
        )
        named = output / "named.h5"
        write_atlas(atlas, named)
        say(f"{sum(map(bool, atlas.names))} cells named after {NAMED} specimens: {named}")
        found = eutely.annotate(atlas, new, workers=workers, progress=steps(watch, "annotating"))
    write_annotations(found, atlas.names, output / "annotated")
    report_annotations(found, atlas, new, output / "annotated", "eutely demo")
    right = evaluation(
        score(one, annotation.names) for one, annotation in zip(new, found, strict=True)
    )
    say(f"{right.mean:.1%} of the nuclei of the new specimens have their true name")
    say(f"look at {output / 'run' / 'report.html'} and {output / 'annotated' / 'report.html'}")
