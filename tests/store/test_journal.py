"""A journal is always a prefix of what was added, whatever happened to its file."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.errors import WriteError
from eutely.store.files import Journal

VALUES = st.lists(st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False)), max_size=5)


@given(VALUES, st.data())
def test_a_cut_journal_is_a_prefix_and_goes_on(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal") / "a.jsonl"
    journal = Journal(path)
    for value in values:
        journal.append(value)
    assert list(journal) == values
    assert list(Journal(path)) == values
    whole = path.read_bytes() if path.exists() else b""
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    cut = Journal(path)
    assert list(cut) == values[: len(cut)]
    for value in values[len(cut) :]:
        cut.append(value)
    assert path.read_bytes() == whole


def test_a_damaged_line_ends_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    for value in (1, 2, 3):
        journal.append({"value": value})
    path.write_bytes(path.read_bytes().replace(b'"value":2', b'"value":7'))
    assert list(Journal(path)) == [{"value": 1}]
    assert list(Journal(path)) == [{"value": 1}], "cut on opening"


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    journal.append("first")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(WriteError, match=r"a\.jsonl"):
            journal.append("x" * 200)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(journal) == list(Journal(path)) == ["first"]
    journal.append("second")
    assert list(Journal(path)) == ["first", "second"]
