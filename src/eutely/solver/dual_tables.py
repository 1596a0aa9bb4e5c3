"""Handshakes of the dual ascent where all pairs of candidates of neighbours have quadratic costs.

Each directed edge has a table, with 'unmatched' as the last row and column, and with rows padded.
The least of each row is then taken along rows of the table of the edge back: entry by entry, so
that no comparison waits for the one before.
"""

from typing import Any

import numpy as np

from eutely.arrays import Arrays
from eutely.kernel import inner, kernel

NEVER = 1e30
"""Cost of two candidates that share a right node."""

LANES = 16
"""Entries to a multiple of which rows of tables are padded."""


class Tables:
    """What sweeps over a problem with full tables need; see `eutely.solver.dual`."""

    def __init__(self, p: Arrays, back: Any) -> None:
        self.p, self.back = p, back
        sizes = np.diff(p.starts).astype(np.int64) + 1
        rows = np.repeat(sizes, np.diff(p.edge_starts))
        padded = -(-sizes // LANES) * LANES
        self.places = np.concatenate([[0], np.cumsum(rows)])
        self.begins = np.concatenate([[0], np.cumsum(rows * padded[p.edge_ends])])
        self.lent = np.zeros(self.places[-1])
        self.tables = np.zeros(self.begins[-1], dtype=np.float32)
        _fill(p, self.begins, self.tables)

    def sweep(self, costs: Any, idle: Any, u: Any, v: Any, forward: bool) -> None:
        """Make one handshake across every edge, by ascending or descending left nodes."""
        edges = self.back, self.places, self.begins
        _sweep_tables(self.p, *edges, self.tables, self.lent, costs, idle, u, v, forward)


@inner
def _padded(size: Any) -> Any:
    """Return the entries of a row, with padding."""
    return (size + LANES - 1) // LANES * LANES


@kernel
def _fill(p: Any, begins: Any, tables: Any) -> None:
    """Write the table of each directed edge."""
    for i in range(len(p.starts) - 1):
        first = p.starts[i]
        for a in range(first, p.starts[i + 1]):
            at = p.row_starts[a]
            for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
                second, last = p.starts[p.edge_ends[e]], p.starts[p.edge_ends[e] + 1]
                to = begins[e] + (a - first) * _padded(last - second + 1)
                for b in range(second, last):
                    tables[to] = NEVER if p.labels[a] == p.labels[b] else p.values[at]
                    at += 1
                    to += 1


@kernel
def _sweep_tables(
    p: Any,
    back: Any,
    places: Any,
    begins: Any,
    tables: Any,
    lent: Any,
    costs: Any,
    idle: Any,
    u: Any,
    v: Any,
    forward: bool,
) -> None:
    """Make one handshake across every edge."""
    n = len(p.starts) - 1
    widest = 1
    for i in range(n):
        widest = max(widest, p.starts[i + 1] - p.starts[i] + 1)
    room = _padded(widest)
    left, mean, right, spare = np.zeros(room), np.zeros(room), np.zeros(room), np.zeros(room)
    half, least = np.zeros(room), np.zeros(room)
    for turn in range(n):
        i = turn if forward else n - 1 - turn
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            j, f = np.int64(p.edge_ends[e]), back[e]
            if (j > i) != forward:
                continue
            size, width = places[e + 1] - places[e], places[f + 1] - places[f]
            _collect(p, i, size, costs, idle, u, v, lent, places[e], left, mean)
            _collect(p, j, width, costs, idle, u, v, lent, places[f], right, spare)
            rows, columns = _padded(size), _padded(width)
            for b in range(columns):
                least[b] = 0.0
            _least_rows(tables, begins[f], width, rows, mean, spare, least, half)
            for a in range(rows):
                half[a] *= 0.5
            for b in range(columns):
                least[b] = np.inf
            at = np.uint64(begins[e])  # unsigned: never counted from the end
            for a in range(size):
                more, less = mean[a], half[a]
                for b in range(columns):
                    cost = tables[at + np.uint64(b)] + more + spare[b] - less
                    least[b] = cost if cost < least[b] else least[b]
                at += np.uint64(columns)
            for b in range(columns):
                right[b] = least[b] - right[b]
            _least_rows(tables, begins[f], width, rows, mean, spare, least, half)
            for a in range(rows):
                left[a] = half[a] - left[a]
            _lend(p, i, size, costs, idle, lent, places[e], left)
            _lend(p, j, width, costs, idle, lent, places[f], right)


@inner
def _least_rows(
    tables: Any,
    begin: Any,
    width: Any,
    rows: Any,
    mean: Any,
    spare: Any,
    least: Any,
    out: Any,
) -> None:
    """Write the least cost of each row to ``out``, from the table of the edge back.

    ``least`` is what the columns have taken already.
    """
    for a in range(rows):
        out[a] = np.inf
    at = np.uint64(begin)
    for b in range(width):
        more, less = spare[b], least[b]
        for a in range(rows):
            cost = tables[at + np.uint64(a)] + mean[a] + more - less
            out[a] = cost if cost < out[a] else out[a]
        at += np.uint64(rows)


@inner
def _collect(
    p: Any,
    i: Any,
    size: Any,
    costs: Any,
    idle: Any,
    u: Any,
    v: Any,
    lent: Any,
    place: Any,
    reduced: Any,
    rest: Any,
) -> None:
    """Write the reduced costs of node ``i``, and those less what is lent; 'unmatched' is last."""
    first = p.starts[i]
    for a in range(size - 1):
        reduced[a] = costs[first + a] - u[i] - v[p.labels[first + a]]
        rest[a] = reduced[a] - lent[place + a]
    reduced[size - 1] = idle[i] - u[i]
    rest[size - 1] = reduced[size - 1] - lent[place + size - 1]


@inner
def _lend(
    p: Any, i: Any, size: Any, costs: Any, idle: Any, lent: Any, place: Any, changes: Any
) -> None:
    """Add the changes of a handshake to the costs of node ``i``, and to what the edge lends it."""
    first = p.starts[i]
    for a in range(size - 1):
        lent[place + a] += changes[a]
        costs[first + a] += changes[a]
    lent[place + size - 1] += changes[size - 1]
    idle[i] += changes[size - 1]
