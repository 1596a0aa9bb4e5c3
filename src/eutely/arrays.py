"""The flat arrays of a matching problem, and the kernels that build and read them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import bare, inner, kernel


class Arrays(NamedTuple):
    """The flat arrays of a `PairProblem`, in the form that kernels take.

    Attributes
    ----------
    starts
        (n_left + 1,) int32, candidates of left node i are ``starts[i] .. starts[i + 1]``.
    labels
        (c,) int32, the right node of each candidate, ascending within a left node.
    owners
        (c,) int32, the left node of each candidate.
    linear
        (c,) float64, cost of each candidate; leaving a node unmatched costs 0.
    column_starts, column_items
        (n_right + 1,), (c,) int32, the candidates of each right node, by left node.
    edge_starts, edge_ends
        (n_left + 1,), (e,) int32, neighbours of each left node, ascending; both directions.
    edge_offsets
        (e,) int32, where the costs with that neighbour start within a row of a full table.
    row_starts
        (c + 1,) int64, the quadratic costs of candidate a are ``row_starts[a] ..
        row_starts[a + 1]`` of ``values``; every cost is in the rows of both candidates.
    row_items
        (q,) int32, the other candidate of each quadratic cost, ascending within a row; empty
        if tables are full: then a row holds all candidates of all neighbours in order.
    values
        (q,) float32, the quadratic costs; 0 for candidates that share a right node.
    lowest
        (1,) float64, no quadratic cost is below it; at most 0.
    """

    starts: NDArray[np.int32]
    labels: NDArray[np.int32]
    owners: NDArray[np.int32]
    linear: NDArray[np.float64]
    column_starts: NDArray[np.int32]
    column_items: NDArray[np.int32]
    edge_starts: NDArray[np.int32]
    edge_ends: NDArray[np.int32]
    edge_offsets: NDArray[np.int32]
    row_starts: NDArray[np.int64]
    row_items: NDArray[np.int32]
    values: NDArray[np.float32]
    lowest: NDArray[np.float64]


def starts_of(nodes: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Return (count + 1,) int32, where each node starts in the ascending list ``nodes``."""
    return np.searchsorted(nodes, np.arange(count + 1)).astype(np.int32)


@kernel
def transpose(starts: Any, labels: Any, width: int) -> Any:
    """Return ``owners``, ``column_starts``, ``column_items`` of candidate lists.

    Parameters: see `columns_of`.
    """
    return columns_of(starts, labels, width)


@inner
def columns_of(starts: Any, labels: Any, width: int) -> Any:
    """Return ``owners``, ``column_starts``, ``column_items`` of candidate lists.

    Parameters
    ----------
    starts
        (n + 1,) int32, where the candidates of each row start.
    labels
        (c,) int32, the column of each candidate.
    width
        number of columns.
    """
    owners = np.empty(len(labels), dtype=np.int32)
    column_starts = np.zeros(width + 1, dtype=np.int32)
    column_items = np.empty(len(labels), dtype=np.int32)
    for i in range(len(starts) - 1):
        for a in range(starts[i], starts[i + 1]):
            owners[a] = i
            column_starts[labels[a] + 1] += 1
    for j in range(width):
        column_starts[j + 1] += column_starts[j]
    fill = np.empty(width + 1, dtype=np.int32)
    for j in range(width + 1):
        fill[j] = column_starts[j]
    for a in range(len(labels)):
        column_items[fill[labels[a]]] = a
        fill[labels[a]] += 1
    return owners, column_starts, column_items


@inner
def longer(values: Any, size: int, room: int) -> Any:
    """Return (room,), a copy of the first ``size`` values with room for more."""
    more = np.empty(room, dtype=values.dtype)
    for k in range(size):
        more[k] = values[k]
    return more


@kernel
def symmetric_rows(left: Any, right: Any, first: Any, second: Any, costs: Any) -> Any:
    """Return starts, other candidates (ascending) and values of the symmetric rows of pairs."""
    count = len(left)
    sizes = np.zeros(count + 1, dtype=np.int64)
    for k in range(len(first)):
        a, b = first[k], second[k]
        if left[a] != left[b] and right[a] != right[b]:
            sizes[a + 1] += 1
            sizes[b + 1] += 1
    rows = sizes
    for a in range(count):
        rows[a + 1] += rows[a]
    # Filled unordered at first; transposing a symmetric matrix orders its rows without a sort.
    loose_items = np.empty(rows[-1], dtype=np.int32)
    loose_values = np.empty(rows[-1], dtype=np.float32)
    fill = np.empty(count + 1, dtype=np.int64)
    for a in range(count + 1):
        fill[a] = rows[a]
    for k in range(len(first)):
        a, b = first[k], second[k]
        if left[a] != left[b] and right[a] != right[b]:
            loose_items[fill[a]] = b
            loose_values[fill[a]] = costs[k]
            fill[a] += 1
            loose_items[fill[b]] = a
            loose_values[fill[b]] = costs[k]
            fill[b] += 1
    items = np.empty(rows[-1], dtype=np.int32)
    values = np.empty(rows[-1], dtype=np.float32)
    for a in range(count + 1):
        fill[a] = rows[a]
    for a in range(count):
        for k in range(rows[a], rows[a + 1]):
            b = loose_items[k]
            if fill[b] > rows[b] and items[fill[b] - 1] == a:
                values[fill[b] - 1] += loose_values[k]
            else:
                items[fill[b]] = a
                values[fill[b]] = loose_values[k]
                fill[b] += 1
    at = np.int64(0)
    for a in range(count):
        begin = at
        for k in range(rows[a], fill[a]):
            items[at] = items[k]
            values[at] = values[k]
            at += 1
        rows[a] = begin
    rows[count] = at
    return rows, items[:at], values[:at]


@kernel
def neighbour_graph(starts: Any, owners: Any, rows: Any, items: Any) -> Any:
    """Return starts and ends of the graph of left nodes that share a quadratic cost."""
    count = len(starts) - 1
    seen = np.full(count, -1, dtype=np.int32)
    sizes = np.zeros(count + 1, dtype=np.int32)
    for i in range(count):
        for k in range(rows[starts[i]], rows[starts[i + 1]]):
            j = owners[items[k]]
            if seen[j] != i:
                seen[j] = i
                sizes[i + 1] += 1
    edge_starts = np.empty(count + 1, dtype=np.int32)
    total = 0
    for i in range(count + 1):
        total += sizes[i]
        edge_starts[i] = total
    edge_ends = np.empty(edge_starts[-1], dtype=np.int32)
    fill = np.empty(count + 1, dtype=np.int32)
    for i in range(count + 1):
        fill[i] = edge_starts[i]
    for i in range(count):
        seen[i] = -1
    for i in range(count):
        for k in range(rows[starts[i]], rows[starts[i + 1]]):
            j = owners[items[k]]
            if seen[j] != i:
                seen[j] = i
                edge_ends[fill[j]] = i  # the graph is symmetric, so this orders each list
                fill[j] += 1
    return edge_starts, edge_ends


def table_layout(
    starts: NDArray[np.int32], edge_starts: NDArray[np.int32], edge_ends: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return ``edge_offsets`` and ``row_starts`` of a problem with full tables."""
    sizes = np.diff(starts)
    before = np.concatenate([[0], np.cumsum(sizes[edge_ends], dtype=np.int64)])
    first = before[edge_starts]
    offsets = before[:-1] - np.repeat(first[:-1], np.diff(edge_starts))
    rows = np.concatenate([[0], np.cumsum(np.repeat(np.diff(first), sizes), dtype=np.int64)])
    return offsets.astype(np.int32), rows.astype(np.int64)


@kernel
def full_values(p: Any, offsets: Any, full_rows: Any) -> Any:
    """Return the values of sparse rows as full tables; missing values are 0."""
    values = np.zeros(full_rows[-1], dtype=np.float32)
    for i in range(len(p.starts) - 1):
        for a in range(p.starts[i], p.starts[i + 1]):
            e = p.edge_starts[i]
            for k in range(p.row_starts[a], p.row_starts[a + 1]):
                b = p.row_items[k]
                while p.edge_ends[e] != p.owners[b]:
                    e += 1
                values[full_rows[a] + offsets[e] + b - p.starts[p.edge_ends[e]]] = p.values[k]
    return values


def chosen_items(p: Arrays, labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return (n_left,) int32, the candidate of left node i with right node ``labels[i]``, or -1."""
    found = np.flatnonzero(p.labels == np.asarray(labels)[p.owners])
    items = np.full(len(labels), -1, dtype=np.int32)
    items[p.owners[found]] = found
    return items


@bare
def pair_cost(p: Any, a: Any, b: Any) -> float:
    """Return the quadratic cost of candidates ``a`` and ``b`` of different left nodes."""
    if len(p.row_items) == 0:
        j = p.owners[b]
        low, high = p.edge_starts[p.owners[a]], p.edge_starts[p.owners[a] + 1]
        while low < high:
            e = (low + high) >> 1
            if p.edge_ends[e] < j:
                low = e + 1
            else:
                high = e
        if low == p.edge_starts[p.owners[a] + 1] or p.edge_ends[low] != j:
            return 0.0
        return float(p.values[p.row_starts[a] + p.edge_offsets[low] + b - p.starts[j]])
    first, last = p.row_starts[a], p.row_starts[a + 1]
    end = last
    while first < last:
        k = (first + last) >> 1
        if p.row_items[k] < b:
            first = k + 1
        else:
            last = k
    if first == end or p.row_items[first] != b:
        return 0.0
    return float(p.values[first])


@bare
def block(p: Any, a: Any, e: Any, out: Any) -> None:
    """Write to ``out`` the quadratic costs of ``a`` with all candidates of edge ``e``'s end."""
    j = p.edge_ends[e]
    first = p.starts[j]
    width = p.starts[j + 1] - first
    if len(p.row_items) == 0:
        at = np.uint64(p.row_starts[a] + p.edge_offsets[e])  # unsigned: never from the end
        for b in range(np.uint64(width)):
            out[b] = p.values[at + b]
        return
    for b in range(width):
        out[b] = 0.0
    low, high = p.row_starts[a], p.row_starts[a + 1]
    end = high
    while low < high:
        k = (low + high) >> 1
        if p.row_items[k] < first:
            low = k + 1
        else:
            high = k
    while low < end and p.row_items[low] < first + width:
        out[p.row_items[low] - first] = p.values[low]
        low += 1


@kernel
def total_cost(p: Any, items: Any) -> float:
    """Return the objective of the chosen candidates ``items`` (n_left,), -1 for none."""
    total = 0.0
    for i in range(len(items)):
        if items[i] >= 0:
            total += p.linear[items[i]]
            for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
                j = p.edge_ends[e]
                if j > i and items[j] >= 0:
                    total += pair_cost(p, np.int64(items[i]), np.int64(items[j]))
    return total


@kernel
def pair_list(p: Any) -> Any:
    """Return every quadratic cost once: three arrays (q,), two candidates and the value.

    Zeros are left out, and pairs that share a right node, which no matching can use.
    """
    size = len(p.values) // 2 + 1
    first = np.empty(size, dtype=np.int32)
    second = np.empty(size, dtype=np.int32)
    costs = np.empty(size, dtype=np.float32)
    count = 0
    for a in range(len(p.labels)):
        at = p.row_starts[a]
        i = p.owners[a]
        if len(p.row_items):
            for k in range(at, p.row_starts[a + 1]):
                if p.row_items[k] > a:
                    first[count], second[count], costs[count] = a, p.row_items[k], p.values[k]
                    count += 1
            continue
        for e in range(p.edge_starts[i], p.edge_starts[i + 1]):
            j = p.edge_ends[e]
            for b in range(p.starts[j], p.starts[j + 1]):
                if b > a and p.labels[a] != p.labels[b] and p.values[at] != 0.0:
                    first[count], second[count], costs[count] = a, b, p.values[at]
                    count += 1
                at += 1
    return first[:count], second[:count], costs[:count]
