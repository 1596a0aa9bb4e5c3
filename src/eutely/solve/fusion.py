"""Fusion rounds: perturb the costs, find another good matching, keep what is better of both.

A proposal makes part of what is chosen now dearer and follows Frank-Wolfe from the current matching
for a few steps; the local search, at true costs, repairs it. Wherever the proposal is the better
one, the merge takes it over. Proposals are kept for a while: what was no gain before may become one
after another change.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import Arrays
from eutely.kernel import kernel
from eutely.solve.frank_wolfe import barycentre, frank_wolfe, product_of
from eutely.solve.lap_sparse import lap_sparse
from eutely.solve.local import search_around
from eutely.solve.merge import merge
from eutely.solve.random import uniform
from eutely.solve.state import State, changed_state, cost_of, new_state

POOL = 4
"""Proposals that are kept for later merges."""

SHARE = 0.5
"""Share of the chosen candidates that a proposal makes dearer."""

STRENGTHS = (1.6, 6.4, 3.2)
"""By how much at most, in turn: multiples of the typical margin to a node's next best candidate."""


class Search(NamedTuple):
    """What one round hands to the next.

    Attributes
    ----------
    prices
        (n_right,) float64, column prices of the last linear assignment at true costs.
    pool
        (POOL, n_left) int32, the last proposals, in turn.
    queue, waiting, changed
        (n_left,) int32, bool, int32, buffers.
    """

    prices: NDArray[np.float64]
    pool: NDArray[np.int32]
    queue: NDArray[np.int32]
    waiting: NDArray[np.bool_]
    changed: NDArray[np.int32]


def new_search(p: Arrays) -> Search:
    """Return the memory of a search that has not begun."""
    n = len(p.starts) - 1
    return Search(
        np.zeros(len(p.column_starts) - 1),
        np.full((POOL, n), -1, dtype=np.int32),
        np.empty(n, dtype=np.int32),
        np.zeros(n, dtype=np.bool_),
        np.empty(n, dtype=np.int32),
    )


def from_relaxation(p: Arrays, search: Search, steps: int, linear_start: bool) -> State:
    """Return the state found by Frank-Wolfe and local search.

    Parameters
    ----------
    p
        arrays of the problem.
    search
        memory; its prices are changed.
    steps
        Frank-Wolfe steps at most.
    linear_start
        start from the best assignment for the linear costs alone; otherwise from the barycentre
        of the candidates.
    """
    n = len(p.starts) - 1
    corner = np.full(n, -1, dtype=np.int32)
    corner_product = np.zeros(len(p.linear))
    if linear_start:
        corner, _ = lap_sparse(
            p.starts,
            p.labels,
            p.owners,
            p.column_starts,
            p.column_items,
            p.linear,
            search.prices,
        )
        x = np.zeros(len(p.linear))
        x[corner[corner >= 0]] = 1.0
        corner_product = product_of(p, x)
        product = corner_product.copy()
    else:
        x = barycentre(p)
        product = product_of(p, x)
    chosen = frank_wolfe(p, p.linear, x, product, corner, corner_product, search.prices, steps)
    state: State = new_state(p, chosen)
    search.changed[:] = np.arange(n)
    search_around(p, state, search.changed, n, search.queue, search.waiting)
    return state


@kernel
def take_over(p: Any, state: Any, search: Any, other: Any) -> bool:
    """Merge ``other`` into ``state``, search around what changed; say whether anything did."""
    count = merge(p, state, other, search.changed)
    search_around(p, state, search.changed, count, search.queue, search.waiting)
    return count > 0


def margin(p: Arrays, state: State) -> float:
    """Return the median, over left nodes, of the difference to the next best candidate."""
    margins = next_best(p, state)
    known = margins[np.isfinite(margins)]
    return float(np.median(known)) if len(known) else 0.0


@kernel
def next_best(p: Any, state: Any) -> Any:
    """Return the difference to the next best candidate of each left node; inf if there is none."""
    margins = np.empty(len(state.chosen))
    for i in range(len(margins)):
        a = state.chosen[i]
        now = state.marginal[a] if a >= 0 else 0.0
        least = np.inf
        for b in range(p.starts[i], p.starts[i + 1]):
            if b != a:
                least = min(least, abs(state.marginal[b] - now))
        margins[i] = least
    return margins


@kernel
def perturbed(p: Any, state: Any, strength: float, random: Any) -> Any:
    """Return linear costs, dearer where chosen for a random part, and the matching as (c,) 0, 1."""
    linear = p.linear.copy()
    x = np.zeros(len(linear))
    for i in range(len(state.chosen)):
        a = state.chosen[i]
        if a >= 0:
            x[a] = 1.0
            if uniform(random) < SHARE:
                linear[a] += strength * uniform(random)
    return linear, x


@kernel
def fusion_round(
    p: Any, state: Any, search: Any, strength: float, steps: int, random: Any, number: int
) -> float:
    """Improve ``state`` by one proposal and return its objective.

    Parameters
    ----------
    p
        arrays of the problem.
    state
        changed in place, never for the worse.
    search
        memory, changed.
    strength
        by how much a proposal makes chosen candidates dearer, at most.
    steps
        Frank-Wolfe steps at most.
    random
        (1,) uint64, see `eutely.solve.random.stream`.
    number
        of this round, from 0.
    """
    linear, x = perturbed(p, state, strength, random)
    product = state.marginal - p.linear
    chosen = frank_wolfe(
        p,
        linear,
        x,
        product.copy(),
        state.chosen.copy(),
        product,
        search.prices.copy(),
        steps,
    )
    proposal, count = changed_state(p, state, chosen, search.changed)
    search_around(p, proposal, search.changed, count, search.queue, search.waiting)
    if take_over(p, state, search, proposal.chosen):
        for back in range(1, min(number, POOL) + 1):
            take_over(p, state, search, search.pool[(number - back) % POOL])
    search.pool[number % POOL] = proposal.chosen
    return cost_of(p, state)
