"""The napari plugin without napari: tables, colours, centroids, layers, pins."""

from pathlib import Path

import numpy as np
import pytest

from eutely.errors import ReadError
from eutely.io.pins import read_pins, write_pins
from eutely.io.relabel import GREY, colour_of, write_colours
from eutely.io.volumes import write_volume
from eutely.napari.named import Named, as_pin, read_named
from eutely.napari.planes import Packed, cuts
from eutely.napari.reader import CENTRAL, CENTRES, TABLE, colormap, get_reader, table_of

pytestmark = pytest.mark.filterwarnings("default")  # warnings of napari are not ours

TEXT = """id,cell,name,confidence,alternatives
7,0,AVAL,0.9900,AVAR:0.01
3,1,,0.4000,AVAL:0.3;12:0.2
9,,,,
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A volume of two nuclei, 3 and 7, and a table that lists a third."""
    labels = np.zeros((4, 6, 8), np.uint16)
    labels[1:3, 1:3, 1:3] = 7
    labels[2, 4, 5:8] = 3
    write_volume(labels, tmp_path / "worm.tif", (0.5, 0.5, 2.0))
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "worm.csv").write_text(TEXT)
    return tmp_path


def test_a_table_is_read(folder: Path) -> None:
    named = read_named(folder / "named" / "worm.csv")
    assert named.specimen == "worm"
    assert named.names == ("AVAL", "cell 1", "")
    assert named.uncertain().tolist() == [2, 1]  # no cell at all, then 40%
    assert named.alternatives[1] == "AVAL:0.3;12:0.2"


def test_another_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nuclei.csv").write_text("id,x,y,z\n1,2,3,4\n")
    with pytest.raises(ReadError, match="not a table of eutely annotate"):
        read_named(tmp_path / "nuclei.csv")
    (tmp_path / "bad.csv").write_text("id,cell,name,confidence\none,0,A,0.5\n")
    with pytest.raises(ReadError, match=r"id is .one., expected a whole number"):
        read_named(tmp_path / "bad.csv")


def test_a_cell_has_one_colour_everywhere(folder: Path) -> None:
    assert colour_of("AVAL") == colour_of(" aval")
    assert len({colour_of(f"cell {number}") for number in range(500)}) == 500
    assert read_named(folder / "named" / "worm.csv").colours()[9] == GREY


def test_a_cell_without_a_name_is_pinned_by_its_number() -> None:
    assert as_pin("cell 12") == 12
    assert as_pin(" AVAL ") == "AVAL"
    assert as_pin("cellular 3") == "cellular 3"


def test_centroids_of_labels() -> None:
    labels = np.zeros((3, 4, 5), int)
    labels[1, 1:3, 2] = 4
    centres = cuts(labels, np.array([8, 4])).centroids()
    assert centres[1].tolist() == [1, 1.5, 2]
    assert np.isnan(centres[0]).all()
    nothing = cuts(labels, np.array([], dtype=np.int64))
    assert nothing.centroids().shape == (0, 3)
    assert nothing.central().shape == (0,)


def test_planes_come_back_one_by_one() -> None:
    labels = np.random.default_rng(0).integers(0, 2**40, (5, 7, 9)).astype(">i8")
    packed = Packed()
    for _ in packed.kept(labels):
        pass
    lazy = packed.array()
    assert lazy.chunks == ((1,) * 5, (7,), (9,))
    np.testing.assert_array_equal(np.asarray(lazy), labels)
    np.testing.assert_array_equal(np.asarray(lazy[3, 2:4]), labels[3, 2:4])


def test_a_volume_is_opened_with_its_table(folder: Path) -> None:
    assert table_of(folder / "worm.tif") == folder / "named" / "worm.csv"
    reader = get_reader(str(folder / "worm.tif"))
    assert reader is not None
    (labels, of_labels, kind), (points, of_points, other) = reader(str(folder / "worm.tif"))
    assert (kind, other) == ("labels", "points")
    assert labels.shape == (4, 6, 8)
    assert of_labels["scale"] == of_points["scale"] == (2.0, 0.5, 0.5)
    colours = of_labels["colormap"]
    np.testing.assert_allclose(colours.map(7), colour_of("AVAL"), atol=1e-6)
    np.testing.assert_allclose(colours.map(5), GREY)  # a label that the table does not have
    assert colours.map(0)[3] == 0
    assert of_labels["metadata"][TABLE].endswith("worm.csv")
    # A name in each plane that cuts a nucleus, 7 in two, 3 in one; 9 is not in the volume.
    assert points.tolist() == [[1, 1.5, 1.5], [2, 1.5, 1.5], [2, 4, 6]]
    assert of_points["features"]["name"].tolist() == ["AVAL", "AVAL", "cell 1"]
    assert of_points["metadata"][CENTRAL].tolist() == [True, False, True]
    np.testing.assert_array_equal(
        of_labels["metadata"][CENTRES], [[1.5, 1.5, 1.5], [2, 4, 6], [np.nan] * 3]
    )


def test_a_copy_with_the_numbers_of_cells_is_opened_in_their_colours(tmp_path: Path) -> None:
    labels = np.zeros((3, 4, 5), np.uint16)
    labels[1, 1:3, 2] = 2
    write_volume(labels, tmp_path / "worm.tif", 1.0)
    write_colours(["", "AVAL"], tmp_path)
    reader = get_reader(str(tmp_path / "worm.tif"))
    assert reader is not None
    (_, of_labels, _), (points, of_points, _) = reader(str(tmp_path / "worm.tif"))
    np.testing.assert_allclose(of_labels["colormap"].map(2), colour_of("AVAL"), atol=1e-6)
    assert points.tolist() == [[1, 1.5, 2]]
    assert of_points["features"]["name"].tolist() == ["AVAL"]


def test_a_volume_without_a_table_is_left_to_others(tmp_path: Path) -> None:
    write_volume(np.ones((2, 3, 4), np.uint8), tmp_path / "worm.tif", 1.0)
    assert get_reader(str(tmp_path / "worm.tif")) is None
    assert get_reader(["a.tif", "b.tif"]) is None


def test_pins_are_kept_and_added_to(tmp_path: Path) -> None:
    path = tmp_path / "pins.csv"
    with pytest.raises(ReadError, match="cannot read"):
        read_pins(path)
    write_pins({("b", 2): "AVAR", ("a", 10): "X", ("a", 9): "with, comma"}, path)
    lines = ["specimen,id,name", 'a,9,"with, comma"', "a,10,X", "b,2,AVAR"]
    assert path.read_text().splitlines() == lines
    write_pins(read_pins(path) | {("b", 2): "AVAL"}, path)
    assert read_pins(path)["b", 2] == "AVAL"
    write_pins({("a", 1): 12, ("a", 2): "B"}, path)
    assert path.read_text().splitlines() == ["specimen,id,name,cell", "a,1,,12", "a,2,B,"]
    assert read_pins(path) == {("a", 1): 12, ("a", 2): "B"}
    path.write_text("x,y\n1,2\n")
    with pytest.raises(ReadError, match="no columns specimen and id"):
        read_pins(path)


@pytest.mark.parametrize(("labels", "table"), [([7, 3], True), ([7, 2**40], False)])
def test_every_label_has_its_colour(labels: list[int], table: bool) -> None:
    """Labels beyond those of the nuclei stay grey; large ones need no table of that length."""
    named = Named("worm", np.array(labels), ("AVAL", "AVAR"), np.ones(2), ("", ""))
    colours = colormap(named, 12)
    assert isinstance(colours, dict) != table
    if table:
        shown = colours.map(np.arange(13, dtype=np.uint16))
        np.testing.assert_allclose(shown[[7, 3]], [colour_of("AVAL"), colour_of("AVAR")], atol=1e-6)
        np.testing.assert_allclose(shown[[1, 8, 12]], [GREY] * 3)
    else:
        assert colours[2**40] == colour_of("AVAR")
        assert colours[None] == GREY
