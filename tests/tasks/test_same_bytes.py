"""One atlas, byte for byte: at any number of workers, on Dask, and after being killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import eutely
from eutely.config import Config, resolve
from killed_build import MOMENTS, SETTINGS

SCRIPT = Path(__file__).parents[1] / "killed_build.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_killed_builds_end_in_the_same_atlas(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    whole = (tmp_path / "undisturbed" / "atlas.h5").read_bytes()
    killed = [path for path in tmp_path.iterdir() if path.name.isdigit()]
    assert len(killed) == MOMENTS
    for path in killed:
        assert (path / "atlas.h5").read_bytes() == whole, path.name


LEARNED = resolve(
    preset="paper-plus",
    overrides={
        "learn.specimens": 3,
        "learn.trials_linear": 3,
        "learn.trials_sparsity": 3,
        "learn.trials_offsets": 3,
        "refine.folds": 2,
        "atlas.rounds": 1,
        "atlas.model": "offsets",
    },
)


@pytest.mark.parametrize("settings", [SETTINGS, LEARNED], ids=["default", "paper-plus"])
def test_workers_and_dask_make_no_difference(tmp_path: Path, settings: Config) -> None:
    cohort = eutely.simulate(specimens=5, cells=40, variation=0.5)
    for name, where in {
        "one": {"workers": 1},
        "two": {"workers": 2},
        "dask": {"workers": "local:2"},
    }.items():
        eutely.build(cohort, tmp_path / name, config=settings, **where)  # type: ignore[arg-type]
    one, two, dask = (
        (tmp_path / name / "atlas.h5").read_bytes() for name in ("one", "two", "dask")
    )
    assert one == two
    assert one == dask
