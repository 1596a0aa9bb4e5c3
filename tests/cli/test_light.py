"""Help, and errors about input, come before libraries that take a second to import."""

import json
import subprocess
import sys

import pytest

SLOW = {"numba", "scipy", "pandas", "optuna", "pyarrow", "zarr", "jinja2", "distributed"}

PROGRAM = """
import json, sys
from eutely.cli import main
sys.argv = ["eutely", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    code = end.code
print(json.dumps([code, sorted(sys.modules)]))
"""


def run(*arguments: str) -> tuple[int, set[str]]:
    """Run a command in a process of its own; return its exit code and the modules it imported."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stdout.splitlines()[-1])
    return code, set(modules)


def test_help_imports_neither_numpy_nor_anything_slow():
    code, modules = run("--help")
    assert code == 0
    assert not modules & (SLOW | {"numpy", "h5py"})


@pytest.mark.parametrize(
    "arguments",
    [
        ("annotate", "celegans-l1", "bad.csv", "-o", "out"),
        ("build", "bad.csv", "-o", "out"),
        ("match", "bad.csv", "nothing.csv"),
        ("solve", "nothing.dd"),
        ("compare", "bad.csv", "nothing.csv", "--atlas", "celegans-l1", "-o", "out"),
        ("evaluate", "celegans-l1", "bad.csv"),
        ("solve", "bad.csv"),
        ("solve", "bad.qap"),
        ("report", "nothing"),
        ("view", "nothing"),
        ("transfer", "bad.csv", "nothing.csv", "-o", "out.csv"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_errors_about_input_import_nothing_slow(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("id,x,y\n1,2,3\n")
    (tmp_path / "bad.qap").write_text("2 7\n0 1 1 0\n0 1 1\n")
    code, modules = run(*arguments)
    assert code == 2
    assert not modules & (SLOW | {"h5py", "rich.progress"})
    others = {"annotate", "build", "compare", "curate", "extract", "naming", "show", "simulate"}
    assert "eutely.config.model" not in modules
    assert len({f"eutely.cli.{name}" for name in others} & modules) <= 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("annotate", "celegans-l1", "nothing.csv", "-o", "out"),
        ("build", "nothing", "-o", "out"),
        ("check", "nothing.csv"),
        ("match", "nothing.csv", "other.csv"),
        ("solve", "nothing.dd"),
        ("compare", "nothing", "other", "--atlas", "celegans-l1", "-o", "out"),
        ("evaluate", "celegans-l1", "nothing.csv"),
        ("extract", "nothing.tif", "-o", "out"),
        ("curate", "celegans-l1", "nothing.csv", "-o", "out"),
        ("transfer", "nothing.tif", "other.tif", "-o", "out.csv"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_missing_file_is_reported_before_numpy_is_imported(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, modules = run(*arguments)
    assert code == 2
    assert not modules & (SLOW | {"h5py", "numpy"})


def test_the_package_itself_imports_nothing():
    program = "import eutely, json, sys; print(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not set(json.loads(done.stdout)) & (SLOW | {"numpy", "rich", "typer", "pydantic"})
