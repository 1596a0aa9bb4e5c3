"""All pairs of specimens, matched."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eutely.cliques import Matchings
from eutely.costs.candidates import Limits
from eutely.execute import Executor, open_executor
from eutely.learned import Parameters
from eutely.pairs import (
    PairRules,
    candidates_of_a_pair,
    cost_of_a_match,
    match_pairs,
    partner_pairs,
)
from eutely.solver.lap_dense import lap_dense

EQUAL = Parameters.unlearned(1.0)
DENSE = PairRules(EQUAL, 100.0, dense=True)
LINEAR = PairRules(EQUAL, 100.0, neighbours=0)
FAST = PairRules(EQUAL, 100.0, effort="fast")


def jumbled(seed: int = 0) -> tuple[list[NDArray[np.float64]], list[NDArray[np.int64]]]:
    """Return four copies of twenty cells, a little apart, one copy without its last cell."""
    rng = np.random.default_rng(seed)
    cells = rng.uniform(0, 10, (20, 3))
    orders = [rng.permutation(20) for _ in range(4)]
    orders[2] = orders[2][:-1]
    return [cells[order] + rng.normal(0, 0.05, (len(order), 3)) for order in orders], orders


def right(matchings: Matchings, orders: list[NDArray[np.int64]]) -> bool:
    """Tell whether every match joins the same cell, and all cells that both have are matched."""
    for number, (g, h) in enumerate(matchings.pairs):
        partners = matchings.of(number)
        matched = partners >= 0
        if not np.array_equal(orders[g][matched], orders[h][partners[matched]]):
            return False
        if matched.sum() != len(set(orders[g]) & set(orders[h])):
            return False
    return True


@pytest.mark.parametrize("rules", [DENSE, LINEAR, FAST])
def test_cells_find_each_other_whoever_works(rules: PairRules) -> None:
    frames, orders = jumbled()
    results = []
    for workers in (1, 2):
        with open_executor(workers) as executor:
            results.append(match_pairs(frames, None, rules, executor))
    assert len(results[0]) == 6
    assert right(results[0], orders)
    np.testing.assert_array_equal(results[0].partners, results[1].partners)


def test_dense_matchings_are_those_of_the_formula(executor: Executor) -> None:
    random = np.random.default_rng(4)
    frames = [random.uniform(0, 5, (n, 3)) for n in (15, 20)]
    radii = [random.uniform(1, 2, frame.shape) for frame in frames]
    radii[0][3] = radii[1][7] = np.nan
    learned = Parameters((1.0, 2.0, 3.0), (0.2, 0.3, 0.5), (1, 1, 1))
    matchings = match_pairs(frames, radii, PairRules(learned, 4.0, dense=True), executor)
    place = (frames[0][:, None] - frames[1]) ** 2 / learned.centroids
    size = (radii[0][:, None] - radii[1]) ** 2 / learned.radii
    costs = place.sum(axis=2) + np.nan_to_num(size.sum(axis=2)) - 4.0
    np.testing.assert_array_equal(matchings.of(0), lap_dense(costs)[0])
    assert 0 < matchings.matched < 15


@pytest.fixture(scope="module")
def executor() -> Executor:
    with open_executor(1) as opened:
        yield opened


def test_what_costs_more_than_c0_stays_unmatched(executor: Executor) -> None:
    frames = [np.array([[0.0, 0, 0], [5, 0, 0]]), np.array([[0.0, 0, 1], [9, 0, 0]])]
    matchings = match_pairs(frames, None, DENSE._replace(c0=10.0), executor)
    assert matchings.partners.tolist() == [0, -1]


def test_sizes_decide_between_equal_places_and_unknown_ones_do_not(executor: Executor) -> None:
    frames = [np.array([[0.0, 1, 0], [0, -1, 0]]), np.array([[0.1, 0, 0], [-0.1, 0, 0]])]
    sizes = [np.full((2, 3), 1.0), np.full((2, 3), 1.0)]
    sizes[0][1], sizes[1][0] = 2.0, 2.0
    for rules in (DENSE, LINEAR):
        matchings = match_pairs(frames, sizes, rules, executor)
        assert matchings.partners.tolist() == [1, 0]
        sizes_unknown = [sizes[0], np.full((2, 3), np.nan)]
        matchings = match_pairs(frames, sizes_unknown, rules, executor)
        assert matchings.matched == 2


def test_allowed_assignments_are_returned_and_counted(executor: Executor) -> None:
    frames, _ = jumbled()
    narrow = Parameters((1, 1, 1), (1, 1, 1), (1, 1, 1), 2, 0.0, 0.0)
    matchings = match_pairs(
        frames, None, LINEAR._replace(parameters=narrow), executor, allowed=True
    )
    assert matchings.allowed is not None
    # At least two of each left nucleus, at most two of each nucleus of either side.
    assert 38 <= candidates_of_a_pair(matchings) <= 80
    dense = match_pairs(frames, None, DENSE._replace(parameters=narrow), executor)
    assert candidates_of_a_pair(dense) == (3 * 400 + 3 * 380) / 6


@pytest.mark.parametrize("neighbours", [0, 4])
def test_trials_match_as_if_nothing_were_kept(neighbours: int, executor: Executor) -> None:
    random = np.random.default_rng(5)
    frames = [random.uniform(0, 6, (count, 3)) for count in (30, 33, 28)]
    radii = [random.uniform(1, 2, frame.shape) for frame in frames]
    widest = Limits(1.0, 1.0, 0.0, 3.0, 3.0, 8)
    for trial in range(12):
        k_min, (tau, offset) = 1 + trial % 8, random.uniform(0.1, 3.0, 2)
        learned = Parameters((1, 2, 1), (0.5, 1, 1), (offset, 1, 2), k_min, tau, tau)
        rules = PairRules(learned, (4.0, 100.0)[trial % 2], neighbours, effort="fast")
        anew = match_pairs(frames, radii, rules, executor, allowed=True)
        known = match_pairs(frames, radii, rules._replace(widest=widest), executor, allowed=True)
        np.testing.assert_array_equal(known.partners, anew.partners)
        np.testing.assert_array_equal(known.allowed, anew.allowed)


def test_only_the_pairs_asked_for(executor: Executor) -> None:
    frames, _ = jumbled()
    calls: list[tuple[int, int]] = []
    matchings = match_pairs(
        frames,
        None,
        DENSE,
        executor,
        pairs=np.array([[1, 3]]),
        on_done=lambda done, total: calls.append((done, total)),
    )
    assert matchings.pairs.tolist() == [[1, 3]]
    assert calls[-1] == (1, 1)
    everything = match_pairs(frames, None, DENSE, executor)
    np.testing.assert_array_equal(matchings.of(0), everything.of(everything.numbers()[1, 3]))


def test_the_cost_of_a_match_is_that_of_its_distance(executor: Executor) -> None:
    frames = [np.diag([10.0, 20.0, 30.0]), np.diag([10.0, 20.0, 30.0]) + [0.5, 0.0, 0.0]]
    sizes = [np.full((3, 3), np.nan)] * 2
    assert cost_of_a_match(frames, sizes, LINEAR, executor) == pytest.approx(0.25)


@pytest.mark.parametrize("count", [2, 3, 7, 40])
@pytest.mark.parametrize("partners", [0, 1, 4, 100])
def test_partners_are_drawn_evenly_and_connect_all(count: int, partners: int) -> None:
    pairs = partner_pairs(count, partners, seed=3)
    if not 0 < partners < count - 1:
        assert pairs is None
        return
    assert pairs is not None
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    degrees = np.bincount(pairs.ravel(), minlength=count)
    assert degrees.min() >= min(partners, 2)
    assert degrees.max() <= partners + 1
    graph = csr_array((np.ones(len(pairs)), pairs.T), (count, count))
    assert connected_components(graph, directed=False)[0] == 1
    np.testing.assert_array_equal(pairs, partner_pairs(count, partners, seed=3))
