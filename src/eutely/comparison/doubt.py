"""Findings that rest on doubtful names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.comparison.design import Contrast
from eutely.comparison.effects import Effects, effects_of
from eutely.comparison.scores import LEVEL, Scores

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

CONFIDENT = 0.85
"""Mean confidence of a cell's nuclei in a group below which what is found about it is doubtful."""

SURE = 0.8
"""Confidence of nuclei that a finding must rest on."""

KEPT = 0.5
"""Share of an effect that nuclei with sure names must show."""

UNSURE = 0.95
"""Mean confidence in a group from which names are not exchanged."""

EXCHANGED = 0.2
"""Share of the way to another cell from which two opposite shifts look like exchanged names."""

PARTNERS = 6
"""Nearest cells whose names may be exchanged with that of a cell."""


def uncertain_cells(weights: Array, contrast: Contrast, below: float = CONFIDENT) -> Mask:
    """Return (m,), cells whose nuclei have a mean confidence below a limit in one of the groups."""
    doubtful = np.zeros(weights.shape[1], dtype=np.bool_)
    for group in range(len(contrast.labels)):
        inside = weights[contrast.groups == group]
        seen = np.maximum((inside > 0).sum(axis=0), 1)
        doubtful |= (inside.sum(axis=0) / seen < below) & (inside > 0).any(axis=0)
    return doubtful


def resting_on_doubt(
    values: Array, found: Scores, weights: Array, contrast: Contrast, q: Array
) -> Mask:
    """Return (m,), findings that nuclei with sure names do not show at least half as large.

    Parameters
    ----------
    values, found, contrast
        see `eutely.comparison.effects.effects_of`.
    weights
        (n, m), confidences.
    q
        (m,), false discovery rates: only findings are looked at.
    """
    sure = found._replace(weights=np.where(weights >= SURE, found.weights, 0.0))
    whole = effects_of(values, found, contrast).shifts
    part = effects_of(values, sure, contrast).shifts
    square = np.maximum((whole**2).sum(axis=1), 1e-300)
    shown = (whole * part).sum(axis=1) / square
    return np.asarray((q <= LEVEL) & ~(shown >= KEPT))


def exchanged_names(effects: Effects, means: Array, q: Array, p: Array, unsure: Mask) -> Mask:
    r"""Return (m,), findings that two exchanged names would explain.

    Cells c and d at :math:`\mu_c, \mu_d` whose names are exchanged in a share f of the animals of
    one group only seem to move by :math:`f (\mu_d - \mu_c)` and :math:`f (\mu_c - \mu_d)`.

    Parameters
    ----------
    effects
        shifts of cells, in the unit of ``means``.
    means
        (m, 3), places of the cells.
    q, p
        (m,), false discovery rates, and p-values: one of the two must be a finding, the other at
        least have p <= 0.05.
    unsure
        (m,), cells whose names may be exchanged; both must be.
    """
    shifts = np.nan_to_num(effects.shifts)
    _, near = KDTree(means).query(means, min(PARTNERS + 1, len(means)))
    near = np.asarray(near)[:, 1:]
    way = means[near] - means[:, None]
    square = np.maximum((way**2).sum(axis=2), 1e-12)
    here = (shifts[:, None] * way).sum(axis=2) / square
    there = -(shifts[near] * way).sum(axis=2) / square
    finding, likely = q <= LEVEL, p <= LEVEL
    either = (finding[:, None] & likely[near]) | (likely[:, None] & finding[near])
    swap = (here >= EXCHANGED) & (there >= EXCHANGED) & either
    swap &= unsure[:, None] & unsure[near]
    return np.asarray(swap.any(axis=1))


def uncertain_absences(counts: Array, weights: Array, means: Array, contrast: Contrast) -> Mask:
    """Return (m,), cells whose absence may be that of a neighbour: its names are uncertain there.

    The mean confidence of the three nearest cells, in the animals that lack the cell, is low.
    """
    _, near = KDTree(means).query(means, min(4, len(means)))
    around = weights[:, np.asarray(near)[:, 1:]].mean(axis=2)
    lacking = counts < 1
    seen = lacking.sum(axis=0)
    mean = (around * lacking).sum(axis=0) / np.maximum(seen, 1)
    return np.asarray((seen > 0) & (mean < CONFIDENT)) | uncertain_cells(weights, contrast)
