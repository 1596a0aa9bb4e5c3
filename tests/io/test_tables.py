import csv

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from eutely import Specimen, read
from eutely.errors import ReadError, WriteError
from eutely.io.tables import read_table, write_table

SUFFIXES = [".csv", ".tsv", ".parquet"]

# names that a careless reader turns into numbers, missing values or several fields
CELLS = ["", "NA", "nan", "None", "1", "1e5", "AB,al", 'q"q', "a;b", "t\tt", "n\nn", "r\rr", "µ"]
NUMBERS = [0.1, -0.0, 1 / 3, 5e-324, 9.87654321e11, 2.0**39 + 2**-13, 1e11, -7.25]


@st.composite
def specimens(draw, name="one"):
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(4, 6))
    missing = [*NUMBERS, np.nan] if draw(st.booleans()) else [np.nan]
    lengths = np.abs(random.choice(NUMBERS, (count, 3)))
    lengths[random.random(count) < draw(st.sampled_from([0, 0.5, 1]))] = np.nan
    return Specimen(
        name=name,
        ids=random.integers(-(2**63), 2**63 - 1, count),
        centroids=random.choice(NUMBERS, (count, 3)),
        radii=-np.sort(-lengths, axis=1),
        axes=random.choice(missing, (count, 3, 3)) if draw(st.booleans()) else None,
        features={
            key: random.choice(missing, count)
            for key in draw(st.lists(st.sampled_from(["R", "G", "mean", "NA"]), unique=True))
        },
        names=tuple(random.choice(CELLS, count)) if draw(st.booleans()) else None,
        unit=draw(st.sampled_from(["um", "voxel", "unit", "furlong"])),
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=50)
@given(specimen=specimens())
def test_a_specimen_survives_bit_by_bit(tmp_path_factory, suffix, specimen):
    path = tmp_path_factory.mktemp("tables") / f"one{suffix}"
    write_table(specimen, path)
    assert read_table(path, "one") == [specimen]


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=50)
@given(first=specimens("NA"), second=specimens("2"))
def test_a_cohort_survives_bit_by_bit(tmp_path_factory, suffix, first, second):
    path = tmp_path_factory.mktemp("tables") / f"cohort{suffix}"
    write_table([first, second], path)
    assert read_table(path, "cohort") == [first, second]


def test_a_specimen_keeps_its_name_in_a_file_of_another_name(tmp_path):
    square = Specimen.from_arrays("square", np.eye(4, 3))
    write_table(square, tmp_path / "other.csv")
    write_table(square, tmp_path / "square.csv")
    assert read(tmp_path / "other.csv") == [square] == read(tmp_path / "square.csv")
    assert "specimen" in (tmp_path / "other.csv").read_text()
    assert "specimen" not in (tmp_path / "square.csv").read_text()


def test_a_foreign_table_is_understood(tmp_path):
    path = tmp_path / "worm.csv"
    path.write_text(
        "\ufeffid ;x;y;z;r1;r2;r3;name;dataset;red;unit\n"
        "7.0;1;2;3;1;3;2;AVAL;left;0.5;µm\n"
        "\n"
        "9;4;5;6;;;;;left;NA;micron\n"
    )
    (worm,) = read_table(path, "worm")
    assert worm.ids.tolist() == [7, 9]
    assert worm.centroids.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert worm.radii[0].tolist() == [3, 2, 1]
    assert np.isnan(worm.radii[1]).all()
    assert worm.names == ("AVAL", "")
    assert worm.unit == "um"
    assert list(worm.features) == ["red"]
    np.testing.assert_array_equal(worm.features["red"], [0.5, np.nan])


def test_one_radius_stands_for_three_and_rows_are_numbered(tmp_path):
    path = tmp_path / "cohort.tsv"
    path.write_text("individual\tx\ty\tz\tr\nb\t0\t0\t0\t2\na\t0\t0\t0\t3\nb\t1\t1\t1\t4\n")
    b, a = read_table(path, "cohort")
    assert (b.name, a.name) == ("b", "a")
    assert b.radii.tolist() == [[2] * 3, [4] * 3]
    assert b.ids.tolist() == [0, 1]
    assert b.unit == "unit"


def test_axes_follow_their_radii(tmp_path):
    path = tmp_path / "worm.csv"
    header = ["x", "y", "z", "r1", "r2", "r3", *(f"a{i}{x}" for i in "123" for x in "xyz")]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, [0, 0, 0, 1, 3, 2, *np.eye(3).ravel()]])
    (worm,) = read_table(path, "worm")
    assert worm.radii.tolist() == [[3, 2, 1]]
    assert worm.axes.tolist() == [[[0, 1, 0], [0, 0, 1], [1, 0, 0]]]


def test_an_identifier_with_an_underscore_is_no_number(tmp_path):
    path = tmp_path / "worm.csv"
    path.write_text("x,y,z,batch\n0,0,0,2006_1\n")
    assert not read_table(path, "worm")[0].features


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no column x, y, z"),
        ("x,y\n1,2\n", "no column z"),
        ("x,y,z\n1,2,3\n4,5\n", "line 3 has 2 fields"),
        ("x,y,z\n1,2,3\n\n4,five,6\n", "line 4: y is 'five'"),
        ("id,x,y,z\n1.5,1,2,3\n", "line 2: id is '1.5', expected a whole number"),
        ("id,x,y,z\n,1,2,3\n", "id is ''"),
        ("id,x,y,z\ninf,1,2,3\n", "id is 'inf'"),
        (f"id,x,y,z\n{2**63},1,2,3\n", "expected a whole number"),
        ("x,y,z,x\n1,2,3,4\n", "column x occurs twice"),
        ("x,y,z,r1\n1,2,3,4\n", "not all of the columns"),
        ("x,y,z,unit\n1,2,3,um\n1,2,3,voxel\n", "mixed units"),
        ("specimen,x,y,z\n,1,2,3\n", "line 2: column specimen is empty"),
    ],
)
def test_errors_name_what_is_wrong_with_a_table(tmp_path, text, words):
    path = tmp_path / "worm.csv"
    path.write_text(text)
    with pytest.raises(ReadError, match=words):
        read_table(path, "worm")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_bytes_that_are_no_table_are_refused(tmp_path, suffix):
    path = tmp_path / f"worm{suffix}"
    path.write_bytes(b"\xff\xfe\x00\x01" * 50)
    with pytest.raises(ReadError, match="worm"):
        read_table(path, "worm")


def test_features_that_would_not_come_back_are_refused(tmp_path):
    worm = Specimen.from_arrays("worm", np.eye(3), features={"x": [1.0, 2, 3]})
    with pytest.raises(WriteError, match="'x' cannot be a column"):
        write_table(worm, tmp_path / "worm.csv")
    with pytest.raises(WriteError, match="ends in"):
        write_table(worm, tmp_path / "worm.xlsx")
    assert not list(tmp_path.iterdir())
