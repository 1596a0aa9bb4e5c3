import pytest
from hypothesis import given, settings

from eutely.errors import ProblemError
from eutely.multi import MultiProblem, solve_direct, solve_pairs
from eutely.multi.direct import Effort
from toy_joints import joints, least_cost, random_joint


@settings(max_examples=15)
@given(joints())
def test_cost_is_the_least_of_all_cliques(joint: MultiProblem):
    effort = Effort("default", starts=6, splits=6)
    cost, forbidden = joint.evaluate(solve_direct(joint, effort))
    assert forbidden == 0
    assert cost == pytest.approx(least_cost(joint), abs=1e-4)


def test_same_seed_same_cliques():
    joint = random_joint(5, 4, 3, missing=0)
    assert solve_direct(joint, seed=3) == solve_direct(joint, seed=3)


def test_no_problem_no_cliques():
    assert solve_direct(MultiProblem.from_pairs([])).count == 0


def test_pairs_for_themselves_cost_no_more_than_cliques():
    joint = random_joint(7, 4, 4, missing=0)
    matchings = solve_pairs(joint)
    total = sum(
        piece.problem.objective(matchings.of(pair)) for pair, piece in enumerate(joint.pieces)
    )
    assert total <= joint.evaluate(solve_direct(joint))[0] + 1e-6


def test_unknown_effort_is_refused():
    with pytest.raises(ProblemError, match="fast, default, thorough"):
        solve_direct(random_joint(1, 2, 2), "heroic")


def test_no_time_left_still_gives_allowed_cliques():
    joint = random_joint(5, 4, 3, missing=0)
    assert joint.evaluate(solve_direct(joint, time_limit=0.0))[1] == 0
