"""The notebooks of the documentation run from top to bottom, and show what they promise."""

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"


def run(name: str) -> dict[str, Any]:
    """Run the code cells of a notebook in the current folder; return its variables."""
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    scope: dict[str, Any] = {"__name__": name}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []  # results of an older version would stay
            exec(compile("".join(cell["source"]), f"{name}.ipynb", "exec"), scope)
    return scope


def test_worms_from_volumes_to_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scope = run("worms")
    assert scope["accuracy"] > 0.9
    first = scope["table"].sort_values("p").iloc[0]
    assert first["name"] == scope["moved"]
    assert first["test"].startswith("place")


def test_heads_with_colours() -> None:
    scope = run("heads")
    assert scope["annotation"].mirrored
    assert scope["accuracy"] > 0.9
