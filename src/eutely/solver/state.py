"""A matching and the marginal cost of every candidate, kept up to date change by change.

With x the chosen candidates, marginal = linear + Q x: what a candidate would cost on top of the
others. Choosing or dropping one adds its row of quadratic costs, about two hundred numbers in a
sequence; in return, every move of the local search is weighed by a few look-ups.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import kernel


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


@kernel
def add_row(p: Any, a: Any, scale: float, out: Any) -> None:
    """Add ``scale`` times the quadratic costs of candidate ``a`` to ``out`` (c,)."""
    if len(p.row_items) == 0:
        at = p.row_starts[a]
        i = p.owners[a]
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            j = p.edge_ends[e]
            first = p.starts[j]
            width = p.starts[j + 1] - first
            there = out[first : first + width]  # slices: the compiler sees no negative index
            row = p.values[at : at + width]
            for b in range(width):
                there[b] += scale * row[b]
            at += width
    else:
        for k in range(p.row_starts[a], p.row_starts[a + 1]):
            out[p.row_items[k]] += scale * p.values[k]


@kernel
def new_state(p: Any, chosen: Any) -> State:
    """Return the state of a matching, given as the candidate of each left node."""
    marginal = p.linear.copy()
    for i in range(len(chosen)):
        if chosen[i] >= 0:
            add_row(p, np.int64(chosen[i]), 1.0, marginal)
    return State(chosen.copy(), used(p, chosen), marginal)


@kernel
def change(p: Any, state: Any, i: Any, b: Any) -> None:
    """Let left node ``i`` use candidate ``b``, or none if -1; b's right node must be free."""
    a = np.int64(state.chosen[i])
    if a >= 0:
        add_row(p, a, -1.0, state.marginal)
        if state.taken[p.labels[a]] == a:
            state.taken[p.labels[a]] = -1
    if b >= 0:
        add_row(p, b, 1.0, state.marginal)
        state.taken[p.labels[b]] = b
    state.chosen[i] = b


@kernel
def cost_of(p: Any, state: Any) -> float:
    """Return the objective: half of the marginal costs and half of the linear ones."""
    total = 0.0
    for i in range(len(state.chosen)):
        a = state.chosen[i]
        if a >= 0:
            total += 0.5 * (p.linear[a] + state.marginal[a])
    return total


@kernel
def used(p: Any, chosen: Any) -> Any:
    """Return the candidate that uses each right node, or -1: (n_right,) int32."""
    taken = np.full(len(p.column_starts) - 1, -1, dtype=np.int32)
    for i in range(len(chosen)):
        if chosen[i] >= 0:
            taken[p.labels[chosen[i]]] = chosen[i]
    return taken


@kernel
def switch(p: Any, state: Any, chosen: Any) -> None:
    """Change ``state`` to the matching ``chosen`` (n_left,) int32."""
    for i in range(len(chosen)):
        if chosen[i] != state.chosen[i]:
            change(p, state, np.int64(i), np.int64(-1))
    for i in range(len(chosen)):
        if chosen[i] != state.chosen[i]:
            change(p, state, np.int64(i), np.int64(chosen[i]))
