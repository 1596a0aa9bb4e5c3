"""The command ``eutely``: each command parses its options, calls the package, prints."""

import gc
import io
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from eutely.cli.common import err, help_text, say, with_memory_limit
from eutely.cli.images import with_images
from eutely.cli.progress import stopping
from eutely.errors import EutelyError

COMMANDS = {
    "demo": "build", "simulate": "simulate", "extract": "extract", "check": "check",
    "build": "build", "name": "naming", "annotate": "annotate", "curate": "curate",
    "evaluate": "naming", "compare": "compare", "atlases": "atlas", "view": "show",
    "report": "show", "export": "show", "config": "show", "transfer": "extract", "match": "solve",
    "solve": "solve", "doctor": "show",
}  # fmt: skip
"""Module of each command, in the order of the help text."""

GROUP = "atlas"
"""Group of commands about atlas files, and its module."""

MEASURES = {
    "extract", "check", "build", "name", "annotate", "curate", "evaluate", "compare", "match",
    "view",
}  # fmt: skip
"""Commands with the options of images."""

READS_NOTHING = {"demo", "simulate", "atlases", "config", "doctor"}
"""Commands without the option --max-memory."""

COLLECTION = 50_000
"""Objects after which Python looks for unused cycles, 700 by default: modules make many objects
that stay in use, and looking takes nearly a tenth of the time until a command starts."""

LONGEST = 60
"""Letters of a name that a message quotes."""


def print_version(wanted: bool) -> None:
    """Print the version and stop, if the option was given."""
    if wanted:
        from eutely import __version__

        say(f"eutely {__version__}")
        raise typer.Exit


def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Name every cell of an animal without a single training label."""


def application(names: Iterable[str] = (*COMMANDS, GROUP)) -> typer.Typer:
    """Return the command line with some commands; their modules are imported, no others."""
    app = typer.Typer(name="eutely", no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(root)
    for name in names:
        module = import_module(f"eutely.cli.{COMMANDS.get(name, name)}")
        if name == GROUP:
            app.add_typer(module.group)
            continue
        function = getattr(module, name)
        complete = with_images(function) if name in MEASURES else function
        command = complete if name in READS_NOTHING else with_memory_limit(complete)
        app.command(help=help_text(function))(command)
    return app


def __getattr__(name: str) -> typer.Typer:
    """Return ``app``, the command line with all commands."""
    if name != "app":
        raise AttributeError(name)
    globals()[name] = application()
    app: typer.Typer = globals()[name]
    return app


def main() -> None:
    """Run the command line; an error that the user can correct is one line and exit code 2."""
    gc.set_threshold(COLLECTION)
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a name shows its code
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with stopping(lambda line: say(line, "", err)):
            # Help is about all commands; a command itself needs no other.
            names = [word for word in sys.argv[1:2] if word in COMMANDS or word == GROUP]
            (application(names) if names else application())()
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
