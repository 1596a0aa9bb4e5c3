"""What ``annotate``, ``evaluate`` and ``report`` leave and print, as people use it next."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tifffile
from typer.testing import CliRunner

import eutely
from eutely.cli import app
from eutely.config import resolve
from eutely.errors import EutelyError
from eutely.io.atlas import write_atlas


def run(*words: object) -> str:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two animals of 30 cells as tables and as label volumes; atlases with all, some, no names."""
    place = tmp_path_factory.mktemp("outputs")
    cohort = eutely.simulate(specimens=4, cells=30, variation=0.3)
    settings = resolve(overrides={"refine.folds": 2})
    atlas = eutely.build(cohort, config=settings, supervised=True, workers=1).atlas
    write_atlas(atlas, place / "named.h5")
    write_atlas(atlas.named([*atlas.names[:20], *[""] * 10]), place / "some.h5")
    write_atlas(atlas.named([""] * 30), place / "none.h5")
    common = ("--specimens", 2, "--cells", 30, "--variation", 0.3, "--seed", 5)
    run("simulate", "-o", place / "worms", *common)
    volumes = ("--format", "tif", "--voxel-size", "1,1,2")
    run("simulate", "-o", place / "volumes", *common, *volumes)
    return place


@pytest.fixture(scope="module")
def annotated(folder: Path) -> Path:
    out = folder / "out"
    run("annotate", folder / "named.h5", folder / "volumes", "-o", out, "--labels", "-j", 1)
    return out


def test_one_table_of_all_nuclei(folder: Path, annotated: Path) -> None:
    table = pd.read_csv(annotated / "annotations.csv")
    columns = ["specimen", "id", "cell", "name", "confidence", "x", "y", "z", "unit"]
    assert list(table)[:12] == [*columns, "r1", "r2", "r3"]
    assert list(table)[-3:] == ["contested", "mirrored", "view"]
    assert set(table["view"]) == {1}
    specimens = eutely.read(folder / "volumes")
    assert len(table) == sum(map(len, specimens))
    first = table[table["specimen"] == "worm001"]
    np.testing.assert_allclose(first[["x", "y", "z"]], specimens[0].centroids)
    with (annotated / "worm001.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == first["name"].fillna("").tolist()
    assert set(table["unit"]) == {"um"}


def test_the_table_of_all_can_be_parquet(folder: Path, tmp_path: Path) -> None:
    words = ("annotate", folder / "named.h5", folder / "worms", "-o", tmp_path, "-j", 1)
    run(*words, "--table", "parquet")
    table = pd.read_parquet(tmp_path / "annotations.parquet")
    assert list(table)[:3] == ["specimen", "id", "cell"]
    assert not (tmp_path / "annotations.csv").exists()
    assert len(eutely.read(tmp_path / "annotations.parquet")) == 2


def test_label_volumes_hold_the_numbers_of_cells(folder: Path, annotated: Path) -> None:
    table = pd.read_csv(annotated / "annotations.csv")
    for name in ("worm001", "worm002"):
        labels = tifffile.imread(folder / "volumes" / f"{name}.tif")
        with tifffile.TiffFile(annotated / "labels" / f"{name}.tif") as file:
            assert file.is_imagej
            assert np.shape(file.imagej_metadata["LUTs"]) == (3, 256)
            assert file.imagej_metadata["spacing"] == 2
            copy = file.asarray()
        nuclei = table[table["specimen"] == name].set_index("id")["cell"]
        assert copy.shape == labels.shape
        assert not copy[labels == 0].any()
        for id_, cell in nuclei.items():
            assert set(copy[labels == id_]) == {0 if pd.isna(cell) else int(cell) + 1}
    colours = pd.read_csv(annotated / "labels" / "colours.csv")
    assert list(colours) == ["value", "cell", "name", "red", "green", "blue"]
    assert colours["value"].tolist() == list(range(1, 31))
    with tifffile.TiffFile(annotated / "labels" / "worm001.tif") as file:  # as Fiji shows it
        shown = file.imagej_metadata
    assert shown["Ranges"] == (0.0, 255.0)
    assert (np.array(shown["LUTs"])[:, 0] == 0).all()
    np.testing.assert_array_equal(
        np.array(shown["LUTs"])[:, 1:31].T, colours[["red", "green", "blue"]]
    )


def test_tables_have_no_labels_to_copy(folder: Path, tmp_path: Path) -> None:
    words = ("annotate", folder / "named.h5", folder / "worms", "-o", tmp_path / "x", "--labels")
    with pytest.raises(EutelyError, match="no input is a label volume"):
        run(*words)
    assert not list(tmp_path.iterdir())


def test_the_summary_as_json(folder: Path, tmp_path: Path) -> None:
    words = ("annotate", folder / "named.h5", folder / "worms", "-o", tmp_path, "-j", 1)
    summary = json.loads(run(*words, "--json"))
    assert summary["nuclei"] == 60
    assert summary["matched"] == sum(row["matched"] for row in summary["specimens"])
    assert {row["specimen"] for row in summary["specimens"]} == {"worm001", "worm002"}


def test_one_specimen_is_not_several(folder: Path, tmp_path: Path) -> None:
    one = folder / "worms" / "worm001.csv"
    said = run("annotate", folder / "named.h5", one, "-o", tmp_path, "-j", 1)
    assert said.startswith("30 of 30 nuclei of 1 specimen have a cell, ")
    assert f"; look first at {tmp_path / 'report.html'}\n" in said
    assert said.endswith(f"next: eutely curate {tmp_path}\n")
    page = (tmp_path / "report.html").read_text()
    assert "<span>specimen</span>" in page
    assert "1 specimens" not in page + said


def test_the_page_of_annotations_is_written_again(annotated: Path) -> None:
    page = annotated / "report.html"
    before = page.read_text()
    page.unlink()
    assert run("report", annotated) == f"{page}\n"
    assert page.read_text() == before


def test_an_atlas_without_names_is_said(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run("annotate", folder / "none.h5", folder / "worms", "-o", tmp_path, "-j", 1, "-q")
    assert "has no names: the column name will be empty" in caplog.text
    assert "eutely name" in caplog.text


def test_cells_without_a_name_are_not_wrong(folder: Path, tmp_path: Path) -> None:
    numbers = tmp_path / "accuracy.json"
    said = run("evaluate", folder / "some.h5", folder / "worms", "--json", numbers, "-j", 1)
    assert said == (
        "worm001\t0.6667\t20 of 30\t10 of a cell without a name\n"
        "worm002\t0.6667\t20 of 30\t10 of a cell without a name\n"
        "mean 0.6667  sd 0.0000  median 0.6667  (2 specimens)\n"
        "20 nuclei are of cells that have no name in the atlas: not right, but not wrong either; "
        "more named specimens for 'eutely name' help\n"
    )
    rows = json.loads(numbers.read_text())["specimens"]
    for row in rows:
        assert (row["correct"], row["wrong"], row["unnamed"], row["unmatched"]) == (20, 0, 10, 0)


def test_pins_are_listed_on_the_page(folder: Path, tmp_path: Path) -> None:
    names = {row.name: row for row in eutely.read(folder / "worms")}
    worm = names["worm001"]
    (tmp_path / "pins.csv").write_text(f"specimen,id,name\nworm001,{worm.ids[3]},{worm.names[3]}\n")
    out = tmp_path / "out"
    words = ("annotate", folder / "named.h5", folder / "worms", "-o", out, "-j", 1)
    run(*words, "--pins", tmp_path / "pins.csv")
    page = (out / "report.html").read_text()
    assert "1 pinned nucleus" in page
    assert f"<td>worm001</td><td>{worm.ids[3]}</td><td>{worm.names[3]}</td>" in page


def test_names_from_a_table_and_bad_files_left_out(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    for path in (folder / "volumes").glob("*.tif"):
        (inputs / path.name).write_bytes(path.read_bytes())
    (inputs / "broken.tif").write_bytes(b"II*\0nothing")
    truth = folder / "volumes" / "truth" / "truth.csv"
    words = ("name", folder / "none.h5", inputs, "--names", truth, "-o", tmp_path / "a.h5", "-j", 1)
    with pytest.raises(EutelyError, match="broken"):
        run(*words)
    assert "30 of 30 cells named" in run(*words, "--skip-bad")
    assert "broken.tif" in caplog.text
    said = run("evaluate", tmp_path / "a.h5", inputs, "--names", truth, "--skip-bad", "-j", 1)
    assert "30 of 30" in said
