"""A mutable partition of nodes into cliques: the state of the search for the best partition.

``labels[node]`` is the clique of a node, -1 while it has none. The members of a clique are a doubly
linked list, so that a node leaves or joins in constant time and memory stays at a few numbers per
node, however many cliques there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import inner, kernel
from eutely.multi.votes import may_meet


class Partition(NamedTuple):
    """Cliques as linked lists; at most as many as nodes.

    Attributes
    ----------
    labels
        (V,) int32, the clique of each node, or -1.
    heads
        (V,) int32, a member of each clique, -1 where it is empty.
    following, preceding
        (V,) int32, the next and the previous member of the same clique, or -1.
    cursor
        (1,) int64, where the search for an empty clique continues.
    """

    labels: NDArray[np.int32]
    heads: NDArray[np.int32]
    following: NDArray[np.int32]
    preceding: NDArray[np.int32]
    cursor: NDArray[np.int64]


def empty_partition(count: int) -> Partition:
    """Return a partition in which none of ``count`` nodes has a clique."""
    labels, heads, following, preceding = (np.full(count, -1, np.int32) for _ in range(4))
    return Partition(labels, heads, following, preceding, np.zeros(1, np.int64))


def single_cliques(count: int) -> Partition:
    """Return a partition in which each of ``count`` nodes is a clique."""
    following, preceding = (np.full(count, -1, np.int32) for _ in range(2))
    numbers = np.arange(count, dtype=np.int32)
    return Partition(numbers, numbers.copy(), following, preceding, np.zeros(1, np.int64))


@inner
def leave(cliques: Any, node: Any) -> None:
    """Remove ``node`` from its clique, if any."""
    clique = cliques.labels[node]
    if clique < 0:
        return
    after, before = cliques.following[node], cliques.preceding[node]
    if before >= 0:
        cliques.following[before] = after
    else:
        cliques.heads[clique] = after
    if after >= 0:
        cliques.preceding[after] = before
    cliques.labels[node] = -1


@inner
def empty_clique(cliques: Any) -> int:
    """Return an empty clique; there is one as long as some node has no clique."""
    while cliques.heads[cliques.cursor[0]] >= 0:
        cliques.cursor[0] = (cliques.cursor[0] + 1) % len(cliques.heads)
    return int(cliques.cursor[0])


@inner
def join(cliques: Any, node: Any, clique: Any) -> None:
    """Add ``node``, which must have no clique, to ``clique``."""
    head = cliques.heads[clique]
    cliques.labels[node] = clique
    cliques.following[node] = head
    cliques.preceding[node] = -1
    if head >= 0:
        cliques.preceding[head] = node
    cliques.heads[clique] = node


@kernel
def connected(votes: Any, cliques: Any) -> Any:
    """Split every clique into connected components: see `components`."""
    return components(votes, cliques)


@inner
def components(votes: Any, cliques: Any) -> Any:
    """Split every clique into connected components; nodes without a clique count as one clique.

    Returns
    -------
    parts
        (V,) int32, the component of each node, numbered by first appearance.
    """
    count = len(cliques.labels)
    parts = np.full(count, -1, np.int32)
    stack = np.empty(count, np.int32)
    number = 0
    for root in range(count):
        if parts[root] >= 0:
            continue
        parts[root] = number
        stack[0] = root
        height = 1
        while height > 0:
            height -= 1
            node = stack[height]
            for at in range(votes.starts[node], votes.starts[node + 1]):
                other = votes.neighbours[at]
                if parts[other] < 0 and cliques.labels[other] == cliques.labels[node]:
                    parts[other] = number
                    stack[height] = other
                    height += 1
        number += 1
    return parts


@inner
def _by_part(parts: Any) -> Any:
    """Return (V,) int64, the nodes ordered by part; by number within a part."""
    first = np.zeros(len(parts) + 1, np.int64)
    for node in range(len(parts)):
        first[parts[node] + 1] += 1
    for part in range(len(parts)):
        first[part + 1] += first[part]
    order = np.empty(len(parts), np.int64)
    for node in range(len(parts)):
        order[first[parts[node]]] = node
        first[parts[node]] += 1
    return order


@kernel
def keep_consistent(votes: Any, cliques: Any) -> int:
    """Make a clique of every consistent connected group, and single cliques of all other nodes.

    A consistent group keeps all its matches, so no other choice is better, and it has no match with
    other nodes, so it does not affect them. Returns the number of nodes in inconsistent groups.
    """
    count = len(cliques.labels)
    parts = components(votes, cliques)
    order = _by_part(parts)
    seen = np.full(len(votes.nuclei) - 1, -1, np.int32)
    left = 0
    begin = 0
    while begin < count:
        end = begin
        part = parts[order[begin]]
        consistent = True
        while end < count and parts[order[end]] == part:
            specimen = votes.specimen[order[end]]
            consistent &= seen[specimen] != part
            seen[specimen] = part
            end += 1
        if consistent and len(votes.allowed) > 0:
            for p in range(begin, end):
                for q in range(begin, p):
                    consistent &= may_meet(votes, order[q], order[p])
        left += 0 if consistent else end - begin
        clique = 0
        for at in range(begin, end):
            if at == begin or not consistent:
                clique = empty_clique(cliques)
            join(cliques, order[at], clique)
        begin = end
    return left
