"""Quadratic costs: how well the offset of two neighbours is preserved (equation 4)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import longer, table_layout
from eutely.costs.candidates import robust
from eutely.kernel import kernel


class Offsets(NamedTuple):
    """Expected offsets between neighbours on the left side.

    Attributes
    ----------
    starts, ends
        (n + 1,), (e,) int32, neighbours of each left node, ascending, both directions.
    residuals
        (e, 3) float64, expected offset of i and j minus the difference of their expected
        positions; (1, 3) if all are equal. The direction j, i has the opposite sign.
    roots
        (e, 3, 3) float64, a square root R of each precision, R.T @ R; (1, 3, 3) if all share it.
    """

    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    residuals: NDArray[np.float64]
    roots: NDArray[np.float64]


class Layout(NamedTuple):
    """Where the tables of quadratic costs are.

    Attributes
    ----------
    edge_offsets, row_starts
        see `eutely.arrays.Arrays`.
    rivals
        (r,) int64, entries of candidates that share a right node: both cannot be chosen.
    """

    edge_offsets: NDArray[np.int32]
    row_starts: NDArray[np.int64]
    rivals: NDArray[np.int64]


def layout_of(allowed: Any, offsets: Offsets, n_right: int) -> Layout:
    """Return the layout of the tables of candidates, with ``starts`` and ``labels``."""
    edge_offsets, row_starts = table_layout(allowed.starts, offsets.starts, offsets.ends)
    lists = allowed.starts, allowed.labels, offsets.starts, offsets.ends
    return Layout(edge_offsets, row_starts, _rivals(*lists, row_starts, n_right))


def fill_offsets(
    values: NDArray[np.float32],
    allowed: Any,
    places: tuple[NDArray[np.float64], NDArray[np.float64]],
    offsets: Offsets,
    layout: Layout,
    weight: float,
    nu: float,
) -> None:
    """Write the values of full tables into ``values``, (q,) float32; see `eutely.arrays.Arrays`.

    With the displacement d_is = mean_i - x_s the deviation of an offset is residual_ij + d_is -
    d_jt: small numbers, for which single precision is enough. Each end takes half of the residual,
    so that both directions of an edge give the same bits.

    Parameters
    ----------
    values
        as many as ``layout`` asks for.
    allowed
        candidates, with ``starts`` and ``labels``.
    places
        (n, 3), (m, 3) float64, expected positions of the left and positions of the right side.
    offsets
        expected offsets.
    layout
        of the tables.
    weight, nu
        factor on the costs, and degrees of freedom of a Student-t or 0.
    """
    what = values, allowed.starts, allowed.labels, *places, offsets, layout
    if len(offsets.roots) == 1 and not offsets.residuals.any():
        _fill_shared(*what, weight, nu)
    else:
        _fill_each(*what, weight, nu)


@kernel
def _rivals(
    starts: Any, labels: Any, edge_starts: Any, edge_ends: Any, row_starts: Any, n_right: int
) -> Any:
    """Return (r,) int64, the entries of tables whose two candidates share a right node."""
    rivals = np.empty(4 * len(labels) + n_right, np.int64)
    mine = np.full(n_right, -1, np.int32)
    size = 0
    for i in range(len(starts) - 1):
        for a in range(starts[i], starts[i + 1]):
            mine[labels[a]] = a
        width = 0
        for e in range(edge_starts[i], edge_starts[i + 1]):
            j = edge_ends[e]
            if size + n_right > len(rivals):
                rivals = longer(rivals, size, 2 * size + n_right)
            for b in range(starts[j], starts[j + 1]):
                a = mine[labels[b]]
                # Written in any case: whether two share a node cannot be predicted.
                rivals[size] = row_starts[max(a, 0)] + width
                size += a >= 0
                width += 1
        for a in range(starts[i], starts[i + 1]):
            mine[labels[a]] = -1
    return longer(rivals, size, size)


@kernel
def _fill_shared(
    values: Any,
    starts: Any,
    labels: Any,
    means: Any,
    points: Any,
    offsets: Any,
    layout: Any,
    weight: float,
    nu: float,
) -> None:
    """Fill the tables if all offsets share one precision and none has a residual.

    The displacements of all neighbours' candidates are then contiguous, and so are the costs.
    """
    scale = np.sqrt(weight) if nu == 0.0 else 1.0
    root = offsets.roots[0]
    shifts = np.empty((3, len(labels)), dtype=np.float32)
    widest = 0
    for i in range(len(starts) - 1):
        width = 0
        for e in range(offsets.starts[i], offsets.starts[i + 1]):
            width += starts[offsets.ends[e] + 1] - starts[offsets.ends[e]]
        widest = max(widest, width)
        for a in range(starts[i], starts[i + 1]):
            s = labels[a]
            x = means[i, 0] - points[s, 0]
            y = means[i, 1] - points[s, 1]
            z = means[i, 2] - points[s, 2]
            for k in range(3):
                shifts[k, a] = (root[k, 0] * x + root[k, 1] * y + root[k, 2] * z) * scale
    others = np.empty((3, widest), dtype=np.float32)
    rival = 0
    for i in range(len(starts) - 1):
        width = 0
        for e in range(offsets.starts[i], offsets.starts[i + 1]):
            begin = starts[offsets.ends[e]]
            size = starts[offsets.ends[e] + 1] - begin
            for k in range(3):
                theirs = shifts[k][begin : begin + size]
                row = others[k][width : width + size]
                for b in range(size):
                    row[b] = theirs[b]
            width += size
        first, second, third = others[0][:width], others[1][:width], others[2][:width]
        for a in range(starts[i], starts[i + 1]):
            u, v, w = shifts[0, a], shifts[1, a], shifts[2, a]
            at = layout.row_starts[a]
            row = values[at : at + width]  # no negative index, for SIMD
            for b in range(width):
                p, q, r = u - first[b], v - second[b], w - third[b]
                row[b] = p * p + q * q + r * r
            if nu > 0.0:
                for b in range(width):
                    row[b] = weight * robust(row[b], nu)
        # While the rows are in the cache: there are too many to come back to them.
        end = layout.row_starts[starts[i + 1]]
        while rival < len(layout.rivals) and layout.rivals[rival] < end:
            values[layout.rivals[rival]] = 0.0
            rival += 1


@kernel
def _fill_each(
    values: Any,
    starts: Any,
    labels: Any,
    means: Any,
    points: Any,
    offsets: Any,
    layout: Any,
    weight: float,
    nu: float,
) -> None:
    """Fill the tables if every offset has its own precision."""
    widest = 0
    for i in range(len(starts) - 1):
        widest = max(widest, starts[i + 1] - starts[i])
    first_axis = np.empty(widest, dtype=np.float32)
    second_axis = np.empty(widest, dtype=np.float32)
    third_axis = np.empty(widest, dtype=np.float32)
    scale = np.float32(np.sqrt(weight)) if nu == 0.0 else np.float32(1.0)
    for i in range(len(starts) - 1):
        for e in range(offsets.starts[i], offsets.starts[i + 1]):
            j = offsets.ends[e]
            root = offsets.roots[min(e, len(offsets.roots) - 1)]
            residual = offsets.residuals[min(e, len(offsets.residuals) - 1)]
            first = starts[j]
            width = starts[j + 1] - first
            for b in range(width):
                s = labels[first + b]
                x, y, z = (
                    means[j, 0] - points[s, 0] - 0.5 * residual[0],
                    means[j, 1] - points[s, 1] - 0.5 * residual[1],
                    means[j, 2] - points[s, 2] - 0.5 * residual[2],
                )
                first_axis[b] = (root[0, 0] * x + root[0, 1] * y + root[0, 2] * z) * scale
                second_axis[b] = (root[1, 0] * x + root[1, 1] * y + root[1, 2] * z) * scale
                third_axis[b] = (root[2, 0] * x + root[2, 1] * y + root[2, 2] * z) * scale
            for a in range(starts[i], starts[i + 1]):
                s = labels[a]
                x = means[i, 0] - points[s, 0] + 0.5 * residual[0]
                y = means[i, 1] - points[s, 1] + 0.5 * residual[1]
                z = means[i, 2] - points[s, 2] + 0.5 * residual[2]
                u = np.float32((root[0, 0] * x + root[0, 1] * y + root[0, 2] * z) * scale)
                v = np.float32((root[1, 0] * x + root[1, 1] * y + root[1, 2] * z) * scale)
                w = np.float32((root[2, 0] * x + root[2, 1] * y + root[2, 2] * z) * scale)
                at = layout.row_starts[a] + layout.edge_offsets[e]
                row = values[at : at + width]  # so that the compiler sees no negative index
                for b in range(width):
                    p, q, r = u - first_axis[b], v - second_axis[b], w - third_axis[b]
                    row[b] = p * p + q * q + r * r
                if nu > 0.0:
                    for b in range(width):
                        row[b] = weight * robust(row[b], nu)
    for k in range(len(layout.rivals)):
        values[layout.rivals[k]] = 0.0
