"""The command ``eutely config``."""

from pathlib import Path
from typing import Annotated

import typer


def config(
    file: Annotated[
        Path | None, typer.Argument(metavar="[F.toml]", help="Settings to check and complete.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Preset to start from: default or paper.")
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Print the table of all settings (Markdown).")
    ] = False,
) -> None:
    """Print all settings as a commented TOML file.

    Example: eutely config --preset paper > settings.toml
    """
    from eutely import config as settings
    from eutely.io.config import load_config

    if reference:
        typer.echo(settings.reference(), nl=False)
    else:
        typer.echo(settings.to_toml(load_config(file, preset)), nl=False)
