"""The command ``eutely``: each command parses its options, calls the package, prints."""

import io
import sys
from typing import Annotated

import typer

from eutely.cli.annotate import annotate
from eutely.cli.atlas import atlases
from eutely.cli.atlas import group as atlas_group
from eutely.cli.build import build, demo
from eutely.cli.check import check
from eutely.cli.common import err, help_text, say, with_memory_limit
from eutely.cli.compare import compare
from eutely.cli.curate import curate
from eutely.cli.extract import extract, transfer
from eutely.cli.images import with_images
from eutely.cli.naming import evaluate, name
from eutely.cli.progress import stopping
from eutely.cli.show import config, report, view
from eutely.cli.simulate import simulate
from eutely.cli.solve import match, solve
from eutely.errors import EutelyError

COMMANDS = (
    demo, simulate, extract, check, build, name, annotate, curate, evaluate, compare, atlases, view,
    report, config, transfer, match, solve,
)  # fmt: skip
"""In the order of the help text."""

LONGEST = 60
"""Letters of a name that a message quotes."""

app = typer.Typer(
    name="eutely",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def print_version(wanted: bool) -> None:
    """Print the version and stop, if the option was given."""
    if wanted:
        from eutely import __version__

        say(f"eutely {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Name every cell of an animal without a single training label."""


for function in COMMANDS:
    reads = function not in (demo, simulate, atlases, config)
    measures = function in (extract, check, build, name, annotate, evaluate, compare, match, view)
    complete = with_images(function) if measures else function
    text = help_text(function)
    app.command(help=text)(with_memory_limit(complete) if reads else function)
app.add_typer(atlas_group)


def main() -> None:
    """Run the command line; an error that the user can correct is one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a name shows its code
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with stopping(lambda line: say(line, "", err)):
            app()
    except EutelyError as error:
        say(f"error: {error}", "red", err)
        sys.exit(2)
    except UnicodeEncodeError as error:
        text = error.object if len(error.object) <= LONGEST else f"...{error.object[-LONGEST:]}"
        say(
            f"error: {text!a} cannot be the name of a file in this locale ({error.encoding}); set "
            "one of UTF-8, such as LC_ALL=C.UTF-8",
            "red",
            err,
        )
        sys.exit(2)
