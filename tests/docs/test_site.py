"""The documentation builds, and a warning (a broken link, an unknown name) is an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("material", reason="no mkdocs-material: pip install 'eutely[docs]'")

ROOT = Path(__file__).parents[2]


def test_every_page_is_in_the_contents() -> None:
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("nav:")[1]
    contents = contents.split("markdown_extensions:")[0]
    for page in sorted((ROOT / "docs").glob("*.md")):
        assert f": {page.name}\n" in contents, page.name
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        assert f": notebooks/{notebook.stem}.md\n" in contents, notebook.name


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    method = (tmp_path / "method" / "index.html").read_text(encoding="utf-8")
    assert method.count('display="block"') >= 5  # equations
    assert "$$" not in method
    assert "specimens" in (tmp_path / "api" / "index.html").read_text(encoding="utf-8")
    for name, words in {"worms": "nuclei have their own name", "heads": "by places alone"}.items():
        notebook = (tmp_path / "notebooks" / name / "index.html").read_text(encoding="utf-8")
        assert words in notebook
        assert "<iframe" in notebook  # the atlas in 3D, as it is stored
        assert "<table" in notebook
        assert "<!--output" not in notebook
        assert (tmp_path / "notebooks" / f"{name}.ipynb").exists()
    elsewhere = ('src="http', 'rel="stylesheet" href="http')
    assert not any(mark in method for mark in elsewhere)
