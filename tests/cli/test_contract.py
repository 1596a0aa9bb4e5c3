"""What every command has, whoever added it: help with an example, -v and -q, 80 columns."""

from __future__ import annotations

from itertools import pairwise

import pytest
import typer
from typer.testing import CliRunner

from eutely.cli import app

ROOT = typer.main.get_command(app)


def commands() -> list[tuple[str, ...]]:
    """Return the words of all commands, those of groups too."""
    found: list[tuple[str, ...]] = []
    for name, command in ROOT.commands.items():  # type: ignore[attr-defined]
        inside = getattr(command, "commands", None)
        found += [(name,)] if inside is None else [(name, each) for each in inside]
    return found


def test_no_command_is_forgotten() -> None:
    names = {" ".join(words) for words in commands()}
    assert {"build", "curate", "atlas show", "atlas import", "atlas merge-names"} <= names
    assert len(names) >= 24


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_help_fits_and_has_an_example_and_the_shared_options(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80", "TERM": "dumb"})
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(result.output.split())
    assert "Example: eutely " in text
    assert "--verbose -v" in text
    assert "--quiet -q" in text
    # Lines are broken where the terminal ends, not where those of the source do.
    begin = [line.strip() for line in result.output.split("╭")[0].splitlines()][3:]
    for line, following in pairwise(begin):
        if line and following and not following.startswith("Example:"):
            assert len(line) + 1 + len(following.split()[0]) > 76, (line, following)


def test_the_version_and_the_short_form_of_workers() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.startswith("eutely ")
    for name in ("build", "annotate", "name", "evaluate", "compare", "curate", "demo", "view"):
        short = {o for p in ROOT.commands[name].params for o in p.opts}  # type: ignore[attr-defined]
        assert {"-j", "--workers"} <= short, name
