import json
import sys

import h5py
import nrrd
import numpy as np
import pytest
import tifffile
import zarr

from eutely import Specimen, read
from eutely.cli import main
from eutely.io.tables import write_table
from eutely.io.volumes import write_volume

#  four boxes, not in one plane:   z
#                                  |_ y
#                                 x
CORNERS = [(2, 2, 2), (2, 2, 20), (2, 12, 8), (9, 5, 14)]


def boxes(labels=(5, 70, 800, 9)):
    volume = np.zeros((12, 16, 24), dtype=np.uint16)
    for (z, y, x), label in zip(CORNERS, labels, strict=True):
        volume[z : z + 2, y : y + 2, x : x + 3] = label
    return volume


TABLE = "id,x,y,z\n1,0,0,0\n2,9,1,0\n3,0,5,1\n4,2,2,7\n"


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a call of the command line that gives exit code, output and errors."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["eutely", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        shown = capsys.readouterr()
        # On a slow machine the first use of a kernel is announced; that is no part of the answer.
        lines = [line for line in shown.err.splitlines(keepends=True) if "compiling" not in line]
        return stopped.value.code or 0, shown.out, "".join(lines)

    return call


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet"])
def test_extract_writes_what_read_reads(run, tmp_path, format):
    write_volume(boxes(), tmp_path / "in" / "b.ome.tif", (0.1, 0.2, 0.5))
    write_volume(boxes(), tmp_path / "in" / "a.zarr", (0.1, 0.2, 0.5))
    code, shown, _ = run("extract", tmp_path / "in", "-o", tmp_path / "out", "--format", format)
    assert code == 0
    assert "8 nuclei, 2 tables" in shown
    written = sorted(path.name for path in (tmp_path / "out").glob("[!.]*"))
    assert written == [f"a.{format}", f"b.{format}"]
    assert read(tmp_path / "out") == read(tmp_path / "in")
    assert read(tmp_path / "out")[0].ids.tolist() == [5, 9, 70, 800]


def test_extract_takes_the_voxel_size_from_the_command_line(run, tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", boxes())
    code, _, said = run("extract", tmp_path / "a.tif", "-o", tmp_path / "out")
    assert code == 2
    assert "--voxel-size" in said
    run("extract", tmp_path / "a.tif", "-o", tmp_path / "out", "--voxel-size", "0.1,0.2,0.5")
    (specimen,) = read(tmp_path / "out")
    assert specimen.centroids[0].tolist() == pytest.approx([0.3, 0.5, 1.25])
    code, _, said = run("extract", tmp_path / "a.tif", "-o", tmp_path / "o", "--voxel-size", "big")
    assert code == 2
    assert "expected X,Y,Z" in said


def test_extract_writes_all_or_nothing(run, tmp_path):
    write_volume(boxes(), tmp_path / "in" / "a.tif", 1)
    write_volume(boxes(), tmp_path / "in" / "b.tif", 1)
    broken = tmp_path / "in" / "b.tif"
    broken.write_bytes(broken.read_bytes()[:900])
    code, shown, said = run("extract", tmp_path / "in", "-o", tmp_path / "out")
    assert (code, shown) == (2, "")
    assert said.startswith("error: cannot read")
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").touch()
    code, _, said = run("extract", tmp_path / "in" / "a.tif", "-o", tmp_path / "file")
    assert code == 2
    assert "is a file" in said


def test_check_shows_one_row_per_specimen_and_one_line_per_oddity(run, tmp_path):
    volume = boxes()
    volume[0, 0, 0] = 5
    write_volume(volume, tmp_path / "worm.h5", (0.1, 0.2, 0.5))
    code, shown, _ = run("check", tmp_path / "worm.h5", "--json", tmp_path / "facts.json")
    assert code == 0
    header, row, *rest = shown.splitlines()
    fields = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert fields["specimen"] == "worm"
    assert fields["nuclei"] == "4"
    assert fields["unit"] == "um"
    assert fields["voxel"] == "0.1x0.2x0.5"
    assert [fields[axis] for axis in "xyz"] == ["1.8", "2", "3.5"]
    assert "warning: worm: segments with detached voxels: 1 of 4 nuclei (id 5)" in rest
    assert rest[-1].startswith("1 specimen, 4 nuclei, ")
    content = json.loads((tmp_path / "facts.json").read_text())
    (specimen,) = content["specimens"]
    facts = specimen["specimen"], specimen["nuclei"], specimen["voxel_size"]
    assert facts == ("worm", 4, [0.1, 0.2, 0.5])
    assert {"specimen": "worm", "kind": "segments with detached voxels"}.items() <= {
        key: value for odd in content["oddities"] for key, value in odd.items() if odd["ids"] == [5]
    }.items()


def test_quiet_check_prints_warnings_only(run, tmp_path):
    (tmp_path / "a.csv").write_text(TABLE.replace("\n", ",name\n", 1).replace("0\n", "0,A\n"))
    (tmp_path / "a.csv").write_text("id,x,y,z,name\n1,0,0,0,A\n2,9,1,0,A\n3,0,5,1,B\n4,2,2,7,C\n")
    code, shown, said = run("check", "-q", tmp_path)
    assert code == 0
    assert all(line.startswith("warning: ") for line in shown.splitlines())
    assert "duplicate names: 2 of 4 nuclei share A (id 1, 2)" in shown
    assert said == ""


def test_names_that_look_like_markup_are_shown_as_they_are(run, tmp_path):
    (tmp_path / "[red]a.csv").write_text(TABLE)
    code, shown, _ = run("check", tmp_path)
    assert code == 0
    assert "[red]a" in shown


def test_help_has_an_example(run):
    for command in ("extract", "check"):
        code, shown, _ = run(command, "--help")
        assert code == 0
        assert f"Example: eutely {command}" in shown


def bad_folder(folder):
    pass


def cut(suffix, share):
    """Write a volume or table and cut it off after a share of its bytes."""

    def make(folder):
        path = folder / f"a{suffix}"
        if suffix in (".csv", ".parquet"):
            write_table(Specimen.from_arrays("a", np.random.default_rng(0).random((50, 3))), path)
        else:
            noise = np.random.default_rng(0).integers(0, 60_000, (20, 30, 40), dtype=np.uint16)
            write_volume(noise, path, 1)
        if path.is_dir():
            path = path / "0" / "c" / "0" / "0" / "0"
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])

    return make


def table(text, name="a.csv"):
    return lambda folder: (folder / name).write_text(text)


def tiff(data):
    sizes = {f"PhysicalSize{axis}": 1 for axis in "XYZ"}
    return lambda folder: tifffile.imwrite(
        folder / "a.tif", data, ome=True, metadata={"axes": "ZYX"[-data.ndim :], **sizes}
    )


def bare_zarr(folder):
    zarr.create_array(folder / "a.zarr", data=boxes())


def bare_hdf5(folder):
    with h5py.File(folder / "a.h5", "w") as file:
        file["labels"] = boxes()


def bare_nrrd(folder):
    nrrd.write(str(folder / "a.nrrd"), boxes(), index_order="C")


def bare_tiff(folder):
    tifffile.imwrite(folder / "a.tif", boxes())


def two(first, second):
    def make(folder):
        (folder / "a.csv").write_text(first)
        (folder / "b.csv").write_text(second)

    return make


@pytest.mark.parametrize("command", ["check", "extract"])
@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(bad_folder, "no tables, point clouds or label volumes", id="empty-folder"),
        pytest.param(cut(".csv", 0.99), "is the file complete", id="cut-csv"),
        pytest.param(cut(".parquet", 0.7), "as Parquet", id="cut-parquet"),
        pytest.param(table("1,1,A,,3", "a.apo"), "is the file complete", id="cut-apo"),
        pytest.param(cut(".tif", 0.7), "damaged or cut off", id="cut-tiff"),
        pytest.param(cut(".zarr", 0.7), "damaged or cut off", id="cut-zarr"),
        pytest.param(cut(".h5", 0.7), "cannot read", id="cut-hdf5"),
        pytest.param(cut(".nrrd", 0.7), "damaged or cut off", id="cut-nrrd"),
        pytest.param(table("no image", "a.tif"), "damaged or cut off", id="no-tiff"),
        pytest.param(bare_tiff, "give --voxel-size", id="no-voxel-size-tiff"),
        pytest.param(bare_zarr, "give --voxel-size", id="no-voxel-size-zarr"),
        pytest.param(bare_hdf5, "give --voxel-size", id="no-voxel-size-hdf5"),
        pytest.param(bare_nrrd, "give --voxel-size", id="no-voxel-size-nrrd"),
        pytest.param(tiff(boxes() * np.float32(1.5)), "float32", id="float-volume"),
        pytest.param(tiff(boxes() * 0), "all voxels are 0", id="all-zero"),
        pytest.param(tiff(boxes()[2]), "a 2D image", id="2d"),
        pytest.param(tiff(boxes().astype(np.int16) - 1), "labels below 0", id="negative-labels"),
        pytest.param(tiff((boxes() > 0).astype(np.uint8)), "was it labelled?", id="mask"),
        pytest.param(table("id,u,v\n1,2,3\n"), "no column x, y, z", id="no-xyz"),
        pytest.param(table(TABLE.replace("9,1", "nan,1")), "NaN or infinite", id="nan"),
        pytest.param(table(TABLE.replace("9,1", "inf,1")), "NaN or infinite", id="inf"),
        pytest.param(table(TABLE.replace("9,1", ",1")), "NaN or infinite", id="empty-field"),
        pytest.param(table(TABLE.replace("9,1", "a,1")), "line 3: x is 'a'", id="text"),
        pytest.param(table(TABLE.replace("\n2", "\n1")), "id 1 occurs 2 times", id="same-id"),
        pytest.param(table(TABLE.replace("\n2", "\n2.5")), "id is '2.5'", id="broken-id"),
        pytest.param(table("x,y,z\n1,2,3\n3,2,1\n2,2,2\n"), "at least 4", id="too-few"),
    ],
)
def test_bad_input_is_one_clear_line_and_nothing_is_written(run, tmp_path, command, make, words):
    folder = tmp_path / "in"
    folder.mkdir()
    make(folder)
    output = ["-o", tmp_path / "out"] if command == "extract" else ["--json", tmp_path / "out"]
    code, shown, said = run(command, folder, *output)
    assert code == 2
    assert shown == ""
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert words in said
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("command", ["check", "extract"])
@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(
            two(TABLE, TABLE.replace("\n", ",um\n").replace("z,um", "z,unit")),
            "mixed units",
            id="mixed-units",
        ),
        pytest.param(
            two(TABLE, "specimen," + TABLE.replace("\n", "\na,").removesuffix("a,")),
            "two specimens are called a",
            id="same-name",
        ),
    ],
)
def test_files_that_make_no_cohort_are_shown_and_refused(run, tmp_path, command, make, words):
    folder = tmp_path / "in"
    folder.mkdir()
    make(folder)
    output = ["-o", tmp_path / "out"] if command == "extract" else ["--json", tmp_path / "out"]
    code, shown, said = run(command, folder, *output, *(["-q"] if command == "extract" else []))
    assert code == 2
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert words in said
    assert ("specimen\tnuclei" in shown) == (command == "check")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("command", ["check", "extract"])
def test_a_path_that_is_not_there(run, tmp_path, command):
    output = ["-o", tmp_path / "out"] if command == "extract" else []
    code, _, said = run(command, tmp_path / "nowhere.tif", *output)
    assert code == 2
    assert said == f"error: {tmp_path / 'nowhere.tif'} does not exist\n"
    code, _, said = run(command, *output)
    assert code == 2
    assert "INPUT" in said
