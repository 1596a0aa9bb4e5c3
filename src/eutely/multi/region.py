"""A few neighbouring cliques are dissolved and rebuilt in another order of specimens.

Votes are local: a nucleus is confused only with its neighbours. So a region of some cliques that
share votes is a small separate problem, of which many solutions can be tried in the time of one
solution of the whole; each gain there is a gain for the whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eutely.kernel import kernel
from eutely.multi.exchange import exchange_all, neighbours
from eutely.multi.partition import empty_clique, empty_partition, join, leave
from eutely.multi.place import place_all, placing_order
from eutely.multi.votes import Votes, kept_votes
from eutely.solver.state import random_bits

NODE = 40
"""Work per node, in votes that take the same time."""


@kernel
def improve(votes: Any, cliques: Any, present: Any, order: Any) -> None:
    """Place all specimens, then exchange and place until neither gains.

    Parameters: see `place_all`.
    """
    waiting = np.zeros(len(cliques.labels), np.bool_)
    place_all(votes, cliques, present, order, waiting)
    while exchange_all(votes, cliques, waiting) > 0:
        if place_all(votes, cliques, present, order, waiting) == 0:
            break


@kernel
def renew_regions(votes: Any, cliques: Any, size: int, budget: int, seed: int) -> Any:
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
    for a in np.argsort(-_lost_votes(votes, cliques), kind="mergesort"):
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
        number = neighbours(votes, cliques, region[centre], shared, others)
        centre += 1
        counts = np.empty(number, np.int64)
        for k in range(number):
            counts[k] = -shared[others[k]]
            shared[others[k]] = 0
        for k in np.argsort(counts, kind="mergesort"):
            new = True
            for member in region[:count]:
                new &= member != others[k]
            if new and count < size:
                region[count] = others[k]
                count += 1
    return region[:count]


@kernel
def _renew(votes: Any, cliques: Any, region: Any, local: Any, state: Any) -> Any:
    """Solve the region again and keep the better solution; return votes won and work done."""
    nodes = _nodes(votes, cliques, region)
    for k in range(len(nodes)):
        local[nodes[k]] = k
    part = _part(votes, nodes, local)
    labels = np.empty(len(nodes), np.int32)
    for k in range(len(nodes)):
        labels[k] = cliques.labels[nodes[k]]
        local[nodes[k]] = -1
    before = kept_votes(part, labels).sum()
    solution = empty_partition(len(nodes))
    for k in range(len(nodes)):
        join(solution, k, k)
    order = placing_order(part, _shuffled(len(part.nuclei) - 1, state))
    improve(part, solution, np.zeros(len(order), np.bool_), order)
    after = kept_votes(part, solution.labels).sum()
    if after > before:
        _put(cliques, nodes, solution.labels)
    return max(after - before, 0) // 2, len(part.neighbours) + NODE * len(nodes)


@kernel
def _nodes(votes: Any, cliques: Any, region: Any) -> Any:
    """Return the members of all cliques of a region, ascending, and so by specimen."""
    nodes = np.empty(len(region) * (len(votes.nuclei) - 1), np.int32)
    count = 0
    for clique in region:
        node = cliques.heads[clique]
        while node >= 0:
            nodes[count] = node
            count += 1
            node = cliques.following[node]
    return np.sort(nodes[:count])


@kernel
def _part(votes: Any, nodes: Any, local: Any) -> Any:
    """Return the votes among ``nodes``; ``local`` is the position of each node among them."""
    nuclei = np.zeros(len(votes.nuclei), np.int64)
    starts = np.zeros(len(nodes) + 1, np.int64)
    for k in range(len(nodes)):
        nuclei[votes.specimen[nodes[k]] + 1] += 1
        starts[k + 1] = starts[k]
        for at in range(votes.starts[nodes[k]], votes.starts[nodes[k] + 1]):
            starts[k + 1] += local[votes.neighbours[at]] >= 0
    neighbours = np.empty(starts[-1], np.int32)
    length = 0
    for k in range(len(nodes)):
        for at in range(votes.starts[nodes[k]], votes.starts[nodes[k] + 1]):
            other = local[votes.neighbours[at]]
            if other >= 0:
                neighbours[length] = other
                length += 1
    return Votes(
        np.cumsum(nuclei),
        votes.specimen[nodes],
        votes.row[nodes],
        starts,
        neighbours,
        votes.pair,
        votes.allowed,
        votes.allowed_starts,
        votes.widths,
    )


@kernel
def _put(cliques: Any, nodes: Any, labels: Any) -> None:
    """Move ``nodes`` to new cliques, grouped by ``labels`` (numbers below their count)."""
    for node in nodes:
        leave(cliques, node)
    clique = np.full(len(nodes), -1, np.int32)
    for k in range(len(nodes)):
        if clique[labels[k]] < 0:
            clique[labels[k]] = empty_clique(cliques)
        join(cliques, nodes[k], clique[labels[k]])


@kernel
def _shuffled(count: int, state: Any) -> Any:
    """Return a random order of ``count`` specimens (Fisher and Yates)."""
    order = np.arange(count)
    for k in range(len(order) - 1, 0, -1):
        j = np.int64(random_bits(state) % np.uint64(k + 1))
        order[k], order[j] = order[j], order[k]
    return order
