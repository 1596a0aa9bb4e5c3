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
    rows = [row[np.isfinite(row)] for row in table]
    return np.array([np.median(row) if len(row) else otherwise for row in rows])


def normal_matrices(design: Array, weights: Array) -> Array:
    """Return (m, q, q), matrices of weighted least squares on a design (n, q), never singular."""
    square = np.einsum("nm,nq,nr->mqr", weights, design, design)
    size = np.maximum(weights.sum(axis=0), 1e-9)
    return np.asarray(square + 1e-9 * np.eye(design.shape[1]) * size[:, None, None])
