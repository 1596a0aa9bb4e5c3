"""All pairs of specimens, matched."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eutely.cliques import Matchings
from eutely.execute import Executor, open_executor
from eutely.pairs import candidates_of_a_pair, match_pairs
from eutely.learned import Parameters

EQUAL = Parameters.unlearned(1.0)


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


@pytest.mark.parametrize("how", [{"dense": True}, {"neighbours": 0}, {"effort": "fast"}])
def test_cells_find_each_other_whoever_works(how: dict[str, object]) -> None:
    frames, orders = jumbled()
    found = []
    for workers in (1, 2):
        with open_executor(workers) as executor:
            found.append(match_pairs(frames, None, EQUAL, 100.0, executor, **how))  # type: ignore[arg-type]
    assert len(found[0]) == 6
    assert right(found[0], orders)
    np.testing.assert_array_equal(found[0].partners, found[1].partners)


@pytest.fixture(scope="module")
def executor() -> Executor:
    with open_executor(1) as one:
        yield one


def test_what_costs_more_than_c0_stays_unmatched(executor: Executor) -> None:
    frames = [np.array([[0.0, 0, 0], [5, 0, 0]]), np.array([[0.0, 0, 1], [9, 0, 0]])]
    found = match_pairs(frames, None, EQUAL, 10.0, executor, dense=True)
    assert found.partners.tolist() == [0, -1]


def test_sizes_decide_between_equal_places_and_unknown_ones_do_not(executor: Executor) -> None:
    frames = [np.array([[0.0, 1, 0], [0, -1, 0]]), np.array([[0.1, 0, 0], [-0.1, 0, 0]])]
    sizes = [np.full((2, 3), 1.0), np.full((2, 3), 1.0)]
    sizes[0][1], sizes[1][0] = 2.0, 2.0
    for how in ({"dense": True}, {"neighbours": 0}):
        found = match_pairs(frames, sizes, EQUAL, 100.0, executor, **how)  # type: ignore[arg-type]
        assert found.partners.tolist() == [1, 0]
        sizes_unknown = [sizes[0], np.full((2, 3), np.nan)]
        found = match_pairs(frames, sizes_unknown, EQUAL, 100.0, executor, **how)  # type: ignore[arg-type]
        assert found.matched == 2


def test_allowed_assignments_are_told_and_counted(executor: Executor) -> None:
    frames, _ = jumbled()
    narrow = Parameters((1, 1, 1), (1, 1, 1), (1, 1, 1), 2, 0.0, 0.0)
    found = match_pairs(frames, None, narrow, 100.0, executor, neighbours=0, allowed=True)
    assert found.allowed is not None
    # At least two of each left nucleus, at most two of each nucleus of either side.
    assert 38 <= candidates_of_a_pair(found) <= 80
    dense = match_pairs(frames, None, narrow, 100.0, executor, dense=True)
    assert candidates_of_a_pair(dense) == (3 * 400 + 3 * 380) / 6


def test_only_the_pairs_asked_for(executor: Executor) -> None:
    frames, _ = jumbled()
    told: list[tuple[int, int]] = []
    found = match_pairs(
        frames,
        None,
        EQUAL,
        100.0,
        executor,
        dense=True,
        pairs=np.array([[1, 3]]),
        progress=lambda done, total: told.append((done, total)),
    )
    assert found.pairs.tolist() == [[1, 3]]
    assert told[-1] == (1, 1)
    everything = match_pairs(frames, None, EQUAL, 100.0, executor, dense=True)
    np.testing.assert_array_equal(found.of(0), everything.of(everything.numbers()[1, 3]))
