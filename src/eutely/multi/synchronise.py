"""Cliques from matchings of pairs, with as few changes as consistency allows (equation 7).

Every match is a vote of two nuclei for being the same cell; we look for a partition of all nuclei
into cliques, at most one nucleus per specimen in each, that keeps as many votes as possible. Groups
of nuclei that no match contradicts are cliques at once. The rest is built specimen by specimen,
then improved by three moves in turn: one specimen is placed again by the votes of all others (a
linear assignment), two cliques exchange members, and a region of some cliques is rebuilt. No move
loses a vote, so the search ends.

A few neighbouring cliques are dissolved and rebuilt in another order of specimens.

Votes are local: a nucleus is confused only with its neighbours. So a region of some cliques that
share votes is a small separate problem, of which many solutions can be tried in the time of one
solution of the whole; each gain there is a gain for the whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import Cliques, Matchings
from eutely.errors import ProblemError, expect_whole
from eutely.kernel import kernel
from eutely.multi.exchange import exchange_all, neighbours
from eutely.multi.partition import (
    Partition,
    connected,
    empty_clique,
    empty_partition,
    join,
    keep_consistent,
    leave,
    single_cliques,
)
from eutely.multi.place import place_all, placing_order
from eutely.multi.votes import Votes, votes_of
from eutely.solver.state import random_bits

NODE = 40
"""Work per node, in votes that take the same time."""


def improve(
    votes: Votes, cliques: Partition, present: NDArray[np.bool_], order: NDArray[np.int64]
) -> None:
    """Place all specimens, then exchange and place until neither gains.

    Parameters: see `place_all`.
    """
    waiting = np.zeros(len(cliques.labels), np.bool_)
    place_all(votes, cliques, present, order, waiting)
    while exchange_all(votes, cliques, waiting) > 0:
        if place_all(votes, cliques, present, order, waiting) == 0:
            break


def renew_regions(
    votes: Votes, cliques: Partition, size: int, budget: int, seed: int
) -> tuple[int, int]:
    """Rebuild the region around every clique that shares votes with others, most votes first.

    Parameters
    ----------
    votes, cliques
        a `Votes` and a `Partition` of all nodes; the latter is changed in place.
    size
        largest number of cliques in a region.
    budget
        limit of the work, in votes to examine; remaining regions are left unchanged.
    seed
        of the order of specimens in each region.

    Returns
    -------
    gain, work
        number of votes won, and work done.
    """
    state = np.array([seed], np.uint64)
    count = len(cliques.labels)
    local = np.full(count, -1, np.int32)
    shared = np.zeros(count, np.int32)
    others = np.empty(count, np.int32)
    gain, work = 0, 0
    for a in np.argsort(-_lost_votes(votes, cliques), kind="stable").tolist():
        if work > budget:
            break
        if cliques.heads[a] < 0:
            continue
        region = _around(votes, cliques, a, size, shared, others)
        if len(region) == 1:
            continue
        won, done = _renew(votes, cliques, region, local, state)
        gain += won
        work += done
    return gain, work


@kernel
def _lost_votes(votes: Any, cliques: Any) -> Any:
    """Return (V,) int64, the number of votes that each clique shares with others."""
    lost = np.zeros(len(cliques.labels), np.int64)
    for node in range(len(cliques.labels)):
        for at in range(votes.starts[node], votes.starts[node + 1]):
            lost[cliques.labels[node]] += (
                cliques.labels[node] != cliques.labels[votes.neighbours[at]]
            )
    return lost


@kernel
def _around(votes: Any, cliques: Any, a: int, size: int, shared: Any, others: Any) -> Any:
    """Return ``a``, the cliques that share most votes with it, then theirs, up to ``size``."""
    region = np.empty(size, np.int32)
    region[0] = a
    count, centre = 1, 0
    while centre < count < size:
        number = neighbours(votes, cliques, np.int64(region[centre]), shared, others)
        centre += 1
        left = number
        while left > 0 and count < size:  # the one with most votes next, the first of several
            best = 0
            for k in range(1, number):
                if shared[others[k]] > shared[others[best]]:
                    best = k
            new = True
            for k in range(count):
                new &= region[k] != others[best]
            if new:
                region[count] = others[best]
                count += 1
            shared[others[best]] = 0
            left -= 1
        for k in range(number):
            shared[others[k]] = 0
    return region[:count]


def _renew(
    votes: Votes,
    cliques: Partition,
    region: NDArray[np.int32],
    local: NDArray[np.int32],
    state: NDArray[np.uint64],
) -> tuple[int, int]:
    """Solve the region again and keep the better solution; return votes won and work done."""
    nodes = np.sort(_nodes(votes, cliques, region))
    *fields, before = _part(votes, cliques, nodes, local)
    part = Votes(*fields, *votes[len(fields) :])
    solution = single_cliques(len(nodes))
    order = placing_order(part, _shuffled(len(part.nuclei) - 1, state))
    improve(part, solution, np.zeros(len(order), np.bool_), order)
    won = _kept(part, solution) - before
    if won > 0:
        _put(cliques, nodes, solution.labels)
    return max(int(won), 0) // 2, len(part.neighbours) + NODE * len(nodes)


@kernel
def _nodes(votes: Any, cliques: Any, region: Any) -> Any:
    """Return the members of all cliques of a region."""
    nodes = np.empty(len(region) * (len(votes.nuclei) - 1), np.int32)
    count = 0
    for k in range(len(region)):
        node = cliques.heads[region[k]]
        while node >= 0:
            nodes[count] = node
            count += 1
            node = cliques.following[node]
    return nodes[:count]


@kernel
def _part(votes: Any, cliques: Any, nodes: Any, local: Any) -> Any:
    """Return the first fields of the `Votes` among ``nodes``, and how many votes cliques keep.

    ``nodes`` ascend, and so do their specimens; ``local`` (V,) int32 is a buffer of -1.
    """
    nuclei = np.zeros(len(votes.nuclei), np.int64)
    specimen = np.empty(len(nodes), np.int32)
    row = np.empty(len(nodes), np.int32)
    starts = np.zeros(len(nodes) + 1, np.int64)
    for k in range(len(nodes)):
        local[nodes[k]] = k
    for k in range(len(nodes)):
        specimen[k], row[k] = votes.specimen[nodes[k]], votes.row[nodes[k]]
        nuclei[specimen[k] + 1] += 1
        starts[k + 1] = starts[k]
        for at in range(votes.starts[nodes[k]], votes.starts[nodes[k] + 1]):
            starts[k + 1] += local[votes.neighbours[at]] >= 0
    for g in range(len(nuclei) - 1):
        nuclei[g + 1] += nuclei[g]
    others = np.empty(starts[-1], np.int32)
    length, kept = 0, 0
    for k in range(len(nodes)):
        for at in range(votes.starts[nodes[k]], votes.starts[nodes[k] + 1]):
            other = local[votes.neighbours[at]]
            if other >= 0:
                others[length] = other
                length += 1
                kept += cliques.labels[nodes[k]] == cliques.labels[nodes[other]]
    for k in range(len(nodes)):
        local[nodes[k]] = -1
    return nuclei, specimen, row, starts, others, kept


@kernel
def _kept(votes: Any, cliques: Any) -> int:
    """Return the number of votes within cliques, each counted from both ends."""
    kept = 0
    for node in range(len(cliques.labels)):
        for at in range(votes.starts[node], votes.starts[node + 1]):
            kept += cliques.labels[node] == cliques.labels[votes.neighbours[at]]
    return kept


@kernel
def _put(cliques: Any, nodes: Any, labels: Any) -> None:
    """Move ``nodes`` to new cliques, grouped by ``labels`` (numbers below their count)."""
    for k in range(len(nodes)):
        leave(cliques, np.int64(nodes[k]))
    clique = np.full(len(nodes), -1, np.int32)
    for k in range(len(nodes)):
        if clique[labels[k]] < 0:
            clique[labels[k]] = empty_clique(cliques)
        join(cliques, np.int64(nodes[k]), np.int64(clique[labels[k]]))


@kernel
def _shuffled(count: int, state: Any) -> Any:
    """Return a random order of ``count`` specimens (Fisher and Yates)."""
    order = np.empty(count, np.int64)
    for k in range(count):
        order[k] = k
    for k in range(len(order) - 1, 0, -1):
        j = np.int64(random_bits(state) % np.uint64(k + 1))
        order[k], order[j] = order[j], order[k]
    return order


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
