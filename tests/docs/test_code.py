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

import eutely
from eutely.cli import app
from eutely.io.tables import write_table

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
            program, *words = shlex.split(line, comments=True)
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
    folder, variables = tutorial
    assert variables["accuracy"].mean > 0.8
    assert sum(map(bool, eutely.Atlas.load(folder / "run").names)) == 80


def test_the_readme_runs_and_leaves_a_named_atlas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands with the files that they name: volumes, a named worm, a new worm."""
    monkeypatch.chdir(tmp_path)
    simulate = "simulate -o {} --cells 40 --format tif --voxel-size 2 --specimens {} --seed {}"
    for words in (simulate.format("segmentations", 4, 0), simulate.format("new", 1, 1)):
        assert CliRunner().invoke(app, words.split()).exit_code == 0
    Path("new", "worm001.tif").rename("new_worm.tif")
    truth = eutely.read("segmentations/truth")
    write_table(truth[0], Path("one_named_worm.csv"))
    variables = run_page("README")
    assert all(eutely.Atlas.load("run").names)
    assert all(eutely.Atlas.load("named.h5").names)
    assert len(variables["annotation"]) == 60


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in ("tutorial", "README") and blocks_of(page)]
)
def test_every_block_runs(
    page: str,
    tutorial: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if page == "report":
        pytest.importorskip("matplotlib", reason="no matplotlib: pip install 'eutely[plots]'")
    monkeypatch.chdir(shutil.copytree(tutorial[0], tmp_path / "folder"))
    variables = run_page(page)
    if page == "compare":  # finds what the page says, and nothing else
        table = variables["table"][variables["table"]["q"] <= 0.05]
        assert set(zip(table["test"], table["name"], strict=True)) == {
            ("place", "c005L"),
            ("place-relative", "c005L"),
            ("presence", "c030L"),
            ("size", "c020R"),
        }


def test_a_term_from_outside_is_removed_again() -> None:
    from eutely.fit.place import TERMS, feature_term, oddity_term

    assert [feature_term, oddity_term] == TERMS
