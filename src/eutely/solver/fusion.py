"""Fusion rounds: perturb the costs, find another good matching, keep the better parts of both.

A proposal raises the costs of some chosen candidates and follows Frank-Wolfe from there for a few
steps; the local search, at true costs, repairs it. The merge takes over the parts where the
proposal is better. The next proposal starts from the last, and every few rounds from the best
matching again: several small steps reach further than a large step, and cost less. Proposals are
kept for a while: a part that was no gain before may become a gain after another change.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import Arrays
from eutely.kernel import kernel
from eutely.solver.frank_wolfe import barycentre, frank_wolfe, product_of
from eutely.solver.lap_sparse import bid
from eutely.solver.local import search_around
from eutely.solver.merge import merge
from eutely.solver.state import State, cost_of, switch, uniform, used

POOL = 4
"""Number of proposals that are kept for later merges."""

SHARE = 0.5
"""Share of the chosen candidates whose costs a proposal raises."""

STRENGTH = 1.6
"""Largest raise of a cost, in typical margins to a node's next best candidate."""

CHAIN = 6
"""Rounds after which a proposal starts from the best matching again."""


class Search(NamedTuple):
    """State that one round passes on to the next.

    Attributes
    ----------
    middle, middle_product
        (c,) float64, the barycentre of the candidates and Q times it.
    prices
        (n_right,) float64, column prices of the last linear assignment at true costs.
    pool
        (POOL, n_left) int32, the last proposals, as a ring buffer.
    queue, waiting, changed
        (n_left,) int32, bool, int32, buffers.
    """

    middle: NDArray[np.float64]
    middle_product: NDArray[np.float64]
    prices: NDArray[np.float64]
    pool: NDArray[np.int32]
    queue: NDArray[np.int32]
    waiting: NDArray[np.bool_]
    changed: NDArray[np.int32]


def new_search(p: Arrays) -> Search:
    """Return the state of a search before its first round."""
    n = len(p.starts) - 1
    middle = barycentre(p)
    return Search(
        middle,
        product_of(p, middle),
        np.zeros(len(p.column_starts) - 1),
        np.full((POOL, n), -1, dtype=np.int32),
        np.empty(n, dtype=np.int32),
        np.zeros(n, dtype=np.bool_),
        np.empty(n, dtype=np.int32),
    )


@kernel
def from_barycentre(p: Any, search: Any, steps: int, bonus: float) -> State:
    """Return the matching reached by Frank-Wolfe from the barycentre of the candidates.

    Parameters
    ----------
    p
        arrays of the problem.
    search
        state of the search; its prices are changed.
    steps
        Frank-Wolfe steps at most.
    bonus
        subtracted from all linear costs meanwhile, so that more nodes are matched.
    """
    corner = np.full(len(p.starts) - 1, -1, dtype=np.int32)
    return _relaxed(
        p,
        search,
        steps,
        p.linear - bonus,
        search.middle.copy(),
        search.middle_product.copy(),
        corner,
        np.zeros(len(p.linear)),
    )


@kernel
def from_linear(p: Any, search: Any, steps: int) -> State:
    """Return the matching reached by Frank-Wolfe from a good assignment of linear costs only.

    Parameters: see `from_barycentre`. The assignment is made without augmenting paths, which cost
    more than they are worth for a start.
    """
    corner = np.full(len(p.starts) - 1, -1, dtype=np.int32)
    taken = np.full(len(p.column_starts) - 1, -1, dtype=np.int32)
    bid(p.starts, p.labels, p.owners, p.linear, search.prices, corner, taken)
    x = np.zeros(len(p.linear))
    for i in range(len(corner)):
        if corner[i] >= 0:
            x[corner[i]] = 1.0
    product = product_of(p, x)
    return _relaxed(p, search, steps, p.linear.copy(), x, product, corner, product.copy())


@kernel
def _relaxed(
    p: Any,
    search: Any,
    steps: int,
    linear: Any,
    x: Any,
    product: Any,
    corner: Any,
    corner_product: Any,
) -> State:
    """Return the matching reached by Frank-Wolfe and local search; see `frank_wolfe`."""
    chosen = frank_wolfe(p, linear, x, product, corner, corner_product, search.prices, steps)
    state = settled(p, corner, corner_product, chosen)
    for i in range(len(chosen)):
        search.changed[i] = i
    search_around(p, state, search.changed, len(chosen), search.queue, search.waiting)
    return state


@kernel
def settled(p: Any, corner: Any, corner_product: Any, chosen: Any) -> State:
    """Return the state of ``chosen``, derived from that of a similar matching ``corner``."""
    state = State(corner, used(p, corner), p.linear + corner_product)
    switch(p, state, chosen)
    return state


@kernel
def take_over(p: Any, state: Any, search: Any, other: Any) -> bool:
    """Merge ``other`` into ``state``, search around the changes; return whether there are any."""
    count = merge(p, state, other, search.changed)
    search_around(p, state, search.changed, count, search.queue, search.waiting)
    return count > 0


def margin(p: Arrays, state: State) -> float:
    """Return the median over left nodes of the difference to the next best candidate."""
    margins = next_best(p, state)
    known = margins[np.isfinite(margins)]
    return float(np.median(known)) if len(known) else 0.0


@kernel
def next_best(p: Any, state: Any) -> Any:
    """Return (n_left,), the difference to the next best candidate; inf if there is none."""
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
    """Return linear costs with some chosen candidates raised, and the matching as (c,) 0 or 1."""
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
    p: Any,
    state: Any,
    origin: Any,
    search: Any,
    strength: float,
    steps: int,
    random: Any,
    number: int,
) -> Any:
    """Improve ``state`` by one proposal; return its objective and the proposal, also a state.

    Parameters
    ----------
    p
        arrays of the problem.
    state
        changed in place, never for the worse.
    origin
        where the proposal starts: ``state`` itself or another state.
    search
        state of the search, changed.
    strength
        largest amount by which the proposal raises the cost of a chosen candidate.
    steps
        Frank-Wolfe steps at most.
    random
        (1,) uint64, see `eutely.solver.state.stream`.
    number
        of this round, from 0.
    """
    linear, x = perturbed(p, origin, strength, random)
    product = origin.marginal - p.linear
    corner, corner_product = origin.chosen.copy(), product.copy()
    chosen = frank_wolfe(p, linear, x, product, corner, corner_product, search.prices.copy(), steps)
    proposal = settled(p, corner, corner_product, chosen)
    count = 0
    for i in range(len(chosen)):
        if chosen[i] != origin.chosen[i]:
            search.changed[count] = i
            count += 1
    search_around(p, proposal, search.changed, count, search.queue, search.waiting)
    if take_over(p, state, search, proposal.chosen):
        for back in range(1, min(number, POOL) + 1):
            take_over(p, state, search, search.pool[(number - back) % POOL])
    search.pool[number % POOL] = proposal.chosen
    return cost_of(p, state), proposal
