import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from eutely.arrays import transpose
from eutely.errors import ProblemError
from eutely.solver import lap_short, solve_dense
from eutely.solver.lap_dense import lap_dense
from eutely.solver.lap_sparse import lap_sparse


@st.composite
def cost_matrices(draw):
    """Any shape, with ties, all signs, and (for the sparse solver) a mask of allowed pairs."""
    shape = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    costs = rng.normal(size=shape) * 3 + draw(st.sampled_from([-9.0, -1.0, 2.0]))
    if draw(st.booleans()):
        costs = np.round(costs)
    return costs, rng.random(shape) < draw(st.sampled_from([0.3, 0.7, 1.0])), rng


def cheapest(costs: np.ndarray, allowed: np.ndarray) -> float:
    negative = np.where(allowed, np.minimum(costs, 0), 0)
    return float(negative[linear_sum_assignment(negative)].sum())


def check_proof(costs, allowed, columns, u, v):
    """The assignment is valid, and its prices prove that no other is cheaper."""
    rows = np.flatnonzero(columns >= 0)
    assert len(set(columns[rows])) == len(rows)
    assert allowed[rows, columns[rows]].all()
    total = costs[rows, columns[rows]].sum()
    assert total == pytest.approx(cheapest(costs, allowed), abs=1e-9)
    assert u.sum() + v.sum() == pytest.approx(total, abs=1e-9)
    assert max(u.max(initial=0), v.max(initial=0)) <= 1e-9
    assert (costs - u[:, None] - v)[allowed].min(initial=0) >= -1e-9


@given(cost_matrices())
def test_dense_assignment_is_optimal(case):
    costs, allowed, _ = case
    check_proof(costs, np.ones_like(allowed), *lap_dense(costs))
    check_proof(costs, allowed, *lap_dense(np.where(allowed, costs, np.inf)))


@pytest.mark.parametrize("short", [1, 2, 16])
@given(case=cost_matrices())
def test_short_lists_grow_until_they_are_enough(case, short):
    costs, allowed, _ = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lap_short, "SHORT", short)
        for possible in (np.ones_like(allowed), allowed):
            columns = lap_short.lap_short(np.where(possible, costs, np.inf))
            rows = np.flatnonzero(columns >= 0)
            assert len(set(columns[rows])) == len(rows)
            assert possible[rows, columns[rows]].all()
            total = costs[rows, columns[rows]].sum()
            assert total == pytest.approx(cheapest(costs, possible), abs=1e-9)


@given(cost_matrices())
def test_sparse_assignment_is_optimal_from_any_prices(case):
    costs, allowed, rng = case
    left, labels = (side.astype(np.int32) for side in np.nonzero(allowed))
    starts = np.searchsorted(left, np.arange(len(costs) + 1)).astype(np.int32)
    lists = transpose(starts, labels, costs.shape[1])
    v = np.zeros(costs.shape[1])
    for again in range(4):
        chosen, u = lap_sparse(starts, labels, *lists, costs[left, labels], v)
        columns = np.full(len(costs), -1)
        columns[chosen >= 0] = labels[chosen[chosen >= 0]]
        check_proof(costs, allowed, columns, u, v)
        if again < 2:  # prices of a similar problem, then prices out of the blue
            costs = costs + rng.normal(size=costs.shape)
        else:
            v = -3 * rng.random(len(v))


@given(cost_matrices())
def test_dense_problems_are_solved_and_proven(case):
    costs, allowed, _ = case
    given_ = np.where(allowed, costs, np.inf)
    solution = solve_dense(given_)
    assert solution.objective == pytest.approx(cheapest(costs, allowed), abs=1e-9)
    assert solution.bound == solution.objective
    rows = np.flatnonzero(solution.matching >= 0)
    assert solution.objective == pytest.approx(given_[rows, solution.matching[rows]].sum())


@pytest.mark.parametrize("bad", [[[np.nan]], [[-np.inf]], [1.0]])
def test_bad_dense_costs_are_refused(bad):
    with pytest.raises(ProblemError, match="costs"):
        solve_dense(bad)
