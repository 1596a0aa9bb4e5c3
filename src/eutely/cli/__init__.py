"""The command ``eutely``: thin; each command parses, calls the package, prints."""

import sys

import typer

from eutely.cli.annotate import annotate
from eutely.cli.atlases import atlases
from eutely.cli.build import build
from eutely.cli.check import check
from eutely.cli.common import err
from eutely.cli.config import config
from eutely.cli.demo import demo
from eutely.cli.evaluate import evaluate
from eutely.cli.extract import extract
from eutely.cli.match import match
from eutely.cli.name import name
from eutely.cli.report import report
from eutely.cli.simulate import simulate
from eutely.cli.solve import solve
from eutely.cli.transfer import transfer
from eutely.cli.view import view
from eutely.errors import EutelyError

app = typer.Typer(
    name="eutely",
    help="Name every cell of an animal without a single training label.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback()
def root() -> None:
    """Name every cell of an animal without a single training label."""


app.command()(demo)
app.command()(simulate)
app.command()(extract)
app.command()(check)
app.command()(build)
app.command()(name)
app.command()(annotate)
app.command()(evaluate)
app.command()(atlases)
app.command()(view)
app.command()(report)
app.command()(config)
app.command()(transfer)
app.command()(match)
app.command()(solve)


def main() -> None:
    """Run the command line; what a user can put right is one line and exit code 2."""
    try:
        app()
    except EutelyError as error:
        err.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("stopped; the steps that a build has finished are kept: run it again to go on")
        sys.exit(130)
