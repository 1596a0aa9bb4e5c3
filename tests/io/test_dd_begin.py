"""The first look at a file of matching problems agrees with the parser."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.errors import ReadError
from eutely.io.dd import read_dd
from eutely.io.dd_begin import BEGIN, check_begin

WORDS = ["", "c note", "n0 1 2", "i1 0.5", " c", "\tx", "a 0 0 0 1.5", "e 0 1 2", "word", "\r"]


@given(st.lists(st.sampled_from(WORDS), max_size=6))
def test_the_first_error_is_that_of_the_parser(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "some.dd"
    path.write_bytes("\n".join(lines).encode())
    with pytest.raises(ReadError) as expected:
        read_dd(path)
    with pytest.raises(ReadError) as found:
        check_begin(path)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("text", ["c\np 1 1 1 0\na 0 0 0 -1\n", "gm 0 1\n", "c" * 2 * BEGIN])
def test_a_file_that_may_hold_a_problem_is_left_to_the_parser(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.dd"
    path.write_text(text)
    check_begin(path)


def test_compressed_files_are_left_to_the_parser(tmp_path: Path) -> None:
    path = tmp_path / "some.dd.xz"
    path.write_bytes(b"nothing of the kind")
    check_begin(path)
