"""Small cohorts of matchings, and the best cliques found by trying all."""

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from eutely.cliques import Matchings

# Three specimens of two nuclei; 0-0 and 1-1 everywhere, but c swaps what a sees in it:
#
#     a0 --- b0          a-b and b-c match straight, a-c crosses: each way around the triangle
#       \   / \          ends at the other nucleus.
#        \ /   \
#     a1 --- b1  c0 ...
TRIANGLE = {(0, 1): [0, 1], (1, 2): [0, 1], (0, 2): [1, 0]}


def triangle() -> Matchings:
    return Matchings.from_pairs([2, 2, 2], TRIANGLE)


@st.composite
def cohorts(draw: st.DrawFn, sparse: bool = False) -> Matchings:
    """Up to four small specimens, pairs and partners missing here and there."""
    seed = draw(st.integers(0, 2**32 - 1))
    count = draw(st.integers(1, 4))
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 4 if count < 4 else 3, count)
    matchings, allowed = {}, {}
    for g, h in combinations(range(count), 2):
        if rng.random() < 0.15:
            continue
        partners = np.full(sizes[g], -1)
        both = min(sizes[g], sizes[h])
        partners[:both] = rng.permutation(sizes[h])[:both]
        partners[rng.random(sizes[g]) < 0.15] = -1
        rng.shuffle(partners)
        table = rng.random((sizes[g], sizes[h])) < 0.6
        table[np.nonzero(partners >= 0)[0], partners[partners >= 0]] = True
        matchings[g, h], allowed[g, h] = partners, table
    return Matchings.from_pairs(sizes, matchings, allowed=allowed if sparse else None)


def is_allowed(matchings: Matchings, g: int, i: int, h: int, s: int) -> bool:
    pair = matchings.numbers()[g, h]
    if pair < 0 or matchings.allowed is None:
        return True
    begin = matchings.allowed_starts()
    shape = (matchings.sizes[g], (matchings.sizes[h] + 7) // 8)
    rows = matchings.allowed[begin[pair] : begin[pair + 1]].reshape(shape)
    return bool(np.unpackbits(rows, axis=1, bitorder="little")[i, s])


def most_matches(matchings: Matchings) -> int:
    """Try all partitions into cliques; return the largest number of matches that one keeps."""
    nodes = [(g, i) for g, size in enumerate(matchings.sizes) for i in range(size)]
    edges = {
        ((g, i), (h, s))
        for pair, (g, h) in enumerate(matchings.pairs.tolist())
        for i, s in enumerate(matchings.of(pair).tolist())
        if s >= 0
    }

    def best(at: int, groups: list[list[tuple[int, int]]]) -> int:
        if at == len(nodes):
            return 0
        node = nodes[at]
        most = best(at + 1, [*groups, [node]])
        for group in groups:
            if group[-1][0] != node[0] and all(
                is_allowed(matchings, *other, *node) for other in group
            ):
                group.append(node)
                won = sum((other, node) in edges for other in group)
                most = max(most, won + best(at + 1, groups))
                group.pop()
        return most

    return best(0, [])
