"""``eutely build``: from specimens to an atlas, without a single name."""

from pathlib import Path
from typing import Annotated

import typer

from eutely.cli.common import (
    Dask,
    Inputs,
    PinFile,
    Quiet,
    Verbose,
    VoxelSize,
    Workers,
    command,
    out,
    speak,
)


def build(
    inputs: Inputs,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="RUN", help="Folder of the run.")
    ],
    config: Annotated[
        Path | None, typer.Option("--config", metavar="F.toml", help="Settings of the run.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Settings to start from: default or paper.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Trials of each stage of learning.")
    ] = None,
    learn_on: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Specimens that costs are learned on.")
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Columns that count besides places: all, none, or names: R,G,B."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of all random choices.")] = None,
    supervised: Annotated[
        bool, typer.Option("--supervised", help="Take the cells from the names of the nuclei.")
    ] = False,
    pins: PinFile = None,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    dask: Dask = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Find the cells that all specimens share, and build their atlas.

    The folder RUN gets atlas.h5, cliques.csv (specimen,id,cell), parameters.json and report.html.
    The same command again goes on where it stopped, also after a crash.

    Example: eutely build worms/ -o run
    """
    speak(verbose, quiet)
    from eutely.cli.reading import read_all
    from eutely.cli.watching import watching
    from eutely.errors import ConfigError
    from eutely.io.config import load_config
    from eutely.io.pins import read_pins
    from eutely.tasks import build as build_atlas

    stages = ("trials_linear", "trials_sparsity", "trials_offsets")
    overrides: dict[str, int | str | None] = {f"learn.{stage}": trials for stage in stages}
    overrides |= {"learn.specimens": learn_on, "seed": seed, "estimate.features": features}
    settings = load_config(config, preset, overrides)
    if settings.method != "learn" and (trials is not None or learn_on is not None):
        raise ConfigError(
            "--trials and --learn-on need the method 'learn'; add --preset paper, or leave them out"
        )
    specimens = [reading.specimen for reading in read_all(inputs, voxel_size, quiet)]
    with watching(quiet) as watch:
        built = build_atlas(
            specimens,
            output,
            config=settings,
            supervised=supervised,
            pins=None if pins is None else read_pins(pins),
            workers=workers,
            dask=dask,
            watch=watch,
            command=command(),
        )
    if quiet:
        return
    atlas = built.atlas
    rare = f" ({int(atlas.rare.sum())} of them rare)" if atlas.rare.any() else ""
    lines = [
        f"{len(atlas)} cells{rare} in {len(built.specimens)} specimens; an atlas of other "
        f"specimens confirms {built.consistency().mean():.1%} of their nuclei",
        f"atlas: {output / 'atlas.h5'}, report: {output / 'report.html'}",
    ]
    if built.unlike:
        lines.append(f"look at: {', '.join(built.unlike)} (unlike the others)")
    if not any(atlas.names):
        lines.append(f"next: eutely name {output / 'atlas.h5'} NAMED_SPECIMENS")
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)
