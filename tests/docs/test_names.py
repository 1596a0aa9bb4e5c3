"""The documentation names only what exists: modules, files, settings, presets, public names."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import eutely
from eutely.config import PRESETS, Config
from eutely.errors import EutelyError

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
DOTTED = re.compile(r"\beutely(?:\.[a-zA-Z_]\w*)+")
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")
SETTING = re.compile(r"`([a-z]+\.[a-z_0-9]+)`")
PRESET = re.compile(r"--preset ([a-z-]+)")


def exists(name: str) -> bool:
    """Tell whether a dotted name can be imported, as a module or as part of one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = {name for name in DOTTED.findall(text) if not name.startswith("eutely.readthedocs")}
    assert [name for name in sorted(names) if not exists(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_of_the_project_exists(page: Path) -> None:
    rooms = {path.name for path in (ROOT / "src" / "eutely").iterdir() if path.is_dir()}
    own = rooms | {"src", "tests", "benchmarks", "docs"}
    missing = []
    for file in set(FILE.findall(page.read_text(encoding="utf-8"))):
        places = (ROOT / file, ROOT / "src" / "eutely" / file)
        if file.split("/")[0] in own and not any(place.exists() for place in places):
            missing.append(file)
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_setting_and_preset_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    sections = set(Config.model_fields)
    unknown = []
    for key in set(SETTING.findall(text)):
        if key.split(".")[0] in sections and key.split(".")[1] not in ("h5", "md", "py"):
            try:
                Config().value(key)
            except (AttributeError, EutelyError):
                unknown.append(key)
    assert unknown == []
    assert set(PRESET.findall(text)) <= {*PRESETS, "default"}


def test_the_api_page_lists_the_public_surface() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = [name.rsplit(".", 1)[1] for name in re.findall(r"^::: (\S+)", text, re.M)]
    assert sorted(listed) == sorted(set(eutely.__all__) - {"__version__"})
