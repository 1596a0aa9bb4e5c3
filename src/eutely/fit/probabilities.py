"""What each nucleus of a specimen is, and how surely, by a fit and its rivals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import NucleusCells
from eutely.fit.place import Fit
from eutely.specimen import UNMATCHED

NEGLIGIBLE = 1e-4
"""Probability below which a cell is not listed as an alternative."""


def nucleus_cells(
    fit: Fit,
    alternatives: int | None = None,
    trust: float = 1.0,
    weights: Sequence[float] = (1.0,),
) -> NucleusCells:
    """Return the cell, confidence and next best cells of each nucleus.

    All of them come from one distribution: the probabilities of a nucleus being each cell or none,
    by this fit and its rivals. The chosen cell is the likeliest one, unless another nucleus has
    that, or rivals agree on another one.

    Parameters
    ----------
    fit
        with its shares.
    alternatives
        next best cells to list; None for all that are not negligible.
    trust
        probability that the specimen is placed right at all, with which the others are multiplied.
    weights
        probabilities of the fit and of its rivals; the first is that of the fit itself.
    """
    assert fit.shares is not None
    count, cells = len(fit.posed), fit.cells
    rows, nuclei, values = _mixed(fit, weights)
    values = trust * np.minimum(values, 1.0)
    confidence = np.where(cells == UNMATCHED, np.nan, 0.0)
    chosen = cells[nuclei] == rows
    confidence[nuclei[chosen]] = values[chosen]
    kept = ~chosen & (values > NEGLIGIBLE)
    rows, nuclei, values = rows[kept], nuclei[kept], values[kept]
    order = np.lexsort((rows, -values, nuclei))
    rows, nuclei, values = rows[order], nuclei[order], values[order]
    rank = np.arange(len(nuclei)) - np.searchsorted(nuclei, nuclei)
    if alternatives is None:
        alternatives = int(rank.max(initial=-1)) + 1
    kept = rank < alternatives
    other_cells = np.full((count, alternatives), UNMATCHED, np.int32)
    other_shares = np.zeros((count, alternatives))
    other_cells[nuclei[kept], rank[kept]] = rows[kept]
    other_shares[nuclei[kept], rank[kept]] = values[kept]
    return NucleusCells(cells, confidence, other_cells, other_shares, fit.cost, fit.warped)


def _mixed(
    fit: Fit, weights: Sequence[float]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return cells, nuclei and probabilities (p,) of all pairs, by a fit and its rivals."""
    assert fit.shares is not None
    m = len(fit.nuclei)
    rows = [np.repeat(np.arange(m), np.diff(fit.shares.starts))]
    nuclei, values = [fit.shares.points.astype(np.int64)], [weights[0] * fit.shares.values]
    for rival, weight in zip(fit.rivals[1:], weights[1:], strict=True):
        if weight > NEGLIGIBLE:
            matched = np.flatnonzero(rival.cells >= 0)
            rows.append(rival.cells[matched].astype(np.int64))
            nuclei.append(matched)
            values.append(np.full(len(matched), weight))
    if len(rows) == 1:
        return rows[0], nuclei[0], values[0]
    keys, which = np.unique(
        np.concatenate(rows) * len(fit.posed) + np.concatenate(nuclei), return_inverse=True
    )
    total = np.bincount(which, np.concatenate(values))
    return keys // len(fit.posed), keys % len(fit.posed), total.astype(np.float64)
