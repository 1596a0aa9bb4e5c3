"""Names in tables of their own, beside a volume or by an option, and pins."""

import logging

import numpy as np
import pytest

from eutely import Specimen, read
from eutely.errors import ReadError
from eutely.io.names import read_names, with_names
from eutely.io.pins import read_pins
from eutely.io.read import BadFilesError
from eutely.io.tables import write_table
from eutely.io.volumes import write_volume

NAMES = "id,name\n5,AVAL\n70,AVAR\n"

ANNOTATED = (
    "id,cell,name,confidence,alternatives\n"
    "5,12,AVAL,0.9981,AVAR:0.0012\n"
    "70,,,,AVAR:0.4;17:0.3\n"
    "800,17,,0.7312,AVAL:0.2\n"
    "9,3,RIML,0.9000,\n"
)
"""As ``eutely annotate`` writes it: 70 is uncertain, cell 17 has no name."""


def volume(path):
    labels = np.zeros((12, 16, 24), dtype=np.uint16)
    corners = [(2, 2, 2), (2, 2, 20), (2, 12, 8), (9, 5, 14)]
    for (z, y, x), label in zip(corners, (5, 70, 800, 9), strict=True):
        labels[z : z + 2, y : y + 2, x : x + 3] = label
    write_volume(labels, path, 1)


def specimen(name="worm"):
    return Specimen.from_arrays(name, np.eye(4, 3), ids=[5, 9, 70, 800])


@pytest.mark.parametrize("suffix", [".tif", ".zarr", ".h5", ".nrrd"])
@pytest.mark.parametrize("table", ["worm.csv", "worm.tsv", "worm.txt"])
def test_a_table_beside_a_volume_holds_its_names(tmp_path, caplog, suffix, table):
    volume(tmp_path / f"worm{suffix}")
    separator = "\t" if table != "worm.csv" else ","
    (tmp_path / table).write_text(NAMES.replace(",", separator))
    for given in ([tmp_path], [tmp_path / f"worm{suffix}"], sorted(tmp_path.iterdir())):
        with caplog.at_level(logging.INFO, "eutely"):
            (worm,) = read(*given)
        assert worm.ids.tolist() == [5, 9, 70, 800]
        assert worm.names == ("AVAL", "", "AVAR", "")
    assert f"tables of names beside volumes are used: {table}" in caplog.text


def test_a_table_with_coordinates_beside_a_volume_is_another_specimen(tmp_path):
    volume(tmp_path / "worm.tif")
    write_table(specimen(), tmp_path / "worm.csv")
    with pytest.raises(ReadError, match="two specimens are called worm"):
        read(tmp_path)


def test_names_without_their_volume_say_where_they_belong(tmp_path):
    (tmp_path / "worm.csv").write_text(NAMES)
    with pytest.raises(ReadError, match="beside a volume of the same name, or into --names"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["worm.csv", "names_of_monday.csv"])
def test_names_by_option(tmp_path, name):
    (tmp_path / "in").mkdir()
    volume(tmp_path / "in" / "worm.tif")
    path = tmp_path / name
    path.write_text(ANNOTATED)
    (worm,) = read(tmp_path / "in", names=path)
    assert worm.names == ("AVAL", "RIML", "", "")
    path.write_text("Label;Name\n9;ÄH\n", encoding="cp1252")
    assert read(tmp_path / "in", names=path)[0].names == ("", "ÄH", "", "")


def test_names_of_several_specimens(tmp_path, caplog):
    cohort = [specimen("a"), specimen("b")]
    (tmp_path / "names.csv").write_text("specimen,id,name\na,5,X\nb,5,Y\nc,5,Z\n")
    assert [one.names[0] for one in with_names(cohort, tmp_path / "names.csv")] == ["X", "Y"]
    assert "names of specimens that are not there: c" in caplog.text
    (tmp_path / "b.csv").write_text(NAMES)
    first, second = with_names(cohort, tmp_path / "b.csv")
    assert (first.names, second.names[0]) == (None, "AVAL")
    (tmp_path / "look-here-first.csv").write_text("specimen,id,name\nb,5,other\n")
    first, second = with_names(cohort, tmp_path)
    assert (first.names, second.names[0]) == (None, "AVAL")
    assert "no names for a" in caplog.text


def test_names_that_a_table_does_not_mention_stay(tmp_path):
    (tmp_path / "names.csv").write_text("id,name\n5,new\n9,\n")
    named = Specimen.from_arrays("worm", np.eye(4, 3), ids=[5, 9, 70, 800], names=list("abcd"))
    assert with_names([named], tmp_path / "names.csv")[0].names == ("new", "", "c", "d")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,nmae\n1,A\n", "no column name .found: id, nmae.; expected id, name"),
        ("number,name\n1,A\n", "no column id .found: number, name"),
        ("id,name\n5,A\n6,B\n", "worm has no nucleus with id 6 .1 of 2 ids."),
        ("id,name\n5,A\n9,C\n5,B\n", "id 5 is in lines 2 and 4; keep one"),
        ("specimen,id,name\nx,5,A\n", "names nuclei of x, none of which was read .first: worm"),
        ("specimen,id,name\n,5,A\n", "line 2: column specimen is empty"),
        ("id,name\n2006_1,A\n", "id is '2006_1'"),
        ("", "no column id .found: none"),
    ],
)
def test_wrong_names_are_one_line(tmp_path, text, words):
    path = tmp_path / "names.csv"
    path.write_text(text)
    with pytest.raises(ReadError, match=words) as caught:
        with_names([specimen()], path)
    assert "\n" not in str(caught.value)


def test_names_need_a_specimen(tmp_path):
    (tmp_path / "names.csv").write_text(NAMES)
    with pytest.raises(ReadError, match="none of the 2 specimens is called names; add the column"):
        with_names([specimen("a"), specimen("b")], tmp_path / "names.csv")
    (tmp_path / "in").mkdir()
    with pytest.raises(ReadError, match=r"expected files like a\.csv"):
        with_names([specimen("a"), specimen("b")], tmp_path / "in")


def test_read_names_of_one_specimen(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text(ANNOTATED)
    assert read_names(path) == {5: "AVAL", 9: "RIML"}
    path.write_text("specimen,id,name\na,1,A\nb,1,B\n")
    with pytest.raises(ReadError, match="names of several specimens"):
        read_names(path)


def test_pins_are_found_in_any_case(tmp_path):
    path = tmp_path / "pins.csv"
    path.write_text("Specimen;ID;Name\nworm;5;AVAL\nworm;9;\n", encoding="utf-16")
    assert read_pins(path) == {("worm", 5): "AVAL", ("worm", 9): ""}


def test_annotations_are_pins_of_the_specimen_that_they_are_called_after(tmp_path):
    path = tmp_path / "worm.csv"
    path.write_text(ANNOTATED.replace("RIML", "RIMR"))
    pins = {("worm", 5): "AVAL", ("worm", 800): 17, ("worm", 9): "RIMR"}
    assert read_pins(path) == pins  # 70 stays open
    lines = ANNOTATED.splitlines()
    tidy = ["specimen," + lines[0], *("worm," + line for line in lines[1:])]
    (tmp_path / "annotations.csv").write_text("\n".join(tidy).replace("RIML", "RIMR"))
    assert read_pins(tmp_path / "annotations.csv") == pins


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("specimen,id,nmae\na,1,A\n", "no column name or cell .found: specimen, id, nmae"),
        ("specimen,id\na,1\n", "no column name or cell .found: specimen, id"),
        ("id,name\n1,A\n", "no column specimen .found: id, name"),
        ("specimen,id,name\na,1,A\nb,1,B\na,1,C\n", "id 1 of a is in lines 2 and 4; keep one"),
        ("specimen,id,name\na,2006_1,A\n", "line 2: id is '2006_1'"),
        ("specimen,id,cell\na,1,1.5\n", "line 2: cell is '1.5'"),
        ("specimen,id,name\na,1\n", "line 2 has 2 fields"),
    ],
)
def test_wrong_pins_are_one_line(tmp_path, text, words):
    path = tmp_path / "pins.csv"
    path.write_text(text)
    with pytest.raises(ReadError, match=words) as caught:
        read_pins(path)
    assert "\n" not in str(caught.value)


def test_all_problems_are_listed_and_can_be_left_out(tmp_path, caplog):
    volume(tmp_path / "good.tif")
    (tmp_path / "metadata.csv").write_text("key,value\nstrain,N2\n")
    (tmp_path / "broken.csv").write_text("x,y,z\n1,2\n")
    (tmp_path / "~$animal_3.csv").write_bytes(b"\x05owner\0\0")
    with pytest.raises(BadFilesError) as caught:
        read(tmp_path)
    broken, metadata = caught.value.problems
    assert "broken.csv: line 2 has 2 fields" in broken
    assert "metadata.csv: no column x, y, z (found: key, value)" in metadata
    assert [one.name for one in read(tmp_path, skip_bad=True)] == ["good"]
    assert caplog.text.count("left out: ") == 2
    (tmp_path / "good.tif").unlink()
    with pytest.raises(ReadError, match="no specimen is left"):
        read(tmp_path, skip_bad=True)
