"""What the specimens of a series share: their handedness, and where they have their cells.

A series is what one laboratory prepares and images in one way, see `eutely.origin`. Specimens of no
known origin are candidates for one series, and the data decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.estimate import robust_gaussians
from eutely.estimate.origins import blended_scores
from eutely.fit.evidence import PLACED, log_likelihood
from eutely.fit.match import Fit
from eutely.fit.mirror import mirror_probabilities
from eutely.fit.model import Model
from eutely.fit.posterior import Posterior
from eutely.frame import Points

PRIOR = 5.0
"""Specimens that the atlas counts for against a new series. On worms of another series the cost
of held-out specimens, which needs no names, is lowest between 3 and 20."""

SERIES = 10
"""Specimens from which a series shows where its cells are. The cost of held-out worms of another
series falls from 4.04 to 3.66 per cell."""

FOLDS = 5
"""Parts of a series, each annotated by the atlas shifted to the others: no specimen confirms
itself."""

EXCHANGED, CLEAR = 0.05, 12.0
"""Least probability of the other handedness, since left and right may be exchanged in names (three
of 66 named heads contradict their anatomy in this way), unless log-odds are as clear as this."""


def settle_hands(results: list[Posterior], group: Sequence[int], known: tuple[int, int]) -> None:
    """Settle the handedness of the specimens of a series.

    Parameters
    ----------
    results
        of all specimens; those of the series are replaced.
    group
        their numbers.
    known
        specimens of the same origin that the atlas is of, as they were and mirrored.
    """
    own = [results[number] for number in group]
    odds = [one.mirror_odds if (one.support or 0.0) > PLACED else 0.0 for one in own]
    chances = mirror_probabilities(np.array(odds), known)
    for number, one, odd, chance in zip(group, own, odds, chances.tolist(), strict=True):
        if abs(odd) < CLEAR:
            chance = float(np.clip(chance, EXCHANGED, 1 - EXCHANGED))
        results[number] = replace(one, mirrored_by=chance)


def gain(model: Model, moved: Model, fit: Fit, points: Points) -> float:
    """Return by how much the log-likelihood of a specimen rises with the cells of a shifted atlas.

    The matches and the warp stay. The shift comes from other specimens: where it helps, they are
    of one series.
    """
    bare = replace(fit, expected=None, shares=None)
    return log_likelihood(moved, bare, points) - log_likelihood(model, bare, points)


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
    first, second = atlas.edges.T
    return replace(
        atlas,
        means=atlas.means + moved,
        feature_means=blended_scores(scores, atlas.feature_means, prior),
        offsets=atlas.offsets + moved[first] - moved[second],
    )
