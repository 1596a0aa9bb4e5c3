"""The option --image of commands: columns of channels, one line where it does not fit."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tifffile
from typer.testing import CliRunner

from eutely.cli import app
from eutely.io.volumes import write_volume


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("option")
    random = np.random.default_rng(0)
    for name in ("a", "b"):
        labels = np.zeros((12, 20, 30), np.uint8)
        for number in range(6):
            labels[2 * number : 2 * number + 2, 5:8, 4 * number : 4 * number + 3] = number + 1
        image = random.integers(0, 99, (2, *labels.shape)).astype(np.uint16)
        (place / "labels").mkdir(exist_ok=True)
        (place / "raw").mkdir(exist_ok=True)
        write_volume(labels, place / "labels" / f"{name}.ome.zarr", 1)
        metadata = {"axes": "CZYX", "Channel": {"Name": ["GFP", "far red"]}}
        tifffile.imwrite(
            place / "raw" / f"{name}.ome.tif", image, metadata=metadata, photometric="minisblack"
        )
    return place


def test_extract_writes_a_column_for_each_statistic(folder: Path, tmp_path: Path) -> None:
    done = run("extract", folder / "labels", "-o", tmp_path / "t", "--image", folder / "raw")
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "t" / "b.csv")
    keys = [f"{c}_{k}" for c in ("GFP", "far_red") for k in ("mean", "median", "total", "sd")]
    assert [key for key in table if key in keys] == keys
    image = tifffile.imread(folder / "raw" / "b.ome.tif")
    assert table["GFP_mean"][1] == pytest.approx(image[0, 2:4, 5:8, 4:7].mean())
    words = ("--channels", "g,-", "--background")
    done = run(
        "extract", folder / "labels", "-o", tmp_path / "u", "--image", folder / "raw", *words
    )
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "u" / "a.csv")
    assert {"g_mean", "g_background"} <= set(table)
    assert not [key for key in table if key.startswith("far")]


@pytest.mark.parametrize(
    "command", ["check", "evaluate", "match", "name", "view", "build", "compare"]
)
def test_other_commands_that_read_volumes_have_it(command: str) -> None:
    assert "--image" in run(command, "--help").output.replace("\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--image", "raw/a.ome.tif"], "one image for 2 specimens"),
        (["--image", "nowhere"], "does not exist"),
        (["--channels", "a,b"], "--channels needs --image"),
        (["--background"], "--background needs --image"),
        (["--image", "raw", "--channels", "a"], "1 names (a) for the 2 channels"),
    ],
)
def test_what_does_not_fit_is_one_line_and_nothing_is_written(
    folder: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    out = tmp_path / "out"
    inputs = "labels" if "2 channels" not in said else "labels/a.ome.zarr"
    done = subprocess.run(
        [sys.executable, "-c", "from eutely.cli import main; main()", "extract", inputs, "-o", out]
        + words,
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not out.exists()
