"""The code blocks of the documentation run as they stand.

Blocks in one page share their variables. A block with a title is a file that needs more than
eutely; it is only compiled. The tutorial runs first; other pages run in a copy of its folder.
"""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tifffile
from typer.testing import CliRunner

import eutely
from eutely.cli import app
from eutely.io.tables import write_table
from eutely.io.volumes import write_volume
from eutely.simulation.volume import draw
from toy_heads import head

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


def test_a_neuropal_laboratory_gets_from_file_to_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of the page, in its order, on a simulated head; curate is opened and ended."""
    monkeypatch.chdir(tmp_path)
    worm = head("worm", seed=4, lying=True)
    write_table(worm, Path("worm.csv"))
    size = (0.5, 0.5, 0.8)
    labels, _ = draw(worm, size)
    write_volume(labels, "worm.tif", size)
    image = np.array([[0, *worm.features[key]] for key in "RGB"])[:, labels] + 600
    tifffile.imwrite("worm_raw.tif", image.transpose(1, 0, 2, 3).astype(np.uint16), imagej=True)
    page = PAGES["neuropal"].read_text(encoding="utf-8")
    Path("about.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    commands = [line for kind, _, text in blocks_of("neuropal") if kind == "sh"
                for line in text.strip().splitlines()]  # fmt: skip
    assert [line.split()[1] for line in commands] == [
        "check", "check", "annotate", "annotate", "curate", "export", "export", "export",
        "annotate", "evaluate",
    ]  # fmt: skip
    for line in commands:
        words = shlex.split(line)[1:]
        if words[0] == "curate":
            settle_one(words)
            continue
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
        if words[0] == "check":
            assert all(f"atlas: {key}" in result.output for key in "RGB")
    assert json.loads(Path("accuracy.json").read_text())["accuracy"]["mean"] > 0.9
    for made in ("annotations.xlsx", "annotations.csv", "worm.nwb"):
        assert Path("named-image", "export", made).exists()
    assert Path("heads.cells.h5ad").exists()
    table = pd.read_csv("named-image/export/worm.csv", keep_default_na=False)
    assert table["name"][0] == ""  # as it was corrected
    again = pd.read_csv("again/worm.csv", keep_default_na=False)
    assert (again["name"] == table["name"]).mean() > 0.95
    (code,) = (text for kind, _, text in blocks_of("neuropal") if kind == "python")
    scope: dict[str, Any] = {}
    exec(code, scope)
    assert (scope["table"]["confidence"] > 0.9).sum() > 50


def settle_one(words: list[str]) -> None:
    """Open a curation as a user does, say that the first nucleus is no cell, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from eutely.cli import main; main()", *words, "--no-browser"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    address = process.stdout.readline().strip()

    def ask(path: str, told: object = None) -> Any:
        body = None if told is None else json.dumps(told).encode()
        request = urllib.request.Request(address + path, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    end = time.monotonic() + 120
    while not ask("specimens")["specimens"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    state = ask("specimens/0")
    planes = ask("specimens/0/slices/0")
    assert [channel["name"] for channel in planes["channels"]] == ["R", "G", "B"]
    ask("specimens/0/correct", {"cells": [[0, -1]], "seen": state["revision"]})
    process.send_signal(signal.SIGINT)
    line, _ = process.communicate(timeout=120)
    assert "1 change saved" in line


def test_figures_of_the_neuropal_page_come_from_a_run() -> None:
    kept = json.loads((ROOT / "benchmarks" / "results" / "routes.json").read_text())
    results, channels = kept["routes"], kept["channels"]
    page = PAGES["neuropal"].read_text(encoding="utf-8")
    shown = re.findall(r"^\| [^|]+ \| ([0-9.]+)% \|$", page, re.M)
    assert shown == [f"{100 * value:.1f}" for value in results["mean"].values()]
    assert f"mean of {results['heads']} heads" in page
    told = " ".join(PAGES["placing"].read_text(encoding="utf-8").split())
    other = {kind: values["in another order"] for kind, values in channels.items()
             if isinstance(values, dict) and "in another order" in values}  # fmt: skip
    assert f"all {channels['heads']} were taken so" in told
    assert channels["taken as called"]["as they are"] == channels["heads"]
    assert other["put wrong"] == 0
    assert (
        f"{other['put right']} were put right, {other['not clear']} said to be not clear, "
        f"{other['taken as called']} taken as called, none put wrong" in told
    )


def test_the_table_of_quadratic_assignments_is_that_of_the_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from qaplib import markdown

    assert f"<!-- benchmarks/qaplib.py -->\n\n{markdown()}\n<!--" in PAGES["solver"].read_text()


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
    "page",
    [page for page in PAGES if page not in ("tutorial", "README", "neuropal") and blocks_of(page)],
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
    if page == "solver":  # both orders are found again, from distances and from edges
        assert variables["order"][variables["solution"].matching].tolist() == list(range(30))
        copy, matching = variables["copy"], variables["matching"]
        assert all(copy.has_edge(matching[i], matching[j]) for i, j in variables["graph"].edges)
    if page == "compare":  # finds what the page says, and nothing else
        table = variables["table"][variables["table"]["q"] <= 0.05]
        assert set(zip(table["test"], table["name"], strict=True)) == {
            ("place", "c005L"),
            ("place-relative", "c005L"),
            ("presence", "c030L"),
            ("size", "c020R"),
        }
        said = re.search(r"c005L \(([0-9.]+)\s+spacings\)", PAGES["compare"].read_text("utf-8"))
        assert said is not None
        moved = table[table["test"] == "place-relative"]["effect"].item()
        assert float(said[1]) == pytest.approx(moved, abs=0.1)


def test_a_term_from_outside_is_removed_again() -> None:
    from eutely.fit.match import TERMS, feature_term, oddity_term

    assert [feature_term, oddity_term] == TERMS
