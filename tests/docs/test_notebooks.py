"""The notebooks of the documentation run from top to bottom, and show what is stored in them."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"


def run(name: str) -> dict[str, Any]:
    """Run a notebook in the current folder; return its variables.

    What is stored must be what it shows now, but for the digits of numbers and the names of cells:
    ``python docs/notebooks/run.py`` stores it again.
    """
    notebook = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    outputs, scope = runpy.run_path(str(NOTEBOOKS / "run.py"))["run"](notebook)
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert list(map(form, stored)) == list(map(form, outputs))
    assert any(stored)
    return scope


def form(outputs: list[dict[str, Any]]) -> list[Any]:
    """Return what outputs look like: printed words, columns and lengths of tables."""
    result: list[Any] = []
    for output in outputs:
        data = output.get("data", {})
        plain = "".join(output.get("text", ())) or "".join(data["text/plain"])
        words = re.sub(r"[-\d.]+", "#", plain).splitlines()
        table = len(words) > 1 and "text/html" in data
        result.append((sorted(data), words[0].split() if table else words, len(words)))
    return result


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
