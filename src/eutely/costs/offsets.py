"""Quadratic costs: how well the offset of two neighbours is kept (equation 4)."""

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
        positions; (1, 3) when all are the same. The direction j, i has the opposite sign.
    roots
        (e, 3, 3) float64, a square root R of each precision, R.T @ R; (1, 3, 3) if all share it.
    """

    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    residuals: NDArray[np.float64]
    roots: NDArray[np.float64]


@kernel
def fill_offsets(
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
    """Return the values of full tables (see `eutely.arrays.Arrays`), (q,) float32.

    With the displacement d_is = mean_i - x_s the deviation of an offset is residual_ij + d_is -
    d_jt: small numbers, so that single precision holds the squares. Each end takes half of the
    residual, so that both directions of an edge give the same bits.
    """
    values = np.empty(row_starts[-1], dtype=np.float32)
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
                at = row_starts[a] + edge_offsets[e]
                row = values[at : at + width]  # so that the compiler sees no negative index
                for b in range(width):
                    p, q, r = u - first_axis[b], v - second_axis[b], w - third_axis[b]
                    row[b] = p * p + q * q + r * r
                if nu > 0.0:
                    for b in range(width):
                        row[b] = weight * robust(row[b], nu)
            _clear_conflicts(starts, labels, i, j, row_starts, edge_offsets[e], values)
    return values


@kernel
def _clear_conflicts(
    starts: Any, labels: Any, i: int, j: int, row_starts: Any, offset: int, values: Any
) -> None:
    """Set the costs of candidates of i and j that share a right node to 0."""
    b = starts[j]
    for a in range(starts[i], starts[i + 1]):
        while b < starts[j + 1] and labels[b] < labels[a]:
            b += 1
        if b < starts[j + 1] and labels[b] == labels[a]:
            values[row_starts[a] + offset + b - starts[j]] = 0.0
