"""The lowest versions that pyproject.toml allows: installed once, and a quick suite run with them.

Makes a virtual environment, installs the package with all extras of the tests at the lowest
versions of its direct dependencies (``uv pip install --resolution lowest-direct``), and runs tests
of readers, writers, settings, curation, plots, a build and an annotation. Needs Python 3.11.

Run: python benchmarks/safety/lowest.py [--keep DIR]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "lowest.json"

EXTRAS = "test,dask,images"
"""Extras that are installed; ``test`` contains most others."""

SUITE = (
    "tests/io", "tests/store", "tests/config", "tests/fuzz/test_files.py", "tests/test_surface.py",
    "tests/test_execute.py", "tests/tasks/test_annotate.py", "tests/tasks/test_build.py",
    "tests/curate/test_server.py", "tests/curate/test_session.py", "tests/plots",
    "tests/report/test_page.py", "tests/cli/test_other_formats.py", "tests/cli/test_contract.py",
    "tests/find/learn", "tests/pose/test_straighten.py",
)  # fmt: skip
"""Tests that are run: all that calls a library which pyproject.toml bounds."""


def run(*words: str) -> str:
    """Run a command; return what it prints, or end with it."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def direct() -> list[str]:
    """Return the names of all direct dependencies that are installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    left, seen, names = EXTRAS.split(","), set[str](), list(project["dependencies"])
    while left:
        extra = left.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for word in extras[extra]:
            own = re.match(r"eutely\[(.*)\]", word)
            left += own[1].split(",") if own else []
            names += [] if own else [word]
    return sorted({re.split(r"[\[<>=; ]", name)[0].lower() for name in names})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="folder of the environment; else a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = options.keep or Path(temporary)
        if not (place / "bin" / "python").exists():
            run(sys.executable, "-m", "venv", str(place))
            python = str(place / "bin" / "python")
            run(python, "-m", "pip", "install", "--quiet", "uv")
            uv = (python, "-m", "uv", "pip", "install", "--quiet", "--python", python)
            run(*uv, "--resolution", "lowest-direct", "--editable", f".[{EXTRAS}]")
        python = str(place / "bin" / "python")
        listed = json.loads(run(python, "-m", "uv", "pip", "list", "--format", "json"))
        versions = {entry["name"].lower(): entry["version"] for entry in listed}
        # Old libraries warn of newer Pythons and of each other, which is no fault of ours.
        words = [python, "-m", "pytest", "-q", "-n", "0", "-o", "filterwarnings=default", *SUITE]
        done = subprocess.run(
            words, cwd=ROOT, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
    lines = done.stdout.splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    print("\n".join([*failed, lines[-1] if lines else done.stderr]))
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": ".".join(map(str, sys.version_info[:2])),
        "passed": int((re.search(r"(\d+) passed", lines[-1]) or [0, 0])[1]),
        "failed": len(failed),
        "versions": {name: versions[name] for name in direct() if name in versions},
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
