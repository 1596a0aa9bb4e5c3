"""The code blocks of the documentation run as they stand.

Blocks in one page share their variables. A block with a title is a file that needs more than
eutely; it is only compiled. The tutorial runs first; other pages run in a copy of its folder.
"""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
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


CARD = re.compile(r"`(eutely [a-z][^`]*|annotations = eutely[^`]*)`")


def test_each_way_to_begin_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The five commands of the first page and of the README, with the files that they name."""
    text = PAGES["index"].read_text(encoding="utf-8").split('<div class="grid cards"')[1]
    cards = CARD.findall(text.split("</div>")[0])
    assert len(cards) == 5
    readme = PAGES["README"].read_text(encoding="utf-8").split("## What do you have?")[1]
    assert CARD.findall(readme.split("##")[0]) == cards
    monkeypatch.chdir(tmp_path)
    simulate = "simulate -o volumes --cells 40 --format tif --voxel-size 2 --specimens 3"
    assert CliRunner().invoke(app, simulate.split()).exit_code == 0
    for file, name in {
        "head.csv": "celegans-adult-head",
        "embryo.csv": "celegans-embryo-350",
    }.items():
        write_table(drawn_from(name, Path(file).stem), Path(file))
    (tmp_path / "worms").mkdir()
    write_table(drawn_from("celegans-l1", "worm"), Path("worms", "worm.csv"))
    lines = ["p 2 2 4 1", *(f"a {k} {k // 2} {k % 2} -1" for k in range(4)), "e 0 3 1.5"]
    Path("problem.dd").write_text("\n".join(lines) + "\n")
    for line in cards:
        if line.startswith("eutely "):
            result = CliRunner().invoke(app, shlex.split(line)[1:])
            assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
        else:
            scope: dict[str, Any] = {"eutely": eutely}
            exec(line, scope)
            assert (scope["annotations"][0].cells >= 0).mean() > 0.9
    for page in ("run/report.html", "named/head.csv", "named/embryo.csv", "solution.json"):
        assert Path(page).exists(), page


def drawn_from(known: str, name: str) -> eutely.Specimen:
    """Return the cells that most specimens of a built-in atlas have, at their usual places."""
    atlas = eutely.Atlas.load(known)
    usual = np.flatnonzero(atlas.often > 0.5 * atlas.specimens)
    colours = np.sinh(atlas.feature_means[usual].T)
    return eutely.Specimen.from_arrays(
        name, atlas.means[usual], unit=atlas.unit,
        features=dict(zip(atlas.features, colours, strict=True)),
    )  # fmt: skip


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
