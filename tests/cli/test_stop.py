"""Ctrl-C in every command that works for long: one line, exit code 130, nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import eutely
from eutely.io.tables import write_table

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no SIGINT on Windows")

STOPPED = """
import os, signal
from importlib import import_module
from eutely.cli import main
module = import_module("{module}")
assert callable(module.{function})
module.{function} = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)
main()
"""
"""A program in which a function presses Ctrl-C."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("stop")
    cohort = eutely.simulate(4, cells=30, variation=0.3)
    for specimen in cohort:
        write_table(specimen, place / "worms" / f"{specimen.name}.csv")
        write_table(specimen, place / "others" / f"{specimen.name}.csv")
    built = eutely.build(cohort, supervised=True, workers=1)
    built.atlas.save(place / "atlas.h5")
    return place


def stopped(folder: Path, words: str, module: str, function: str) -> str:
    """Run a command until a function is called; return what it prints before it ends with 130."""
    program = STOPPED.format(module=module, function=function)
    result = subprocess.run(
        [sys.executable, "-c", program, *words.split()],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 130, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    return result.stderr


@pytest.mark.parametrize(
    "words",
    [
        "build worms -o new",
        "annotate atlas.h5 worms -o new",
        "extract worms -o new",
        "name atlas.h5 worms -o new.h5",
        "compare worms others --atlas atlas.h5 -o new",
        "curate atlas.h5 worms -o new --no-browser",
    ],
)
def test_while_reading_nothing_is_written(folder: Path, words: str) -> None:
    before = sorted(folder.rglob("*"))
    said = stopped(folder, words, "eutely.io.read", "survey")
    assert said == "stopped; nothing was written; the same command begins again\n"
    assert sorted(folder.rglob("*")) == before


def test_what_is_complete_is_said(folder: Path) -> None:
    pytest.importorskip("anndata")
    words = "annotate atlas.h5 worms -o out -j 1 -q --h5ad all.h5ad"
    said = stopped(folder, words, "eutely.io.h5ad", "write_h5ad")
    assert said.splitlines()[-1] == (
        "stopped; the tables in out are complete; the same command writes the rest"
    )
    assert (folder / "out" / "annotations.csv").exists()
    assert (folder / "out" / "report.html").exists()
    assert not (folder / "all.h5ad").exists()
