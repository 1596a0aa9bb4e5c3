"""``eutely check`` of a folder as people have it: foreign files, doubtful volumes, 80 columns."""

import io
import re
import sys
from importlib import import_module

import numpy as np
import pytest
import tifffile
from rich.console import Console

import eutely
from eutely.cli import main
from eutely.io.tables import write_table
from eutely.io.volumes import write_volume

check_module = import_module("eutely.cli.check")
"""The module, which the function of the same name hides."""


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a call of the command line that gives exit code, output and errors."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["eutely", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        shown = capsys.readouterr()
        lines = [line for line in shown.err.splitlines(keepends=True) if "compiling" not in line]
        return stopped.value.code or 0, shown.out, "".join(lines)

    return call


def balls(radii=(4, 4, 4), shape=(40, 48, 60), count=6):
    """Label volume of ellipsoids with half-extents z, y, x in voxels."""
    labels = np.zeros(shape, np.uint16)
    grid = np.indices(shape)
    random = np.random.default_rng(0)
    for label in range(1, count + 1):
        centre = [random.uniform(r, side - r) for r, side in zip(radii, shape, strict=True)]
        distance = sum(
            ((axis - middle) / r) ** 2 for axis, middle, r in zip(grid, centre, radii, strict=True)
        )
        labels[(distance <= 1) & (labels == 0)] = label
    return labels


def cohort(folder, count=3):
    for specimen in eutely.simulate(count, 30, seed=1):
        write_table(specimen.without_names(), folder / f"{specimen.name}.csv")


def foreign(folder):
    """Add what lies in the folders of people."""
    (folder / "metadata.csv").write_text("strain,stage\nN2,L1\n")
    (folder / "~$animal_3.csv").write_bytes(b"\x05someone\0\0\0")
    sizes = {"axes": "YX", "PhysicalSizeX": 1, "PhysicalSizeY": 1}
    tifffile.imwrite(folder / "projection.ome.tif", balls().max(axis=0), metadata=sizes)
    (folder / "zz.csv").write_text("id,x,y,z\n1,2,3\n")


def test_one_bad_file_does_not_hide_the_others(run, tmp_path):
    folder = tmp_path / "in"
    cohort(folder)
    foreign(folder)
    code, shown, said = run("check", folder, "--json", tmp_path / "facts.json")
    assert code == 2
    assert [line.split("\t")[0] for line in shown.splitlines()[1:4]] == [
        "worm001", "worm002", "worm003",
    ]  # fmt: skip
    assert "3 specimens, 90 nuclei" in shown
    lines = said.splitlines()
    assert [line.split(":")[0] for line in lines] == ["error"] * 4
    for line, words in zip(
        lines,
        ["metadata.csv: no column x, y, z", "a 2D image", "zz.csv: line 2 has 3 fields"],
        strict=False,
    ):
        assert words in line
    assert lines[-1] == "error: 3 problems; correct or remove these files, or add --skip-bad"
    assert not (tmp_path / "facts.json").exists()


def test_skip_bad_goes_on_and_says_so(run, tmp_path):
    folder = tmp_path / "in"
    cohort(folder)
    foreign(folder)
    code, shown, said = run("check", folder, "--skip-bad", "--json", tmp_path / "facts.json")
    assert (code, said) == (0, "")
    assert shown.count("warning: left out: ") == 3
    assert (tmp_path / "facts.json").exists()


def test_a_single_problem_is_one_line(run, tmp_path):
    cohort(tmp_path / "in")
    (tmp_path / "in" / "metadata.csv").write_text("strain,stage\nN2,L1\n")
    code, _, said = run("check", tmp_path / "in")
    assert code == 2
    assert said.count("\n") == 1
    assert "metadata.csv" in said
    assert said.endswith("; --skip-bad goes on without it\n")


def test_a_voxel_size_in_the_wrong_order_is_said(run, tmp_path):
    # round nuclei of radius 1.2 um in voxels of 0.1 x 0.1 x 0.3 um (x, y, z)
    tifffile.imwrite(tmp_path / "worm.tif", balls((4, 12, 12), (40, 120, 120), 8))
    code, shown, _ = run("check", tmp_path, "--voxel-size", "0.3,0.1,0.1")
    assert code == 0
    said = re.search(r"wrong order: nuclei are (\S+) times as long in x as in z: are x and", shown)
    assert float(said[1]) == pytest.approx(9, abs=0.5)
    assert "z swapped (--voxel-size 0.1,0.1,0.3)?" in shown
    code, shown, _ = run("check", tmp_path, "--voxel-size", "0.1,0.1,0.3")
    assert "order" not in shown


@pytest.mark.parametrize("value", [1, 255])
def test_a_mask_is_asked_whether_it_was_labelled(run, tmp_path, value):
    write_volume((balls() > 0).astype(np.uint8) * value, tmp_path / "mask.tif", 1)
    code, _, said = run("check", tmp_path)
    assert code == 2
    assert f"one label ({value}) for all nuclei: was it labelled?" in said
    assert said.count("error:") == 1  # progress is told as well if reading takes long


def raw(noise):
    """An intensity image: bright blobs on a dark, noisy background."""
    random = np.random.default_rng(0)
    shape = (20, 48, 60)
    grid = np.indices(shape)
    image = np.zeros(shape)
    for _ in range(12):
        centre = [random.uniform(4, side - 4) for side in shape]
        distance = sum((axis - middle) ** 2 for axis, middle in zip(grid, centre, strict=True))
        image += 60 * np.exp(-distance / 18)
    return np.clip(image + noise * random.normal(size=shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("noise", [0, 3])
def test_an_intensity_image_is_noticed(run, tmp_path, noise):
    write_volume(raw(noise), tmp_path / "raw.tif", 1)
    code, shown, _ = run("check", tmp_path)
    assert code == 0
    assert "raw: labels do not look like nuclei: " in shown
    assert "is it an intensity image" in shown


def test_units_between_specimens_and_of_an_atlas(run, tmp_path):
    first, second = eutely.simulate(2, 30, seed=1)
    for factor, specimen in ((1, first), (1000, second)):
        grown = eutely.Specimen.from_arrays(specimen.name, specimen.centroids * factor)
        write_table(grown, tmp_path / "in" / f"{specimen.name}.csv")
    code, shown, _ = run("check", tmp_path / "in")
    assert code == 0
    assert "about 1,000 times that of worm001: nanometres instead of micrometres?" in shown
    atlas = eutely.build(eutely.simulate(3, 30, seed=2), supervised=True, workers=1).atlas
    atlas.save(tmp_path / "atlas.h5")
    code, shown, _ = run("check", tmp_path / "in", "--atlas", tmp_path / "atlas.h5")
    assert code == 0
    assert "worm002: size far from the atlas's: about 1,000 times the atlas's" in shown
    assert "worm001: size far from" not in shown


def test_an_80_column_terminal_breaks_nothing(run, tmp_path, monkeypatch):
    names = ["N2_L1_20240611_animal_03_left_segmentation", "虫1"]
    for name, specimen in zip(names, eutely.simulate(2, 1200, seed=1), strict=True):
        moved = eutely.Specimen.from_arrays(name, specimen.centroids * 12345.678)
        write_table(moved, tmp_path / f"{name}.csv")
    terminal = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(check_module, "out", terminal)
    code, _, _ = run("check", tmp_path)
    assert code == 0
    lines = terminal.file.getvalue().splitlines()
    for name in names:
        rows = [line for line in lines if line.startswith(name)]
        assert len(rows) >= 2
        assert rows[0].split()[1] == "1200"
    assert max(map(len, lines)) <= 80
    words = {word for line in lines for word in line.split()}
    assert set(check_module.COLUMNS) <= words


def test_a_usual_cohort_is_one_table_on_80_columns(run, tmp_path, monkeypatch):
    for number in (1, 2):
        write_volume(balls(), tmp_path / f"worm{number:03}.tif", 1)
    terminal = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(check_module, "out", terminal)
    run("check", tmp_path)
    lines = terminal.file.getvalue().splitlines()
    assert lines[0].split()[0] == "specimen"
    assert lines[0].split()[-1] == "margin"
    assert [line.split()[0] for line in lines[1:3]] == ["worm001", "worm002"]
    assert lines[3].startswith("all: voxel 1x1x1")
    assert max(map(len, lines)) <= 80


def test_what_rows_have_in_common_stays_where_there_is_room():
    rows = [["a", "5", "0", "um", "1x1x2"], ["b", "6", "0", "um", "1x1x2"]]
    heads = ("specimen", "nuclei", "named", "unit", "voxel")
    assert check_module.narrowed(rows, 80, heads) == ([0, 1, 2, 3, 4], "")
    assert check_module.narrowed(rows, 30, heads) == ([0, 1, 2, 3], "all: voxel 1x1x2")
    assert check_module.narrowed(rows, 10, heads) == (
        [0, 1], "all: voxel 1x1x2, unit um, named 0"
    )  # fmt: skip
    rows[1][4] = "-"
    assert check_module.narrowed(rows, 30, heads)[1] == "all: unit um"


def test_a_short_table_is_compared_as_text():
    rows = [
        ["worm001", "558", "0", "um", "0.1x0.1x0.3", "212.4", "31.5", "30.9", "3.1", "1.4",
         "+x 3 deg", "12"],
        ["worm2", "1203", "558", "um", "-", "8", "31.5", "30.9", "3.1", "1.4", "-", "-"],
    ]  # fmt: skip
    assert check_module.table_lines(rows, 80) == [
        "specimen  nuclei  named  unit  voxel            x     y     z  neighbour  radius",
        "worm001      558      0  um    0.1x0.1x0.3  212.4  31.5  30.9        3.1     1.4",
        "worm2       1203    558  um    -                8  31.5  30.9        3.1     1.4",
        "",
        "specimen  head      margin",
        "worm001   +x 3 deg      12",
        "worm2     -              -",
    ]
    closer = [[*row[:4], *row[5:]] for row in rows]
    heads = [head for head in check_module.COLUMNS if head != "voxel"]
    lines = check_module.table_lines(closer, 76, heads)
    assert lines[0] == (
        "specimen nuclei named unit     x    y    z neighbour radius head     margin"
    )
    assert len(lines) == 3


def test_one_specimen_is_no_specimens(run, tmp_path):
    cohort(tmp_path, 1)
    _, shown, _ = run("check", tmp_path)
    assert shown.splitlines()[-1].startswith("1 specimen, 30 nuclei, ")


def test_names_beside_a_volume_are_counted(run, tmp_path):
    write_volume(balls(), tmp_path / "in" / "worm.tif", 1)
    (tmp_path / "names.csv").write_text("id,name\n1,AVAL\n2,AVAR\n")
    _, shown, _ = run("check", tmp_path / "in", "--names", tmp_path / "names.csv")
    assert shown.splitlines()[1].split("\t")[:3] == ["worm", "6", "2"]
    (tmp_path / "in" / "worm.csv").write_text("id,name\n3,AVAL\n")
    _, shown, _ = run("check", tmp_path / "in")
    assert shown.splitlines()[1].split("\t")[:3] == ["worm", "6", "1"]
    (tmp_path / "names.csv").write_text("id,name\n77,AVAL\n")
    code, _, said = run("check", tmp_path / "in", "--names", tmp_path / "names.csv")
    assert code == 2
    assert "worm has no nucleus with id 77" in said
