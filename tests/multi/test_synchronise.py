from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.cliques import Cliques, Matchings
from eutely.errors import ProblemError
from eutely.multi import agreement, cycle_loss, synchronise
from toy_matchings import cohorts, is_allowed, most_matches, triangle


def random_cliques(rng: np.random.Generator, specimens: int = 5, cells: int = 6) -> Cliques:
    sizes = rng.integers(1, cells + 1, specimens)
    return Cliques.from_labels(rng.permutation(cells)[:size] for size in sizes)


def noisy_cohort(specimens: int, cells: int, errors: int, seed: int) -> Matchings:
    """Matchings of equal specimens, with some partners exchanged in each."""
    rng = np.random.default_rng(seed)
    matchings = {}
    for pair in combinations(range(specimens), 2):
        partners = np.arange(cells)
        for _ in range(errors):
            a, b = rng.choice(cells, 2, replace=False)
            partners[[a, b]] = partners[[b, a]]
        matchings[pair] = partners
    return Matchings.from_pairs([cells] * specimens, matchings)


def assert_consistent(cliques: Cliques) -> None:
    """Check over all triples of specimens that going round leads back."""
    matchings = cliques.to_matchings()
    number = matchings.numbers()
    for g, h, k in combinations(range(len(cliques)), 3):
        first, second, third = (matchings.of(number[p]) for p in ((g, h), (h, k), (g, k)))
        for i, s in enumerate(first):
            if s >= 0 and second[s] >= 0:
                assert third[i] == second[s]
    for labels in cliques:
        assert len(np.unique(labels)) == len(labels)
    assert cycle_loss(matchings) == 0


@given(cohorts())
def test_dense_is_the_best_of_all_partitions(matchings: Matchings):
    cliques = synchronise(matchings, rounds=8)
    assert_consistent(cliques)
    assert agreement(matchings, cliques) == most_matches(matchings)


@given(cohorts(sparse=True))
def test_sparse_is_the_best_of_all_allowed_partitions(matchings: Matchings):
    cliques = synchronise(matchings, sparse=True, rounds=8)
    assert_consistent(cliques)
    assert agreement(matchings, cliques) == most_matches(matchings)
    for members in cliques.table():
        for g, h in combinations(np.nonzero(members >= 0)[0].tolist(), 2):
            assert is_allowed(matchings, g, members[g], h, members[h])


@given(st.integers(0, 1000))
def test_consistent_matchings_come_back_unchanged(seed: int):
    cliques = random_cliques(np.random.default_rng(seed))
    again = synchronise(cliques.to_matchings())
    assert again == cliques
    assert synchronise(again.to_matchings(), sparse=True) == again


def test_consistent_chain_of_pairs_is_followed_to_its_end():
    chain = {(0, 2): [0, 1], (1, 2): [1, 0], (1, 3): [0, 1]}
    cliques = synchronise(Matchings.from_pairs([2, 2, 2, 2], chain))
    assert [row.tolist() for row in cliques] == [[0, 1], [1, 0], [0, 1], [1, 0]]


def test_truth_is_found_behind_errors():
    matchings = noisy_cohort(specimens=12, cells=30, errors=4, seed=1)
    assert cycle_loss(matchings) > 0
    cliques = synchronise(matchings)
    assert_consistent(cliques)
    assert cliques.count == 30
    assert all(np.array_equal(row, cliques[0]) for row in cliques)


def test_answer_does_not_depend_on_how_nuclei_are_numbered():
    matchings = noisy_cohort(specimens=8, cells=20, errors=3, seed=2)
    rng = np.random.default_rng(3)
    turns = [rng.permutation(20) for _ in range(8)]
    shuffled = Matchings.from_pairs(
        matchings.sizes,
        {
            (g, h): np.argsort(turns[h])[matchings.of(pair)[turns[g]]]
            for pair, (g, h) in enumerate(matchings.pairs.tolist())
        },
    )
    plain, turned = synchronise(matchings), synchronise(shuffled)
    back = Cliques.from_labels(
        row[np.argsort(turn)] for row, turn in zip(turned, turns, strict=True)
    )
    assert back == plain


def test_one_of_three_contradicting_matchings_gives_way():
    matchings = triangle()
    cliques = synchronise(matchings)
    assert agreement(matchings, cliques) == 4
    assert cliques.sizes().tolist() == [3, 3]


def test_spurious_nucleus_stays_alone():
    matchings = Matchings.from_pairs(
        [2, 3, 2], {(0, 1): [0, 1], (0, 2): [0, 1], (1, 2): [0, 1, -1]}
    )
    assert synchronise(matchings).sizes().tolist() == [3, 3, 1]


def test_sparse_parts_what_dense_joins():
    allowed = {(0, 1): [[1]], (1, 2): [[1]], (0, 2): [[0]]}
    matchings = Matchings.from_pairs(
        [1, 1, 1], {(0, 1): [0], (1, 2): [0], (0, 2): [-1]}, allowed=allowed
    )
    assert synchronise(matchings).sizes().tolist() == [3]
    assert synchronise(matchings, sparse=True).sizes().tolist() == [2, 1]


@pytest.mark.parametrize(("sizes", "cliques"), [([], 0), ([3], 3), ([0, 0], 0), ([2, 1], 3)])
def test_without_matchings_every_nucleus_is_alone(sizes: list[int], cliques: int):
    result = synchronise(Matchings.from_pairs(sizes, {}))
    assert result.count == cliques
    assert len(result) == len(sizes)


def test_same_seed_same_answer():
    matchings = noisy_cohort(specimens=9, cells=12, errors=5, seed=4)
    assert synchronise(matchings, seed=7) == synchronise(matchings, seed=7)


def test_negative_rounds_are_refused():
    with pytest.raises(ProblemError, match="0 or more"):
        synchronise(triangle(), rounds=-1)
