"""Logs of pins: the last row of a nucleus counts, and no crash loses or breaks a row."""

from pathlib import Path

import pytest

from eutely.errors import ReadError
from eutely.io.pins import (
    LOG_COLUMNS,
    Change,
    add_pins,
    append_pins,
    read_changes,
    read_pins,
    write_pins,
)
from kills import child


def change(id_: int, cell: str | int | None, time: str = "2026-01-01T00:00:00Z") -> Change:
    return Change("worm", id_, cell, "ann, the first", time)


def test_the_last_row_of_a_nucleus_counts(tmp_path: Path) -> None:
    path = tmp_path / "pins.csv"
    append_pins([change(1, "AVAL"), change(2, "AVAR"), change(3, 7)], path)
    append_pins([change(1, "AVBL"), change(2, None), change(4, "")], path)
    assert read_pins(path) == {("worm", 1): "AVBL", ("worm", 3): 7, ("worm", 4): ""}
    assert len(read_changes(path)) == 6
    assert read_changes(path)[0] == change(1, "AVAL")
    append_pins([change(2, "AVDL")], path)
    assert read_pins(path)["worm", 2] == "AVDL"


def test_a_plain_table_becomes_a_log(tmp_path: Path) -> None:
    path = tmp_path / "pins.csv"
    write_pins({("worm", 1): "AVAL", ("worm", 2): 12}, path)
    append_pins([change(1, None)], path)
    assert path.read_text().splitlines()[0] == ",".join(LOG_COLUMNS)
    assert read_pins(path) == {("worm", 2): 12}


def test_another_program_adds_to_a_log_and_to_a_plain_table(tmp_path: Path) -> None:
    path = tmp_path / "pins.csv"
    append_pins([change(1, "AVAL"), change(2, None)], path)
    add_pins({("worm", 9): "AVAR"}, path)
    assert read_changes(path)[:2] == [change(1, "AVAL"), change(2, None)]
    assert read_pins(path) == {("worm", 1): "AVAL", ("worm", 9): "AVAR"}
    plain = tmp_path / "plain.csv"
    add_pins({("worm", 9): "AVAR"}, plain)
    add_pins({("worm", 8): "AVAL"}, plain)
    assert plain.read_text() == "specimen,id,name\nworm,8,AVAL\nworm,9,AVAR\n"


def test_an_editor_may_leave_out_the_last_newline(tmp_path: Path) -> None:
    path = tmp_path / "pins.csv"
    append_pins([change(1, "AVAL")], path)
    path.write_bytes(path.read_bytes().rstrip())
    append_pins([change(2, "AVAR")], path)
    assert read_pins(path) == {("worm", 1): "AVAL", ("worm", 2): "AVAR"}


def test_an_id_twice_in_a_plain_table_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "pins.csv"
    path.write_text("specimen,id,name\nworm,1,AVAL\nworm,1,AVAR\n")
    with pytest.raises(ReadError, match="lines 2 and 3"):
        read_pins(path)


@pytest.mark.parametrize("moment", range(1, 9))
def test_a_kill_leaves_all_of_a_change_or_nothing(tmp_path: Path, moment: int) -> None:
    path = tmp_path / "pins.csv"
    append_pins([change(1, "AVAL")], path)

    def work() -> None:
        append_pins([change(2, "AVAR"), change(3, "AVBL")], path)

    ended = child(work, str(tmp_path), moment)
    names = set(read_pins(path).values())
    assert names in ({"AVAL"}, {"AVAL", "AVAR", "AVBL"})
    assert names == {"AVAL", "AVAR", "AVBL"} or ended != 0
