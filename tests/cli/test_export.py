"""``eutely export``: results travel, and come back; NWB as public collections have it."""

import json
import lzma
import time
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from eutely import Atlas, Specimen, read
from eutely import export as export_folder
from eutely.annotation import Annotation
from eutely.cli import app
from eutely.curate.folder import open_material
from eutely.curate.session import Session
from eutely.errors import EutelyError
from eutely.io.sources import INPUTS, Files
from eutely.io.tables import write_table
from eutely.io.volumes import write_volume
from eutely.simulation.volume import draw
from eutely.tasks.export import Results, export
from toy_curation import toy_folder
from toy_heads import head

ATLAS = "celegans-adult-head"
SIZE = (0.6, 0.6, 0.9)
ABOUT = """
session_start_time = 2024-05-01T10:00:00Z
experimenter = ["Doe, Jane"]
lab = "Worms"
institution = "University"
experiment_description = "whole heads"
keywords = ["NeuroPAL"]
[subject]
age = "P3D"
growth_stage = "YA"
strain = "OH16230"
"""


def run(*words) -> str:
    result = CliRunner().invoke(app, [*map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Heads that were annotated: a table, and a label volume with an image of 3 channels."""
    place = tmp_path_factory.mktemp("export")
    worm = head("points", seed=1)
    # coordinates may be negative
    write_table(Specimen.from_arrays(
        "points", worm.centroids - 50, ids=worm.ids, features=dict(worm.features), unit="um",
    ), place / "points.csv")  # fmt: skip
    other = head("drawn", seed=2, lying=True)
    labels, _ = draw(other, SIZE)
    write_volume(labels, place / "drawn.tif", SIZE)
    image = np.array([[0, *other.features[key]] for key in "RGB"])[:, labels] + 600
    (place / "raw").mkdir()
    np.save(place / "raw" / "drawn.npy", image.astype(np.float32))
    run("annotate", ATLAS, place / "drawn.tif", "-o", place / "volume",
        "--image", place / "raw", "--channels", "R,green,mTagBFP2")  # fmt: skip
    said = run("annotate", ATLAS, place / "points.csv", "-o", place / "table")
    assert said.endswith(f"next: eutely curate {place / 'table'}")
    (place / "about.toml").write_text(ABOUT)
    return place


def critical(path) -> list[str]:
    """What nwbinspector finds that is more than a suggestion."""
    from nwbinspector import inspect_nwbfile

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = inspect_nwbfile(nwbfile_path=str(path))
        return [m.check_function_name for m in found if "SUGGESTION" not in m.importance.name]


def names_in(folder: Path, specimen: str) -> list[str]:
    table = pd.read_csv(folder / f"{specimen}.csv", keep_default_na=False)
    return table["name"].tolist()


def test_annotate_remembers_its_inputs(folder: Path) -> None:
    known = json.loads((folder / "volume" / INPUTS).read_text())
    assert known["volumes"] == {"drawn": [str(folder / "drawn.tif"), ""]}
    assert known["images"] == {"drawn": str(folder / "raw" / "drawn.npy")}
    assert known["channels"] == ["R", "green", "mTagBFP2"]
    known = json.loads((folder / "table" / INPUTS).read_text())
    assert known["others"] == {"points": ["table", str(folder / "points.csv"), ""]}


@pytest.mark.parametrize(("kind", "specimen"), [("table", "points"), ("volume", "drawn")])
@pytest.mark.parametrize("about", [False, True])
def test_nwb_of_any_input_is_valid_and_comes_back(
    folder: Path, tmp_path: Path, kind: str, specimen: str, about: bool
) -> None:
    import pynwb

    more = ["--about", folder / "about.toml"] if about else []
    said = run("export", folder / kind, "--nwb", "-o", tmp_path, *more)
    path = tmp_path / f"{specimen}.nwb"
    assert f"written: {path}" in said
    assert critical(path) == []
    (before,) = read(folder / ("points.csv" if kind == "table" else "drawn.tif"))
    (again,) = read(path)
    assert again.ids.tolist() == before.ids.tolist()
    assert list(again.names) == names_in(folder / kind, specimen)
    if kind == "volume":
        np.testing.assert_allclose(again.centroids, before.centroids)
        np.testing.assert_allclose(again.radii, before.radii)
    else:  # centres are on a fine grid whose first voxel is the origin
        shift = again.centroids - before.centroids
        assert np.ptp(shift, axis=0).max() <= 0.05 + 1e-9
        for key, values in before.features.items():
            assert again.features[key].tolist() == values.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pynwb.NWBHDF5IO(str(path), "r") as io:  # without the extension, and without eutely
            file = io.read()
            table = file.processing["NeuroPAL"]["NeuroPALSegmentation"]["NeuroPALNeurons"]
            assert list(table["ID_labels"][:]) == names_in(folder / kind, specimen)
            assert np.nanmax(table["eutely_confidence"][:]) <= 1
            assert table.imaging_plane.grid_spacing[:].tolist() == (
                list(SIZE) if kind == "volume" else [0.05] * 3
            )
            assert file.subject.species == "Caenorhabditis elegans"
            assert file.subject.sex == "XX"
            assert file.subject.age == ("P3D" if about else "P0D/")
            assert file.session_start_time.year == (2024 if about else 1970)
            if kind == "volume":
                image = file.acquisition["NeuroPALImageRaw"]
                assert image.RGBW_channels[:].tolist() == [0, 1, 2, -1]
                given = np.load(folder / "raw" / "drawn.npy").transpose(3, 2, 1, 0)
                words = image.description.split()  # value = low + step * stored
                low, step = float(words[-5]), float(words[-3])
                np.testing.assert_allclose(low + step * image.data[:], given, atol=step)


def test_a_head_is_named_alike_from_its_nwb(folder: Path, tmp_path: Path) -> None:
    for kind, specimen in (("table", "points"), ("volume", "drawn")):
        run("export", folder / kind, "--nwb", "-o", tmp_path / kind)
        run("annotate", ATLAS, tmp_path / kind / f"{specimen}.nwb", "-o", tmp_path / "again")
        same = np.array(names_in(folder / kind, specimen)) == np.array(
            names_in(tmp_path / "again", specimen)
        )
        assert same.mean() > 0.97


def test_colours_of_the_image_are_read_where_there_are_no_columns(
    folder: Path, tmp_path: Path
) -> None:
    import h5py

    run("export", folder / "volume", "--nwb", "-o", tmp_path)
    with h5py.File(tmp_path / "drawn.nwb", "r+") as file:
        table = file["processing/NeuroPAL/NeuroPALSegmentation/NeuroPALNeurons"]
        for key in list(table):
            if str(table[key].attrs.get("description", "")).startswith("feature"):
                del table[key]
    (worm,) = read(tmp_path / "drawn.nwb")
    assert list(worm.features) == ["R", "G", "B"]  # the white channel is not there
    other = head("drawn", seed=2, lying=True)
    order = np.argsort(other.features["R"])
    assert np.corrcoef(worm.features["R"][order], other.features["R"][order])[0, 1] > 0.98


def test_an_nwb_input_is_copied_with_all_that_is_in_it(tmp_path: Path) -> None:
    import h5py

    packed = Path(__file__).parents[1] / "io" / "neuropal.nwb.xz"  # the extension wrote it
    path = tmp_path / "worm.nwb"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    (worm,) = read(path)
    names = ("AVAL", "", "RIS", "", "", "")
    made = Annotation(
        "worm", worm.ids, np.arange(6, dtype=np.int32), names, np.full(6, 0.5), ((),) * 6, 0.0,
        worm.centroids,
    )  # fmt: skip
    files = Files(others={"worm": ("nwb", str(path), "")})
    results = Results(Atlas.load(ATLAS), [made], [worm], files)
    written = tmp_path / "out" / "worm.nwb"
    assert export(results, tmp_path / "out", ["nwb"]) == [written]
    export(results, tmp_path / "again", ["nwb"])
    assert (tmp_path / "again" / "worm.nwb").read_bytes() == written.read_bytes()
    with h5py.File(tmp_path / "out" / "worm.nwb") as file:
        table = file["processing/NeuroPAL/NeuroPALSegmentation/NeuroPALNeurons"]
        assert [text.decode() for text in table["eutely_name"]] == list(names)
        assert file["acquisition/NeuroPALImageRaw/data"].shape == (30, 20, 12, 5)


def test_all_other_kinds_and_corrections(folder: Path, tmp_path: Path) -> None:
    import anndata
    import tifffile

    session = Session(open_material(folder / "volume"))
    ids = session.cases[0].shown.ids.tolist()
    session.correct(0, {0: -1}, session.revision)  # not in the tables until the session ends
    said = run("export", folder / "volume", "--csv", "--excel", "--labels",
               "--h5ad", tmp_path / "w.h5ad", "-o", tmp_path / "out")  # fmt: skip
    session.close()
    assert "written:" in said
    table = pd.read_csv(tmp_path / "out" / "annotations.csv", keep_default_na=False)
    assert table["name"][0] == ""
    book = pd.read_excel(tmp_path / "out" / "annotations.xlsx", keep_default_na=False)
    assert book["id"].tolist() == ids
    assert book["name"].tolist() == table["name"].tolist()
    data = anndata.read_h5ad(tmp_path / "w.h5ad")
    assert data.obs["name"].tolist() == table["name"].tolist()
    assert len(anndata.read_h5ad(tmp_path / "w.cells.h5ad")) == 195
    labels = tifffile.imread(tmp_path / "out" / "labels" / "drawn.tif")
    assert set(np.unique(labels)) - {0} == {int(cell) + 1 for cell in table["cell"] if cell != ""}
    run("export", folder / "volume", "-o", tmp_path / "sure", "--min-confidence", "0.95")
    sure = pd.read_csv(tmp_path / "sure" / "annotations.csv", keep_default_na=False)
    assert 0 < (sure["name"] != "").sum() < (table["name"] != "").sum()


@pytest.mark.parametrize("kind", ["table", "volume"])
def test_the_same_input_gives_the_same_bytes(
    folder: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ["--csv", "--excel", "--nwb", *(["--labels"] if kind == "volume" else [])]
    now = time.time()
    for day in (0, 1):
        monkeypatch.setattr(time, "time", lambda day=day: now + 86400 * day)
        out = tmp_path / str(day)
        run("export", folder / kind, *kinds, "--h5ad", out / "nuclei.h5ad", "-o", out)
    files = [path.relative_to(tmp_path / "0") for path in (tmp_path / "0").rglob("*.*")]
    assert {path.suffix for path in files} >= {".csv", ".xlsx", ".nwb", ".h5ad", ".json"}
    for path in filter(lambda one: (tmp_path / "0" / one).is_file(), files):
        assert (tmp_path / "0" / path).read_bytes() == (tmp_path / "1" / path).read_bytes(), path
    book = zipfile.ZipFile(tmp_path / "0" / "annotations.xlsx")
    assert {each.date_time for each in book.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert book.read("docProps/core.xml").count(b"1980-01-01T00:00:00Z") == 2


def test_python_exports_what_the_command_does(folder: Path, tmp_path: Path) -> None:
    import tomllib

    run("export", folder / "table", "--nwb", "--csv", "--about", folder / "about.toml",
        "-o", tmp_path / "command")  # fmt: skip
    about = tomllib.loads(ABOUT)
    written = export_folder(folder / "table", ["nwb", "csv"], tmp_path / "python", about=about)
    assert [path.name for path in written] == ["annotations.csv", "points.nwb"]
    for name in ("annotations.csv", "points.csv", "points.nwb"):
        same = (tmp_path / "command" / name).read_bytes() == (
            tmp_path / "python" / name
        ).read_bytes()
        assert same, name
    assert about == tomllib.loads(ABOUT)
    assert export_folder(str(folder / "table"), "excel") == [
        folder / "table" / "export" / "annotations.xlsx"
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("nowhere",), "nowhere: not a folder"),
        ((3,), "folder: expected a path, found int"),
        ((".", "doc"), "cannot export 'doc'; there are: csv, excel, h5ad, nwb, labels"),
        ((".", "csv", "."), "is the folder itself"),
        ((".", "csv", __file__), "is a file; give a folder"),
        ((".", "csv", None, {"about": "about.toml"}), "about is for nwb"),
        ((".", "nwb", None, {"about": {"colour": 1}}), r"about: unknown key 'colour'.*subject"),
        ((".", "nwb", None, {"about": {"subject": 1}}), "subject is 1, expected a table"),
        ((".", "nwb", None, {"about": {"subject": {"age": 3}}}), "about: age is 3, expected str"),
        ((".", "csv", None, {"min_confidence": 2}), "give a number from 0 to 1"),
        ((".", "h5ad", None, {"h5ad": "x.csv"}), "ends in .h5ad"),
        ((".", "csv", None, {"progress": 1}), "progress is 1"),
    ],
)
def test_misuse_in_python_is_one_line(
    folder: Path, given: tuple, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "table")
    more = given[3] if len(given) > 3 else {}
    with pytest.raises(EutelyError, match=said) as caught:
        export_folder(*given[:3], **more)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_exported_is_one_line(folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "about.toml"
    for words, said in [
        ((folder / "nowhere",), "not a folder"),
        ((folder / "table", "--about", folder / "about.toml"), "about is for nwb"),
        ((folder / "table", "--h5ad", tmp_path / "x.txt"), "ends in .h5ad"),
        ((folder / "table", "-o", folder / "table"), "is the folder itself"),
        ((folder / "table", "--labels"), "no specimen was read from a label volume"),
        ((tmp_path,), "no finished run and no annotations"),
    ]:
        with pytest.raises(EutelyError, match=said):
            run("export", *words)
    for text, said in [
        ("x = ", "not TOML"), ("color = 'red'", "unknown key 'color'"),
        ("lab = 3", "lab is 3, expected str"), ("[subject]\nage = 3", "age is 3"),
        ("subject = 3", "subject is 3, expected a table"),
    ]:  # fmt: skip
        bad.write_text(text)
        with pytest.raises(EutelyError, match=said):
            run("export", folder / "table", "--nwb", "--about", bad)
    write_table(Specimen.from_arrays("bare", head().centroids), tmp_path / "bare.csv")
    run("annotate", ATLAS, tmp_path / "bare.csv", "-o", tmp_path / "bare")
    with pytest.raises(EutelyError, match="NWB needs micrometres; annotate it again"):
        run("export", tmp_path / "bare", "--nwb")
    assert not list((tmp_path / "bare").glob("export/*.nwb"))


def test_names_in_a_workbook_are_no_formulas(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    session = Session(open_material(toy_folder(tmp_path / "annotated", 2, 30)), read_only=True)
    found = session.results()
    session.close()
    first = replace(found.specimens[0], name="=1+1")
    results = replace(found, specimens=[first, *found.specimens[1:]])
    export(results, tmp_path / "out", ["excel"])
    sheet = openpyxl.load_workbook(tmp_path / "out" / "annotations.xlsx").active
    column = [(cell.value, cell.data_type) for [cell] in sheet["A2" : f"A{sheet.max_row}"]]
    assert set(column) == {("=1+1", "s"), (found.specimens[1].name, "s")}
