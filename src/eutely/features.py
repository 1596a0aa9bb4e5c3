"""What nuclei have besides their place, such as size, brightness or colour, and what it tells.

Units, exposure and staining differ between specimens, so each feature is measured from the median
of the specimen, in units of its spread: its scores. How much they tell is found in each specimen by
itself, from a first matching by places alone: where scores do not follow those that the matched
cells have elsewhere, they count for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from eutely.errors import EutelyError
from eutely.specimen import Specimen

RADII = ("radius 1", "radius 2", "radius 3")
"""The semi-axes, as features; the longest first."""

BOOKKEEPING = ("voxels", "detached", "border", "rejected")
"""Columns about the segmentation that are no property of a cell."""

PRIOR = 5.0
"""Nuclei that 'tells nothing' counts for in how much the features of a specimen tell."""

FEWEST, STEPS = 10, 10
"""Matches that it takes to learn how much features tell, and steps of learning it."""

RIDGE = 0.01
"""Added to the variance of scores: no feature is known better than that."""

TELLING, MIXTURES = 0.1, 3
"""Mixtures of scores count if they vary so much more between cells than within; and how many."""

ODD = 3.0
"""Times that the scores of spurious nuclei may spread farther than those of usual ones."""

SHARED = 0.5
"""Share of the specimens, and of the nuclei of one, that must have a feature."""


def feature_names(specimens: Sequence[Specimen], wanted: str = "all") -> tuple[str, ...]:
    """Return the features that most specimens have and that differ between nuclei, by name.

    Parameters
    ----------
    specimens
        of one cohort.
    wanted
        "all", "none", or names with commas between them; "radius" stands for the semi-axes.
    """
    if wanted.strip() == "none":
        return ()
    chosen = {one.strip() for one in wanted.split(",")}
    names = [*RADII, *sorted({key for one in specimens for key in one.features})]
    unknown = chosen - {"all", "radius", *names}
    if unknown:
        there = ", ".join(["radius", *names[len(RADII) :]])
        raise EutelyError(
            f"no specimen has the feature '{min(unknown)}'; there are: {there} (or 'all', 'none')"
        )
    return tuple(
        name
        for name in names
        if ("all" in chosen or name in chosen or ("radius" in chosen and name in RADII))
        and name not in BOOKKEEPING
        and sum(_tells(_column(one, name)) for one in specimens) > SHARED * len(specimens)
    )


def scores(specimen: Specimen, names: Sequence[str]) -> NDArray[np.float64]:
    """Return (n, d), the scores of the features called ``names``; NaN where not known."""
    found = np.full((len(specimen), len(names)), np.nan)
    for number, name in enumerate(names):
        column = _column(specimen, name)
        known = np.isfinite(column)
        if known.any():
            apart = column[known] - np.median(column[known])
            # Half of the nuclei may have one and the same value, drawn by hand for instance.
            spread = 1.4826 * np.median(np.abs(apart)) or 1.2533 * np.abs(apart).mean() or 1.0
            found[known, number] = np.arcsinh(apart / spread)
    return found


def _column(specimen: Specimen, name: str) -> NDArray[np.float64]:
    if name in RADII:
        return -np.sort(-specimen.radii, axis=1)[:, RADII.index(name)]
    return specimen.features.get(name, np.full(len(specimen), np.nan))


def _tells(column: NDArray[np.float64]) -> bool:
    """Tell whether a column differs between nuclei, and does not just number them."""
    known = np.unique(column[np.isfinite(column)])
    numbered = len(known) == len(column) > 1 and bool((np.diff(known) == 1).all())
    return len(known) > 1 and not numbered


def cell_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (m, d), the mean scores of cells in specimens: (N, m, d), NaN left out.

    One specimen with an average nucleus is added, so that a single nucleus does not say it all.
    """
    known = np.isfinite(values)
    return np.asarray(np.where(known, values, 0.0).sum(axis=0) / (known.sum(axis=0) + 1))


def discriminating_scores(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (N, m, f), the few mixtures of scores (N, m, d) that discriminate cells best.

    Within cells each has variance 1. Where a score is not known, that of the cell stands in.
    """
    count, m, d = values.shape
    if not d:
        return values
    means = cell_means(values)
    filled = np.where(np.isfinite(values), values, means)
    rest = (filled - means).reshape(-1, d)
    within = _ridged((rest.T @ rest + PRIOR * np.eye(d)) / (count * m + PRIOR))
    apart = means - means.mean(axis=0)
    ratios, mixtures = eigh(apart.T @ apart / m, within)
    best = np.argsort(-ratios, kind="stable")[:MIXTURES]
    return np.asarray(filled @ mixtures[:, best[ratios[best] > TELLING]])


class Agreement(NamedTuple):
    """How the scores of one specimen follow those of cells.

    Attributes
    ----------
    centre, middle, slope
        (d,): nuclei of cells that score ``x`` score ``middle + slope * (x - centre)`` in the mean,
    scatter
        (d, d), with this covariance.
    """

    centre: NDArray[np.float64]
    middle: NDArray[np.float64]
    slope: NDArray[np.float64]
    scatter: NDArray[np.float64]


def agreement(
    told: NDArray[np.float64], seen: NDArray[np.float64], freedom: float
) -> Agreement | None:
    """Find how scores ``seen`` (n, d) of nuclei follow those ``told`` (n, d) of their cells.

    A regression of each feature with Student-t residuals, so that wrong matches count less. What
    chance can make of no slope at all (two standard errors) is taken off the slopes. None if there
    are too few nuclei with all features.
    """
    whole = np.isfinite(seen).all(axis=1)
    if whole.sum() < FEWEST:
        return None
    told, seen = told[whole], seen[whole]
    count, d = seen.shape
    dull = PRIOR * np.cov(seen.T, bias=True).reshape(d, d)
    weights = np.ones(count)
    for _ in range(STEPS):
        shares = weights / weights.sum()
        centre, middle = shares @ told, shares @ seen
        apart, here = told - centre, seen - middle
        square = shares @ apart**2 + 1e-9
        slope = np.maximum(shares @ (apart * here) / square, 1e-9)
        error = shares @ here**2 / square / count
        slope *= np.maximum(1 - 4 * error / slope**2, 0.0)
        rest = here - slope * apart
        scatter = _ridged(((weights[:, None] * rest).T @ rest + dull) / (count + PRIOR))
        away = np.linalg.solve(np.linalg.cholesky(scatter), rest.T)
        weights = (freedom + d) / (freedom + (away**2).sum(axis=0))
    return Agreement(centre, middle, slope, scatter)


def feature_costs(
    means: NDArray[np.float64],
    values: NDArray[np.float64],
    nuclei: NDArray[np.int32],
    freedom: float,
) -> NDArray[np.float64] | None:
    """Return (m, n): what the features of a nucleus say against its being a cell.

    Minus the logarithm of how many times likelier its scores are for this cell than for anything
    in the specimen: usual nuclei, and as often odd ones, whose scores spread thrice as far.

    Parameters
    ----------
    means
        (m, d), mean scores of the cells.
    values
        (n, d), scores of the nuclei of one specimen; NaN where not known.
    nuclei
        (m,), a first matching: the nucleus of each cell, or -1.
    freedom
        degrees of freedom of the Student-t distributions.

    Returns
    -------
    costs
        None if the features tell nothing.
    """
    cells = np.flatnonzero(nuclei >= 0)
    known = np.isfinite(values)
    used = known.mean(axis=0) > SHARED
    means, values, known = means[:, used], values[:, used], known[:, used]
    told, seen = means[cells], values[nuclei[cells]]
    own = agreement(told, seen, freedom) if used.any() else None
    at_large = agreement(np.zeros_like(told), seen, freedom) if used.any() else None
    if own is None or at_large is None:
        return None
    expected = own.middle + own.slope * (means - own.centre)
    costs = np.zeros((len(means), len(values)))
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == number)
        both, here = np.ix_(pattern, pattern), values[np.ix_(rows, pattern)]
        cell = _student(expected[:, pattern], here, own.scatter[both], freedom)
        usual, odd = (
            _student(at_large.middle[None, pattern], here, some, freedom)
            for some in (at_large.scatter[both], ODD**2 * at_large.scatter[both])
        )
        costs[:, rows] = cell + np.logaddexp(-usual, -odd) - np.log(2)
    return costs


def _student(
    means: NDArray[np.float64],
    values: NDArray[np.float64],
    scatter: NDArray[np.float64],
    freedom: float,
) -> NDArray[np.float64]:
    """Return (m, n), minus the log-density of values (n, d) around means (m, d)."""
    root = np.linalg.cholesky(scatter)
    white = np.linalg.inv(root)
    there, here = means @ white.T, values @ white.T
    squared = (here**2).sum(axis=1) + (there**2).sum(axis=1)[:, None] - 2 * there @ here.T
    height = np.log(np.diagonal(root)).sum()
    spread = np.log1p(np.maximum(squared, 0.0) / freedom)
    return np.asarray(0.5 * (freedom + len(scatter)) * spread + height)


def _ridged(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a covariance that can be inverted even where two features are one and the same."""
    return covariance + RIDGE * np.eye(len(covariance))
