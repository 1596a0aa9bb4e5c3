"""A curation on disk: corrections first go to pins.csv, survive, and end in the tables."""

import shutil
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from eutely.curate.folder import open_material
from eutely.curate.history import ConflictError
from eutely.curate.session import Session
from eutely.curate.slices import Slicer
from eutely.curate.views import changes, overview, specimen_state
from eutely.errors import EutelyError, ReadError
from eutely.io.images import Images
from eutely.io.pins import Change, append_pins, read_changes, read_pins
from eutely.io.sources import Files, read_files, write_files
from eutely.io.volumes import write_volume
from toy_curation import toy_folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_folder(tmp_path_factory.mktemp("toy") / "annotated", volumes=True)


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "annotated"))


def swapped(session: Session, number: int = 0, rows: tuple[int, int] = (5, 6)) -> dict[int, int]:
    cells = session.solve(number).nuclei.cells
    return {rows[0]: int(cells[rows[1]]), rows[1]: int(cells[rows[0]])}


def test_a_correction_is_on_disk_and_the_rest_follows(folder: Path) -> None:
    session = Session(open_material(folder), author="ann")
    wanted = swapped(session)
    revision = session.correct(0, wanted, 0)
    rows = read_changes(folder / "pins.csv")  # before the specimen was matched again
    assert [row.author for row in rows] == ["ann", "ann"]
    assert {row.id for row in rows} == set(session.cases[0].shown.ids[[5, 6]].tolist())
    assert session.solve(0).nuclei.cells[[5, 6]].tolist() == list(wanted.values())
    told = specimen_state(session, 0, 0.99)
    assert told["revision"] == told["solved"] == revision
    assert [change["why"] for change in told["changes"]][:2] == ["pinned", "pinned"]
    assert [pair[0] for pair in told["pins"]] == [5, 6]
    assert overview(session, 0.99)["specimens"][0]["pins"] == 2
    session.close()


def test_who_goes_on_is_who_was_there_last_unless_said(folder: Path) -> None:
    first = Session(open_material(folder), author="ann")
    assert Session(open_material(folder)).author == ""
    first.correct(0, swapped(first), 0)
    first.close()
    again = Session(open_material(folder))
    assert overview(again, 0.99)["author"] == "ann"
    again.undo(0, again.revision)
    assert read_changes(folder / "pins.csv")[-1].author == "ann"
    assert Session(open_material(folder), author="bob").author == "bob"


def test_the_page_says_why_there_are_no_slices(folder: Path) -> None:
    assert "came from a table" in Slicer(Files()).why_not("any", True)
    assert "is not in this folder" in Slicer(Files()).why_not("any", False)
    moved = Slicer(Files({"worm": (str(folder / "moved.tif"), "")}))
    assert f"{folder / 'moved.tif'} is not where it was" in moved.why_not("worm", True)


def test_undo_and_redo_are_on_disk_too(folder: Path) -> None:
    session = Session(open_material(folder))
    before = session.solve(0).nuclei.cells.tolist()
    session.correct(0, swapped(session), 0)
    after = session.solve(0).nuclei.cells.tolist()
    session.undo(0, session.revision)
    assert read_pins(folder / "pins.csv") == {}
    assert session.solve(0).nuclei.cells.tolist() == before
    assert [change["why"] for change in changes(session.cases[0])][:2] == ["opened", "opened"]
    session.redo(0, session.revision)
    assert len(read_pins(folder / "pins.csv")) == 2
    assert session.solve(0).nuclei.cells.tolist() == after
    assert len(read_changes(folder / "pins.csv")) == 6
    session.close()


def test_going_on_gives_the_same_names_and_can_undo(folder: Path) -> None:
    first = Session(open_material(folder))
    first.correct(0, swapped(first), 0)
    cells = first.solve(0).nuclei.cells.tolist()
    first.close()
    second = Session(open_material(folder))
    assert second.solve(0).nuclei.cells.tolist() == cells
    second.undo(0, second.revision)
    assert second.cases[0].history.pins == {}
    second.close()


def test_tables_agree_with_the_corrections_at_the_end(folder: Path) -> None:
    session = Session(open_material(folder))
    wanted = swapped(session)
    names = session.material.atlas.names
    session.correct(0, wanted, 0)
    line = session.close()
    assert line.startswith(f"1 change saved in {folder / 'pins.csv'} (2 nuclei are settled)")
    table = pd.read_csv(folder / f"{session.cases[0].shown.name}.csv")
    assert [table["name"][row] for row in wanted] == [names[cell] for cell in wanted.values()]
    assert [table["confidence"][row] for row in wanted] == [1.0, 1.0]
    assert "2 pinned" in (folder / "report.html").read_text(encoding="utf-8")
    again = Session(open_material(folder))
    assert again.close().startswith("0 changes saved")


def test_no_window_takes_back_what_it_has_not_seen(folder: Path) -> None:
    session = Session(open_material(folder), author="ann")
    name = session.material.atlas.names[3]
    session.correct(0, {5: 3}, 0)
    told = rf"another window, nucleus \d+ of worm001 was set to {name} by ann meanwhile"
    with pytest.raises(ConflictError, match=told) as same_cell:
        session.correct(0, {6: 3}, 0)  # another nucleus, but the same cell
    assert same_cell.value.revision == 1
    assert same_cell.value.numbers == [0]
    for change in (session.undo, session.redo):
        with pytest.raises(ConflictError, match=told):
            change(0, 0)
    with pytest.raises(ConflictError) as elsewhere:
        session.correct(1, {6: 3}, 0)
    assert elsewhere.value.numbers == [0]  # so that a window of specimen 1 can go on
    with pytest.raises(ConflictError, match="read anew"):
        session.correct(0, {6: 3}, 2)  # of a server that was killed
    assert list(read_pins(folder / "pins.csv").values()) == [name]
    assert specimen_state(session, 0, 0.99, 0)["meanwhile"].startswith("nucleus")
    assert specimen_state(session, 0, 0.99, 1)["meanwhile"] == ""
    session.close()


def test_corrections_from_many_threads_are_all_kept(folder: Path) -> None:
    session = Session(open_material(folder))

    def settle(row: int) -> None:
        seen = 0
        while True:
            try:
                session.correct(0, {row: -1}, seen)
            except ConflictError as error:
                seen = error.revision
            else:
                return

    threads = [threading.Thread(target=settle, args=(row,)) for row in range(10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_pins(folder / "pins.csv")) == 10
    session.close()


def test_rows_of_another_program_are_taken_over(folder: Path) -> None:
    session = Session(open_material(folder))
    case = session.cases[1]
    names = session.material.atlas.names
    session.correct(0, {5: 3}, 0)
    append_pins([Change(case.shown.name, int(case.shown.ids[2]), names[8])], folder / "pins.csv")
    with pytest.raises(ConflictError, match=names[8]):
        session.correct(0, {6: 4}, 1)
    session.correct(0, {6: 4}, 2)
    assert case.history.pins == {2: 8}
    assert session.cases[0].history.pins == {5: 3, 6: 4}
    assert len(read_changes(folder / "pins.csv")) == 3
    append_pins([Change(case.shown.name, int(case.shown.ids[3]), names[9])], folder / "pins.csv")
    told = overview(session, 0.99)["specimens"][1]
    assert (told["pins"], told["revision"]) == (2, 4)
    session.close()


def test_rows_of_a_plain_table_are_undone_one_by_one(folder: Path) -> None:
    material = open_material(folder)
    ids, names = material.shown[0].ids, material.atlas.names
    rows = [f"{material.shown[0].name},{ids[row]},{names[row]}" for row in (3, 4)]
    (folder / "pins.csv").write_text("\n".join(["specimen,id,name", *rows]) + "\n")
    session = Session(material)
    session.undo(0, session.revision)
    assert session.cases[0].history.pins == {3: 3}
    session.close()


def test_pins_that_are_not_understood_stay_in_the_file(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "specimen,id,name\nworm001,999999,AVAL\nelsewhere,1,AVAL\n"
    (folder / "pins.csv").write_text(text)
    session = Session(open_material(folder))
    assert not any(case.history.pins for case in session.cases)
    assert "nucleus 999999 of worm001" in caplog.text
    session.correct(0, {5: 3}, session.revision)
    assert ("elsewhere", 1) in read_pins(folder / "pins.csv")
    session.close()


def test_read_only_refuses_and_bad_requests_are_refused(folder: Path) -> None:
    session = Session(open_material(folder), read_only=True)
    with pytest.raises(EutelyError, match="read-only"):
        session.correct(0, {5: 3}, 0)
    assert session.close() == "read-only: nothing was changed"
    assert not (folder / "pins.csv").exists()
    session = Session(open_material(folder))
    for wanted in ({500: 3}, {-1: 3}, {5: 40}, {5: -2}):
        with pytest.raises(EutelyError, match="there is no nucleus"):
            session.correct(0, wanted, 0)
    session.close()


def test_slices_go_through_the_nucleus(folder: Path) -> None:
    import base64

    material = open_material(folder)
    slicer = Slicer(material.files)
    specimen = material.specimens["worm001"]
    assert slicer.has("worm001") == {"labels": True, "image": True}
    assert slicer.has("nobody") == {"labels": False, "image": False}
    for row in (0, 17):
        told = slicer.through("worm001", specimen.ids, specimen.centroids[row], 40.0)
        assert told["channels"] == [{"name": "channel1", "colour": (1.0, 1.0, 1.0)}]
        for plane in told["planes"]:
            side = plane["width"]
            rows = np.frombuffer(base64.b64decode(plane["nuclei"]), "<u4").reshape(side, side)
            (image,) = plane["images"]
            grey = np.frombuffer(base64.b64decode(image), "<u2").reshape(side, side)
            assert rows[side // 2, side // 2] == row + 1
            assert grey[side // 2, side // 2] > grey[0, 0]
        assert [(plane["across"], plane["down"]) for plane in told["planes"]] == [
            ("x", "y"), ("x", "z"), ("y", "z"),
        ]  # fmt: skip


def test_slices_show_each_channel_in_its_colour(tmp_path: Path) -> None:
    import base64

    labels = np.zeros((6, 20, 30), np.uint16)
    labels[2:4, 8:12, 10:14] = 7
    image = np.zeros((4, *labels.shape), np.float32)
    image[1][labels == 7] = 0.5
    write_volume(labels, tmp_path / "w.tif", 1)
    np.save(tmp_path / "raw.npy", image)
    files = Files(
        {"w": (str(tmp_path / "w.tif"), "")},
        {"w": str(tmp_path / "raw.npy")},
        sizes={"w": (1.0, 1.0, 1.0)},
        channels=("mNeptune2.5", "G_mean", "-", "GFP"),
    )
    told = Slicer(files).through("w", np.array([7]), np.array([12.0, 10.0, 2.0]), 6.0)
    assert [one["name"] for one in told["channels"]] == ["mNeptune2.5", "G_mean", "GFP"]
    reds = [one["colour"].index(max(one["colour"])) for one in told["channels"][:2]]
    assert reds == [0, 1]
    for plane in told["planes"]:
        red, green, gfp = (np.frombuffer(base64.b64decode(one), "<u2") for one in plane["images"])
        rows = np.frombuffer(base64.b64decode(plane["nuclei"]), "<u4")
        assert (green[rows == 1] == 65535).all()
        assert not green[rows == 0].any()
        assert not red.any()
        assert not gfp.any()


def test_images_are_remembered_by_name(tmp_path: Path) -> None:
    for name in ("worm1.tif", "other.tif"):
        (tmp_path / name).write_bytes(b"")
    found = Images(tmp_path).remembered(Files(), ["worm1", "worm2"])
    assert found.images == {"worm1": str(tmp_path / "worm1.tif")}
    found = Images(tmp_path / "other.tif", ("R",)).remembered(Files(), ["worm1"])
    assert (list(found.images), found.channels) == (["worm1"], ("R",))
    with pytest.raises(ReadError, match="one image for 2 specimens"):
        Images(tmp_path / "other.tif").remembered(Files(), ["worm1", "worm2"])
    with pytest.raises(ReadError, match="no image of worm9"):
        Images(tmp_path).remembered(Files(), ["worm9"])
    with pytest.raises(ReadError, match="does not exist"):
        Images(tmp_path / "nothing").remembered(Files(), ["worm9"])


def test_what_a_folder_remembers_is_found_after_it_moved(tmp_path: Path) -> None:
    files = Files(
        {"a": ("/nowhere/a.tif", "x")}, {"a": "/nowhere/raw.tif"}, (1.0, 1.0, 2.0),
        {"b": ("table", "/nowhere/b.csv", "")}, {"a": (0.1, 0.1, 0.2)}, ("R", "-"),
    )  # fmt: skip
    (tmp_path / "out").mkdir()
    write_files(tmp_path / "out", files)
    assert read_files(tmp_path / "out") == files
    (tmp_path / "a.tif").write_bytes(b"")  # beside the folder
    (tmp_path / "out" / "raw.tif").write_bytes(b"")
    found = read_files(tmp_path / "out")
    assert found.volumes == {"a": (str(tmp_path / "a.tif"), "x")}
    assert found.images == {"a": str(tmp_path / "out" / "raw.tif")}
    earlier = '{"volumes": {"a": ["/x/b.tif", ""]}, "images": {}, "voxel_size": null}'
    (tmp_path / "curate.json").write_text(earlier)
    assert read_files(tmp_path) == Files({"a": ("/x/b.tif", "")})
    (tmp_path / "inputs.json").write_text('{"volumes": 3}')
    with pytest.raises(ReadError, match="is damaged"):
        read_files(tmp_path)


@pytest.mark.parametrize(
    "side", ["Infinity", "NaN", "1e999", "0", "-1", "null", '"x"', "[1]", "1, 1"]
)
@pytest.mark.parametrize("key", ["voxel_size", "sizes"])
def test_voxel_sizes_of_a_folder_are_positive_numbers(tmp_path: Path, side: str, key: str) -> None:
    text = '{"volumes": {}, "images": {}, "voxel_size": [1, 1, 2], "sizes": {"a": [1, 1, 2]}}'
    (tmp_path / "inputs.json").write_text(text)
    assert read_files(tmp_path).voxel_size == read_files(tmp_path).sizes["a"] == (1.0, 1.0, 2.0)
    begin = '"voxel_size": [1, 1' if key == "voxel_size" else '"a": [1, 1'
    (tmp_path / "inputs.json").write_text(text.replace(f"{begin}, 2", f"{begin}, {side}"))
    with pytest.raises(ReadError, match="is damaged") as caught:
        read_files(tmp_path)
    assert len(str(caught.value).splitlines()) == 1
