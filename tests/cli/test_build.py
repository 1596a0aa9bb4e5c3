"""``eutely build``, ``name``, ``annotate``, ``evaluate`` and ``demo``, and bad input."""

from __future__ import annotations

import csv
import json
import shutil
from importlib import import_module
from pathlib import Path

import h5py
import pytest
from typer.testing import CliRunner

import eutely
from eutely.cli import app
from eutely.errors import EutelyError
from eutely.io.atlas import read_atlas

SETTINGS = "[refine]\nlinear_rounds = 2\njoint_rounds = 1\nfolds = 2\n"


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("commands")
    common = ("--cells", 60, "--variation", 0.5)
    run("simulate", "-o", place / "train", "--specimens", 5, *common)
    run("simulate", "-o", place / "new", "--specimens", 2, "--seed", 7, *common)
    (place / "settings.toml").write_text(SETTINGS)
    run(
        "build", place / "train", "-o", place / "run", "--config", place / "settings.toml",
        "--workers", 1,
    )  # fmt: skip
    run("name", place / "run", place / "train", "-o", place / "named.h5", "--workers", 1)
    return place


def test_the_version_is_printed() -> None:
    assert run("--version") == f"eutely {eutely.__version__}\n"


def test_help_names_all_presets() -> None:
    for command in ("build", "config"):
        words = " ".join(run(command, "--help").replace("│", " ").split())
        assert "default, paper or paper-plus" in words


def test_the_page_shows_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["eutely", "build", str(folder / "train"), "-o", str(folder / "run"), "--workers", "1"]
    monkeypatch.setattr("sys.argv", words)
    run(*words[1:], "--config", folder / "settings.toml")
    page = (folder / "run" / "report.html").read_text(encoding="utf-8")
    assert " ".join(words) in page
    assert 'id="learning"' not in page  # nothing was learned
    assert "<summary>Parameters</summary>" in page


def test_an_atlas_file_is_named_in_place(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "atlas.h5"
    copy.write_bytes((folder / "run" / "atlas.h5").read_bytes())
    assert "60 of 60 cells named" in run("name", copy, folder / "train", "--workers", 1)
    assert copy.read_bytes() == (folder / "named.h5").read_bytes()


def test_the_atlas_of_a_run_is_named_in_place(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder / "run", tmp_path / "run")
    (copy / "report.html").write_text("as it was", encoding="utf-8")
    said = run("name", copy, folder / "train", "--workers", 1)
    assert str(copy / "atlas.h5") in said
    page = (copy / "report.html").read_text(encoding="utf-8")
    assert "No cell has a name yet" not in page
    assert "60 named" in page
    assert (copy / "atlas.h5").read_bytes() == (folder / "named.h5").read_bytes()
    assert not any(read_atlas(folder / "run" / "atlas.h5").names)


def test_a_built_in_atlas_is_not_named_in_place(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Refused before any work: the input, which does not exist, is not even opened.
    with pytest.raises(EutelyError, match=r"celegans-l1 is a built-in atlas.*give -o"):
        run("name", "celegans-l1", tmp_path / "none.csv")
    with pytest.raises(EutelyError, match="is a folder"):
        run("name", "celegans-l1", tmp_path / "none.csv", "-o", tmp_path)
    assert not list(tmp_path.iterdir())


def test_one_row_per_nucleus(folder: Path, tmp_path: Path) -> None:
    said = run("annotate", folder / "named.h5", folder / "new", "-o", tmp_path / "out")
    assert "report.html" in said
    assert "2 specimens annotated" in (tmp_path / "out" / "report.html").read_text()
    for name in ("worm001", "worm002"):
        with (folder / "new" / f"{name}.csv").open() as file:
            truth = {row["id"]: row["name"] for row in csv.DictReader(file)}
        with (tmp_path / "out" / f"{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [row["id"] for row in rows] == list(truth)
        correct = sum(row["name"] == truth[row["id"]] for row in rows)
        assert correct > 0.85 * len(rows)
        assert all(0 <= float(row["confidence"]) <= 1 for row in rows if row["cell"])
    with (tmp_path / "out" / "look-here-first.csv").open() as file:
        doubtful = list(csv.DictReader(file))
    assert {row["specimen"] for row in doubtful} == {"worm001", "worm002"}


def test_another_organism_is_reported(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run("annotate", "celegans-l1", folder / "new" / "worm001.csv", "-o", tmp_path, "-q")
    assert "worm001 could not be placed" in caplog.text


def test_the_handedness_that_the_user_gives_is_taken(folder: Path, tmp_path: Path) -> None:
    worm = folder / "new" / "worm001.csv"
    said = run(
        "annotate", folder / "named.h5", worm, "-o", tmp_path, "--handedness", "mirrored", "-j", 1
    )
    assert "worm001: mirrored" in said
    with (tmp_path / "worm001.csv").open() as file:
        assert {row["mirrored"] for row in csv.DictReader(file)} == {"1"}
    with (tmp_path / "annotations.csv").open() as file:
        header = next(csv.reader(file))
    assert header[:5] == ["specimen", "id", "cell", "name", "confidence"]
    assert header[-2:] == ["mirrored", "view"]


def test_uncertain_nuclei_stay_empty_on_request(folder: Path, tmp_path: Path) -> None:
    run(
        "annotate", folder / "named.h5", folder / "new" / "worm001.csv", "-o", tmp_path,
        "--min-confidence", 0.999,
    )  # fmt: skip
    with (tmp_path / "worm001.csv").open() as file:
        rows = list(csv.DictReader(file))
    empty = [row for row in rows if not row["cell"]]
    assert empty
    assert all(float(row["confidence"]) >= 0.999 for row in rows if row["cell"])
    assert any(row["alternatives"] for row in empty)


def test_accuracy_as_json(folder: Path, tmp_path: Path) -> None:
    said = run("evaluate", folder / "named.h5", folder / "new", "--json", tmp_path / "a.json")
    stored = json.loads((tmp_path / "a.json").read_text())
    assert set(stored["accuracy"]) == {"mean", "std", "median", "n"}
    assert stored["accuracy"]["n"] == 2
    assert f"mean {stored['accuracy']['mean']:.4f}" in said
    assert {row["specimen"] for row in stored["specimens"]} == {"worm001", "worm002"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["build", "{0}/new/worm001.csv", "-o", "{1}/run"], "at least 2"),
        (["build", "{0}/none", "-o", "{1}/run"], "does not exist"),
        (["build", "{0}/new", "-o", "{0}/new"], "not a run folder"),
        (["build", "{0}/new", "-o", "{1}/run", "--preset", "best"], "expected one of"),
        (["build", "{0}/new", "-o", "{1}/run", "--dask", "nowhere"], "Dask"),
        (["build", "{0}/new", "-o", "{1}/run", "--trials", "5"], "--preset paper"),
        (["build", "{0}/new", "-o", "{1}/run", "--workers", "1", "--dask", "local:1"], "only one"),
        (["build", "{0}/new", "-o", "{1}/run", "--features", "hue"], "there are: radius"),
        (["name", "{0}/none.h5", "{0}/new"], "no such file"),
        (["name", "{0}/new/worm001.csv", "{0}/new"], "not an atlas"),
        (["annotate", "{0}/named.h5", "{0}/new", "-o", "{0}/named.h5"], "is a file"),
        (["evaluate", "{0}/run/atlas.h5", "{0}/new"], "eutely name"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    with pytest.raises(EutelyError, match=message) as caught:
        run(*(word.format(folder, tmp_path) for word in words))
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_atlas_of_a_newer_schema(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "newer.h5"
    copy.write_bytes((folder / "named.h5").read_bytes())
    with h5py.File(copy, "r+") as file:
        file.attrs["schema"] = 99
    with pytest.raises(EutelyError, match="update eutely"):
        run("evaluate", copy, folder / "new")


def test_the_demo_runs_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for constant, value in {"TRAIN": 4, "NAMED": 2, "NEW": 1, "CELLS": 40}.items():
        monkeypatch.setattr(import_module("eutely.cli.build"), constant, value)
    said = run("demo", "-o", tmp_path / "demo", "--workers", 1)
    assert "of the nuclei of the new specimens get their true name" in said
    for page in ("run", "annotated"):
        assert (tmp_path / "demo" / page / "report.html").exists()
    assert len(eutely.read(tmp_path / "demo" / "cohort")) == 4
    (table,) = set((tmp_path / "demo" / "annotated").glob("worm*.csv"))
    assert len(table.read_text().splitlines()) == 41


def test_wrong_pins_and_features_are_said_before_any_work(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pins.csv").write_text("specimen,id,name\nworm001,99999,AVAL\n")
    build = ("build", folder / "train", "-o", tmp_path / "run", "-j", 1)
    annotate = ("annotate", folder / "named.h5", folder / "new", "-o", tmp_path / "out", "-j", 1)
    pins = ("--pins", tmp_path / "pins.csv")
    for words, message in (
        ((*build, *pins), "pins: worm001 has no nucleus with id 99999; correct the table"),
        ((*annotate, *pins), "pins: worm001 has no nucleus with id 99999; correct the table"),
        ((*build, "--features", "colour"), "no specimen has the feature 'colour'; there are: "),
    ):
        with pytest.raises(EutelyError, match=message):
            run(*words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pins.csv"]
