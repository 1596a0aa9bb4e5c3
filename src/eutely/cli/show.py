"""Commands that show or hand on: ``view``, ``report``, ``export``, ``config``, ``doctor``."""

import logging
import os
import platform
import re
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eutely.cli.common import (
    Quiet,
    Verbose,
    VoxelSize,
    Workers,
    command,
    listed,
    progress_of,
    read_specimens,
    say,
    start_log,
)
from eutely.cli.progress import Stop

if TYPE_CHECKING:
    from eutely.atlas import Atlas
    from eutely.execute import Progress
    from eutely.results import Report

log = logging.getLogger("eutely")


def view(
    what: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|ATLAS",
            help="Folder of a run or of annotations, or an atlas (file or built-in).",
        ),
    ],
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[INPUT...]", help="Specimens to annotate and show."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for a page about an atlas or specimens.",
            show_default="a temporary folder",
        ),
    ] = None,
    open_it: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
    voxel_size: VoxelSize = None,
    workers: Workers = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Look at a run or an atlas in the browser, with specimens beside it if any are given.

    Example: eutely view run
    Example: eutely view run/atlas.h5 new_worms/
    """
    start_log(verbose, quiet)
    if what.is_dir() and not inputs:
        page = page_of_folder(what)
    else:
        from eutely.io.atlas import open_atlas

        atlas = open_atlas(str(what))
        from eutely.results import Report  # after errors: these take a second
        from eutely.tasks.outputs import PAGE, report_of_annotations, write_page

        report = Report("atlas", command=command())
        if inputs:
            from eutely.series.channels import in_true_order
            from eutely.tasks.annotate import annotate

            specimens = read_specimens(inputs, voxel_size, quiet)
            with progress_of("match", quiet) as progress:
                annotations = annotate(atlas, specimens, workers=workers, progress=progress)
            annotations = [annotation.with_alternatives() for annotation in annotations]
            specimens = in_true_order(specimens, annotations)
            report = report_of_annotations(annotations, atlas, specimens, command())
        # A temporary folder stays: the browser reads it later.
        folder = output or Path(tempfile.mkdtemp(prefix="eutely-"))
        write_page(folder, atlas, report)
        page = folder / PAGE
    say(str(page))
    if open_it:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def page_of_folder(folder: Path) -> Path:
    """Return the page of a run, rendered again; or that of annotations, unchanged.

    The page of a folder that cannot be written is rendered into a temporary one.
    """
    from eutely.io.written import PAGE, REPORT, check_finished

    if not (folder / REPORT).exists() and (folder / PAGE).exists():
        return folder / PAGE
    check_finished(folder)
    from eutely.tasks.outputs import read_report, write_page  # after errors: it takes a second

    content = read_report(folder)
    if not os.access(folder, os.W_OK):
        log.warning("%s cannot be written: its page is in a temporary folder", folder)
        folder = Path(tempfile.mkdtemp(prefix="eutely-"))
    write_page(folder, *content)
    return folder / PAGE


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of eutely build.")],
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for each figure as SVG and PDF (needs the extra plots).",
        ),
    ] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Render RUN/report.html again, for example after the cells got names.

    Example: eutely report run --figures figures
    """
    start_log(verbose, quiet)
    from eutely.io.written import check_finished

    check_finished(run)
    from eutely.tasks.outputs import PAGE, read_report, write_page  # after errors: it is slow

    atlas, content = read_report(run)
    write_page(run, atlas, content)
    Stop.kept = f"{run / PAGE} is complete; the same command draws the figures"
    written = [str(run / PAGE)]
    if figures is not None:
        with progress_of("figures", quiet) as progress:
            write_figures(figures, atlas, content, progress)
        written.append(f"figures in {figures}")
    if not quiet:
        say(", ".join(written))


def write_figures(
    folder: Path, atlas: "Atlas", report: "Report", progress: "Progress | None" = None
) -> None:
    """Write every figure for which the report has data; figures changed by hand are kept."""
    from eutely.io.whole import new_bytes
    from eutely.io.written import tables_in
    from eutely.plots.draw import all_figures, encoded

    figures = all_figures(atlas, report)
    with tables_in(folder) as aside:
        for number, (name, figure) in enumerate(figures.items()):
            if progress is not None:
                progress("drawing figures", number, len(figures), name)
            for kind in ("svg", "pdf"):
                new_bytes(aside / f"{name}.{kind}", encoded(figure, kind))


def config(
    file: Annotated[
        Path | None, typer.Argument(metavar="[F.toml]", help="Settings to check and complete.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Settings to start from: default, paper or paper-plus."),
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Print the table of all settings (Markdown).")
    ] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Print all settings as a commented TOML file.

    Example: eutely config --preset paper > settings.toml
    """
    start_log(verbose, quiet)
    from eutely import config as settings
    from eutely.io.config import load_config

    if reference:
        typer.echo(settings.reference(), nl=False)
    else:
        typer.echo(settings.to_toml(load_config(file, preset)), nl=False)


NOT_FOR_USERS = ("test", "bench", "docs")
"""Extras for those who develop eutely."""

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+).*?(?:;.*extra == ['\"](?P<extra>[\w-]+)['\"])?$")
"""A line of the package's metadata: what it needs, and for which extra."""


def doctor(verbose: Verbose = False, quiet: Quiet = False) -> None:
    """Print what a report of a problem needs: versions, extras, cores, memory, compiled code.

    One screen to paste into an issue. It holds no names of files but those of eutely itself, and
    your home folder is written as ~.

    Example: eutely doctor
    """
    start_log(verbose, quiet)
    for what, found in findings(verbose):
        say(f"{what:<9} {found}")


def findings(verbose: bool = False) -> list[tuple[str, str]]:
    """Return what ``eutely doctor`` prints: a word and what was found; ``verbose`` for all."""
    import eutely
    from eutely.execute.threads import cores
    from eutely.io.atlas import known_atlases
    from eutely.io.limits import budget, memory
    from eutely.kernel import CACHE

    needed, extras = _requirements()
    kernels = [] if CACHE is None else list(Path(CACHE).rglob("*.nbc"))
    size = sum(path.stat().st_size for path in kernels) / 1e6
    code = (
        f"{len(kernels)} kernels, {size:.0f} MB"
        if kernels
        else "none yet (the first run takes longer)"
    )
    where = "kept nowhere: no folder can be written" if CACHE is None else f"in {_home(CACHE)}"
    given = sorted(
        f"{k}={_home(v)}" for k, v in os.environ.items() if k.startswith(("EUTELY_", "NUMBA_"))
    )
    found = [
        ("eutely", f"{eutely.__version__} in {_home(str(Path(eutely.__file__ or '.').parent))}"),
        ("python", f"{platform.python_version()} ({sys.executable and _home(sys.executable)})"),
        ("system", platform.platform()),
        ("cores", f"{cores()} of {os.cpu_count()}"),
        (
            "memory",
            f"{memory() / 1e9:.1f} GB, of which reading a file may take {budget() / 1e9:.1f} GB",
        ),
        ("compiled", f"{code}, {where}"),
        ("packages", ", ".join(f"{name} {_version(name) or 'MISSING'}" for name in needed)),
        ("extras", ", ".join(name for name, lacks in extras.items() if not lacks) or "none"),
    ]
    found += [
        ("missing", f"{name} ({', '.join(lacks)}): pip install 'eutely[{name}]'")
        for name, lacks in extras.items()
        if lacks
    ]
    found += [("atlases", ", ".join(known_atlases()))]
    found += [("settings", ", ".join(given))] if given or verbose else []
    return found


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Return the packages that eutely needs, and extra -> packages of it that are not there."""
    needed: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in requires("eutely") or ():
        match = _REQUIREMENT.match(line)
        if match is None or match["name"] == "eutely":
            continue
        if match["extra"] is None:
            needed.append(match["name"])
        elif match["extra"] not in NOT_FOR_USERS:
            lacks = extras.setdefault(match["extra"], [])
            lacks += [] if _version(match["name"]) else [match["name"]]
    return needed, extras


def _version(name: str) -> str:
    """Return the version of a package, "" where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _home(text: str) -> str:
    """Return a text without the name of the user's folder."""
    return text.replace(str(Path.home()), "~")


def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of eutely annotate or curate.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Folder to write.", show_default="DIR/export"
        ),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Tables, as eutely annotate writes.")] = False,
    excel: Annotated[
        bool, typer.Option("--excel", help="All nuclei as a workbook, annotations.xlsx.")
    ] = False,
    h5ad: Annotated[
        Path | None,
        typer.Option(
            "--h5ad", metavar="F.h5ad", help="AnnData of nuclei, and F.cells.h5ad of cells."
        ),
    ] = None,
    nwb: Annotated[
        bool, typer.Option("--nwb", help="NWB, a file for each specimen, with image and names.")
    ] = False,
    labels: Annotated[
        bool, typer.Option("--labels", help="Label volumes with numbers of cells as values.")
    ] = False,
    about: Annotated[
        Path | None,
        typer.Option("--about", metavar="F.toml", help="For NWB: laboratory, session, subject."),
    ] = None,
    min_confidence: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Leave nuclei with a lower confidence empty.")
    ] = 0.0,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Write the results of a folder for other programs, with all corrections made so far.

    NWB has the layout of public NeuroPAL collections: image where there is one, the voxels of the
    nuclei, names and confidences; pynwb reads it without further software. A copy of an NWB input
    keeps all that is in it. Label volumes and images are read from where they were when the
    specimens were annotated, or in or beside DIR. Without an option, tables are written.

    Example: eutely export annotated --nwb --h5ad worms.h5ad
    """
    start_log(verbose, quiet)
    wanted = {"csv": csv, "excel": excel, "h5ad": h5ad is not None, "nwb": nwb, "labels": labels}
    kinds = [kind for kind, given in wanted.items() if given] or ["csv"]
    from eutely.curate.export import export as write

    target = folder / "export" if output is None else output
    with progress_of("export", quiet) as progress:
        Stop.kept = f"what is complete in {target} stays"
        written = write(
            folder, kinds, target,
            h5ad=h5ad, about=about, min_confidence=min_confidence, progress=progress,
        )  # fmt: skip
    if not quiet:
        say(f"written: {listed([str(path) for path in written])}")
