"""Tables of animals and cells with values that are not known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def filled(values: Array, weights: Array) -> tuple[NDArray[np.bool_], Array, Array]:
    """Return which values (n, m, d) are known and count, the values and the weights (n, m).

    Both are 0 where nothing is known.
    """
    known: NDArray[np.bool_] = np.asarray(np.isfinite(values).all(axis=2) & (weights > 0))
    return known, np.where(known[..., None], values, 0.0), np.where(known, weights, 0.0)


def medians(table: Array, otherwise: float = np.nan) -> Array:
    """Return (n,), the medians of the rows (n, m), NaN left out; ``otherwise`` of an empty row."""
    ordered = np.sort(np.where(np.isfinite(table), table, np.nan), axis=1)  # NaN at the end
    known = np.isfinite(ordered).sum(axis=1)
    rows, middle = np.arange(len(table)), np.maximum(known - 1, 0)
    if not table.size:
        return np.full(len(table), otherwise)
    result = 0.5 * (ordered[rows, middle // 2] + ordered[rows, (middle + 1) // 2])
    return np.where(known > 0, result, otherwise)


def normal_matrices(design: Array, weights: Array) -> Array:
    """Return (m, q, q), matrices of weighted least squares on a design (n, q), never singular."""
    square = np.einsum("nm,nq,nr->mqr", weights, design, design)
    size = np.maximum(weights.sum(axis=0), 1e-9)
    return np.asarray(square + 1e-9 * np.eye(design.shape[1]) * size[:, None, None])
