"""Pins of a specimen: undo and redo, one nucleus per cell, two windows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.curate.history import ConflictError, History
from eutely.errors import EutelyError


def settle(history: History, wanted: dict[int, int | None]) -> None:
    history.apply(history.plan(wanted, history.revision))


def test_a_cell_belongs_to_one_nucleus() -> None:
    history = History()
    settle(history, {1: 7})
    settle(history, {2: 7})
    assert history.pins == {2: 7}
    settle(history, {3: -1, 4: -1})  # any number may be none
    assert history.pins == {2: 7, 3: -1, 4: -1}
    with pytest.raises(EutelyError, match="two nuclei"):
        history.plan({5: 8, 6: 8}, history.revision)


def test_what_another_window_has_changed_is_not_overwritten() -> None:
    history = History()
    settle(history, {1: 7})
    with pytest.raises(ConflictError, match="another window"):
        history.plan({1: 8}, 0)
    history.apply(history.plan({2: 8}, 0))  # another nucleus
    assert history.pins == {1: 7, 2: 8}


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
        history.apply(edit, "undo")
        assert history.pins == state
    assert history.undo() is None
    for state in states[1:]:
        edit = history.redo()
        assert edit is not None
        history.apply(edit, "redo")
        assert history.pins == state
    assert history.redo() is None
