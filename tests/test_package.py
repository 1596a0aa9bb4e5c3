"""What is installed: a wheel in an environment of its own, and an sdist; files of the project."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eutely.cli import app

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "eutely"

EXE = ".exe" if os.name == "nt" else ""


def run(*words: str | Path, at: Path, **more: str) -> str:
    """Return what a program prints; without the paths and settings of this process."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "EUTELY", "COV"))}
    done = subprocess.run(
        [str(word) for word in words], cwd=at, env={**kept, **more}, capture_output=True, text=True,
        encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel and an sdist; return their folder."""
    pytest.importorskip("hatchling", reason="no hatchling: pip install 'eutely[test]'")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", folder,
        at=ROOT)  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == expected
    assert "eutely/atlases/celegans-l1.h5" in inside
    assert "eutely/report/assets/page.html" in inside
    assert "eutely/curate/assets/main.js" in inside
    assert "eutely/napari/napari.yaml" in inside
    assert "eutely/py.typed" in inside


def test_the_sdist_builds_the_same_wheel(built: Path, wheel: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    assert (tree / "SECURITY.md").read_bytes() == (ROOT / "SECURITY.md").read_bytes()
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "docs/index.md", "run.py",
                 "tests/test_package.py", "benchmarks/README.md"):  # fmt: skip
        assert (tree / name).is_file() or not (ROOT / name).exists(), name
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again",
        at=tree)  # fmt: skip
    (again,) = (tmp_path / "again").glob("*.whl")
    contents = [
        {name: packed.read(name) for name in packed.namelist()}
        for packed in map(zipfile.ZipFile, (wheel, again))
    ]
    assert contents[0] == contents[1]


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into an environment of its own; return the folder of its programs.

    The packages that it needs are those of this environment: no network is asked.
    """
    place = tmp_path_factory.mktemp("fresh") / "env"
    venv.create(place, with_pip=False)
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    run(sys.executable, "-m", "pip", "--python", programs / f"python{EXE}", "install", "--no-deps",
        "--no-index", "--quiet", wheel, at=place)  # fmt: skip
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(run(programs / f"python{EXE}", "-c", code, at=place).strip())
    needed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    # Paths of such a file are added, files like it in them are not read: no editable installation.
    (own / "needed.pth").write_text("\n".join(sorted(needed)) + "\n", encoding="utf-8")
    return programs


def test_the_installed_package_has_its_atlases_and_pages(fresh: Path, tmp_path: Path) -> None:
    code = """
import sys, eutely
from pathlib import Path
home = Path(eutely.__file__).resolve()
assert home.is_relative_to(Path(sys.prefix).resolve()), home
print(eutely.__version__, len(eutely.Atlas.load("celegans-l1")))
"""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert run(fresh / f"python{EXE}", "-c", code, at=tmp_path) == f"{version} 558\n"
    run(fresh / f"eutely{EXE}", "view", "celegans-l1", "--no-open", "-o", "page", at=tmp_path)
    page = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert "An atlas of 558 cells" in page
    assert run(fresh / f"eutely{EXE}", "--version", at=tmp_path) == f"eutely {version}\n"
    said = run(fresh / f"eutely{EXE}", "doctor", at=tmp_path)
    assert "celegans-l1" in said
    assert str(tmp_path.home()) not in said


def test_doctor_says_what_an_issue_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EUTELY_MAX_MEMORY", "3GB")
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    words = {line.split()[0]: line for line in result.output.splitlines()}
    assert {"eutely", "python", "system", "cores", "memory", "compiled", "packages", "extras",
            "atlases", "settings"} <= set(words)  # fmt: skip
    assert "3.0 GB" in words["memory"]
    assert "EUTELY_MAX_MEMORY=3GB" in words["settings"]
    assert "numpy 2" in words["packages"]
    assert "MISSING" not in words["packages"]
    assert len(result.output.splitlines()) < 24  # one screen


def test_doctor_names_missing_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError, version

    def without(name: str) -> str:
        if name == "uvicorn":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr("eutely.cli.show.version", without)
    said = CliRunner().invoke(app, ["doctor"]).output
    assert "curate (uvicorn): pip install 'eutely[curate]'" in said


def read_yaml(path: Path) -> Any:
    yaml = pytest.importorskip("yaml", reason="no pyyaml: pip install 'eutely[test]'")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version_and_one_date_everywhere() -> None:
    citation = read_yaml(ROOT / "CITATION.cff")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    latest = re.findall(r"^## (\d+\.\d+\.\d+) \(([\d-]+)\)$", changes, re.M)[0]
    assert latest == (citation["version"], citation["date-released"])
    assert citation["version"] == project()["version"]
    assert citation["license"] == project()["license"]
    assert citation["references"][0]["authors"][0]["family-names"] == "Karg"


def test_the_workflow_runs_on_all_systems_and_pythons() -> None:
    jobs = read_yaml(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    pythons = ["3.11", "3.12", "3.13"]
    assert jobs["linux"]["strategy"]["matrix"]["python"] == pythons
    assert jobs["elsewhere"]["strategy"]["matrix"]["python"] == pythons
    systems = jobs["elsewhere"]["strategy"]["matrix"]["system"]
    assert systems == ["macos-latest", "windows-latest"]
    assert jobs["linux"]["steps"][-1]["run"] == ".ci/run"
    assert jobs["elsewhere"]["steps"][-1]["run"] == "python run.py quick"
    classified = re.findall(r"Python :: (3\.\d+)", " ".join(project()["classifiers"]))
    assert classified == pythons


def test_the_page_on_installation_names_all_extras() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    for extra in project()["optional-dependencies"]:
        assert f"`{extra}`" in page, extra


def test_hooks_are_the_linters_of_the_tests() -> None:
    (local,) = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    hooks = [hook["entry"].split()[0] for hook in local["hooks"]]
    namespace: dict[str, Any] = {"__file__": str(ROOT / "run.py"), "__name__": "run"}
    exec((ROOT / "run.py").read_text(encoding="utf-8"), namespace)
    assert hooks == [command[0] for command in namespace["TEST"][:-1]]
    for name in namespace["QUICK"][0][3:]:
        assert (ROOT / name).exists(), name


def test_issues_ask_for_the_version_and_the_log() -> None:
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    problem = read_yaml(folder / "problem.yml")
    asked = {part["id"]: part for part in problem["body"] if "id" in part}
    assert asked["doctor"]["validations"]["required"]
    assert "eutely --version" in asked["doctor"]["attributes"]["description"]
    assert asked["log"]["validations"]["required"]
    assert {"name", "description", "body"} <= set(read_yaml(folder / "wish.yml"))
