"""One graph-matching problem: candidates, their linear costs, and quadratic costs between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eutely.arrays import (
    Arrays,
    chosen_items,
    full_values,
    neighbour_graph,
    starts_of,
    symmetric_rows,
    table_layout,
    total_cost,
    transpose,
)
from eutely.errors import ProblemError

FULL_ABOVE = 0.3
"""Share of given entries from which quadratic costs are kept as full tables."""

LARGEST = np.iinfo(np.int32).max
"""Largest number of candidates or pairs."""


@dataclass(frozen=True, eq=False)
class PairProblem:
    """Match left to right nodes, each at most once, at the lowest cost (equations 5 and 6).

    A matching is (n_left,) int32: the right node of each left node, or -1. Its objective is the
    sum of the linear costs of the chosen candidates and of the quadratic costs of every pair of
    chosen candidates; an unmatched node costs 0, so that only negative costs attract.

    Attributes
    ----------
    n_left, n_right
        number of nodes on either side.
    arrays
        candidates and costs; see `Arrays`.

    Examples
    --------
    Two nodes on each side; both matchings cost -2, but a pair cost adds 1.5 to the first.

    >>> candidates = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> problem = PairProblem.from_arrays((2, 2), candidates, [-1.0] * 4, [[0, 3]], [1.5])
    >>> problem.objective([0, 1]), problem.objective([1, 0])
    (-0.5, -2.0)
    """

    n_left: int
    n_right: int
    arrays: Arrays

    @classmethod
    def from_arrays(
        cls,
        shape: tuple[int, int],
        candidates: ArrayLike,
        costs: ArrayLike,
        pairs: ArrayLike | None = None,
        pair_costs: ArrayLike | None = None,
    ) -> PairProblem:
        """Build a problem from lists of candidates and of pairs of candidates.

        Parameters
        ----------
        shape
            number of left and of right nodes.
        candidates
            (c, 2) int, left and right node of each allowed assignment, in any order.
        costs
            (c,) linear costs, minus the cost of leaving a node unmatched.
        pairs
            (p, 2) int, positions in ``candidates`` of two assignments with a quadratic cost. A pair
            given twice counts twice; a pair that shares a node never counts.
        pair_costs
            (p,) quadratic costs.
        """
        n_left, n_right = (int(size) for size in shape)
        nodes = _integers(candidates, "candidates")
        linear = _numbers(costs, len(nodes), "costs", "candidates")
        _within(nodes[:, 0], n_left, "left node", "candidate")
        _within(nodes[:, 1], n_right, "right node", "candidate")
        order = np.lexsort((nodes[:, 1], nodes[:, 0]))
        left = nodes[order, 0].astype(np.int32)
        right = nodes[order, 1].astype(np.int32)
        twice = (np.diff(left) == 0) & (np.diff(right) == 0)
        if twice.any():
            at = int(np.argmax(twice))
            raise ProblemError(
                f"candidate ({left[at]}, {right[at]}) occurs twice; list every pair of nodes once"
            )
        ends = _integers([] if pairs is None else pairs, "pairs")
        extra = _numbers([] if pair_costs is None else pair_costs, len(ends), "pair_costs", "pairs")
        _within(ends.ravel(), len(nodes), "candidate", "pair")
        position = np.empty(len(order), dtype=np.int32)
        position[order] = np.arange(len(order), dtype=np.int32)
        starts = starts_of(left, n_left)
        rows, items, values = symmetric_rows(
            left, right, position[ends[:, 0]], position[ends[:, 1]], extra.astype(np.float32)
        )
        _, column_starts, column_items = transpose(starts, right, n_right)
        edge_starts, edge_ends = neighbour_graph(starts, left, rows, items)
        arrays = Arrays(
            starts,
            right,
            left,
            linear[order],
            column_starts,
            column_items,
            edge_starts,
            edge_ends,
            np.zeros(len(edge_ends), dtype=np.int32),
            rows,
            items,
            values,
            values.min(keepdims=True, initial=0.0).astype(np.float64),
        )
        offsets, full_rows = table_layout(starts, edge_starts, edge_ends)
        if len(items) and len(items) >= FULL_ABOVE * int(full_rows[-1]):
            arrays = arrays._replace(
                edge_offsets=offsets,
                row_starts=full_rows,
                row_items=np.empty(0, dtype=np.int32),
                values=full_values(arrays, offsets, full_rows),
            )
        return cls(n_left, n_right, arrays)

    @classmethod
    def from_tables(
        cls,
        shape: tuple[int, int],
        candidates: ArrayLike,
        costs: ArrayLike,
        edges: ArrayLike,
        tables: Sequence[ArrayLike],
    ) -> PairProblem:
        """Build a problem from one table of quadratic costs for each edge between left nodes.

        Parameters
        ----------
        shape, candidates, costs
            see `from_arrays`; the candidates must be grouped by left node, ascending.
        edges
            (e, 2) int, two different left nodes i and j.
        tables
            e arrays: rows and columns are the candidates of i and j, in the given order.
        """
        nodes = _integers(candidates, "candidates")
        ends = _integers(edges, "edges")
        if (np.diff(nodes[:, 0]) < 0).any():
            raise ProblemError(
                "candidates are not in the order of left nodes; tables need them grouped by left "
                "node, ascending"
            )
        if len(tables) != len(ends):
            raise ProblemError(f"{len(tables)} tables for {len(ends)} edges; give one per edge")
        _within(nodes[:, 0], shape[0], "left node", "candidate")
        _within(ends.ravel(), shape[0], "left node", "edge")
        starts = starts_of(nodes[:, 0].astype(np.int32), shape[0])
        pairs, values = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
        for (i, j), table in zip(ends, tables, strict=True):
            entries = np.asarray(table, dtype=np.float64)
            want = (int(starts[i + 1] - starts[i]), int(starts[j + 1] - starts[j]))
            if entries.shape != want:
                raise ProblemError(
                    f"table of edge ({i}, {j}) has shape {entries.shape}, expected {want}, the "
                    "numbers of candidates of its nodes"
                )
            grid = np.indices(want).reshape(2, -1).T
            pairs.append(grid + [starts[i], starts[j]])
            values.append(entries.ravel())
        return cls.from_arrays(shape, nodes, costs, np.concatenate(pairs), np.concatenate(values))

    @property
    def full(self) -> bool:
        """Whether quadratic costs are kept as full tables."""
        return len(self.arrays.row_items) == 0

    def __repr__(self) -> str:
        a = self.arrays
        return (
            f"<PairProblem {self.n_left} x {self.n_right}: {len(a.labels)} candidates, "
            f"{len(a.edge_ends) // 2} edges, {len(a.values) // 2} quadratic costs>"
        )

    def objective(self, matching: ArrayLike) -> float:
        """Return the cost of ``matching``, (n_left,) int, -1 for unmatched, after checking it."""
        return float(total_cost(self.arrays, self.chosen(matching)))

    def chosen(self, matching: ArrayLike) -> NDArray[np.int32]:
        """Return (n_left,) int32, the candidate that ``matching`` uses at each left node, or -1."""
        labels = np.ascontiguousarray(matching, dtype=np.int32)
        if labels.shape != (self.n_left,):
            raise ProblemError(
                f"matching has shape {labels.shape}, expected one entry for each of the "
                f"{self.n_left} left nodes"
            )
        taken, counts = np.unique(labels[labels >= 0], return_counts=True)
        if (counts > 1).any():
            raise ProblemError(
                f"right node {taken[counts > 1][0]} is matched {counts.max()} times, expected at "
                "most once"
            )
        items: NDArray[np.int32] = chosen_items(self.arrays, labels)
        missing = (items < 0) & (labels >= 0)
        if missing.any():
            i = int(np.argmax(missing))
            raise ProblemError(
                f"matching uses ({i}, {labels[i]}), which is not a candidate; add it or use -1"
            )
        return items


def _integers(values: ArrayLike, what: str) -> NDArray[np.signedinteger[Any]]:
    """Return ``values`` as (n, 2) int64 or int32; raise if they are anything else."""
    given = np.asarray(values)
    if given.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise ProblemError(
            f"{what} are {given.dtype} of shape {given.shape}, expected whole numbers (n, 2)"
        )
    if len(given) > LARGEST:
        raise ProblemError(f"{len(given)} {what} are too many; sparsify the problem")
    if given.dtype == np.int32:
        return given  # long lists have this type and are not copied
    return given.astype(np.int64, copy=False)


def _numbers(values: ArrayLike, count: int, what: str, of: str) -> NDArray[np.float64]:
    """Return ``values`` as (count,) float64; raise if the shape differs or one is not finite."""
    given = np.asarray(values, dtype=np.float64)
    if given.shape != (count,):
        raise ProblemError(
            f"{what} have shape {given.shape}, expected ({count},): one for each of the {of}"
        )
    bad = ~np.isfinite(given)
    if bad.any():
        raise ProblemError(
            f"{what}[{int(np.argmax(bad))}] is {given[bad][0]} ({int(bad.sum())} of {count} are "
            "not finite); leave a forbidden assignment out of the candidates"
        )
    return given


def _within(nodes: NDArray[np.signedinteger[Any]], count: int, what: str, of: str) -> None:
    """Raise if one of ``nodes`` is not in 0 .. count - 1."""
    bad = (nodes < 0) | (nodes >= count)
    if bad.any():
        raise ProblemError(
            f"{what} {nodes[bad][0]} of a {of} does not exist, expected 0 .. {count - 1}"
        )
