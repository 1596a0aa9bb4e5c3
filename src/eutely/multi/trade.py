"""Two cliques exchange members if that lowers the cost: `exchange` for costs, not votes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import chosen_items, pair_cost
from eutely.cliques import UNMATCHED, Cliques
from eutely.kernel import inner, kernel
from eutely.multi.exchange import best_flips
from eutely.multi.joint import MultiProblem

FORBIDDEN = 1e9
"""Cost of separating two specimens whose nuclei may not be matched crosswise."""


def trade(joint: MultiProblem, cliques: Cliques, least: float) -> Cliques:
    """Let cliques whose nuclei may be matched exchange members, the best exchange first.

    Parameters
    ----------
    joint
        all problems of pairs.
    cliques
        without assignments that the problems forbid.
    least
        smallest saving for which an exchange is made.
    """
    table = cliques.table()
    first, second = _pairs_of_cliques(joint, cliques)
    table, gains = _exchanges(joint, table, first, second, least)
    for k in np.argsort(-gains, kind="stable"):
        if gains[k] <= least:
            break
        # Exchanges before this one may have changed its saving.
        table, _ = _exchanges(joint, table, first[k : k + 1], second[k : k + 1], least, make=True)
    labels = [np.empty(size, np.int32) for size in joint.sizes]
    for specimen, row in enumerate(labels):
        (inside,) = np.nonzero(table[:, specimen] != UNMATCHED)
        row[table[inside, specimen]] = inside
    return Cliques.from_labels(labels)


def _pairs_of_cliques(
    joint: MultiProblem, cliques: Cliques
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs of cliques with at least one candidate between their nuclei."""
    codes = [np.zeros(0, np.int64)]
    for piece in joint.pieces:
        p = piece.problem.arrays
        ends = np.stack([cliques[piece.g][p.owners], cliques[piece.h][p.labels]]).astype(np.int64)
        ends = ends[:, ends[0] != ends[1]]
        codes.append(np.unique(ends.min(axis=0) * cliques.count + ends.max(axis=0)))
    first, second = np.divmod(np.unique(np.concatenate(codes)), max(cliques.count, 1))
    return first, second


def _exchanges(
    joint: MultiProblem,
    table: NDArray[np.int32],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    least: float,
    *,
    make: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the table, after the exchange if ``make``, and the saving of each best exchange."""
    gains = np.zeros((len(first), len(joint.pieces)))
    for at, piece in enumerate(joint.pieces):
        partners = np.full(piece.problem.n_left, UNMATCHED, np.int32)
        left, right = table[:, piece.g], table[:, piece.h]
        partners[left[left != UNMATCHED]] = right[left != UNMATCHED]
        chosen = chosen_items(piece.problem.arrays, partners)
        gains[:, at] = _parting(
            piece.problem.arrays, chosen, left[first], left[second], right[first], right[second]
        )
    ends = np.array([(piece.g, piece.h) for piece in joint.pieces], np.int32).reshape(-1, 2)
    swaps, saved = _best(gains, ends, table[first], table[second])
    if make and saved[0] > least:
        table = table.copy()
        rows = table[[first[0], second[0]]]
        rows[:, swaps[0]] = rows[::-1, swaps[0]]
        table[[first[0], second[0]]] = rows
    return table, saved


@kernel
def _parting(
    p: Any, chosen: Any, left_a: Any, left_b: Any, right_a: Any, right_b: Any
) -> NDArray[np.float64]:
    """Return the saving of matching crosswise instead of straight, for each pair of cliques."""
    saved = np.zeros(len(left_a))
    for k in range(len(left_a)):
        i, j = np.int64(left_a[k]), np.int64(left_b[k])
        now_i, now_j, new_i, new_j = np.int64(-1), np.int64(-1), -1, -1
        if i >= 0:
            now_i = np.int64(chosen[i])
            new_i = _candidate(p, i, right_b[k])
        if j >= 0:
            now_j = np.int64(chosen[j])
            new_j = _candidate(p, j, right_a[k])
        if (i >= 0 and right_b[k] >= 0 and new_i < 0) or (j >= 0 and right_a[k] >= 0 and new_j < 0):
            saved[k] = -FORBIDDEN
        else:
            saved[k] = _cost(p, chosen, i, j, now_i, now_j) - _cost(p, chosen, i, j, new_i, new_j)
    return saved


@inner
def _candidate(p: Any, i: Any, right: Any) -> int:
    """Return the candidate of left node ``i`` with the right node ``right``, or -1."""
    for a in range(p.starts[i], p.starts[i + 1]):
        if p.labels[a] == right:
            return a
    return -1


@inner
def _cost(p: Any, chosen: Any, i: Any, j: Any, a: Any, b: Any) -> float:
    """Return the cost of candidates a of i and b of j (-1: none) given all others chosen."""
    total = 0.0
    for node, item in ((i, a), (j, b)):
        if item >= 0:
            total += p.linear[item]
            for e in range(p.edge_starts[node], p.edge_starts[node + 1]):
                other = p.edge_ends[e]
                if other != i and other != j and chosen[other] >= 0:
                    total += pair_cost(p, item, np.int64(chosen[other]))
    if a >= 0 and b >= 0:
        total += pair_cost(p, a, b)
    return total


@kernel
def _best(gains: Any, ends: Any, first: Any, second: Any) -> Any:
    """Return for each pair of cliques the specimens that swap, (K, N) bool, and the saving."""
    count = first.shape[1]
    swaps = np.zeros(first.shape, np.bool_)
    saved = np.zeros(len(first))
    place = np.empty(count, np.int32)
    present = np.empty(count, np.int32)
    matrix = np.zeros((count, count))
    for k in range(len(first)):
        size = 0
        for g in range(count):
            if first[k, g] >= 0 or second[k, g] >= 0:
                place[g] = size
                present[size] = g
                size += 1
        for p in range(size):
            for q in range(size):
                matrix[p, q] = 0.0
        for at in range(len(ends)):
            g, h = ends[at, 0], ends[at, 1]
            if gains[k, at] != 0.0:
                matrix[place[g], place[h]] = gains[k, at]
                matrix[place[h], place[g]] = gains[k, at]
        flipped, saved[k] = best_flips(matrix, size)
        for p in range(len(flipped)):
            swaps[k, present[flipped[p]]] = True
    return swaps, saved
