import lzma

import numpy as np
import pytest
from hypothesis import given

from eutely.errors import ReadError
from eutely.io.dd import read_dd, write_dd
from problems import Listed, listed_problems

SMALL = """c a comment
p 2 2 3 1
a 0 0 0 -1.5
a 2 1 1 -2e0
a 1 0 1 +.25

e 0 2 1e-1
"""


def test_small_file(tmp_path):
    (tmp_path / "small.dd").write_text(SMALL)
    [(g, h, problem)] = read_dd(tmp_path / "small.dd")
    assert (g, h, problem.n_left, problem.n_right) == (0, 1, 2, 2)
    assert problem.objective([0, 1]) == pytest.approx(-3.4)
    assert problem.objective([1, -1]) == 0.25


@pytest.mark.parametrize("name", ["one.dd", "one.dd.xz"])
def test_several_problems_come_back_as_written(tmp_path_factory, name):
    folder = tmp_path_factory.mktemp("dd")

    @given(listed_problems())
    def check(listed: Listed):
        problem = listed.problem()
        write_dd(folder / name, [(0, 1, problem), (3, 2, problem)])
        (_, _, first), (g, h, second) = read_dd(folder / name)
        assert (g, h) == (3, 2)
        assert (first.n_left, first.n_right) == listed.shape
        for matching in listed.matchings(5):
            assert second.objective(matching) == first.objective(matching)
            assert first.objective(matching) == pytest.approx(problem.objective(matching), abs=1e-6)

    check()


def test_single_problem_is_written_without_gm(tmp_path):
    (tmp_path / "small.dd").write_text(SMALL)
    [(_, _, problem)] = read_dd(tmp_path / "small.dd")
    write_dd(tmp_path / "again.dd", problem)
    assert (tmp_path / "again.dd").read_text().startswith("p 2 2 3 1\n")
    [(_, _, again)] = read_dd(tmp_path / "again.dd")
    assert np.array_equal(again.arrays.linear, problem.arrays.linear)


@pytest.mark.parametrize(
    ("original", "instead", "words"),
    [
        ("p 2 2 3 1", "p 2 2 3", "line 2 is incomplete"),
        ("p 2 2 3 1", "p 2 2 -3 1", "line 2 has a negative count"),
        ("p 2 2 3 1", "p 2 2 4 1", "line 2 announces more"),
        ("p 2 2 3 1", "p 2 2 3 2", "line 2 announces more"),
        ("p 2 2 3 1", "p 2 2 2 1", "line 4 has an assignment number"),
        ("p 2 2 3 1", "p 2 2 3 0", "line 7 is one 'e' line more"),
        ("p 2 2 3 1", "", "line 3 comes before any 'p'"),
        ("a 0 0 0 -1.5", "a 0 0 7 -1.5", "line 3 names a node"),
        ("a 0 0 0 -1.5", "a 0 0 0 x", "line 3 is incomplete"),
        ("a 0 0 0 -1.5", "a 0 0 0 1.5.3", "line 3 is incomplete"),
        ("a 0 0 0 -1.5", "a 0 0 0 1e", "line 3 is incomplete"),
        ("a 0 0 0 -1.5", "a 0 0 0 -1.5 9", "line 3 is incomplete"),
        ("a 0 0 0 -1.5", "a 0 0 0 nan", "line 3 has a cost that is not finite"),
        ("a 0 0 0 -1.5", "a 0 0 0 1e999", "line 3 has a cost that is not finite"),
        ("a 0 0 0 -1.5", "a 0 1 1 -1.5", "candidate .1, 1. occurs twice"),
        ("a 2 1 1 -2e0", "a 0 1 1 -2e0", "line 4 has an assignment number"),
        ("\ne 0", "q\ne 0", "line 6 starts with an unknown word"),
        ("e 0 2 1e-1", "e 0 3 1e-1", "line 7 refers to an assignment"),
        ("e 0 2 1e-1", "e 0 2 inf", "line 7 has a cost that is not finite"),
        (SMALL, "", "has no problem"),
        ("a 2 1 1 -2e0", "p 1 1 1 0\na 2 1 1 -2e0", "line 4 ends a problem"),
        (SMALL, "p 1 1 99999999999999 0\n", "line 1 announces more"),
    ],
)
def test_malformed_files_are_refused_with_the_line(tmp_path, original, instead, words):
    (tmp_path / "bad.dd").write_text(SMALL.replace(original, instead, 1))
    with pytest.raises(ReadError, match=words):
        read_dd(tmp_path / "bad.dd")


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(ReadError, match="No such file"):
        read_dd(tmp_path / "none.dd")
    (tmp_path / "cut.dd.xz").write_bytes(lzma.compress(SMALL.encode())[:-9])
    with pytest.raises(ReadError, match="xz"):
        read_dd(tmp_path / "cut.dd.xz")
    (tmp_path / "noise.dd").write_bytes(bytes(range(256)))
    with pytest.raises(ReadError, match="line 1 starts with an unknown word"):
        read_dd(tmp_path / "noise.dd")


@pytest.mark.parametrize("shape", ["0 0", "2 0", "0 3", "2 3"])
def test_graphs_without_nodes_or_candidates_are_problems(tmp_path, shape):
    (tmp_path / "empty.dd").write_text(f"p {shape} 0 0\n")
    [(_, _, problem)] = read_dd(tmp_path / "empty.dd")
    assert f"{problem.n_left} {problem.n_right}" == shape
    assert problem.objective([-1] * problem.n_left) == 0
