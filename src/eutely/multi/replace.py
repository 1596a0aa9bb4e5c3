"""Take one specimen out, let all others vote on where its nuclei belong, and put it there."""

from __future__ import annotations

from typing import Any

import numpy as np

from eutely.kernel import kernel
from eutely.multi.partition import empty_clique, join, leave
from eutely.multi.votes import may_meet
from eutely.solve.lap_sparse import lap_sparse, transpose


@kernel
def replace_all(votes: Any, cliques: Any, order: Any, waiting: Any) -> int:
    """Re-place specimens in turn until none can be placed better.

    Parameters
    ----------
    votes, cliques
        a `Votes` and a `Partition`; the latter is changed in place. Specimens that take no part
        yet are put in.
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
        starts, columns, costs, targets, kept, out = _count_votes(votes, cliques, specimen, column)
        owners, column_starts, column_items = transpose(starts, columns, len(targets))
        chosen, _ = lap_sparse(
            starts, columns, owners, column_starts, column_items, costs, np.zeros(len(targets))
        )
        cost = 0.0
        for i in range(len(chosen)):
            if chosen[i] >= 0:
                cost += costs[chosen[i]]
                chosen[i] = columns[chosen[i]]
        gain = round(-cost) - kept
        if gain > 0 or out:
            _put(votes, cliques, specimen, chosen, targets, waiting)
            total += gain
            idle = 0
        else:
            idle += 1
    return total


@kernel
def _count_votes(votes: Any, cliques: Any, specimen: int, column: Any) -> Any:
    """Count the votes of all other specimens for every nucleus of one.

    Parameters
    ----------
    votes, cliques
        a `Votes` and a `Partition`.
    specimen
        its number.
    column
        (V,) int32 full of -1, and so again on return.

    Returns
    -------
    starts
        (n + 1,) int32, where the candidates of each nucleus begin.
    columns
        (c,) int32, the number of each candidate's clique in ``targets``.
    costs
        (c,) float64, minus the number of votes.
    targets
        (m,) int32, cliques.
    kept
        votes for the cliques in which the nuclei are now.
    out
        whether a nucleus is in no clique yet.
    """
    first, last = votes.nuclei[specimen], votes.nuclei[specimen + 1]
    size = last - first
    bound = votes.starts[last] - votes.starts[first]
    starts = np.zeros(size + 1, np.int32)
    columns = np.empty(bound, np.int32)
    counts = np.empty(bound, np.float64)
    targets = np.empty(bound, np.int32)
    tally = np.zeros(bound, np.int32)
    width, length, kept, out = 0, 0, 0, False
    for i in range(size):
        node = first + i
        begin = length
        out |= cliques.labels[node] < 0
        for at in range(votes.starts[node], votes.starts[node + 1]):
            clique = cliques.labels[votes.neighbours[at]]
            if clique < 0:
                continue
            k = column[clique]
            if k < 0:
                k = width
                column[clique] = k
                targets[k] = clique
                width += 1
            if tally[k] == 0:
                columns[length] = k
                length += 1
            tally[k] += 1
        end = length
        length = begin
        for at in range(begin, end):
            k = columns[at]
            if targets[k] == cliques.labels[node]:
                kept += tally[k]
            if _may_join(votes, cliques, node, targets[k]):
                columns[length] = k
                counts[length] = -tally[k]
                length += 1
            tally[k] = 0
        starts[i + 1] = length
    for k in range(width):
        column[targets[k]] = -1
    return starts, columns[:length], counts[:length], targets[:width], kept, out


@kernel
def _may_join(votes: Any, cliques: Any, node: int, clique: int) -> bool:
    """Tell whether ``node`` may meet all members of ``clique`` from other specimens."""
    if len(votes.pair) == 0:
        return True
    member = cliques.heads[clique]
    while member >= 0:
        if votes.specimen[member] != votes.specimen[node] and not may_meet(votes, node, member):
            return False
        member = cliques.following[member]
    return True


@kernel
def _put(votes: Any, cliques: Any, specimen: int, chosen: Any, targets: Any, waiting: Any) -> None:
    """Put the nuclei of a specimen into the cliques ``targets[chosen]``, alone where that is -1.

    ``waiting`` (V,) bool gets True for every clique that changes.
    """
    first = votes.nuclei[specimen]
    for i in range(len(chosen)):
        node = first + i
        old = cliques.labels[node]
        stays = targets[chosen[i]] == old if chosen[i] >= 0 else _is_alone(cliques, node)
        if old >= 0 and not stays:
            leave(cliques, node)
            waiting[old] = True
    for i in range(len(chosen)):
        if cliques.labels[first + i] < 0 and chosen[i] >= 0:
            join(cliques, first + i, targets[chosen[i]])
            waiting[targets[chosen[i]]] = True
    # Last, since an empty clique may have been left behind by somebody who comes back.
    for i in range(len(chosen)):
        if cliques.labels[first + i] < 0:
            clique = empty_clique(cliques)
            join(cliques, first + i, clique)
            waiting[clique] = True


@kernel
def _is_alone(cliques: Any, node: int) -> bool:
    return bool(cliques.following[node] < 0 and cliques.preceding[node] < 0)
