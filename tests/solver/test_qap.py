"""Quadratic assignments: exact on tiny problems, consistent tables, sound bounds."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eutely
from eutely.errors import ProblemError
from eutely.kernel import kernel
from eutely.quadratic import QuadraticAssignment
from eutely.solver import Effort, solve_assignment
from eutely.solver.qap_bound import assignment_bound
from eutely.solver.qap_relaxation import relaxed_start
from eutely.solver.qap_swaps import exchange, matrices_of, place_all, tables_of


@st.composite
def problems(draw: st.DrawFn, least: int = 1, most: int = 6) -> QuadraticAssignment:
    """Small problems: symmetric or not, sparse or not, whole or not, of both signs."""
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    matrices = rng.integers(-3, 9, (3, n, n)).astype(float)
    for matrix, symmetric in zip(matrices, draw(st.tuples(*[st.booleans()] * 2)), strict=False):
        if symmetric:
            matrix += matrix.T.copy()
    if draw(st.booleans()):
        matrices *= rng.random((3, n, n)) < 0.3
        matrices[1] = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    matrices[0] *= draw(st.sampled_from([1.0, 0.37, 1e-200, 1e200]))
    return QuadraticAssignment.from_arrays(*matrices[: draw(st.integers(2, 3))])


def optimum(problem: QuadraticAssignment) -> float:
    return min(problem.objective(p) for p in permutations(range(len(problem))))


def scale(problem: QuadraticAssignment) -> float:
    """Return the largest term of an objective."""
    flows, distances, linear = (
        np.abs(matrix).max() for matrix in (problem.flows, problem.distances, problem.linear)
    )
    return float(flows * distances + linear)


@settings(max_examples=60)
@given(problems(), st.sampled_from(["fast", "default"]))
def test_tiny_problems_are_solved_to_optimality(problem, effort):
    solution = solve_assignment(problem, effort, bound=True)
    assert solution.objective == problem.objective(solution.matching)
    least = optimum(problem)
    assert solution.objective == pytest.approx(least, abs=1e-9 * scale(problem))
    assert assignment_bound(problem) <= least + 1e-9 * scale(problem)
    assert solution.bound <= solution.objective


@kernel
def tables_after(m, t, places, pairs):
    """Make the exchanges ``pairs``, from the tables of ``places``."""
    place_all(m, t, places)
    for k in range(len(pairs)):
        exchange(m, t, places, pairs[k, 0], pairs[k, 1])


@settings(max_examples=50)
@given(problems(3, 9), st.integers(0, 2**32))
def test_tables_hold_the_change_by_every_exchange(problem, seed):
    n = len(problem)
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(20)])
    places, tables = rng.permutation(n), tables_of(n)
    tables_after(matrices_of(problem), tables, places, pairs)
    here = problem.objective(places)
    for u in range(n):
        for v in range(u + 1, n):
            there = places.copy()
            there[[u, v]] = there[[v, u]]
            change = problem.objective(there) - here
            assert tables.changes[u, v] == pytest.approx(change, abs=1e-9 * scale(problem))
            assert tables.lowest[v] <= tables.changes[u, v]


@given(problems(2, 8))
def test_the_relaxation_ends_in_a_permutation(problem):
    problem.checked(relaxed_start(matrices_of(problem)))


def grid(side: int) -> np.ndarray:
    """Distances between the nodes of a square grid."""
    x, y = np.divmod(np.arange(side * side), side)
    return abs(np.subtract.outer(x, x)) + abs(np.subtract.outer(y, y))


def test_a_grid_is_laid_onto_itself():
    """Neighbours only: 12 edges of a 3 x 3 grid, twice each, and a shuffled copy of the grid."""
    order = np.random.default_rng(0).permutation(16)
    near = (grid(4) == 1)[np.ix_(order, order)]
    solution = solve_assignment(QuadraticAssignment.from_arrays(near, grid(4)), bound=True)
    assert solution.objective == near.sum() == 48
    assert solution.bound == 48


def random_problem(n: int = 20, seed: int = 0) -> QuadraticAssignment:
    return QuadraticAssignment.from_arrays(*np.random.default_rng(seed).integers(0, 99, (2, n, n)))


def test_same_seed_same_matching_on_threads():
    some = [random_problem(seed=seed) for seed in range(4)]
    serial = [solve_assignment(problem, seed=5).matching for problem in some]
    with ThreadPoolExecutor(4) as pool:
        parallel = list(pool.map(lambda problem: solve_assignment(problem, seed=5).matching, some))
    for first, second in zip(serial, parallel, strict=True):
        assert np.array_equal(first, second)


def test_more_effort_and_a_start_never_hurt():
    problem = random_problem(40)
    fast = solve_assignment(problem, "fast")
    again = solve_assignment(problem, "fast", start=fast.matching, seed=3)
    assert again.objective <= fast.objective
    best = solve_assignment(problem, "default")
    assert best.objective < fast.objective
    assert solve_assignment(problem, "fast", start=best.matching).objective <= best.objective


def test_a_time_limit_returns_the_best_so_far():
    solution = solve_assignment(random_problem(), "thorough", time_limit=0)
    assert sorted(solution.matching) == list(range(20))


def test_nothing_to_place_and_bad_efforts_and_starts():
    empty = solve_assignment(QuadraticAssignment.from_arrays([], []), bound=True)
    assert (empty.matching.tolist(), empty.objective, empty.bound) == ([], 0, 0)
    problem = random_problem(4)
    with pytest.raises(ProblemError, match="effort is 'heroic', expected one of fast"):
        solve_assignment(problem, "heroic")
    with pytest.raises(ProblemError, match="expected one of fast, default, thorough"):
        solve_assignment(problem, Effort(1, 1, 0, 0, 0, 1))
    with pytest.raises(ProblemError, match="expected a permutation"):
        solve_assignment(problem, start=[0, 0, 1, 2])


def test_the_public_function_takes_problems_and_files(tmp_path):
    problem = random_problem(5)
    best = optimum(problem)
    rows = [" ".join(map(str, row)) for m in (problem.flows, problem.distances) for row in m]
    (tmp_path / "a.qap").write_text("\n".join([f"5 {best + 1}", *rows]))
    solution = eutely.solve(problem, bound=True)
    assert solution.objective == best
    assert solution.best_known is solution.above_best_known is None
    read = eutely.solve(tmp_path / "a.qap", seed=0)
    assert np.array_equal(read.matching, solution.matching)
    assert read.best_known == best + 1
    assert read.above_best_known == pytest.approx(-1 / (best + 1))
