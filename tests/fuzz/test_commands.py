"""Commands and hostile files: one line, exit code 2, nothing written."""

import os
import subprocess
import sys
from pathlib import Path

import h5py
import pytest

HEADER = (
    "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 9 9 9\nencoding: raw\ndata file: /etc/passwd\n\n"
)


def virtual(path: Path) -> None:
    layout = h5py.VirtualLayout((8, 8, 8), "u2")
    layout[...] = h5py.VirtualSource(".", "labels", (8, 8, 8))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("labels", layout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "header.nrrd").write_text(HEADER)
    (tmp_path / "twice.dd").write_text("p 1 1 0 0\np 1 1 0 0\n")
    (tmp_path / "short.qap").write_text("9 1\n" + "1 " * 161)
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5000 + "]" * 5000)
    virtual(tmp_path / "self.h5")
    os.mkfifo(tmp_path / "pipe.h5")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["extract", "header.nrrd", "-o", "out"],
        ["build", "self.h5", "-o", "out"],
        ["annotate", "pipe.h5", "self.h5", "-o", "out"],
        ["solve", "twice.dd", "-o", "out"],
        ["solve", "short.qap", "-o", "out"],
        ["build", "self.h5", "-o", "out", "--config", "deep.toml"],
        ["extract", "header.nrrd", "-o", "out", "--max-memory", "lots"],
    ],
)
def test_one_line_exit_2_nothing_written(folder: Path, words: list[str]) -> None:
    before = sorted(folder.rglob("*"))
    command = [sys.executable, "-c", "from eutely.cli import main; main()", *words]
    found = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert found.returncode == 2, found.stderr
    assert len(found.stderr.strip().splitlines()) == 1, found.stderr
    assert found.stderr.startswith("error: ")
    assert sorted(folder.rglob("*")) == before
