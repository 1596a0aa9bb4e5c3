"""What specimens of one series share: their handedness, and where their cells are.

A series is what one laboratory prepares and images in one way. Specimens may say which series they
belong to; those that do not are candidates for one, and the data decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.estimate import robust_gaussians
from eutely.fit.evidence import HAND, MIRRORED, surprise
from eutely.fit.model import Model
from eutely.fit.place import Fit
from eutely.frame import Points
from eutely.specimen import Specimen

PRIOR = 5.0
"""Specimens that the atlas counts for against a new series. On worms of another series the cost
of held-out specimens, which needs no names, is lowest between 3 and 20."""

SERIES = 10
"""Specimens from which a series shows where its cells are. The cost of held-out worms of another
series falls from 4.04 to 3.66 per cell."""

MIXED = 0.1
"""Probability, before anything is known, that specimens of a series differ in handedness."""

TYPICAL, SHARED = 2.5, 0.35
"""Log-odds that a specimen shows on average, and the share of their error that specimens of one
series have in common: colours and anatomy of a laboratory differ from the atlas in one way. From
named heads, each by an atlas of other folds: 2.0 to 3.0 and 0.22 to 0.54 in the training heads of
one fold."""

CERTAIN = 20.0
"""Log-odds of a handedness that is clear by itself."""


def groups_of(specimens: Sequence[Specimen]) -> list[list[int]]:
    """Return the numbers of the specimens of each series; all in one if none says which."""
    names = [specimen.series for specimen in specimens]
    return [[at for at, name in enumerate(names) if name == group] for group in sorted(set(names))]


def mirror_probabilities(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n,), the probability that each specimen of a series is mirrored.

    A share q of the series is mirrored. One microscope mirrors all specimens or none, so q is 0
    or 1 but for `MIXED` series, where it may be any share. On average it is `MIRRORED`. Specimens
    of a series err together: their evidence has a common error b, and given q and b they are
    independent. Their likelihood is

        prod_i ((1 - q) a_i(b) + q m_i(b))

    with m_i(b) = N(e_i; t + b, (1 - r) 2 t), a_i(b) = N(e_i; b - t, (1 - r) 2 t) and
    b ~ N(0, r 2 t), where t is the `TYPICAL` evidence and r the share of its error that is
    `SHARED`. With the variance 2 t the odds by a specimen alone are exp(e_i), as they should be.

    Parameters
    ----------
    evidence
        (n,), e_i, the log-odds that a specimen is mirrored, by itself. Those of `CERTAIN` and 0
        do not show any error.
    """
    between = (np.arange(20) + 0.5) / 20
    density = (1 - between) ** (1 / MIRRORED - 2)  # of a beta distribution with the same mean
    shares = np.array([0.0, *between, 1.0])
    prior = np.array([1 - MIRRORED, *(MIXED / (1 - MIXED) * density / density.sum()), MIRRORED])
    scaled = np.linspace(-4, 4, 41)
    errors = np.sqrt(SHARED * 2 * TYPICAL) * scaled[:, None]
    precision = 1 / ((1 - SHARED) * 2 * TYPICAL)
    erring = (evidence != 0) & (np.abs(evidence) < CERTAIN)
    if_mirrored = np.where(
        erring, -0.5 * precision * (evidence - TYPICAL - errors) ** 2, log_expit(evidence)
    )
    if_as_is = np.where(
        erring, -0.5 * precision * (evidence + TYPICAL - errors) ** 2, log_expit(-evidence)
    )
    with np.errstate(divide="ignore"):  # a share of 0 or 1
        mirrored = np.log(shares)[:, None, None] + if_mirrored
        as_is = np.log1p(-shares)[:, None, None] + if_as_is
    either = np.logaddexp(mirrored, as_is)
    logs = np.log(prior)[:, None] - 0.5 * scaled**2 + either.sum(axis=2)
    weights = np.exp(logs - logsumexp(logs))
    return np.asarray(np.einsum("sb,sbn->n", weights, np.exp(mirrored - either)))


def hand_evidence(fit: Fit, *, mirrored: bool, placed: bool) -> float:
    """Return the log-odds that a specimen is mirrored, by itself; 0 where it is not placed."""
    if not placed:
        return 0.0
    if fit.mirror is None:
        return CERTAIN if mirrored else -CERTAIN
    return float(np.clip(HAND * fit.mirror, -CERTAIN, CERTAIN))


def gain(model: Model, moved: Model, fit: Fit, points: Points) -> float:
    """Return by how much the log-likelihood of a specimen rises with the cells of a shifted atlas.

    The matches and the warp stay. The shift comes from other specimens: where it helps, they are
    of one series.
    """
    bare = replace(fit, expected=None)
    return surprise(model, bare, points) - surprise(moved, bare, points)


def by_cell(fit: Fit, values: Points) -> NDArray[np.float64]:
    """Return (m, d) from values (n, d) of nuclei; NaN where a cell has no nucleus."""
    table = np.full((len(fit.nuclei), values.shape[1]), np.nan)
    matched = fit.nuclei >= 0
    table[matched] = values[fit.nuclei[matched]]
    return table


def shifted(
    atlas: Atlas,
    places: NDArray[np.float64],
    scores: NDArray[np.float64],
    prior: float = PRIOR,
) -> Atlas:
    """Return the atlas with its cells moved towards where specimens have them.

    Parameters
    ----------
    atlas
        of all cells.
    places
        (N, m, 3), NaN where a specimen lacks a cell.
    scores
        (N, m, d), of their features, NaN where not known.
    prior
        specimens that the atlas counts for.
    """
    seen = np.isfinite(places[:, :, 0]).sum(axis=0)[:, None]
    if not seen.any():
        return atlas
    means = robust_gaussians(places, Estimate()).means
    moved = np.where(seen > 0, (means - atlas.means) * seen / (seen + prior), 0.0)
    known = np.isfinite(scores).sum(axis=0)
    total = np.where(np.isfinite(scores), scores, 0.0).sum(axis=0)
    kept = atlas.feature_means.any(axis=0)  # the others are not informative
    first, second = atlas.edges.T
    return replace(
        atlas,
        means=atlas.means + moved,
        feature_means=kept * (total + prior * atlas.feature_means) / (known + prior),
        offsets=atlas.offsets + moved[first] - moved[second],
    )
