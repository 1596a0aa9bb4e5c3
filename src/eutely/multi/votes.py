"""Matchings as a graph: every match is a vote of two nuclei for being the same cell."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import Matchings
from eutely.kernel import inner, kernel


class Votes(NamedTuple):
    """Nuclei of all specimens as the nodes of one graph, matches as its edges.

    Attributes
    ----------
    nuclei
        (N + 1,) int64, the first node of each specimen.
    specimen, row
        (V,) int32, the specimen of each node and its position in it.
    starts
        (V + 1,) int64, where the neighbours of each node begin.
    neighbours
        (2 * matches,) int32, nodes.
    pair
        (N, N) int32, the pair of two specimens, -1 where they were not matched.
    allowed, allowed_starts
        see `Matchings`; empty if every assignment is allowed.
    widths
        (N,) int32, bytes of a row of ``allowed`` whose columns are the specimen's nuclei.
    """

    nuclei: NDArray[np.int64]
    specimen: NDArray[np.int32]
    row: NDArray[np.int32]
    starts: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    pair: NDArray[np.int32]
    allowed: NDArray[np.uint8]
    allowed_starts: NDArray[np.int64]
    widths: NDArray[np.int32]


def votes_of(matchings: Matchings, *, sparse: bool = False) -> Votes:
    """Convert matchings to a graph; unless ``sparse``, all assignments are allowed."""
    sizes = matchings.sizes
    nuclei = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    specimen = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    starts, neighbours = _edges(nuclei, matchings.pairs, matchings.starts, matchings.partners)
    if sparse and matchings.allowed is not None:
        allowed, begins = matchings.allowed, matchings.allowed_starts()
    else:
        allowed, begins = np.zeros(0, np.uint8), np.zeros(1, np.int64)
        allowed.setflags(write=False)  # like that of matchings, so that kernels are compiled once
    row = (np.arange(len(specimen)) - nuclei[specimen]).astype(np.int32)
    widths = ((sizes + 7) // 8).astype(np.int32)
    pair = matchings.numbers()
    return Votes(nuclei, specimen, row, starts, neighbours, pair, allowed, begins, widths)


@inner
def may_meet(votes: Votes, a: Any, b: Any) -> bool:
    """Return whether the nodes ``a`` and ``b`` of two specimens may be in the same clique."""
    if len(votes.allowed) == 0:
        return True
    g, h = votes.specimen[a], votes.specimen[b]
    pair = votes.pair[g, h]
    if pair < 0:
        return True
    if g > h:
        a, b, h = b, a, g
    column = votes.row[b]
    at = votes.allowed_starts[pair] + votes.row[a] * votes.widths[h] + column // 8
    return bool((votes.allowed[at] >> (column % 8)) & 1)


@kernel
def _edges(
    nuclei: NDArray[np.int64],
    pairs: NDArray[np.int32],
    begins: NDArray[np.int64],
    partners: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    starts = np.zeros(nuclei[-1] + 1, np.int64)
    for pair in range(len(pairs)):
        g, h = pairs[pair, 0], pairs[pair, 1]
        for at in range(begins[pair], begins[pair + 1]):
            if partners[at] >= 0:
                starts[nuclei[g] + at - begins[pair] + 1] += 1
                starts[nuclei[h] + partners[at] + 1] += 1
    for node in range(len(starts) - 1):
        starts[node + 1] += starts[node]
    neighbours = np.empty(starts[-1], np.int32)
    free = np.empty(len(starts), np.int64)
    for node in range(len(starts)):
        free[node] = starts[node]
    for pair in range(len(pairs)):
        g, h = pairs[pair, 0], pairs[pair, 1]
        for at in range(begins[pair], begins[pair + 1]):
            if partners[at] >= 0:
                a, b = nuclei[g] + at - begins[pair], nuclei[h] + partners[at]
                neighbours[free[a]] = b
                neighbours[free[b]] = a
                free[a] += 1
                free[b] += 1
    return starts, neighbours
