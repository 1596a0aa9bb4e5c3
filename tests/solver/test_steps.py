import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.solver.local import buffers_of, search_around
from eutely.solver.merge import best_flips, switch_parts, take_over
from eutely.solver.state import State, cost_of, new_state
from problems import Listed, listed_problems


def fresh(problem, matching) -> State:
    return new_state(problem.arrays, problem.chosen(matching))


def check(problem, state: State) -> None:
    """What a state keeps up to date is what it would be if computed anew."""
    again = new_state(problem.arrays, state.chosen)
    assert np.allclose(again.marginal, state.marginal)
    assert np.array_equal(again.taken, state.taken)
    labels = np.full(problem.n_left, -1)
    labels[state.chosen >= 0] = problem.arrays.labels[state.chosen[state.chosen >= 0]]
    assert cost_of(problem.arrays, state) == pytest.approx(problem.objective(labels), abs=1e-5)


@given(listed_problems(6))
def test_local_search_only_improves(listed: Listed):
    problem = listed.problem()
    for matching in listed.matchings(3):
        state = fresh(problem, matching)
        before = cost_of(problem.arrays, state)
        everyone = np.arange(problem.n_left, dtype=np.int32)
        buffers = buffers_of(problem.arrays)
        search_around(problem.arrays, state, everyone, len(everyone), buffers)
        check(problem, state)
        assert cost_of(problem.arrays, state) <= before + 1e-9
        assert not buffers.waiting.any()
        assert (buffers.edge_to == -1).all()


@given(listed_problems(6))
def test_merge_is_no_worse_than_either(listed: Listed):
    problem = listed.problem()
    left, right = listed.matchings(2)
    state, second = fresh(problem, left), fresh(problem, right)
    low = min(cost_of(problem.arrays, state), cost_of(problem.arrays, second))
    before, changed = state.chosen.copy(), np.empty(problem.n_left, np.int32)
    buffers = buffers_of(problem.arrays)
    count, cost = take_over(problem.arrays, state, second.chosen, changed, buffers)
    check(problem, state)
    assert cost == cost_of(problem.arrays, state) <= low + 1e-6
    assert (before[changed[:count]] != second.chosen[changed[:count]]).all()
    assert not buffers.waiting.any()


@given(listed_problems())
def test_a_state_with_all_parts_switched_is_the_other_matching(listed: Listed):
    problem = listed.problem()
    left, right = listed.matchings(2)
    state, second = fresh(problem, left), fresh(problem, right)
    part = np.where(state.chosen == second.chosen, -1, 0)
    changed = np.empty(problem.n_left, np.int32)
    count = switch_parts(problem.arrays, state, second.chosen, part, np.array([True]), changed)
    check(problem, state)
    assert np.array_equal(changed[:count], np.flatnonzero(part == 0))
    assert np.array_equal(state.chosen, second.chosen)


@given(st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_switches_of_small_problems_are_optimal(m, seed):
    rng = np.random.default_rng(seed)
    gains = rng.normal(size=m)
    weights = np.triu(rng.normal(size=(m, m)) * (rng.random((m, m)) < 0.5), 1)
    both = weights + weights.T
    first, ends = np.nonzero(both)
    starts = np.searchsorted(first, np.arange(m + 1)).astype(np.int32)
    on = best_flips(gains, starts, ends.astype(np.int32), both[first, ends])

    def total(switches):
        return switches @ gains + switches @ weights @ switches

    every = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
    assert total(on) == pytest.approx(min(map(total, every)), abs=1e-9)
