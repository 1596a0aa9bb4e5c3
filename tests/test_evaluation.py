"""Naming by majority and accuracy, on cliques small enough to check by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.errors import EutelyError
from eutely.evaluation import majority_names, pre_atlas, score
from eutely.specimen import Specimen


def worm(name: str, names: list[str]) -> Specimen:
    points = np.arange(3 * len(names), dtype=float).reshape(-1, 3)
    return Specimen.from_arrays(name, points, names=names)


def test_the_largest_vote_is_served_first() -> None:
    # Cell 0 holds A A B, cell 1 holds B A A A: cell 1 takes A, cell 0 is left with B.
    cells = [np.array([0, 1]), np.array([0, 1]), np.array([0, 1]), np.array([1])]
    names = [["A", "B"], ["A", "A"], ["B", "A"], ["A"]]
    assert majority_names(cells, names, 3) == ("B", "A", "")


def test_case_does_not_matter_and_unmatched_do_not_vote() -> None:
    cells = [np.array([0, -1]), np.array([0, -1])]
    assert majority_names(cells, [["aval", "X"], ["AVAL ", "X"]], 1) == ("AVAL",)


def test_pre_atlas_counts_unmatched_and_unlabelled_cliques_as_wrong() -> None:
    cohort = [worm("one", ["A", "B", "C"]), worm("two", ["A", "B", "C"])]
    result = pre_atlas(cohort, [np.array([0, 1, -1]), np.array([0, 2, 1])])
    # The alphabet breaks the tie for cell 1: it becomes B; cell 2 has no name left.
    assert [row.correct for row in result.scores] == [2, 1]
    assert result.mean == pytest.approx(0.5)
    assert result.as_dict()["accuracy"]["n"] == 2


def test_unnamed_nuclei_do_not_count() -> None:
    assert score(worm("one", ["A", "", "C"]), ["a", "B", ""]).accuracy == 0.5


def test_accuracy_needs_names() -> None:
    bare = worm("one", ["A"]).without_names()
    with pytest.raises(EutelyError, match="no specimen has a named nucleus"):
        pre_atlas([bare], [np.array([0])])


@given(st.permutations(range(5)), st.permutations(range(4)))
def test_perfect_cliques_are_perfect_in_any_order(rows: list[int], cells: list[int]) -> None:
    names = np.array(["A", "B", "C", "D", ""])[rows]
    number = np.array([*cells, -1])[rows]
    cohort = [worm(str(k), list(names)) for k in range(3)]
    assert pre_atlas(cohort, [number] * 3).mean == 1
