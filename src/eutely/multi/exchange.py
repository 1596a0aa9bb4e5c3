"""Two cliques exchange, merge or hand over members: the move that placing specimens misses.

Take two cliques A and B. Every specimen with a nucleus in either may swap its places in the two (an
empty place is a place). With s = +-1 for stay or swap, the votes kept change by the sum of
``W[g, h]`` over specimens g, h with different signs, where ``W[g, h]`` is votes won (between the
cliques) minus votes lost (within them): a small maximum-cut problem. As in the algorithm of
Kernighan and Lin, specimens are flipped one by one, the best first, each once, even at a loss, and
the best point of that sequence is kept. Merging two cliques is flipping all specimens of one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eutely.kernel import inner, kernel
from eutely.multi.partition import join, leave
from eutely.multi.votes import may_meet

FORBIDDEN = 1 << 24
"""Penalty, in votes, of a forbidden assignment; larger than any number of votes."""


@kernel
def exchange_all(votes: Any, cliques: Any, waiting: Any) -> int:
    """Let every two cliques that share votes exchange members until no exchange gains.

    Parameters
    ----------
    votes
        a `Votes`.
    cliques
        a `Partition` of all nodes, changed in place.
    waiting
        (V,) bool, cliques to examine; all False on return.

    Returns
    -------
    gain
        number of votes won.
    """
    count = len(votes.nuclei) - 1
    first = np.full(count, -1, np.int32)
    second = np.full(count, -1, np.int32)
    gains = np.zeros((count, count))
    inner = np.zeros(len(cliques.labels), np.int32)
    weakest = np.zeros(len(cliques.labels), np.int32)
    sizes = np.zeros(len(cliques.labels), np.int32)
    shared = np.zeros(len(cliques.labels), np.int32)
    others = np.empty(len(cliques.labels), np.int32)
    for clique in range(len(cliques.heads)):
        sizes[clique], weakest[clique] = _inner_votes(votes, cliques, clique, inner)
    total = 0
    again = True
    while again:
        again = False
        for a in range(len(waiting)):
            if not waiting[a]:
                continue
            waiting[a] = False
            number = neighbours(votes, cliques, a, shared, others)
            for k in range(number):
                b = np.int64(others[k])
                between = shared[b]
                shared[b] = 0
                if waiting[b]:  # it has its own turn
                    continue
                # Unless it merges the two, an exchange splits at least one clique, which loses at
                # least its weakest votes.
                may_merge = sizes[a] + sizes[b] <= count
                if not may_merge and between <= min(weakest[a], weakest[b]):
                    continue
                gain = _exchange(votes, cliques, a, b, first, second, gains, inner)
                if gain > 0:
                    total += gain
                    sizes[a], weakest[a] = _inner_votes(votes, cliques, a, inner)
                    sizes[b], weakest[b] = _inner_votes(votes, cliques, b, inner)
                    waiting[a] = cliques.heads[a] >= 0
                    waiting[b] = cliques.heads[b] >= 0
                    again = True
                    for rest in range(k + 1, number):
                        shared[others[rest]] = 0
                    break
    return total


@inner
def _inner_votes(votes: Any, cliques: Any, clique: Any, inner: Any) -> Any:
    """Count the votes of each member within its clique, into ``inner``.

    Returns
    -------
    size
        number of members.
    weakest
        lower bound of the votes lost when the clique is split in two.
    """
    size, total = 0, 0
    fewest = len(votes.specimen)
    node = cliques.heads[clique]
    while node >= 0:
        inner[node] = 0
        for at in range(votes.starts[node], votes.starts[node + 1]):
            inner[node] += cliques.labels[votes.neighbours[at]] == clique
        total += inner[node]
        fewest = min(fewest, inner[node])
        size += 1
        node = cliques.following[node]
    lacking = size * (size - 1) // 2 - total // 2
    weakest = fewest
    # x members that leave keep at most the votes among themselves; they lose x (size - x) votes,
    # minus those that are lacking already.
    for x in range(2, size // 2 + 1):
        weakest = min(weakest, max(x * (fewest - x + 1), x * (size - x) - lacking, 0))
    return size, weakest if size > 1 else 0


@inner
def neighbours(votes: Any, cliques: Any, a: Any, shared: Any, others: Any) -> int:
    """List in ``others`` the cliques that share votes with ``a``; return their number.

    ``shared`` (V,) int32 gets the number of votes shared with each of them.
    """
    number = 0
    node = cliques.heads[a]
    while node >= 0:
        for at in range(votes.starts[node], votes.starts[node + 1]):
            b = cliques.labels[votes.neighbours[at]]
            if b != a:
                if shared[b] == 0:
                    others[number] = b
                    number += 1
                shared[b] += 1
        node = cliques.following[node]
    return number


@inner
def _exchange(
    votes: Any, cliques: Any, a: Any, b: Any, first: Any, second: Any, gains: Any, inner: Any
) -> Any:
    """Make the best exchange between two cliques; return the votes won."""
    present = _members(votes, cliques, a, b, first, second)
    gain = np.int64(0)
    if _may_gain(votes, cliques, present, first, second, b, inner):
        _fill_gains(votes, cliques, present, first, second, a, b, gains)
        if len(votes.allowed) > 0:
            _forbid(votes, present, first, second, gains)
        flipped, most = best_flips(gains, len(present))
        gain = np.int64(most)  # a sum of whole numbers
        for k in range(len(flipped)):
            g = present[flipped[k]]
            _swap(cliques, np.int64(first[g]), np.int64(second[g]), a, b)
    for p in range(len(present)):
        first[present[p]] = -1
        second[present[p]] = -1
    return gain


@inner
def _may_gain(
    votes: Any, cliques: Any, present: Any, first: Any, second: Any, b: int, inner: Any
) -> bool:
    """Return whether any exchange can gain, by a bound that is much cheaper than the exchange.

    Specimens X that swap win at most their votes between the cliques, and lose those within except
    the votes among X: at most two votes for two specimens.
    """
    balance = np.zeros(len(first), np.int64)
    size = len(present)
    for p in range(size):
        g = present[p]
        if second[g] >= 0:
            balance[g] -= inner[second[g]]
        if first[g] >= 0:
            balance[g] -= inner[first[g]]
            for at in range(votes.starts[first[g]], votes.starts[first[g] + 1]):
                node = votes.neighbours[at]
                if cliques.labels[node] == b:
                    balance[g] += 1
                    balance[votes.specimen[node]] += 1
    heap = np.empty(size, np.int64)
    for p in range(size):
        heap[p] = balance[present[p]]
    for p in range(size // 2 - 1, -1, -1):
        _sink(heap, p, size)
    total = 0
    for x in range(1, size // 2 + 1):  # the largest first
        total += heap[0]
        if total + 2 * x * (x - 1) > 0:
            return True
        heap[0] = heap[size - x]
        _sink(heap, 0, size - x)
    return False


@inner
def _sink(heap: Any, at: int, size: int) -> None:
    """Move the value at ``at`` of a binary heap, the largest on top, down to its place."""
    value = heap[at]
    while True:
        down = 2 * at + 1
        if down >= size:
            break
        if down + 1 < size and heap[down + 1] > heap[down]:
            down += 1
        if heap[down] <= value:
            break
        heap[at] = heap[down]
        at = down
    heap[at] = value


@inner
def _fill_gains(
    votes: Any, cliques: Any, present: Any, first: Any, second: Any, a: int, b: int, gains: Any
) -> None:
    """Fill ``gains``: votes won minus votes lost when one of two specimens swaps."""
    place = np.full(len(first), -1, np.int32)
    for p in range(len(present)):
        place[present[p]] = p
        for q in range(len(present)):
            gains[p, q] = 0.0
    for p in range(len(present)):
        for mine in (first[present[p]], second[present[p]]):
            if mine < 0:
                continue
            here = cliques.labels[mine]
            for at in range(votes.starts[mine], votes.starts[mine + 1]):
                node = votes.neighbours[at]
                label = cliques.labels[node]
                if label == here:
                    gains[p, place[votes.specimen[node]]] -= 1
                elif label == a + b - here:
                    gains[p, place[votes.specimen[node]]] += 1


@inner
def _members(votes: Any, cliques: Any, a: int, b: int, first: Any, second: Any) -> Any:
    """Fill in the members of two cliques by specimen; return the specimens, ascending."""
    node = cliques.heads[a]
    while node >= 0:
        first[votes.specimen[node]] = node
        node = cliques.following[node]
    node = cliques.heads[b]
    while node >= 0:
        second[votes.specimen[node]] = node
        node = cliques.following[node]
    present = np.empty(len(first), np.int32)
    size = 0
    for g in range(len(first)):
        if first[g] >= 0 or second[g] >= 0:
            present[size] = g
            size += 1
    return present[:size]


@inner
def _forbid(votes: Any, present: Any, first: Any, second: Any, gains: Any) -> None:
    """Penalise separating two specimens whose nuclei may not be matched crosswise."""
    for p in range(len(present)):
        for q in range(p):
            g, h = present[p], present[q]
            meet = True
            if first[g] >= 0 and second[h] >= 0:
                meet = may_meet(votes, np.int64(first[g]), np.int64(second[h]))
            if meet and second[g] >= 0 and first[h] >= 0:
                meet = may_meet(votes, np.int64(second[g]), np.int64(first[h]))
            if not meet:
                gains[p, q] -= FORBIDDEN
                gains[q, p] -= FORBIDDEN


@inner
def best_flips(gains: Any, size: int) -> Any:
    """Flip specimens one by one, the best first, each once; keep the best point of the sequence.

    Parameters
    ----------
    gains
        (size, size) or larger, symmetric: gain if only one of two specimens is flipped.
    size
        number of specimens.

    Returns
    -------
    flipped
        int32, specimens that are flipped.
    gain
        float, 0 if there are none.
    """
    change = np.zeros(size)
    for p in range(size):
        for q in range(size):
            change[p] += gains[p, q]
    side = np.empty(size)
    for p in range(size):
        side[p] = 1.0
    order = np.empty(size, np.int32)
    total, best, kept = 0.0, 0.0, 0
    # Flipping a set equals flipping its complement, so half of the sequence is enough.
    for step in range((size + 1) // 2):
        chosen = -1
        for p in range(size):
            if side[p] > 0 and (chosen < 0 or change[p] > change[chosen]):
                chosen = p
        order[step] = chosen
        total += change[chosen]
        if total > best:
            best = total
            kept = step + 1
        for p in range(size):
            change[p] -= 2 * side[p] * side[chosen] * gains[chosen, p]
        side[chosen] = -1
    return order[:kept], best


@inner
def _swap(cliques: Any, first: Any, second: Any, a: Any, b: Any) -> None:
    """Move ``first`` from clique ``a`` to ``b`` and ``second`` from ``b`` to ``a``; -1 for none."""
    if first >= 0:
        leave(cliques, first)
    if second >= 0:
        leave(cliques, second)
    if first >= 0:
        join(cliques, first, b)
    if second >= 0:
        join(cliques, second, a)
