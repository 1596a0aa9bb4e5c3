import logging

import numpy as np
import pytest

from eutely import Specimen, read
from eutely.errors import ReadError
from eutely.io.tables import write_table

CORNERS = np.vstack([np.zeros(3), np.eye(3)])


def specimen(name, unit="um", count=4):
    return Specimen.from_arrays(name, CORNERS[:count], unit=unit)


def test_a_folder_stands_for_its_specimens_in_the_order_of_names(tmp_path, caplog):
    for name in ("b", "a", "c"):
        write_table(specimen(name), tmp_path / f"{name}.csv")
    (tmp_path / ".hidden.csv").write_text("x")
    (tmp_path / "notes.txt").write_text("remember the worms")
    (tmp_path / "folder").mkdir()
    with caplog.at_level(logging.DEBUG, "eutely"):
        assert [specimen.name for specimen in read(tmp_path)] == ["a", "b", "c"]
    for left_out in (".hidden.csv", "notes.txt", "folder"):
        assert f"{left_out}: not a specimen" in caplog.text


def test_files_and_folders_mix_and_only_the_known_suffix_is_no_part_of_a_name(tmp_path):
    row = "1,1,A,,{0},0,0,0,0,0,5,5\n"
    cloud = "".join(row.format(z).replace("1,1", f"{z},{z}", 1) for z in range(4))
    (tmp_path / "zip-3.2_S1.ano.ano.txt").write_text(cloud)
    write_table([specimen("x", "voxel"), specimen("y", "voxel")], tmp_path / "cohort.CSV")
    cohort = read(tmp_path / "zip-3.2_S1.ano.ano.txt", str(tmp_path / "cohort.CSV"))
    assert [specimen.name for specimen in cohort] == ["zip-3.2_S1", "x", "y"]


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({}, "no tables, .* in the folder"),
        ({"a": [specimen("same")], "b": [specimen("same")]}, "two specimens are called same"),
        ({"a": [specimen("p"), specimen("q", "voxel")]}, "mixed units: .* um, .* in voxel"),
        ({"a": [specimen("a", count=3)]}, "a has 3 nuclei, expected at least 4"),
    ],
)
def test_what_makes_no_cohort_is_refused(tmp_path, tables, words):
    for name, cohort in tables.items():
        write_table(cohort, tmp_path / f"{name}.csv")
    with pytest.raises(ReadError, match=words):
        read(tmp_path)


def test_files_that_are_given_twice_are_one_line(tmp_path):
    for name in "abc":
        write_table([specimen(name)], tmp_path / f"{name}.csv")
        write_table([specimen(name)], tmp_path / "again" / f"{name}.csv")
    with pytest.raises(ReadError) as error:
        read(tmp_path, tmp_path)
    assert str(error.value) == f"given twice: {tmp_path / 'a.csv'} and 2 more; give each file once"
    with pytest.raises(ReadError, match=r"called a \(.*\), and so in 2 more cases") as error:
        read(tmp_path, tmp_path / "again")
    assert "\n" not in str(error.value)


def test_what_is_true_of_many_files_is_said_once(tmp_path, caplog):
    for name in "abc":
        write_table([specimen(name)], tmp_path / f"{name}.csv")
    read(tmp_path, voxel_size=2)
    [record] = caplog.records
    assert record.getMessage().startswith(f"{tmp_path / 'a.csv'} and 2 more: in um already")


def test_paths_that_are_nothing_are_refused(tmp_path):
    with pytest.raises(ReadError, match="does not exist"):
        read(tmp_path / "nowhere")
    with pytest.raises(ReadError, match="no input"):
        read()
    (tmp_path / "a.docx").touch()
    with pytest.raises(ReadError, match=r"a\.docx: unknown kind of file; expected .*\.csv"):
        read(tmp_path / "a.docx")


@pytest.mark.parametrize("size", [0, -1, np.nan, [1, 2], [1, 2, np.inf]])
def test_a_voxel_size_is_one_or_three_positive_numbers(tmp_path, size):
    write_table(specimen("a"), tmp_path / "a.csv")
    with pytest.raises(ReadError, match="one or three positive"):
        read(tmp_path, voxel_size=size)


def test_a_voxel_size_makes_micrometres_of_voxels_and_leaves_the_rest(tmp_path):
    for unit in ("voxel", "um"):
        specimen = Specimen.from_arrays(unit, CORNERS + 1, radii=[1.0, 2, 3, np.nan], unit=unit)
        write_table(specimen, tmp_path / f"{unit}.csv")
    um, voxel = read(tmp_path, voxel_size=(0.5, 1, 16))
    assert (um.unit, voxel.unit) == ("um", "um")
    assert um.centroids.tolist() == (CORNERS + 1).tolist()
    assert voxel.centroids.tolist() == ((CORNERS + 1) * [0.5, 1, 16]).tolist()
    np.testing.assert_allclose(voxel.radii[:, 0], [2, 4, 6, np.nan])  # a voxel of volume 8
