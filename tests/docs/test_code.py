"""The code blocks of the documentation run as they stand."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eutely.cli import app

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.M | re.S)


@pytest.mark.parametrize("page", ["tutorial", "extending"])
def test_every_block_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BROWSER", "true")  # eutely view opens nothing
    blocks = BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert blocks
    scope: dict[str, object] = {"__name__": page}
    for language, text in blocks:
        if language == "python":
            exec(compile(text, f"{page}.md", "exec"), scope)
            continue
        for line in text.strip().splitlines():
            program, *words = shlex.split(line)
            assert program == "eutely"
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
    if page == "tutorial":
        accuracy = scope["accuracy"]
        assert accuracy.mean > 0.8
