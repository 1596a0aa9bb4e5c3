"""``eutely view`` and ``eutely report``: of a run, an atlas, specimens beside it; and bad input."""

import webbrowser
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from eutely.cli import app
from eutely.errors import EutelyError
from eutely.io.atlas import write_atlas
from eutely.io.tables import write_table
from eutely.record import pack
from eutely.specimen import Specimen
from eutely.store.files import write_record
from eutely.tasks.outputs import REPORT, write_page
from toy_reports import toy_report


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files from which a page is rendered; the cells have no names yet."""
    atlas, report = toy_report(4, 20)
    atlas = atlas.named([""] * 20)
    report = replace(report, command="eutely build x")
    write_atlas(atlas, tmp_path / "run" / "atlas.h5")
    write_record(tmp_path / "run" / REPORT, pack(report))
    write_page(tmp_path / "run", atlas, report)
    return tmp_path


def test_names_given_later_are_in_the_page_rendered_again(folder: Path) -> None:
    page = folder / "run" / "report.html"
    # At first, cells go by the majority of the true names of the specimens.
    atlas, _ = toy_report(4, 20)
    renamed = atlas.named([f"new {name}" for name in atlas.names])
    name = atlas.names[3]
    assert f"new {name}" not in page.read_text()
    write_atlas(renamed, folder / "run" / "atlas.h5")
    assert str(page) in run("report", folder / "run")
    assert f"new {name}" in page.read_text()


def test_figures_are_written_beside(folder: Path) -> None:
    run("report", folder / "run", "--figures", folder / "figures")
    names = {path.name for path in (folder / "figures").iterdir()}
    assert {"atlas.svg", "atlas.pdf", "consistency.svg", "accuracy.pdf"} <= names


def test_the_page_of_a_run_is_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    run("view", folder / "run")
    assert opened == [(folder / "run" / "report.html").as_uri()]


def test_an_atlas_alone_gets_a_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: pytest.fail("opened"))
    said = run("view", folder / "run" / "atlas.h5", "-o", folder / "page", "--no-open")
    assert str(folder / "page" / "report.html") in said
    assert "An atlas of 20 cells" in (folder / "page" / "report.html").read_text()


def test_the_page_of_annotations_is_opened_unchanged(folder: Path) -> None:
    (folder / "annotated").mkdir()
    (folder / "annotated" / "report.html").write_text("as it was")
    run("view", folder / "annotated", "--no-open")
    assert (folder / "annotated" / "report.html").read_text() == "as it was"


def test_specimens_stand_beside_the_atlas(folder: Path) -> None:
    atlas, report = toy_report(4, 20)
    write_atlas(atlas, folder / "named.h5")
    worms = [
        Specimen(
            shown.name,
            shown.ids,
            shown.positions,
            np.full((20, 3), 2.0),
            names=shown.names,
            unit="um",
        )
        for shown in report.specimens[:2]
    ]
    write_table(worms, folder / "new.csv")
    run("view", folder / "named.h5", folder / "new.csv", "-o", folder / "page", "--no-open")
    page = (folder / "page" / "report.html").read_text()
    assert "2 specimens annotated" in page
    assert "named right" in page


@pytest.mark.parametrize("what", ["nothing", "empty"])
def test_other_paths_are_refused(tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()
    for command in ("view", "report"):
        with pytest.raises(EutelyError, match=what):
            run(command, tmp_path / what)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]
