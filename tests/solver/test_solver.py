from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eutely.errors import ProblemError
from eutely.problem import PairProblem
from eutely.solver import EFFORTS, Effort, solve
from eutely.solver.dual import lower_bound
from problems import Listed, listed_problems

TOO_LITTLE = Effort(steps=1, starts=1, rounds=0, patience=0, round_steps=0, sweeps=1)


def random_problem(seed: int = 0, n: int = 40, m: int = 36) -> PairProblem:
    """Sparse, with quadratic costs of both signs, too large to enumerate."""
    rng = np.random.default_rng(seed)
    candidates = np.argwhere(rng.random((n, m)) < 0.2)
    costs = rng.normal(size=len(candidates)) - 1
    pairs = rng.integers(0, len(candidates), size=(4000, 2))
    return PairProblem.from_arrays((n, m), candidates, costs, pairs, rng.normal(size=4000))


def check(problem: PairProblem, solution) -> None:
    """A valid partial matching whose objective is as reported, not below the bound."""
    assert solution.matching.dtype == np.int32
    assert solution.objective == problem.objective(solution.matching)
    if solution.bound is not None:
        assert solution.bound <= solution.objective
        assert solution.gap == solution.objective - solution.bound


@settings(max_examples=200)
@given(listed_problems(), st.sampled_from([0, 1, 2, 20]))
def test_tiny_problems_are_solved_to_optimality(listed: Listed, sweeps):
    problem = listed.problem()
    solution = solve(problem, bound=True)
    check(problem, solution)
    optimum = listed.optimum()
    assert solution.objective == pytest.approx(optimum, abs=1e-4)
    assert lower_bound(problem.arrays, sweeps) <= optimum + 1e-4


@settings(max_examples=30)
@given(listed_problems(), st.sampled_from(list(EFFORTS)), st.integers(0, 2**40))
def test_any_effort_and_seed_gives_a_valid_matching(listed: Listed, effort, seed):
    problem = listed.problem()
    check(problem, solve(problem, effort, seed=seed, bound=True))


@settings(max_examples=50)
@given(listed_problems())
def test_without_quadratic_costs_the_bound_is_tight(listed: Listed):
    problem = PairProblem.from_arrays(listed.shape, listed.candidates, listed.costs)
    solution = solve(problem, bound=True)
    assert solution.gap == pytest.approx(0, abs=1e-9)


def test_same_seed_same_matching_on_threads():
    problems = [random_problem(seed) for seed in range(4)]
    serial = [solve(problem, seed=5).matching for problem in problems]
    with ThreadPoolExecutor(4) as pool:
        parallel = list(pool.map(lambda problem: solve(problem, seed=5).matching, problems))
    for first, second in zip(serial, parallel, strict=True):
        assert np.array_equal(first, second)


def test_more_effort_and_a_start_never_hurt():
    problem = random_problem()
    fast = solve(problem, "fast")
    check(problem, fast)
    again = solve(problem, start=fast.matching)
    assert again.objective <= fast.objective
    best = solve(problem, "thorough")
    assert best.objective <= fast.objective
    assert solve(problem, TOO_LITTLE, start=best.matching).objective <= best.objective


def test_time_limit_returns_the_best_so_far():
    problem = random_problem()
    solution = solve(problem, time_limit=0)
    check(problem, solution)
    assert solution.objective < 0


def test_more_sweeps_never_lower_the_bound():
    problem = random_problem()
    bounds = [lower_bound(problem.arrays, sweeps) for sweeps in (0, 1, 5, 20)]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1] <= solve(problem, "thorough").objective


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (3, 3)])
def test_nothing_to_match_is_the_empty_matching(shape):
    solution = solve(PairProblem.from_arrays(shape, [], []), bound=True)
    assert solution.matching.tolist() == [-1] * shape[0]
    assert (solution.objective, solution.bound) == (0, 0)


def test_unknown_effort_and_bad_starts_are_refused():
    problem = random_problem()
    with pytest.raises(ProblemError, match="effort is 'heroic', expected one of fast"):
        solve(problem, "heroic")
    with pytest.raises(ProblemError, match="shape"):
        solve(problem, start=[0])
