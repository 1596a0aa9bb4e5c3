import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.errors import ReadError
from eutely.io.limits import VARIABLE
from eutely.io.qap import is_qap, read_qap

GOOD = "2 7 6\n\n0 1\n2 0\n\n0 1.5 -3\n0\n"


def written(folder, text, name="a.qap"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_numbers_may_stand_in_any_lines(tmp_path):
    problem, best = read_qap(written(tmp_path, GOOD))
    assert problem.flows.tolist() == [[0, 1], [2, 0]]
    assert problem.distances.tolist() == [[0, 1.5], [-3, 0]]
    assert best == 7


def test_compressed_files_are_read_whatever_their_name(tmp_path):
    for name in ("a.qap.xz", "b.dat"):
        assert read_qap(written(tmp_path, lzma.compress(GOOD.encode()), name)).best_known == 7


@pytest.mark.parametrize(
    ("first", "best"),
    [("2", None), ("2 7", 7), ("2 -5", None), ("2 -5 7", 7), ("2 0 2", 2), ("2 7 7", 7)],
)
def test_the_first_line_has_the_best_known_value_before_or_after_a_bound(first, best, tmp_path):
    text = first + "\r\n0 1 2 0 0 1 1 0\r\n"
    assert read_qap(written(tmp_path, text)).best_known == best


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty; expected the number of objects"),
        (" \n\n", "is empty"),
        ("two\n0 1\n", "line 1 is 'two'; expected the number of objects"),
        ("\n\n2.5\n0 1\n", "line 3 is '2.5'; expected the number"),
        ("2 best\n", "line 1 is '2 best'"),
        ("2 nan\n", "line 1 is '2 nan'"),
        ("0\n", "0 objects"),
        ("-3\n", "-3 objects"),
        ("2 7 7 7\n0 0 0 0\n", "line 1 has 4 numbers"),
        ("2 7\n0 1 2 0 0 1 1\n", "7 numbers after the first line, expected 8: two matrices of 2"),
        ("2 7\n0 1 2 0 0 1 1 0 4\n", "9 numbers"),
        ("2 7\n0 1 2 0\n0 x 1 0\n", "line 3: 'x' is not a finite number"),
        ("2 7\n0 1 2 0\n0 1_0 1 0\n", "'1_0' is not a finite number"),
        ("2 7\n0 1 2 0\n0 inf 1 0\n", "'inf' is not a finite number"),
        (b"2 7\n0 1 2 0\n0 \xff\x1b 1 0\n", r"'\\xff\\x1b' is not a finite number"),
        ("2 7\n0 1e200 1e200 0\n0 1e200 1e200 0\n", "too large for a number"),
        ("1000000000 1\n0\n", "takes .* of memory, more than the limit"),
        ("9" * 5000 + "\n0\n", "line 1"),
    ],
)
def test_what_is_no_problem_is_one_line(text, words, tmp_path):
    with pytest.raises(ReadError, match=words) as caught:
        read_qap(written(tmp_path, text))
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 500


def test_a_file_that_is_cut_off_or_missing_is_one_line(tmp_path):
    path = written(tmp_path, lzma.compress(GOOD.encode())[:-3], "a.qap.xz")
    with pytest.raises(ReadError, match="is not a complete xz file"):
        read_qap(path)
    with pytest.raises(ReadError, match="cannot read"):
        read_qap(tmp_path / "nothing.qap")
    with pytest.raises(ReadError, match="not an ordinary file"):
        read_qap(tmp_path)


def test_a_bomb_of_xz_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "50MB")
    path = written(tmp_path, lzma.compress(b"2\n" + b" " * 50_000_000, preset=0), "a.qap.xz")
    with pytest.raises(ReadError, match="raise it with --max-memory"):
        read_qap(path)


@given(st.integers(1, 5), st.integers(0, 2**32))
def test_what_is_written_in_any_way_is_read(tmp_path_factory, n, seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(-99, 99, 2 * n * n) / rng.choice([1, 8])
    spaces = rng.choice([" ", "\n", "\t", "  ", "\r\n"], len(values))
    text = f"{n}\n" + "".join(f"{v!r}{s}" for v, s in zip(values.tolist(), spaces, strict=True))
    problem, best = read_qap(written(tmp_path_factory.getbasetemp(), text))
    assert np.array_equal([problem.flows, problem.distances], values.reshape(2, n, n))
    assert best is None


def test_files_are_known_by_their_names():
    assert all(map(is_qap, ["a.qap", "dir/b.QAP.xz", "c.dat", "d.dat.xz"]))
    assert not any(map(is_qap, ["a.dd", "b.xz", "qap", "c.qap.txt"]))
