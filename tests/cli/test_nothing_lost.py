"""No command replaces what it read, and what a person made is kept or asked about."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import eutely
from eutely.cli import app
from eutely.config import resolve
from eutely.errors import EutelyError
from eutely.io.atlas import read_atlas, write_atlas
from eutely.tasks.atlases import subset


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.fixture(scope="module")
def atlas() -> eutely.Atlas:
    cohort = eutely.simulate(specimens=4, cells=30, variation=0.3)
    settings = resolve(overrides={"refine.folds": 2})
    return eutely.build(cohort, config=settings, supervised=True, workers=1).atlas


@pytest.fixture
def folder(tmp_path: Path, atlas: eutely.Atlas) -> Path:
    """Two animals of 30 cells as tables and as label volumes, and their atlas."""
    common = ("--specimens", 2, "--cells", 30, "--variation", 0.3, "--seed", 5)
    run("simulate", "-o", tmp_path / "worms", *common)
    (tmp_path / "worms" / "simulation.json").unlink()
    volumes = ("--format", "tif", "--voxel-size", 2)
    run("simulate", "-o", tmp_path / "volumes", *common, *volumes)
    write_atlas(atlas, tmp_path / "atlas.h5")
    (tmp_path / "names.csv").write_text("id,name\n1,A\n")
    (tmp_path / "beside").mkdir()
    shutil.copy(tmp_path / "volumes" / "worm001.tif", tmp_path / "beside")
    shutil.copy(tmp_path / "names.csv", tmp_path / "beside" / "worm001.csv")
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "words",
    [
        "annotate atlas.h5 worms -o worms",
        "annotate atlas.h5 worms/worm001.csv -o worms",
        "annotate atlas.h5 worms/worm001.csv -o worms/../worms",
        "annotate atlas.h5 volumes -o volumes",
        "annotate atlas.h5 linked -o worms",
        "annotate atlas.h5 beside/worm001.tif -o beside",
        "name atlas.h5 volumes/worm001.tif --names names.csv -o names.csv",
        "check worms --json worms/worm001.csv",
        "extract worms -o worms",
        "extract worms/worm002.csv -o worms",
        "extract volumes -o volumes",
        "name atlas.h5 worms -o worms/worm001.csv",
        "name atlas.h5 worms/worm001.csv -o hard.csv",
        "evaluate atlas.h5 worms --json worms/worm001.csv",
        "evaluate atlas.h5 worms --json atlas.h5",
        "transfer worms/worm001.csv worms/worm002.csv -o worms/worm001.csv",
        "transfer worms/worm001.csv worms/worm002.csv -o worms/worm002.csv",
        "transfer worms/worm001.csv worms/worm002.csv --names names.csv -o names.csv",
        "transfer worms/worm001.csv worms/worm002.csv -o new.csv --json worms/worm001.csv",
        "match worms/worm001.csv worms/worm002.csv -o worms/worm002.csv",
    ],
)
def test_inputs_are_never_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(folder)
    os.symlink(folder / "worms", folder / "linked")
    os.link(folder / "worms" / "worm001.csv", folder / "hard.csv")
    before = content(folder)
    with pytest.raises(EutelyError, match=r"is an input|is the folder of the inputs") as caught:
        run(*words.split())
    assert "\n" not in str(caught.value)
    assert content(folder) == before


def test_a_table_corrected_by_hand_is_kept(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    words = ("annotate", folder / "atlas.h5", folder / "worms", "-o", folder / "out", "-j", 1)
    run(*words)
    run(*words)
    assert not list((folder / "out").glob("*.bak*"))
    table = folder / "out" / "worm001.csv"
    for number, mark in enumerate(("FIRST", "SECOND")):
        written = table.read_text()
        table.write_text(written.replace("\n", f"\n1{mark},", 1))
        caplog.clear()
        run(*words)
        copy = f"worm001.csv.bak{number + 1 if number else ''}"
        assert copy in caplog.text
        assert mark in (folder / "out" / copy).read_text()
        assert table.read_text() == written
    assert not (folder / "out" / "worm002.csv.bak").exists()


def test_a_table_that_eutely_did_not_write_is_kept(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "worm001.csv").write_text("id,name\n1,mine\n")
    run("extract", folder / "worms", "-o", folder / "out")
    assert (folder / "out" / "worm001.csv.bak").read_text() == "id,name\n1,mine\n"
    assert len(eutely.read(folder / "out")) == 2


def test_names_of_an_atlas_are_kept(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    atlas = folder / "atlas.h5"
    mine = read_atlas(atlas).named([f"MINE{cell}" for cell in range(30)])
    write_atlas(mine, atlas)
    run("name", atlas, folder / "worms", "-j", 1)
    assert "had 30 names already" in caplog.text
    assert read_atlas(folder / "atlas.h5.bak").names == mine.names
    assert read_atlas(atlas).names != mine.names
    caplog.clear()
    run("name", atlas, folder / "worms", "-j", 1)  # the same names again
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert len(list(folder.glob("*.bak*"))) == 1


def test_another_kind_of_file_is_no_place_for_an_atlas(folder: Path) -> None:
    (folder / "notes.h5").write_text("mine")
    with pytest.raises(EutelyError, match="is no atlas"):
        run("name", folder / "atlas.h5", folder / "worms", "-o", folder / "notes.h5")
    (folder / "notes.txt").write_text("mine")
    (folder / "package.json").write_text('{"name": "mine"}')
    for name in ("notes.txt", "package.json"):
        with pytest.raises(EutelyError, match="is no earlier result of this command"):
            run("evaluate", folder / "atlas.h5", folder / "worms", "--json", folder / name)
        with pytest.raises(EutelyError, match="is no earlier result of this command"):
            run("check", folder / "worms", "--json", folder / name)
    assert (folder / "package.json").read_text() == '{"name": "mine"}'
    assert (folder / "notes.h5").read_text() == (folder / "notes.txt").read_text() == "mine"


def test_a_changed_simulation_is_not_replaced(tmp_path: Path) -> None:
    words = ("simulate", "-o", tmp_path / "worms", "--specimens", 2, "--cells", 10)
    run(*words)
    run(*words)
    table = tmp_path / "worms" / "worm002.csv"
    table.write_text(table.read_text() + " ")
    with pytest.raises(EutelyError, match=r"worm002.csv.*--force"):
        run(*words)
    run(*words, "--force")


def test_a_table_of_matches_is_kept(folder: Path) -> None:
    first, second = folder / "worms" / "worm001.csv", folder / "worms" / "worm002.csv"
    (folder / "mine.csv").write_text("mine")
    run("match", first, second, "-o", folder / "mine.csv")
    run("match", first, second, "-o", folder / "mine.csv")
    assert [path.name for path in folder.glob("*.bak*")] == ["mine.csv.bak"]


def changed(path: Path) -> bytes:
    """Change a file as a person would, and return its content."""
    path.write_bytes(path.read_bytes() + b"\n")
    return path.read_bytes()


def test_label_copies_that_were_painted_are_kept(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = ("annotate", folder / "atlas.h5", folder / "volumes", "-o", folder / "out", "-j", 1)
    run(*words, "--labels")
    run(*words, "--labels")
    assert not list((folder / "out" / "labels").glob("*.bak*"))
    mine = changed(folder / "out" / "labels" / "worm002.tif")
    caplog.clear()
    run(*words, "--labels")
    assert "it is kept as worm002.tif.bak" in caplog.text
    assert (folder / "out" / "labels" / "worm002.tif.bak").read_bytes() == mine
    assert len(list((folder / "out" / "labels").glob("*.bak*"))) == 1


def test_figures_and_pages_of_a_person_are_kept(folder: Path) -> None:
    out = folder / "out"
    out.mkdir()
    (out / "report.html").write_text("<title>my report</title>")
    run("annotate", folder / "atlas.h5", folder / "worms", "-o", out, "-j", 1)
    assert (out / "report.html.bak").read_text() == "<title>my report</title>"
    run("report", out, "--figures", out / "figures")
    mine = changed(out / "figures" / "atlas.svg")
    run("report", out, "--figures", out / "figures")
    assert (out / "figures" / "atlas.svg.bak").read_bytes() == mine
    assert len(list(out.rglob("*.bak*"))) == 2


def test_tables_and_settings_in_a_run_that_were_changed_are_kept(folder: Path) -> None:
    (folder / "settings.toml").write_text("[refine]\nfolds = 2\n")
    words = ("build", folder / "worms", "-o", folder / "run", "-j", 1, "--supervised")
    words += ("--config", folder / "settings.toml")
    run(*words)
    run(*words)
    assert not list((folder / "run").glob("*.bak*"))
    mine = {name: changed(folder / "run" / name) for name in ("cliques.csv", "config.toml")}
    run(*words)
    kept = {path.name: path.read_bytes() for path in (folder / "run").glob("*.bak*")}
    assert kept == {f"{name}.bak": content for name, content in mine.items()}
    named = eutely.Atlas.load(folder / "run").named([f"MINE{cell}" for cell in range(30)])
    write_atlas(named, folder / "run" / "atlas.h5")
    run(*words)
    assert read_atlas(folder / "run" / "atlas.h5.bak").names == named.names


@pytest.mark.parametrize("words", ["subset {} * -o {}", "describe {} stage=L4 -o {}"])
def test_an_atlas_that_another_replaces_is_kept(
    folder: Path, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    atlas = read_atlas(folder / "atlas.h5")
    for other in (
        atlas.described(organism="mine"),
        subset(atlas, atlas.names[:5]),
        atlas.named([f"MINE{cell}" for cell in range(30)]),
    ):
        write_atlas(other, folder / "other.h5")
        before = (folder / "other.h5").read_bytes()
        caplog.clear()
        run("atlas", *words.format(folder / "atlas.h5", folder / "other.h5").split())
        assert "it is kept as other.h5.bak" in caplog.text
        assert before in [path.read_bytes() for path in folder.glob("other.h5.bak*")]
    with pytest.raises(EutelyError, match="is an input"):
        run("atlas", *words.format(folder / "atlas.h5", folder / "atlas.h5").split())
