import json
import sys

import numpy as np
import pytest

import eutely
from eutely.cli import main
from eutely.simulation import body_plan


def run(monkeypatch, *words):
    """Run the command line; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["eutely", *map(str, words)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


@pytest.fixture
def simulate(monkeypatch, tmp_path):
    """Return a call of ``eutely simulate`` with three small specimens by default."""

    def call(*words, folder="cohort"):
        small = ["--specimens", 3, "--cells", 24]
        return run(monkeypatch, "simulate", "-o", tmp_path / folder, *small, *words)

    return call


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_tables_hold_exactly_what_the_function_returns(simulate, tmp_path, ending, capsys):
    assert simulate("--format", ending, "--seed", 5, "--missing", 0.1, "--spurious", 0.2) == 0
    assert "next: eutely check" in capsys.readouterr().out
    assert eutely.read(tmp_path / "cohort") == eutely.simulate(
        3, 24, seed=5, missing=0.1, spurious=0.2
    )
    record = json.loads((tmp_path / "cohort" / "simulation.json").read_text())
    assert record["parameters"]["missing"] == 0.1


@pytest.mark.parametrize("ending", ["tif", "zarr", "h5", "nrrd"])
def test_volumes_and_their_truth(simulate, tmp_path, ending):
    size = ("--voxel-size", "1,1,1.5", "--variation", 0.3)
    assert simulate("--format", ending, "--spacing", 26, *size) == 0
    cohort = eutely.read(tmp_path / "cohort")
    truth = eutely.read(tmp_path / "cohort" / "truth")
    assert [specimen.name for specimen in cohort] == [specimen.name for specimen in truth]
    for seen, true in zip(cohort, truth, strict=True):
        assert seen.names is None
        assert set(true.names) == set(body_plan(24).names)
        assert seen.ids.tolist() == sorted(true.ids)
        rows = np.argsort(true.ids)
        off = np.linalg.norm(seen.centroids - true.centroids[rows], axis=1)
        assert np.median(off) < 0.2
        assert np.median(np.abs(seen.radii / true.radii[rows] - 1)) < 0.05


def test_without_names_the_truth_lies_aside(simulate, tmp_path):
    assert simulate("--no-names") == 0
    cohort, truth = (eutely.read(tmp_path / part) for part in ("cohort", "cohort/truth"))
    assert cohort == [specimen.without_names() for specimen in truth]
    assert truth == eutely.simulate(3, 24)


def test_an_earlier_simulation_is_replaced_and_nothing_else(simulate, tmp_path, capsys):
    assert simulate("--specimens", 5) == 0
    assert simulate("--format", "tsv") == 0
    names = sorted(path.name for path in (tmp_path / "cohort").iterdir())
    assert names == ["simulation.json", "worm001.tsv", "worm002.tsv", "worm003.tsv"]

    (tmp_path / "cohort" / "notes.md").write_text("mine")
    assert simulate() == 2
    assert "notes.md" in capsys.readouterr().err
    assert (tmp_path / "cohort" / "notes.md").read_text() == "mine"
    assert simulate("--force") == 0
    assert not (tmp_path / "cohort" / "notes.md").exists()


def test_nothing_stays_of_a_failure(simulate, tmp_path, capsys):
    assert simulate("--format", "tif", "--voxel-size", "0.0001") == 2
    assert "too large to draw" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--cells", 3], "3 cells"),
        (["--specimens", 0], "0 specimens"),
        (["--missing", -1], "missing is -1"),
        (["--format", "tif", "--voxel-size", "1,2"], "voxel size 1,2"),
        (["--format", "tif", "--voxel-size", "fine"], "voxel size fine"),
        (["--format", "tif", "--voxel-size", "0"], "voxel size"),
    ],
)
def test_bad_usage_is_one_line_and_two(simulate, tmp_path, words, expected, capsys):
    assert simulate(*words) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_output_must_be_a_folder_and_not_the_one_we_are_in(simulate, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    assert simulate(folder="file") == 2
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert simulate(folder="here") == 2
