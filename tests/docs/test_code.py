"""The code blocks of the documentation run as they stand.

Blocks in one page share their variables. A block with a title is a file that needs more than
eutely; it is only compiled. The tutorial runs first; other pages run in a copy of its folder.
"""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eutely.cli import app

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path for path in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]}
BLOCK = re.compile(r"^```(sh|python)([^\n]*)\n(.*?)^```", re.M | re.S)


def blocks_of(page: str) -> list[tuple[str, str, str]]:
    """Return language, title and text of the blocks of a page."""
    return BLOCK.findall(PAGES[page].read_text(encoding="utf-8"))


def run_page(page: str) -> dict[str, Any]:
    """Run all blocks of a page in the current folder, and return its variables."""
    scope: dict[str, Any] = {"__name__": page}
    for language, title, text in blocks_of(page):
        if language == "python":
            code = compile(text, f"{page}.md", "exec")
            if not title.strip():
                exec(code, scope)
            continue
        for line in text.strip().splitlines():
            program, *words = shlex.split(line)
            assert program == "eutely"
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
    return scope


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Run the tutorial once; its folder and its variables."""
    folder = tmp_path_factory.mktemp("tutorial")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("BROWSER", "true")  # eutely view opens nothing
        return folder, run_page("tutorial")


def test_the_tutorial_runs_and_names_new_animals(tutorial: tuple[Path, dict[str, Any]]) -> None:
    assert tutorial[1]["accuracy"].mean > 0.8


@pytest.mark.parametrize("page", [page for page in PAGES if page != "tutorial" and blocks_of(page)])
def test_every_block_runs(
    page: str,
    tutorial: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if page == "report":
        pytest.importorskip("matplotlib", reason="no matplotlib: pip install 'eutely[plots]'")
    monkeypatch.chdir(shutil.copytree(tutorial[0], tmp_path / "folder"))
    run_page(page)


def test_a_term_from_outside_is_removed_again() -> None:
    from eutely.fit.place import TERMS, feature_term, oddity_term

    assert [feature_term, oddity_term] == TERMS
