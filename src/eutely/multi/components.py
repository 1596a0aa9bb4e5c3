"""Groups of nuclei that matches connect: a consistent group is a clique already."""

from __future__ import annotations

from typing import Any

import numpy as np

from eutely.kernel import kernel
from eutely.multi.partition import empty_clique, join
from eutely.multi.votes import may_meet


@kernel
def connected(votes: Any, cliques: Any) -> Any:
    """Split every clique into parts that matches connect; nodes in no clique (-1) count as one.

    Returns
    -------
    parts
        (V,) int32, the part of each node, numbered by first appearance.
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


@kernel
def keep_consistent(votes: Any, cliques: Any) -> int:
    """Make a clique of every connected group that may be one, and all others alone.

    Such a group keeps all its matches, so no other choice is better, and it has no match with
    anybody else, so it is of no matter to others. Returns how many nodes are in other groups.
    """
    count = len(cliques.labels)
    parts = connected(votes, cliques)
    order = np.argsort(parts, kind="mergesort")
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
