"""From a fit, which is by cell, to the cells of each nucleus and how sure they are."""

from __future__ import annotations

import numpy as np

from eutely.annotation import NucleusCells
from eutely.cliques import UNMATCHED
from eutely.fit.place import Fit


def nucleus_cells(fit: Fit, alternatives: int) -> NucleusCells:
    """Return the cell, confidence and ``alternatives`` next best cells of each nucleus."""
    assert fit.shares is not None
    count, m = len(fit.posed), len(fit.nuclei)
    cells = np.full(count, UNMATCHED, np.int32)
    matched = np.flatnonzero(fit.nuclei >= 0)
    cells[fit.nuclei[matched]] = matched
    rows = np.repeat(np.arange(m), np.diff(fit.shares.starts))
    nuclei, values = fit.shares.points, fit.shares.values
    confidence = np.where(cells == UNMATCHED, np.nan, 0.0)
    # Whether the cell is there at all is decided by the matching: only rivals for it count.
    whole = np.bincount(rows, values, m)
    chosen = cells[nuclei] == rows
    mine = chosen & (values > 0)
    confidence[nuclei[mine]] = np.minimum(values[mine] / whole[rows[mine]], 1.0)
    others = ~chosen
    rows, nuclei, values = rows[others], nuclei[others], np.minimum(values[others], 1.0)
    order = np.lexsort((rows, -values, nuclei))
    rows, nuclei, values = rows[order], nuclei[order], values[order]
    rank = np.arange(len(nuclei)) - np.searchsorted(nuclei, nuclei)
    kept = rank < alternatives
    other_cells = np.full((count, alternatives), UNMATCHED, np.int32)
    other_shares = np.zeros((count, alternatives))
    other_cells[nuclei[kept], rank[kept]] = rows[kept]
    other_shares[nuclei[kept], rank[kept]] = values[kept]
    return NucleusCells(cells, confidence, other_cells, other_shares, fit.cost, fit.warped)
