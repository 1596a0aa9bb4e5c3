"""Matchings of pairs to cliques: change as few matchings as cycle consistency allows (eq. 6).

Every match is a vote of two nuclei for being the same cell; a partition of all nuclei into cliques,
at most one nucleus of a specimen in each, is to keep as many votes as it can. Groups of nuclei that
no match contradicts are cliques at once. The rest is built specimen by specimen, then improved by
two moves in turn: one specimen is re-placed by the votes of all others (a linear assignment), and
two cliques exchange members. Neither ever loses a vote, so the search ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import Cliques, Matchings
from eutely.errors import ProblemError
from eutely.multi.components import connected, keep_consistent
from eutely.multi.exchange import exchange_all
from eutely.multi.partition import Partition, copy_of, empty_partition
from eutely.multi.replace import replace_all
from eutely.multi.votes import Votes, kept_votes, votes_of

CHEAP = 400_000
"""Matches that may be synchronised several times over without a noticeable wait."""


def synchronise(
    matchings: Matchings, *, sparse: bool = False, starts: int | None = None, seed: int = 0
) -> Cliques:
    """Return the cliques that keep the most matches.

    The number of cliques is not fixed: a nucleus joins others only where a match says so, and
    stays alone otherwise. Consistent matchings come back unchanged.

    Parameters
    ----------
    matchings
        of pairs of specimens; missing pairs neither ask nor forbid anything.
    sparse
        whether a clique must respect ``matchings.allowed`` in every pair of its members.
    starts
        number of orders in which specimens are put together, at least 1; the best result is
        kept. By default 2, and more where matchings are few.
    seed
        of the orders: by turns random, and by agreement with the last result.
    """
    if starts is None:
        starts = min(max(2, CHEAP // max(matchings.matched, 1)), 16)
    if starts < 1:
        raise ProblemError(f"{starts} starts; expected at least 1")
    votes = votes_of(matchings, sparse=sparse)
    best = empty_partition(len(votes.specimen))
    if keep_consistent(votes, best):
        best = _best_of(votes, best, starts, np.random.default_rng(seed))
    return Cliques(votes.nuclei, connected(votes, best))


def _best_of(votes: Votes, fixed: Partition, starts: int, random: np.random.Generator) -> Partition:
    """Put what ``fixed`` leaves out into cliques, several times; return the best result."""
    best, most = fixed, -1
    order = np.zeros(0, np.int64)
    for start in range(starts):
        if start % 2 == 0:
            order = random.permutation(len(votes.nuclei) - 1)
        cliques = copy_of(fixed)
        _improve(votes, cliques, order)
        kept = kept_votes(votes, cliques.labels)
        if kept.sum() > most:
            best, most = cliques, int(kept.sum())
        order = np.argsort(-kept, kind="stable")
    return best


def _improve(votes: Votes, cliques: Partition, order: NDArray[np.int64]) -> None:
    """Put all specimens into the cliques, then make both moves until neither gains."""
    waiting = np.zeros(len(votes.specimen), np.bool_)
    replace_all(votes, cliques, order, waiting)
    while exchange_all(votes, cliques, waiting):
        if replace_all(votes, cliques, order, waiting) == 0:
            break
