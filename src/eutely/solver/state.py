"""A matching and the marginal cost of every candidate, kept up to date change by change.

With x the chosen candidates, marginal = linear + Q x is the cost of a candidate given the others.
Choosing or dropping a candidate adds its row of quadratic costs, about two hundred consecutive
numbers; in return, every move of the local search is evaluated by a few look-ups.

Random numbers in kernels come from a counter and a hash (splitmix64): a seed determines them all.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import bare, inner, kernel


class State(NamedTuple):
    """A matching while it is being changed.

    Attributes
    ----------
    chosen
        (n_left,) int32, the candidate of each left node, or -1.
    taken
        (n_right,) int32, the candidate that uses each right node, or -1.
    marginal
        (c,) float64, linear cost plus quadratic costs with all chosen candidates.
    """

    chosen: NDArray[np.int32]
    taken: NDArray[np.int32]
    marginal: NDArray[np.float64]


@bare
def shift_row(p: Any, a: Any, b: Any, out: Any) -> None:
    """Subtract the quadratic costs of candidate ``a`` from ``out`` (c,), and add those of ``b``.

    Both belong to the same left node; -1 stands for none, at most for one of the two. Where tables
    are full, both rows hold the same candidates of the same neighbours: one pass is enough.
    """
    minus, plus = 1.0 if a >= 0 else 0.0, 1.0 if b >= 0 else 0.0
    a, b = a if a >= 0 else b, b if b >= 0 else a
    if len(p.row_items) == 0:
        old, new = p.row_starts[a], p.row_starts[b]
        i = p.owners[a]
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            first, last = p.starts[p.edge_ends[e]], p.starts[p.edge_ends[e] + 1]
            width = last - first
            # Slices: the compiler sees that no index counts from the end.
            theirs = out[first:last]
            less, more = p.values[old : old + width], p.values[new : new + width]
            for k in range(width):
                theirs[k] += plus * more[k] - minus * less[k]
            old += width
            new += width
    else:
        for k in range(p.row_starts[a], p.row_starts[a + 1]):
            out[np.uint32(p.row_items[k])] -= minus * p.values[k]
        for k in range(p.row_starts[b], p.row_starts[b + 1]):
            out[np.uint32(p.row_items[k])] += plus * p.values[k]


@bare
def shift_rows(p: Any, before: Any, after: Any, out: Any) -> None:
    """Change ``out`` (c,), Q times the matching ``before``, to Q times the matching ``after``.

    Both are (n_left,) int32, the candidate of each left node, or -1; equal on return.
    """
    for i in range(len(before)):
        a, b = np.int64(before[i]), np.int64(after[i])
        if a != b:
            shift_row(p, a, b, out)
            before[i] = after[i]


@kernel
def new_state(p: Any, chosen: Any) -> State:
    """Return the state of a matching, given as the candidate of each left node."""
    marginal = np.empty(len(p.linear))
    for a in range(len(marginal)):
        marginal[a] = p.linear[a]
    mine = np.full(len(chosen), -1, dtype=np.int32)
    shift_rows(p, mine, chosen, marginal)
    return State(mine, used(p, chosen), marginal)


@bare
def change(p: Any, state: Any, i: Any, b: Any) -> None:
    """Let left node ``i`` use candidate ``b``, or none if -1; its right node must be free."""
    a = np.int64(state.chosen[i])
    if a == b:
        return
    shift_row(p, a, b, state.marginal)
    if a >= 0 and state.taken[p.labels[a]] == a:
        state.taken[p.labels[a]] = -1
    if b >= 0:
        state.taken[p.labels[b]] = b
    state.chosen[i] = b


@bare
def cost_of(p: Any, state: Any) -> float:
    """Return the objective: half of the marginal and half of the linear costs."""
    total = 0.0
    for i in range(len(state.chosen)):
        a = state.chosen[i]
        if a >= 0:
            total += 0.5 * (p.linear[a] + state.marginal[a])
    return total


@inner
def used(p: Any, chosen: Any) -> Any:
    """Return the candidate that uses each right node, or -1: (n_right,) int32."""
    taken = np.full(len(p.column_starts) - 1, -1, dtype=np.int32)
    for i in range(len(chosen)):
        if chosen[i] >= 0:
            taken[p.labels[chosen[i]]] = chosen[i]
    return taken


def stream(seed: int, number: int) -> NDArray[np.uint64]:
    """Return the state of random stream ``number`` of ``seed``: (1,) uint64."""
    return np.array([_first_state(abs(seed), number)], dtype=np.uint64)


@lru_cache(maxsize=1024)
def _first_state(seed: int, number: int) -> int:
    """Return where a stream begins; kept, as many problems are solved with one seed."""
    return int(np.random.SeedSequence((seed, number)).generate_state(1, np.uint64)[0])


@bare
def uniform(state: Any) -> float:
    """Return a random number in [0, 1) and advance ``state``."""
    return float(random_bits(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@bare
def random_bits(state: Any) -> Any:
    """Return 64 random bits, uint64, and advance ``state`` (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
