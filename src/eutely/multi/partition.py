"""A partition of nodes into cliques that can be changed: the state of the search for the best one.

``labels[node]`` is the clique of a node, -1 while the node takes no part. A clique's members are a
doubly linked list, so that one leaves or joins in constant time and memory stays at a few numbers a
node, however many cliques there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import kernel


class Partition(NamedTuple):
    """Cliques as linked lists; at most as many as there are nodes.

    Attributes
    ----------
    labels
        (V,) int32, the clique of each node, or -1.
    heads
        (V,) int32, a member of each clique, -1 where it is empty.
    following, preceding
        (V,) int32, the next and the last member of the same clique, or -1.
    cursor
        (1,) int64, where the search for an empty clique goes on.
    """

    labels: NDArray[np.int32]
    heads: NDArray[np.int32]
    following: NDArray[np.int32]
    preceding: NDArray[np.int32]
    cursor: NDArray[np.int64]


@kernel
def empty_partition(count: int) -> Any:
    """Return a partition in which none of ``count`` nodes takes part."""
    return Partition(
        np.full(count, -1, np.int32),
        np.full(count, -1, np.int32),
        np.full(count, -1, np.int32),
        np.full(count, -1, np.int32),
        np.zeros(1, np.int64),
    )


@kernel
def leave(cliques: Any, node: int) -> None:
    """Take ``node`` out of its clique, if it has one."""
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


@kernel
def empty_clique(cliques: Any) -> int:
    """Return the number of an empty clique; there is one while a node is in none."""
    while cliques.heads[cliques.cursor[0]] >= 0:
        cliques.cursor[0] = (cliques.cursor[0] + 1) % len(cliques.heads)
    return int(cliques.cursor[0])


@kernel
def join(cliques: Any, node: int, clique: int) -> None:
    """Put ``node``, which is in no clique, into ``clique``."""
    head = cliques.heads[clique]
    cliques.labels[node] = clique
    cliques.following[node] = head
    cliques.preceding[node] = -1
    if head >= 0:
        cliques.preceding[head] = node
    cliques.heads[clique] = node
