from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from eutely.arrays import pair_cost, pair_list
from eutely.errors import ProblemError
from eutely.problem import PairProblem
from problems import Listed, listed_problems, naive_objective

# Left a, b and right A, B: four candidates; aA and bB cost 1.5 together.
CANDIDATES = [[0, 0], [0, 1], [1, 0], [1, 1]]
COSTS = [-1.0, -2.0, -3.0, -4.0]


@given(listed_problems())
def test_objective_is_the_sum_of_what_was_given(listed: Listed):
    problem = listed.problem()
    for matching in listed.matchings(20):
        assert problem.objective(matching) == pytest.approx(
            naive_objective(listed, matching), abs=1e-4
        )


@given(listed_problems())
def test_layout_is_ordered_symmetric_and_complete(listed: Listed):
    p = listed.problem().arrays
    for i in range(listed.shape[0]):
        labels = p.labels[p.starts[i] : p.starts[i + 1]].tolist()
        assert labels == sorted(set(labels))
        ends = p.edge_ends[p.edge_starts[i] : p.edge_starts[i + 1]].tolist()
        assert ends == sorted(set(ends))
        assert i not in ends
        assert all(i in p.edge_ends[p.edge_starts[j] : p.edge_starts[j + 1]] for j in ends)
    for s in range(listed.shape[1]):
        items = p.column_items[p.column_starts[s] : p.column_starts[s + 1]]
        assert (p.labels[items] == s).all()
        assert all(a < b for a, b in pairwise(items.tolist()))
    for a in range(len(p.labels)):
        for b in range(len(p.labels)):
            if p.owners[a] != p.owners[b]:
                assert pair_cost(p, a, b) == pair_cost(p, b, a)


@given(listed_problems())
def test_list_of_pairs_rebuilds_the_problem(listed: Listed):
    problem = listed.problem()
    p = problem.arrays
    first, second, costs = pair_list(p)
    again = PairProblem.from_arrays(
        listed.shape,
        np.stack([p.owners, p.labels], axis=1),
        p.linear,
        np.stack([first, second], axis=1),
        costs,
    )
    for matching in listed.matchings(5):
        assert again.objective(matching) == pytest.approx(problem.objective(matching), abs=1e-5)


def test_tables_and_lists_give_the_same_problem():
    table = np.array([[9.0, 2.0], [3.0, 9.0]])  # 9: shares a right node, never counts
    problem = PairProblem.from_tables((2, 2), CANDIDATES, COSTS, [[0, 1]], [table])
    assert problem.objective([0, 1]) == -1 - 4 + 2
    assert problem.objective([1, 0]) == -2 - 3 + 3
    assert problem.objective([-1, 0]) == -3
    assert problem.full


def test_empty_problems_have_the_empty_matching():
    assert PairProblem.from_arrays((0, 0), [], []).objective([]) == 0
    assert PairProblem.from_arrays((2, 3), [], []).objective([-1, -1]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((2, 2), CANDIDATES, [0, 0, np.nan, 0]), r"costs\[2\] is nan"),
        (((2, 2), CANDIDATES, [0, 0, 0]), r"shape \(3,\), expected \(4,\)"),
        (((1, 2), CANDIDATES, COSTS), "left node 1 of a candidate"),
        (((2, 1), CANDIDATES, COSTS), "right node 1 of a candidate"),
        (((2, 2), [[0, 0], [0, 0]], [1, 2]), "occurs twice"),
        (((2, 2), [[0.5, 0]], [1]), "whole numbers"),
        (((2, 2), CANDIDATES, COSTS, [[0, 4]], [1]), "candidate 4 of a pair"),
        (((2, 2), CANDIDATES, COSTS, [[0, 3]], [np.inf]), r"pair_costs\[0\] is inf"),
        (((2, 2), CANDIDATES, COSTS, [[0, 3]], None), "one for each of the pairs"),
    ],
)
def test_bad_arrays_are_refused(arguments, words):
    with pytest.raises(ProblemError, match=words):
        PairProblem.from_arrays(*arguments)


@pytest.mark.parametrize(
    ("matching", "words"),
    [([0], "shape"), ([0, 0], "matched 2 times"), ([0, 7], "not a candidate")],
)
def test_invalid_matchings_are_refused(matching, words):
    with pytest.raises(ProblemError, match=words):
        PairProblem.from_arrays((2, 2), CANDIDATES, COSTS).objective(matching)


def test_bad_tables_are_refused():
    with pytest.raises(ProblemError, match=r"shape \(1, 2\)"):
        PairProblem.from_tables((2, 2), CANDIDATES, COSTS, [[0, 1]], [[[1.0, 2.0]]])
    with pytest.raises(ProblemError, match="1 tables for 2 edges"):
        PairProblem.from_tables((2, 2), CANDIDATES, COSTS, [[0, 1], [1, 0]], [np.eye(2)])
    with pytest.raises(ProblemError, match="grouped"):
        PairProblem.from_tables((2, 2), CANDIDATES[::-1], COSTS, [[0, 1]], [np.eye(2)])
