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
from eutely.solver.local import Buffers, buffers_of, local_search
from eutely.solver.merge import take_over
from eutely.solver.state import State, shift_rows, uniform, used

POOL = 4
"""Number of proposals that are kept for later merges."""

SHARE = 0.5
"""Share of the chosen candidates whose costs a proposal raises."""

STRENGTH = 2.4
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
    buffers
        of the local search.
    changed
        (n_left,) int32, buffer of the nodes that a merge changes.
    """

    middle: NDArray[np.float64]
    middle_product: NDArray[np.float64]
    prices: NDArray[np.float64]
    pool: NDArray[np.int32]
    buffers: Buffers
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
        buffers_of(p),
        np.empty(n, dtype=np.int32),
    )


def from_barycentre(p: Arrays, search: Search, steps: int, bonus: float) -> State:
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
    start = search.middle.copy(), search.middle_product.copy(), corner, np.zeros(len(p.linear))
    return _from(p, search, steps, p.linear - bonus, *start)


def from_linear(p: Arrays, search: Search, steps: int) -> State:
    """Return the matching reached by Frank-Wolfe from a good assignment of linear costs only.

    Parameters: see `from_barycentre`. The assignment is made without augmenting paths, which cost
    more than they are worth for a start.
    """
    corner, x, product = first_bids(p, search.prices)
    return _from(p, search, steps, p.linear.copy(), x, product, corner, product.copy())


@kernel
def first_bids(p: Any, prices: Any) -> Any:
    """Return an assignment by bids alone, (n_left,) int32, as a point (c,), and Q times it."""
    corner = np.full(len(p.starts) - 1, -1, dtype=np.int32)
    taken = np.full(len(p.column_starts) - 1, -1, dtype=np.int32)
    bid(p.starts, p.labels, p.owners, p.linear, prices, corner, taken)
    x = np.zeros(len(p.linear))
    product = np.zeros(len(x))
    nobody = np.full(len(corner), -1, dtype=np.int32)
    shift_rows(p, nobody, corner, product)
    for i in range(len(corner)):
        if corner[i] >= 0:
            x[corner[i]] = 1.0
    return corner, x, product


def _from(p: Arrays, search: Search, steps: int, *start: NDArray[Any]) -> State:
    """Return the matching reached from the point ``start``, all nodes searched: see `relaxed`."""
    nobody = np.full(len(p.starts) - 1, -2, dtype=np.int32)
    state: State = relaxed(p, *start, search.prices, steps, nobody, search.buffers)  # type: ignore[call-arg]
    return state


@kernel
def relaxed(
    p: Any,
    linear: Any,
    x: Any,
    product: Any,
    corner: Any,
    corner_product: Any,
    prices: Any,
    steps: Any,
    origin: Any,
    buffers: Any,
) -> State:
    """Return the matching reached by Frank-Wolfe and local search.

    Parameters
    ----------
    p, linear, x, product, corner, corner_product, prices, steps
        see `frank_wolfe`.
    origin
        (n_left,) int32, the local search begins with the nodes that differ from it.
    buffers
        of the local search.
    """
    chosen = frank_wolfe(p, linear, x, product, corner, corner_product, prices, steps)
    marginal = np.empty(len(corner_product))
    for a in range(len(marginal)):
        marginal[a] = p.linear[a] + corner_product[a]
    shift_rows(p, corner, chosen, marginal)
    state = State(corner, used(p, chosen), marginal)
    count = 0
    for i in range(len(chosen)):
        if chosen[i] != origin[i]:
            buffers.queue[count] = i
            buffers.waiting[i] = True
            count += 1
    local_search(p, state, buffers, count)
    return state


def margin(p: Arrays, state: State) -> float:
    """Return the median over left nodes of the difference to the next best candidate."""
    margins = next_best(p, state)
    known = margins[np.isfinite(margins)]
    return float(np.median(known)) if len(known) else 0.0


def next_best(p: Arrays, state: State) -> NDArray[np.float64]:
    """Return (n_left,), the difference to the next best candidate; inf if there is none."""
    matched = state.chosen >= 0
    now = np.zeros(len(matched))
    now[matched] = state.marginal[state.chosen[matched]]
    apart = np.abs(state.marginal - now[p.owners])
    apart[state.chosen[matched]] = np.inf
    margins = np.full(len(matched), np.inf)
    some = np.flatnonzero(np.diff(p.starts))  # nodes with candidates
    if len(some):
        margins[some] = np.minimum.reduceat(apart, p.starts[some])
    return margins


@kernel
def perturbed(p: Any, state: Any, strength: float, random: Any) -> Any:
    """Return linear costs with some chosen candidates raised, the matching x (c,), and Q x."""
    linear = np.empty(len(p.linear))
    product = np.empty(len(linear))
    for a in range(len(linear)):
        linear[a] = p.linear[a]
        product[a] = state.marginal[a] - p.linear[a]
    x = np.zeros(len(linear))
    for i in range(len(state.chosen)):
        a = state.chosen[i]
        if a >= 0:
            x[a] = 1.0
            if uniform(random) < SHARE:
                linear[a] += strength * uniform(random)
    return linear, x, product


def fusion_round(
    p: Arrays,
    state: State,
    origin: State,
    search: Search,
    work: tuple[float, int],
    random: NDArray[np.uint64],
    number: int,
) -> tuple[float, State]:
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
    work
        largest amount by which the proposal raises the cost of a chosen candidate, and
        Frank-Wolfe steps at most.
    random
        (1,) uint64, see `eutely.solver.state.stream`.
    number
        of this round, from 0.
    """
    strength, steps = work
    linear, x, product = perturbed(p, origin, strength, random)
    start = linear, x, product, origin.chosen.copy(), product.copy(), search.prices
    proposal: State = relaxed(p, *start, steps, origin.chosen, search.buffers)
    count, cost = take_over(p, state, proposal.chosen, search.changed, search.buffers)
    if count:
        for back in range(1, min(number, POOL) + 1):
            other = search.pool[(number - back) % POOL]
            _, cost = take_over(p, state, other, search.changed, search.buffers)
    search.pool[number % POOL] = proposal.chosen
    return cost, proposal
