from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given

from eutely.cliques import Cliques, Matchings
from eutely.errors import ProblemError
from eutely.multi import (
    agreement,
    cycle_loss,
    specimen_agreement,
    synchronisation_loss,
    synchronise,
)
from toy_matchings import cohorts, most_matches, triangle


def counted_triples(matchings: Matchings) -> int:
    """Count as the definition says, nucleus by nucleus."""
    number = matchings.numbers()
    sizes = matchings.sizes.tolist()
    loss = 0
    for g, h, k in combinations(range(len(sizes)), 3):
        if min(number[g, h], number[h, k], number[g, k]) < 0:
            continue
        first, second, third = (matchings.of(number[p]) for p in ((g, h), (h, k), (g, k)))
        for i, s, t in product(range(sizes[g]), range(sizes[h]), range(sizes[k])):
            loss += [first[i] == s, second[s] == t, third[i] == t].count(True) == 2
    return loss


@given(cohorts())
def test_cycle_loss_is_the_number_of_inconsistent_triples(matchings: Matchings):
    assert cycle_loss(matchings) == counted_triples(matchings)


def test_contradiction_counts_for_each_of_its_three_sides():
    assert cycle_loss(triangle()) == 6


def test_unmatched_end_of_a_chain_counts_once():
    matchings = Matchings.from_pairs([1, 1, 1], {(0, 1): [0], (1, 2): [0], (0, 2): [-1]})
    assert cycle_loss(matchings) == 1


@given(cohorts(sparse=True))
def test_synchronisation_loss_is_the_objective(matchings: Matchings):
    assert synchronisation_loss(matchings, sparse=True) >= -most_matches(matchings)
    cliques = synchronise(matchings, sparse=True, rounds=0)
    assert synchronisation_loss(matchings, sparse=True) == -agreement(matchings, cliques)


def test_misplaced_specimen_agrees_least():
    rng = np.random.default_rng(0)
    straight = np.arange(20)
    matchings = Matchings.from_pairs(
        [20] * 6,
        {(g, h): rng.permutation(20) if h == 5 else straight for g, h in combinations(range(6), 2)},
    )
    fractions = specimen_agreement(matchings, synchronise(matchings))
    assert fractions.argmin() == 5
    assert fractions[5] < 0.5 < 0.8 <= fractions[:5].min()


def test_specimen_without_a_match_agrees_with_nothing():
    matchings = Matchings.from_pairs([1, 1, 1], {(0, 1): [0]})
    fractions = specimen_agreement(matchings, synchronise(matchings))
    np.testing.assert_array_equal(fractions, [1, 1, np.nan])


def test_cliques_of_another_cohort_are_refused():
    with pytest.raises(ProblemError, match="do not fit"):
        agreement(triangle(), Cliques.from_labels([[0], [0]]))


@pytest.mark.parametrize("sizes", [[], [4]])
def test_nothing_to_compare_costs_nothing(sizes: list[int]):
    matchings = Matchings.from_pairs(sizes, {})
    assert cycle_loss(matchings) == 0
    assert synchronisation_loss(matchings) == 0
