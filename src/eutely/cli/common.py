"""What all commands share: the options of every command and the words on the terminal."""

import logging
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

out = Console()
"""Where results go (standard output)."""

err = Console(stderr=True)
"""Where progress, warnings and errors go (standard error)."""

Inputs = Annotated[
    list[Path],
    typer.Argument(metavar="INPUT...", help="Files or folders; a folder stands for its specimens."),
]
AtlasFile = Annotated[
    str, typer.Argument(metavar="ATLAS", help="Atlas file (.h5), run folder, or name.")
]
Adapt = Annotated[
    bool | None,
    typer.Option(
        "--adapt/--no-adapt",
        help="Shift the atlas to the cohort first.",
        show_default="with ten or more specimens",
    ),
]
PinFile = Annotated[
    Path | None,
    typer.Option(
        "--pins", metavar="F.csv", help="Nuclei known for sure: specimen, id, name (or cell)."
    ),
]
VoxelSize = Annotated[
    str | None,
    typer.Option(
        metavar="X,Y,Z",
        help="Voxel size in micrometres, for volumes whose file does not say (one number: cubic).",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(metavar="N", help="Threads on this machine; one a core when not given."),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on Dask instead: local:N processes, or a running scheduler (tcp://host:8786).",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say warnings and errors only.")]


class Lines(logging.Handler):
    """Prints each message of the log as one line, however long, on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message; warnings and worse say what they are."""
        loud = record.levelno >= logging.WARNING
        err.print(
            f"{record.levelname.lower()}: " * loud + record.getMessage(),
            style="yellow" if loud else "dim",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def command() -> str:
    """Return the command line as it was given."""
    return shlex.join(["eutely", *sys.argv[1:]])


def speak(verbose: bool, quiet: bool) -> None:
    """Send the package's log to the terminal at the level that was asked for."""
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    handler = Lines()
    handler.setLevel(level)  # the log file of a run has its own
    logger = logging.getLogger("eutely")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
