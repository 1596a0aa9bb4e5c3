"""Quadratic costs: how well the offset of two neighbours is preserved (equation 4)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


def fill_offsets(
    allowed: Any, means: Any, points: Any, offsets: Offsets, layout: Any, weight: float, nu: float
) -> NDArray[np.float32]:
    """Return the values of full tables, (q,) float32; see `eutely.arrays.Arrays`.

    With the displacement d_is = mean_i - x_s the deviation of an offset is residual_ij + d_is -
    d_jt: small numbers, for which single precision is enough. Each end takes half of the residual,
    so that both directions of an edge give the same bits.

    Parameters
    ----------
    allowed
        candidates, with ``starts`` and ``labels``.
    means, points
        (n, 3), (m, 3) float64, expected positions of the left and positions of the right side.
    offsets
        expected offsets.
    layout
        ``edge_offsets`` and ``row_starts`` of the tables.
    weight, nu
        factor on the costs, and degrees of freedom of a Student-t or 0.
    """
    shared = len(offsets.roots) == 1 and not offsets.residuals.any()
    values: NDArray[np.float32]
    if shared:
        values = _fill_shared(
            allowed.starts, allowed.labels, means, points, offsets, layout[1], weight, nu
        )
    else:
        values = _fill_each(
            allowed.starts, allowed.labels, means, points, offsets, layout[1], layout[0], weight, nu
        )
    return values


@kernel
def _fill_shared(
    starts: Any,
    labels: Any,
    means: Any,
    points: Any,
    offsets: Any,
    row_starts: Any,
    weight: float,
    nu: float,
) -> Any:
    """Fill the tables if all offsets share one precision and none has a residual.

    The displacements of all neighbours' candidates are then contiguous, and so are the costs.
    """
    values = np.empty(row_starts[-1], dtype=np.float32)
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
    rivals = np.empty((2, widest), dtype=np.int32)
    mine = np.full(len(points), -1, dtype=np.int32)
    for i in range(len(starts) - 1):
        width, shares = 0, 0
        for a in range(starts[i], starts[i + 1]):
            mine[labels[a]] = a
        for e in range(offsets.starts[i], offsets.starts[i + 1]):
            for b in range(starts[offsets.ends[e]], starts[offsets.ends[e] + 1]):
                if mine[labels[b]] >= 0:
                    rivals[0, shares], rivals[1, shares] = mine[labels[b]], width
                    shares += 1
                for k in range(3):
                    others[k, width] = shifts[k, b]
                width += 1
        first, second, third = others[0][:width], others[1][:width], others[2][:width]
        for a in range(starts[i], starts[i + 1]):
            u, v, w = shifts[0, a], shifts[1, a], shifts[2, a]
            row = values[row_starts[a] : row_starts[a] + width]  # no negative index, for SIMD
            for b in range(width):
                p, q, r = u - first[b], v - second[b], w - third[b]
                row[b] = p * p + q * q + r * r
            if nu > 0.0:
                for b in range(width):
                    row[b] = weight * robust(row[b], nu)
        # Candidates that share a right node cannot both be chosen.
        for k in range(shares):
            values[row_starts[rivals[0, k]] + rivals[1, k]] = 0.0
        for a in range(starts[i], starts[i + 1]):
            mine[labels[a]] = -1
    return values


@kernel
def _fill_each(
    starts: Any,
    labels: Any,
    means: Any,
    points: Any,
    offsets: Any,
    row_starts: Any,
    edge_offsets: Any,
    weight: float,
    nu: float,
) -> Any:
    """Fill the tables if every offset has its own precision."""
    values = np.empty(row_starts[-1], dtype=np.float32)
    widest = 0
    for i in range(len(starts) - 1):
        widest = max(widest, starts[i + 1] - starts[i])
    first_axis = np.empty(widest, dtype=np.float32)
    second_axis = np.empty(widest, dtype=np.float32)
    third_axis = np.empty(widest, dtype=np.float32)
    scale = np.float32(np.sqrt(weight)) if nu == 0.0 else np.float32(1.0)
    mine = np.full(len(points), -1, dtype=np.int32)
    for i in range(len(starts) - 1):
        for a in range(starts[i], starts[i + 1]):
            mine[labels[a]] = a
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
                at = row_starts[a] + edge_offsets[e]
                row = values[at : at + width]  # so that the compiler sees no negative index
                for b in range(width):
                    p, q, r = u - first_axis[b], v - second_axis[b], w - third_axis[b]
                    row[b] = p * p + q * q + r * r
                if nu > 0.0:
                    for b in range(width):
                        row[b] = weight * robust(row[b], nu)
            for b in range(width):
                a = mine[labels[first + b]]
                if a >= 0:  # they share a right node, so they cannot both be chosen
                    values[row_starts[a] + edge_offsets[e] + b] = 0.0
        for a in range(starts[i], starts[i + 1]):
            mine[labels[a]] = -1
    return values
