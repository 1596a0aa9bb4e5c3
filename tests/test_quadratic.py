import numpy as np
import pytest

from eutely.errors import ProblemError
from eutely.quadratic import QuadraticAssignment

FLOWS = [[0, 5, 1], [5, 0, 0], [1, 0, 0]]
LINE = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


def test_the_objective_is_that_of_the_definition():
    rng = np.random.default_rng(3)
    flows, distances, linear = rng.normal(size=(3, 5, 5))
    problem = QuadraticAssignment.from_arrays(flows, distances, linear)
    p = rng.permutation(5)
    expected = sum(linear[i, p[i]] for i in range(5)) + sum(
        flows[i, j] * distances[p[i], p[j]] for i in range(5) for j in range(5)
    )
    assert problem.objective(p) == pytest.approx(expected)


def test_what_was_given_may_change_afterwards_the_problem_may_not():
    flows = np.array(FLOWS, dtype=float)
    problem = QuadraticAssignment.from_arrays(flows, LINE)
    flows[0, 1] = 100
    assert problem.objective([1, 0, 2]) == 12
    with pytest.raises(ValueError, match="read-only"):
        problem.flows[0, 1] = 7
    assert repr(problem) == "<QuadraticAssignment: 3 objects and places>"


@pytest.mark.parametrize("linear", [None, np.full((3, 3), 2.0)])
def test_whole_costs_are_recognised(linear):
    assert QuadraticAssignment.from_arrays(FLOWS, LINE, linear).whole
    assert not QuadraticAssignment.from_arrays(FLOWS, np.array(LINE) / 2, linear).whole


@pytest.mark.parametrize(
    ("matrices", "words"),
    [
        ((FLOWS, [[0, 1], [1, 0]]), r"distances have shape \(2, 2\), expected \(3, 3\)"),
        (([[0, 1, 2]], LINE), r"flows have shape \(1, 3\), expected \(n, n\)"),
        (([0, 1], [1, 0]), r"flows have shape \(2,\)"),
        (([[0, 1], [2]], LINE), "flows are no matrix of numbers"),
        (([["a", 1], [2, 3]], LINE), "flows are no matrix of numbers"),
        ((FLOWS, np.full((3, 3), np.nan)), r"distances\[0, 0\] is nan"),
        ((FLOWS, LINE, np.diag([0, np.inf, 0])), r"linear\[1, 1\] is inf"),
        ((FLOWS, LINE, np.zeros((0, 0))), "linear have shape"),
        ((np.full((3, 3), 1e200), np.full((3, 3), 1e200)), "too large for a number"),
    ],
)
def test_what_is_no_problem_is_one_line(matrices, words):
    with pytest.raises(ProblemError, match=words) as caught:
        QuadraticAssignment.from_arrays(*matrices)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("matching", [[0, 1], [0, 1, 1], [0, 1, 3], [-1, 0, 1], [0.0, 1.0, 2.0]])
def test_a_matching_is_a_permutation(matching):
    problem = QuadraticAssignment.from_arrays(FLOWS, LINE)
    with pytest.raises(ProblemError, match="expected a permutation"):
        problem.objective(matching)
