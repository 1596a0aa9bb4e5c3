"""Pins of a specimen: undo and redo, one nucleus per cell; the log of all."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.curate.history import History, Log, in_words
from eutely.errors import EutelyError
from eutely.io.pins import Change, append_pins


def settle(history: History, wanted: dict[int, int | None]) -> None:
    history.apply(history.plan(wanted), history.revision + 1)


def test_a_cell_belongs_to_one_nucleus() -> None:
    history = History()
    settle(history, {1: 7})
    settle(history, {2: 7})
    assert history.pins == {2: 7}
    settle(history, {3: -1, 4: -1})  # any number may be none
    assert history.pins == {2: 7, 3: -1, 4: -1}
    with pytest.raises(EutelyError, match="two nuclei"):
        history.plan({5: 8, 6: 8})


def test_the_revision_of_a_log_grows_with_each_row_and_survives(tmp_path: Path) -> None:
    path = tmp_path / "pins.csv"
    first = Log(path)
    assert first.read() == (True, [])
    first.add([Change("a", 1, "AVAL", "ann", "t1"), Change("b", 2, 7, "", "t1")])
    first.add([Change("a", 1, None, "", "t2")])
    assert first.revision == 3
    second = Log(path)  # as after a restart
    assert second.read() == (True, first.changes)
    assert second.revision == 3
    assert [row.time for row in second.since(2) or ()] == ["t2"]
    assert in_words(second.since(0)) == (
        "nucleus 1 of a was set to AVAL by ann, nucleus 2 of b was set to cell 7, nucleus 1 of a "
        "was opened"
    )
    assert in_words(second.since(3)) == ""
    assert second.since(4) is None
    second.add([Change("a", 3, "", "", "t3")])
    assert first.read() == (True, second.changes[3:])


def test_a_log_that_lost_rows_is_read_anew_and_no_old_revision_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "pins.csv"
    log = Log(path)
    log.add([Change("a", 1, "AVAL", "", "t1"), Change("a", 2, "AVAR", "", "t2")])
    path.unlink()
    append_pins([Change("a", 3, "AVBL", "", "t3")], path)
    same, rows = log.read()
    assert not same
    assert [row.id for row in rows] == [3]
    assert "changed by another program" in caplog.text
    assert log.revision > 3
    assert log.since(2) is None
    assert "read anew" in in_words(log.since(2))


@given(st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(-1, 4)), max_size=12))
def test_undo_leads_back_through_all_states_and_redo_forth(steps: list[tuple[int, int]]) -> None:
    history = History()
    states = [{}]
    for row, cell in steps:
        settle(history, {row: cell})
        states.append(dict(history.pins))
    for state in reversed(states[:-1]):
        edit = history.undo()
        assert edit is not None
        history.apply(edit, history.revision + 1, "undo")
        assert history.pins == state
    assert history.undo() is None
    for state in states[1:]:
        edit = history.redo()
        assert edit is not None
        history.apply(edit, history.revision + 1, "redo")
        assert history.pins == state
    assert history.redo() is None
