import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.cliques import Cliques, Matchings, pack
from eutely.errors import ProblemError

PAIR = {(0, 1): [2, -1, 0]}


def test_matchings_lie_behind_each_other():
    matchings = Matchings.from_pairs([3, 3, 1], {(1, 2): [-1, 0, -1], (0, 1): [2, -1, 0]})
    assert matchings.pairs.tolist() == [[0, 1], [1, 2]]
    assert matchings.partners.tolist() == [2, -1, 0, -1, 0, -1]
    assert matchings.of(1).tolist() == [-1, 0, -1]
    assert matchings.matched == 3
    assert matchings.numbers().tolist() == [[-1, 0, -1], [0, -1, 1], [-1, 1, -1]]
    with pytest.raises(ValueError, match="read-only"):
        matchings.partners[0] = 1


@pytest.mark.parametrize(
    ("sizes", "matchings", "words"),
    [
        ([3, 3], {(0, 1): [2, 2, 0]}, "injective"),
        ([3, 3], {(0, 1): [2, 0]}, "2 partners, expected 3"),
        ([3, 3], {(0, 1): [3, 0, 1]}, r"expected 0 \.\. 2"),
        ([3, 3], {(0, 1): [-2, 0, 1]}, r"expected 0 \.\. 2"),
        ([3, 3], {(1, 0): [2, 1, 0]}, "g < h"),
        ([3, 3], {(0, 2): [2, 1, 0]}, "0 <= g < h < 2"),
        ([3, 3], {(0, 1): [0.5, 1, 2]}, "whole numbers"),
        ([-1, 3], {}, "negative"),
    ],
)
def test_malformed_matchings_are_refused(sizes, matchings, words):
    with pytest.raises(ProblemError, match=words):
        Matchings.from_pairs(sizes, matchings)


def test_pair_given_twice_is_refused():
    with pytest.raises(ProblemError, match="occurs 2 times"):
        Matchings(
            np.array([1, 1]), np.array([[0, 1], [0, 1]]), np.array([0, 1, 2]), np.array([0, 0])
        )


@pytest.mark.parametrize(
    ("starts", "partners", "words"),
    [([0, 2], [0, 1], "do not fit the sizes"), ([0, 3], [0, 1], "2 partners, expected 3")],
)
def test_arrays_must_fit_each_other(starts, partners, words):
    with pytest.raises(ProblemError, match=words):
        Matchings(np.array([3, 3]), np.array([[0, 1]]), np.array(starts), np.array(partners))


def test_forbidden_partner_is_refused():
    table = np.ones((3, 3), dtype=bool)
    Matchings.from_pairs([3, 3], PAIR, allowed={(0, 1): table})
    table[2, 0] = False
    with pytest.raises(ProblemError, match="forbids"):
        Matchings.from_pairs([3, 3], PAIR, allowed={(0, 1): table})


def test_table_of_allowed_assignments_must_fit():
    with pytest.raises(ProblemError, match="no table"):
        Matchings.from_pairs([3, 3], PAIR, allowed={})
    with pytest.raises(ProblemError, match="shape"):
        Matchings.from_pairs([3, 3], PAIR, allowed={(0, 1): np.ones((2, 3), dtype=bool)})


def test_assignments_are_packed_row_by_row():
    table = np.zeros((2, 9), dtype=bool)
    table[0, 0] = table[1, 8] = True
    assert pack(table).tolist() == [1, 0, 0, 1]


@given(st.lists(st.permutations(range(5)), min_size=1, max_size=4), st.integers(0, 99))
def test_equal_partitions_have_equal_arrays(rows, shift):
    names = np.random.default_rng(shift).permutation(100)[:5] - 50
    plain = Cliques.from_labels(rows)
    renamed = Cliques.from_labels(names[list(row)] for row in rows)
    assert plain == renamed
    assert plain.labels.tobytes() == renamed.labels.tobytes()


def test_cliques_are_numbered_by_size():
    cliques = Cliques.from_labels([[7, 5], [5, 9], [5]])
    assert [row.tolist() for row in cliques] == [[1, 0], [0, 2], [0]]
    assert cliques.sizes().tolist() == [3, 1, 1]
    assert cliques.table().tolist() == [[1, 0, 0], [0, -1, -1], [-1, 1, -1]]
    assert cliques.table(minimum=2).tolist() == [[1, 0, 0]]
    assert cliques[-1].tolist() == [0]
    with pytest.raises(IndexError):
        cliques[3]


def test_cliques_stand_for_matchings():
    cliques = Cliques.from_labels([[7, 5], [5, 9], [5]])
    matchings = cliques.to_matchings()
    assert matchings.partners.tolist() == [-1, 0, -1, 0, 0, -1]
    assert cliques.to_matchings([[1, 2]]).partners.tolist() == [0, -1]


@pytest.mark.parametrize("labels", [[], [[]], [[], []]])
def test_empty_cohort(labels):
    cliques = Cliques.from_labels(labels)
    assert cliques.count == 0
    assert len(cliques) == len(labels)
    assert cliques.table().shape == (0, len(labels))
    assert cliques.to_matchings().matched == 0


def test_two_nuclei_of_a_specimen_in_a_clique_are_refused():
    with pytest.raises(ProblemError, match="two nuclei of one specimen"):
        Cliques.from_labels([[1, 1]])


def test_starts_must_fit_labels():
    with pytest.raises(ProblemError, match="starts"):
        Cliques(np.array([0, 3]), np.array([0, 1]))
