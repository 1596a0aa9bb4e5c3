"""What all commands share: options, log lines, reading inputs, progress bars."""

import inspect
import logging
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from functools import wraps
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from eutely.cli.images import given as given_images
from eutely.cli.images import names_given
from eutely.errors import ExecuteError, ReadError, WriteError

if TYPE_CHECKING:
    from eutely.execute import Progress as Callback
    from eutely.io.read import Reading, Survey
    from eutely.specimen import Specimen

log = logging.getLogger("eutely")

out = Console()
"""Standard output, for results."""

err = Console(stderr=True)
"""Standard error, for progress, warnings and errors."""


class Handedness(StrEnum):
    """Whether specimens are mirror images."""

    AUTO = "auto"
    AS_IS = "as-is"
    MIRRORED = "mirrored"


Inputs = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT...", help="Files or folders; a folder stands for the specimens in it."
    ),
]
AtlasFile = Annotated[
    str,
    typer.Argument(metavar="ATLAS", help="Atlas file (.h5), run folder, or name of a built-in."),
]
Adapt = Annotated[
    bool | None,
    typer.Option(
        "--adapt/--no-adapt",
        help="First shift the atlas to where these specimens have its cells.",
        show_default="with ten or more specimens",
    ),
]
PinFile = Annotated[
    Path | None,
    typer.Option(
        "--pins",
        metavar="F.csv",
        help="Nuclei whose cell is known for sure: columns specimen, id, name (or cell).",
    ),
]
VoxelSize = Annotated[
    str | None,
    typer.Option(
        metavar="X,Y,Z",
        help="Voxel size in micrometres, for volumes whose file has none (one number: cubic).",
    ),
]
NameFile = Annotated[
    Path | None,
    typer.Option(
        "--names",
        metavar="F.csv",
        help="Names of the nuclei: columns id, name (several specimens: specimen, or a folder).",
    ),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out files that cannot be read, and say so.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", "-j", metavar="N", help="Threads on this machine.", show_default="one per core"
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on Dask instead: local:N processes, or a running scheduler (tcp://host:8786).",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random choices.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print more details.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        metavar="SIZE",
        help="Memory that reading one file may take, such as 4GB.",
        show_default="a quarter of the machine's",
    ),
]


STEPS = {"find", "align", "steps.py", "build.py"}
"""Rooms and files whose details are for the log file of a run, and for -v: the progress line says
the same in plain words."""


def with_memory_limit(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the option --max-memory, which applies to all files it reads."""

    @wraps(command)
    def limited(max_memory: str | None = None, **options: object) -> None:
        if max_memory is not None:
            from eutely.io.limits import set_budget

            set_budget(max_memory)
        command(**options)

    signature = inspect.signature(command)
    parameter = inspect.Parameter("max_memory", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters = [*signature.parameters.values(), parameter.replace(annotation=MaxMemory)]
    limited.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    limited.__annotations__ = {**command.__annotations__, "max_memory": MaxMemory}
    return limited


def help_text(command: Callable[..., None]) -> str:
    """Return the help of a command: each paragraph of its docstring as one line.

    The terminal breaks lines; examples stay on lines of their own.
    """
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(
        text if text.startswith("Example:") else " ".join(text.split("\n")) for text in paragraphs
    )


class LogLines(logging.Handler):
    """Prints each message of the log as one line, however long, on standard error."""

    def __init__(self, verbose: bool = False) -> None:
        super().__init__()
        self.verbose = verbose

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message; warnings and errors begin with their level."""
        loud = record.levelno >= logging.WARNING
        if not loud and not self.verbose and STEPS & set(Path(record.pathname).parts[-3:]):
            return
        level = f"{record.levelname.lower()}: " if loud else ""
        say(level + record.getMessage(), "yellow" if loud else "dim", err)


def start_log(verbose: bool, quiet: bool) -> None:
    """Print the package's log on the terminal, from the requested level."""
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    handler = LogLines(verbose)
    handler.setLevel(level)  # the log file of a run has its own level
    logger = logging.getLogger("eutely")
    logger.handlers[:] = [handler]
    logger.setLevel(level)


def say(line: str, style: str = "", console: Console = out) -> None:
    """Print a line literally: no markup, no colours for numbers.

    A terminal gets line breaks between words, where the line is too long for it; what reads the
    output of a pipe gets one line, and no path is ever broken.
    """
    if console.is_terminal and len(line) > console.width:
        line = fill(line, console.width, break_long_words=False, break_on_hyphens=False)
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def counted(count: int, singular: str, plural: str = "") -> str:
    """Return a count with its noun; the plural ends in "s" unless given."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return some names with commas between them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def command() -> str:
    """Return the command line as the user typed it."""
    return shlex.join(["eutely", *sys.argv[1:]])


def threads_or_dask(workers: int | None, dask: str | None) -> int | str | None:
    """Return where to run, from the options --workers and --dask."""
    if workers is not None and dask is not None:
        raise ExecuteError("--workers counts threads, --dask replaces them; give only one of them")
    return workers if dask is None else dask


def check_folder(output: Path) -> None:
    """Raise an error if the output folder is a file."""
    if output.exists() and not output.is_dir():
        raise WriteError(f"{output} is a file; give a folder")


def atlas_file(atlas: str) -> Path:
    """Return the file of an atlas that is given as a file or by its run folder."""
    path = Path(atlas)
    return path / "atlas.h5" if path.is_dir() else path


def expect_input(*inputs: str | Path) -> None:
    """Raise an error if the first input does not exist.

    The other checks import what reads all kinds of files. A part of a file, as in
    ``embryo.zip:120``, is left to them.
    """
    if inputs and ":" not in str(inputs[0]) and not Path(inputs[0]).exists():
        raise ReadError(f"{inputs[0]} does not exist")


def files_read(inputs: Sequence[Path], *others: Path | None) -> list[Path]:
    """Return the files that a command reads: inputs, tables of names beside them, others."""
    from eutely.io.read import sources

    files = [path for file in sources(inputs) for path in (file.path, file.names)]
    images = given_images.get()
    files += [] if images is None else images.files()
    return [path for path in (*files, *others) if path is not None]


def parse_voxel_size(text: str | None) -> list[float] | None:
    """Return the numbers of ``X,Y,Z``, or the only one, which then applies to all axes."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.replace("x", ",").split(",")]
    except ValueError:
        raise ReadError(
            f"--voxel-size {text}: expected X,Y,Z (or one number) in micrometres, like 0.1,0.1,0.5"
        ) from None


def read_specimens(
    inputs: Sequence[Path],
    voxel_size: str | None,
    quiet: bool,
    *,
    names: Path | None = None,
    skip_bad: bool | None = None,
) -> "list[Specimen]":
    """Read the specimens of all inputs, with the names of a table if one is given."""
    from eutely.io.names import with_names

    cohort = read_inputs(inputs, voxel_size, quiet, skip_bad=skip_bad)
    specimens = [reading.specimen for reading in cohort]
    return specimens if names is None else with_names(specimens, names)


def read_inputs(
    inputs: Sequence[Path], voxel_size: str | None, quiet: bool, *, skip_bad: bool | None = None
) -> "list[Reading]":
    """Read the specimens of all inputs with their sources; all problems are printed, not one."""
    from eutely.io.read import BadFilesError, usable

    found = survey_inputs(inputs, voxel_size, quiet)
    try:
        return usable(found, bool(skip_bad))
    except BadFilesError as error:
        raise refusal(error.problems, found, skip_bad) from None


def refusal(problems: Sequence[str], found: "Survey", skip_bad: bool | None) -> ReadError:
    """Return the error for what is wrong with some files; all but a single one are printed.

    Parameters
    ----------
    problems
        one line each.
    found
        what was read; bad files beside good ones could be left out.
    skip_bad
        whether they were to be left out; None for a command without that option.
    """
    skips = skip_bad is False and found.readings and found.problems
    if len(problems) == 1:
        return ReadError(problems[0] + ("; --skip-bad goes on without it" if skips else ""))
    for problem in problems:
        say(f"error: {problem}", "red", err)
    advice = ", or add --skip-bad" if skips else ""
    return ReadError(f"{len(problems)} problems; correct or remove these files{advice}")


def survey_inputs(inputs: Sequence[Path], voxel_size: str | None, quiet: bool) -> "Survey":
    """Read all inputs that can be read; show a bar on a terminal."""
    from eutely.cli.progress import READING
    from eutely.io.read import sources, survey

    size = parse_voxel_size(voxel_size)
    files = sources(inputs)
    with progress_of("read", quiet) as progress:

        def show(number: int, fraction: float) -> None:
            # In thousandths of a file: large volumes are read block by block.
            note = f"{files[number].name}, {number + 1} of {len(files)}"
            progress(READING, round(1000 * (number + fraction)), 1000 * len(files), note)

        found = survey(files, size, show, given_images.get())
    return found if names_given.get() is None else found.renamed(names_given.get() or {})


def progress_of(plan: str, quiet: bool) -> "AbstractContextManager[Callback]":
    """Return a progress callback for one of `eutely.cli.progress.PLANS`, to use in a block."""
    from eutely.cli.progress import PLANS, watched

    return watched(PLANS[plan], err, quiet)
