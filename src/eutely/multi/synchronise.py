"""Cliques from matchings of pairs, with as few changes as consistency allows (equation 7).

Every match is a vote of two nuclei for being the same cell; we look for a partition of all nuclei
into cliques, at most one nucleus per specimen in each, that keeps as many votes as possible. Groups
of nuclei that no match contradicts are cliques at once. The rest is built specimen by specimen,
then improved by three moves in turn: one specimen is placed again by the votes of all others (a
linear assignment), two cliques exchange members, and a region of some cliques is rebuilt. No move
loses a vote, so the search ends.
"""

from __future__ import annotations

import numpy as np

from eutely.cliques import Cliques, Matchings
from eutely.errors import ProblemError, expect_whole
from eutely.multi.partition import connected, empty_partition, keep_consistent
from eutely.multi.place import placing_order
from eutely.multi.region import improve, renew_regions
from eutely.multi.votes import votes_of

REGION = 12
"""Largest number of cliques in a region; twice as many were no better."""

BUDGET = 30_000_000
"""Work for regions, in votes: about two seconds, so a large cohort rebuilds only the worst."""


def synchronise(
    matchings: Matchings, *, sparse: bool = False, rounds: int = 2, seed: int = 0
) -> Cliques:
    """Return the cliques that keep the most matches.

    The number of cliques is not fixed: a nucleus joins others only by a match, and is a clique by
    itself otherwise. Consistent matchings are returned unchanged.

    Parameters
    ----------
    matchings
        of pairs of specimens; missing pairs have no votes and forbid nothing.
    sparse
        whether a clique must respect ``matchings.allowed`` in every pair of its members.
    rounds
        how often regions are rebuilt; 0 is fast and hardly worse, except for sparse matchings of a
        few dozen specimens.
    seed
        of the orders in which specimens are placed.
    """
    if not isinstance(matchings, Matchings):
        raise ProblemError(
            f"synchronise takes Matchings, found {type(matchings).__name__}; see "
            "Matchings.from_pairs"
        )
    expect_whole("seed", seed, ProblemError)
    expect_whole("rounds", rounds, ProblemError)
    if rounds < 0:
        raise ProblemError(f"rounds is {rounds}, expected 0 or more")
    votes = votes_of(matchings, sparse=sparse)
    cliques = empty_partition(len(votes.specimen))
    if keep_consistent(votes, cliques):
        random = np.random.default_rng(seed)
        count = len(matchings.sizes)
        order, present = placing_order(votes, random.permutation(count)), np.zeros(count, np.bool_)
        improve(votes, cliques, present, order)
        budget = BUDGET
        for start in random.integers(2**62, size=rounds):
            gain, work = renew_regions(votes, cliques, REGION, budget, start)
            budget -= work
            if gain:
                improve(votes, cliques, present, order)
            if budget <= 0:
                break
    return Cliques(votes.nuclei, connected(votes, cliques))
