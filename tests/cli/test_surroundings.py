"""Poor surroundings: other encodings, folders that cannot be written, a package without a home."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import eutely
from eutely.specimen import Specimen
from without_rights import closed
from without_rights import eutely as limited

pytestmark = pytest.mark.skipif(os.name != "posix", reason="names and permissions of POSIX")

SETTINGS = "[refine]\nlinear_rounds = 1\njoint_rounds = 1\nfolds = 2\ntargets = 1\n"
LOCALES = {
    "latin": {"LC_ALL": "en_US.ISO-8859-1", "PYTHONIOENCODING": "iso-8859-1"},
    "ascii": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``worms.csv``, a cohort of four with the specimen 虫1; ``run``, its build; ``one.csv``."""
    folder = tmp_path_factory.mktemp("surroundings")
    cohort = eutely.simulate(4, 40, seed=1, variation=0.5)
    with (folder / "worms.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["specimen", "id", "x", "y", "z"])
        for name, one in zip(["虫1", "Ünï", "c", "d"], cohort, strict=True):
            writer.writerows([name, *row] for row in rows(one))
    (folder / "settings.toml").write_text(SETTINGS)
    write(folder / "one.csv", cohort[0])
    return folder


def rows(specimen: Specimen) -> list[list[object]]:
    pairs = zip(specimen.ids.tolist(), specimen.centroids.tolist(), strict=True)
    return [[id_, *point] for id_, point in pairs]


def write(path: Path | bytes, specimen: Specimen) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["id", "x", "y", "z"], *rows(specimen)])


def run(place: Path, locale: str, *words: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", "from eutely.cli import main; main()", *map(str, words)],
        env={**os.environ, "PYTHONUTF8": "0", **LOCALES[locale]},
        cwd=place,
        capture_output=True,
        check=False,
    )


def test_a_whole_build_in_another_encoding(place: Path, tmp_path: Path) -> None:
    locale = "latin"
    words = ("worms.csv", "-o", tmp_path / "run", "--config", "settings.toml", "-j", 1)
    done = run(place, locale, "build", *words)
    assert done.returncode == 0, done.stderr.decode("latin-1")
    table = (tmp_path / "run" / "cliques.csv").read_text(encoding="utf-8")
    assert {line.split(",")[0] for line in table.splitlines()[1:]} == {"虫1", "Ünï", "c", "d"}
    assert "虫1" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    shown = run(place, locale, "check", "worms.csv")
    assert shown.returncode == 0, shown.stderr
    assert rb"\u866b1" in shown.stdout
    done = run(place, locale, "annotate", tmp_path / "run", "worms.csv", "-o", tmp_path / "out")
    # A table is called after its specimen, if the locale lets it.
    error = done.stderr.decode("latin-1")
    assert (done.returncode, (tmp_path / "out").exists()) in [(0, True), (2, False)]
    assert "Traceback" not in error
    if done.returncode:
        assert error.splitlines()[-1].startswith("error: ")
        assert error.endswith("set one of UTF-8, such as LC_ALL=C.UTF-8\n")


def test_a_file_name_that_is_no_text(place: Path, tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path / "in")
    os.mkdir(folder)
    cohort = eutely.simulate(3, 40, seed=2, variation=0.5)
    for name, one in zip((b"a\xff.csv", b"b.csv", b"c.csv"), cohort, strict=True):
        write(folder + b"/" + name, one)
    words = ("in", "-o", "run", "--config", place / "settings.toml", "-j", 1)
    done = run(tmp_path, "ascii", "build", *words)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert b"a name is not text" in line
    assert not (tmp_path / "run").exists()
    done = run(tmp_path, "ascii", "build", *words, "--skip-bad")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "run" / "cliques.csv").read_text().splitlines()) > 80


@pytest.fixture(scope="module")
def built(place: Path) -> Path:
    words = ("worms.csv", "-o", "built", "--config", "settings.toml", "-j", 1)
    done = limited("build", *words, cwd=place)
    assert done.returncode == 0, done.stderr
    return place / "built"


def test_folders_that_cannot_be_written(place: Path, built: Path, tmp_path: Path) -> None:
    locked = shutil.copytree(built, tmp_path / "locked")
    before = {path: path.read_bytes() for path in locked.rglob("*") if path.is_file()}
    closed(locked)
    shown = limited("view", locked, "--no-open", cwd=place)
    assert shown.returncode == 0, shown.stderr
    page = Path(shown.stdout.strip())
    assert page.parent != locked
    assert "虫1" in page.read_text(encoding="utf-8")
    assert shown.stderr.startswith(f"warning: {locked} cannot be written")
    shutil.rmtree(page.parent)
    one = place / "one.csv"
    for words in (
        ("report", locked),
        ("build", "worms.csv", "-o", locked, "--config", "settings.toml"),
        ("annotate", locked, one, "-o", locked / "annotated"),
        ("extract", one, "-o", locked / "tables"),
        ("simulate", "-o", locked / "worms", "--specimens", 2, "--cells", 20),
    ):
        done = limited(*words, cwd=place)
        assert done.returncode == 2, (words, done.stderr)
        assert done.stderr.splitlines()[-1].startswith("error: "), words
        assert "Traceback" not in done.stderr
    assert before == {path: path.read_bytes() for path in locked.rglob("*") if path.is_file()}


def test_annotations_may_lie_in_the_run_folder(place: Path, built: Path) -> None:
    done = limited("annotate", built, place / "one.csv", "-o", built / "annotated", cwd=place)
    assert done.returncode == 0, done.stderr
    assert (built / "annotated" / "one.csv").exists()


def test_a_package_and_a_home_that_cannot_be_written(place: Path, tmp_path: Path) -> None:
    source = Path(eutely.__file__).parent
    package = tmp_path / "site" / "eutely"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__", "napari"))
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    closed(tmp_path / "site")
    closed(home)
    code = (
        "import eutely, eutely.kernel as k; from eutely.solver.lap_dense import lap_dense\n"
        "import numpy as np; lap_dense(np.eye(3)); print(eutely.__file__, k.CACHE)"
    )
    for given in (None, cache):
        env = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "HOME": str(home)}
        env.pop("NUMBA_CACHE_DIR", None)  # of whoever runs the tests
        env |= {"TMPDIR": str(tmp_path)} | ({"NUMBA_CACHE_DIR": str(given)} if given else {})
        env.pop("XDG_CACHE_HOME", None)
        done = limited(env=env, cwd=tmp_path, code=code)
        assert done.returncode == 0, done.stderr
        where, kept = done.stdout.split()
        assert Path(where).is_relative_to(package)
        assert Path(kept).is_relative_to(given or tmp_path / f"eutely-{os.getuid()}")
        assert list(Path(kept).rglob("*.nbi"))
