"""One specimen leaves all cliques, and its nuclei join those for which the others vote."""

from __future__ import annotations

from typing import Any

import numpy as np

from eutely.arrays import columns_of
from eutely.kernel import inner, kernel
from eutely.multi.partition import empty_clique, join, leave
from eutely.multi.votes import may_meet
from eutely.solver.lap_sparse import lap_again


@kernel
def placing_order(votes: Any, lot: Any) -> Any:
    """Return an order in which each specimen was matched with many of those before it.

    Otherwise, if pairs are missing, several cliques of one cell would begin separately and have to
    be merged later. Ties are broken by ``lot``, (N,) int64, a random order.
    """
    count = len(lot)
    known = np.zeros(count, np.int64)
    order = np.empty(count, np.int64)
    for at in range(count):
        best = -1
        for k in range(count):
            g = lot[k]
            if known[g] >= 0 and (best < 0 or known[g] > known[best]):
                best = g
        order[at] = best
        for g in range(count):
            known[g] += votes.pair[best, g] >= 0
        known[best] = -count
    return order


@kernel
def place_all(votes: Any, cliques: Any, present: Any, order: Any, waiting: Any) -> int:
    """Place one specimen at a time until no specimen can be placed better.

    Parameters
    ----------
    votes, cliques
        a `Votes` and a `Partition` of all nodes; the latter is changed in place.
    present
        (N,) bool, specimens that vote; the others vote from their first turn on.
    order
        (N,) int64, the specimens in the order of their turns.
    waiting
        (V,) bool, gets True for every clique that changes.

    Returns
    -------
    gain
        number of votes won.
    """
    column = np.full(len(cliques.labels), -1, np.int32)
    total, idle, turn = 0, 0, 0
    while idle < len(order):
        specimen = order[turn % len(order)]
        turn += 1
        starts, columns, costs, targets, kept = _count(votes, cliques, present, specimen, column)
        owners, column_starts, column_items = columns_of(starts, columns, len(targets))
        prices = np.zeros(len(targets))
        chosen = np.full(len(starts) - 1, -1, np.int32)
        lap_again(starts, columns, owners, column_starts, column_items, costs, prices, chosen)
        won = 0.0
        for i in range(len(chosen)):
            if chosen[i] >= 0:
                won -= costs[chosen[i]]
                chosen[i] = columns[chosen[i]]
        gain = round(won) - kept
        if gain > 0:
            _put(votes, cliques, specimen, chosen, targets, waiting)
        total += gain
        idle = 0 if gain > 0 or not present[specimen] else idle + 1
        present[specimen] = True
    return total


@inner
def _count(votes: Any, cliques: Any, present: Any, specimen: int, column: Any) -> Any:
    """Count the votes of all present specimens for the nuclei of one specimen.

    ``column`` (V,) int32 is a buffer of -1, before and after.

    Returns
    -------
    starts
        (n + 1,) int32, where the candidates of each nucleus begin.
    columns
        (c,) int32, the position of each candidate's clique in ``targets``.
    costs
        (c,) float64, minus the number of votes.
    targets
        (m,) int32, cliques.
    kept
        votes for the current cliques of the nuclei.
    """
    first, last = votes.nuclei[specimen], votes.nuclei[specimen + 1]
    bound = votes.starts[last] - votes.starts[first]
    starts = np.zeros(last - first + 1, np.int32)
    columns = np.empty(bound, np.int32)
    costs = np.empty(bound, np.float64)
    targets = np.empty(bound, np.int32)
    tally = np.zeros(bound, np.int32)
    width, length, kept = 0, 0, 0
    for node in range(first, last):
        begin = length
        for at in range(votes.starts[node], votes.starts[node + 1]):
            voter = votes.neighbours[at]
            if not present[votes.specimen[voter]]:
                continue
            clique = cliques.labels[voter]
            if column[clique] < 0:
                column[clique] = width
                targets[width] = clique
                width += 1
            k = column[clique]
            if tally[k] == 0:
                columns[length] = k
                length += 1
            tally[k] += 1
        end, length = length, begin
        for at in range(begin, end):
            k = columns[at]
            if targets[k] == cliques.labels[node]:
                kept += tally[k]
            if _may_join(votes, cliques, present, node, np.int64(targets[k])):
                columns[length] = k
                costs[length] = -tally[k]
                length += 1
            tally[k] = 0
        starts[node - first + 1] = length
    for k in range(width):
        column[targets[k]] = -1
    return starts, columns[:length], costs[:length], targets[:width], kept


@inner
def _may_join(votes: Any, cliques: Any, present: Any, node: Any, clique: Any) -> bool:
    """Return whether ``node`` may be matched with all members of ``clique``."""
    if len(votes.allowed) == 0 or cliques.labels[node] == clique:
        return True
    member = np.int64(cliques.heads[clique])
    while member >= 0:
        other = votes.specimen[member]
        if present[other] and other != votes.specimen[node] and not may_meet(votes, node, member):
            return False
        member = np.int64(cliques.following[member])
    return True


@inner
def _put(votes: Any, cliques: Any, specimen: int, chosen: Any, targets: Any, waiting: Any) -> None:
    """Move the nuclei of a specimen to cliques ``targets[chosen]``, to new ones for -1."""
    first = votes.nuclei[specimen]
    for i in range(len(chosen)):
        old = cliques.labels[first + i]
        if chosen[i] < 0 or targets[chosen[i]] != old:
            leave(cliques, first + i)
            waiting[old] = True
    for i in range(len(chosen)):
        if cliques.labels[first + i] < 0 and chosen[i] >= 0:
            join(cliques, first + i, np.int64(targets[chosen[i]]))
            waiting[targets[chosen[i]]] = True
    # Last, so that no clique counts as empty whose members are about to return.
    for i in range(len(chosen)):
        if cliques.labels[first + i] < 0:
            clique = empty_clique(cliques)
            join(cliques, first + i, clique)
            waiting[clique] = True
