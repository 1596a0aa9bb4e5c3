"""Merge of two matchings: where they differ, take the better of the two, part by part.

Two matchings differ in alternating paths and cycles of left nodes that hand over right nodes. Each
such part can be switched or kept as a whole and the result stays a matching, so the best
combination is a quadratic problem of a few dozen binary variables, one per part. It starts from the
better matching and is searched by flips with a short memory (tabu search), so it never gets worse.
"""

from typing import Any

import numpy as np

from eutely.arrays import pair_cost
from eutely.kernel import bare, inner, kernel
from eutely.solver.local import local_search
from eutely.solver.state import change, cost_of


@kernel
def take_over(p: Any, state: Any, other: Any, changed: Any, buffers: Any) -> Any:
    """Switch those parts of ``state`` to ``other`` that together lower the objective most.

    The local search continues from the nodes that changed.

    Parameters
    ----------
    p
        arrays of the problem.
    state
        changed in place.
    other
        (n_left,) int32, the other matching: candidate of each left node, or -1.
    changed
        (n_left,) int32, receives the left nodes that switched.
    buffers
        of the local search.

    Returns
    -------
    count
        number of nodes that switched.
    cost
        the objective after the local search.
    """
    part, parts = _parts(p, state, other)
    if parts == 0:
        return 0, cost_of(p, state)
    gains, starts, ends, weights = _binary_problem(p, state, other, part, parts)
    on = best_flips(gains, starts, ends, weights)
    count = switch_parts(p, state, other, part, on, changed)
    for k in range(count):
        buffers.queue[k] = changed[k]
        buffers.waiting[changed[k]] = True
    local_search(p, state, buffers, count)
    return count, cost_of(p, state)


@bare
def switch_parts(p: Any, state: Any, other: Any, part: Any, on: Any, changed: Any) -> int:
    """Change ``state`` to ``other`` in the parts that are ``on``; return how many nodes changed."""
    count = 0
    for i in range(len(part)):
        if part[i] >= 0 and on[part[i]]:
            changed[count] = i
            count += 1
            change(p, state, i, np.int64(-1))
    for k in range(count):
        change(p, state, np.int64(changed[k]), np.int64(other[changed[k]]))
    return count


@bare
def _root(parent: Any, i: Any) -> Any:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = np.int64(parent[i])
    return i


@inner
def _parts(p: Any, state: Any, other: Any) -> Any:
    """Return the part of each left node (-1 where the matchings agree), and the number of parts."""
    n = len(other)
    parent = np.empty(n, dtype=np.int32)
    for i in range(n):
        parent[i] = i
    for i in range(n):
        b = other[i]
        if b >= 0 and b != state.chosen[i]:
            rival = state.taken[p.labels[b]]
            if rival >= 0:
                parent[_root(parent, i)] = _root(parent, np.int64(p.owners[rival]))
    part = np.full(n, -1, dtype=np.int32)
    count = 0
    for i in range(n):
        if other[i] != state.chosen[i]:
            root = _root(parent, i)
            if part[root] < 0:
                part[root] = count
                count += 1
            part[i] = part[root]
    return part, count


@bare
def _cost(p: Any, a: Any, b: Any) -> float:
    return pair_cost(p, a, b) if a >= 0 and b >= 0 else 0.0


@inner
def _binary_problem(p: Any, state: Any, other: Any, part: Any, parts: int) -> Any:
    """Return the change of cost by each part, and the extra change by two parts (as lists)."""
    gains = np.zeros(parts)
    sizes = np.zeros(parts + 1, dtype=np.int32)
    room = 0
    for i in range(len(part)):
        if part[i] >= 0:
            for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
                j = p.edge_ends[e]
                if j > i and part[j] >= 0:
                    room += 1
    first = np.empty(room, dtype=np.int32)
    second = np.empty(room, dtype=np.int32)
    extra = np.empty(room)
    count = 0
    for i in range(len(part)):
        if part[i] < 0:
            continue
        a, b = np.int64(state.chosen[i]), np.int64(other[i])
        gains[part[i]] += (state.marginal[b] if b >= 0 else 0.0) - (
            state.marginal[a] if a >= 0 else 0.0
        )
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            j = p.edge_ends[e]
            if j <= i or part[j] < 0:
                continue
            c, d = np.int64(state.chosen[j]), np.int64(other[j])
            cross = _cost(p, b, d) - _cost(p, b, c) - _cost(p, a, d) + _cost(p, a, c)
            if part[i] == part[j]:
                gains[part[i]] += cross
            elif cross != 0.0:
                first[count], second[count], extra[count] = part[i], part[j], cross
                sizes[part[i] + 1] += 1
                sizes[part[j] + 1] += 1
                count += 1
    for k in range(parts):
        sizes[k + 1] += sizes[k]
    ends = np.empty(2 * count, dtype=np.int32)
    weights = np.empty(2 * count)
    fill = np.empty(parts + 1, dtype=np.int32)
    for k in range(parts + 1):
        fill[k] = sizes[k]
    for k in range(count):
        f, s = first[k], second[k]
        ends[fill[f]], weights[fill[f]] = s, extra[k]
        fill[f] += 1
        ends[fill[s]], weights[fill[s]] = f, extra[k]
        fill[s] += 1
    return gains, sizes, ends, weights


@inner
def best_flips(gains: Any, starts: Any, ends: Any, weights: Any) -> Any:
    """Return the switches (m,) bool with the lowest sum.

    Two tabu searches start from all off and from all on. Where their results differ, each
    independent group of switches is taken from the better of the two.

    Parameters
    ----------
    gains
        (m,) change by each switch.
    starts, ends, weights
        for each switch, extra changes if another switch is on too; both directions.
    """
    m = len(gains)
    low = np.zeros(m, dtype=np.bool_)
    _tabu(gains, starts, ends, weights, low)
    high = np.zeros(m, dtype=np.bool_)
    for k in range(m):
        high[k] = True
    _tabu(gains, starts, ends, weights, high)
    group = np.empty(m, dtype=np.int32)
    seen = np.zeros(m, dtype=np.bool_)
    for k in range(m):
        if low[k] == high[k] or seen[k]:
            continue
        group[0] = k
        seen[k] = True
        size, at = 1, 0
        difference = 0.0
        while at < size:
            j = group[at]
            at += 1
            sign = 1.0 if high[j] else -1.0
            change_ = gains[j]
            for e in range(starts[j], starts[j + 1]):
                o = ends[e]
                if low[o] != high[o]:
                    if not seen[o]:
                        seen[o] = True
                        group[size] = o
                        size += 1
                    # The pair is counted from both ends, half each.
                    change_ += 0.5 * weights[e]
                elif low[o]:
                    change_ += weights[e]
            difference += sign * change_
        if difference < 0.0:
            for q in range(size):
                low[group[q]] = high[group[q]]
    return low


@inner
def _tabu(gains: Any, starts: Any, ends: Any, weights: Any, on: Any) -> None:
    """Lower the sum from the switches ``on`` by flips; a flipped one is fixed for some steps."""
    m = len(gains)
    best = np.zeros(m, dtype=np.bool_)
    delta = np.empty(m)  # change by flipping each switch now
    for k in range(m):
        best[k] = on[k]
        delta[k] = gains[k]
        for e in range(starts[k], starts[k + 1]):
            if on[ends[e]]:
                delta[k] += weights[e]
        if on[k]:
            delta[k] = -delta[k]
    until = np.zeros(m, dtype=np.int32)
    value, lowest = 0.0, -1e-9
    since, step = 0, 0
    patience = min(m + 10, 1000)
    memory = min(m // 4 + 1, 8)
    while since < patience:
        step += 1
        since += 1
        least, at = np.inf, -1
        for k in range(m):
            if delta[k] < least and (until[k] < step or value + delta[k] < lowest):
                least, at = delta[k], k
        if at < 0:
            break
        value += least
        on[at] = not on[at]
        sign = 1.0 if on[at] else -1.0
        delta[at] = -delta[at]
        until[at] = step + memory
        for k in range(starts[at], starts[at + 1]):
            j = ends[k]
            delta[j] += sign * weights[k] * (-1.0 if on[j] else 1.0)
        if value < lowest:
            lowest = value - 1e-9 * (1.0 + abs(value))
            for k in range(m):
                best[k] = on[k]
            since = 0
    for k in range(m):
        on[k] = best[k]
