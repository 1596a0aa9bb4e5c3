"""Features: properties of nuclei besides their place, such as size, brightness or colour.

Units, exposure and staining differ between specimens, so each feature is measured from the median
of the specimen, in units of its spread: its score. How informative scores are is estimated for each
specimen separately, from a first matching by places: where they do not follow the scores that the
matched cells have in other specimens, they do not count. Before any matching they are compared by
ranks, which no gain and no offset changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.linalg import eigh

from eutely.agreement import PRIOR, agreement, at_random, ridged
from eutely.candidates import Candidates, PairCosts
from eutely.errors import EutelyError
from eutely.informative import MANY, following, informative, repeats
from eutely.kernel import kernel
from eutely.meaning import Told, matched, one_spelling, told
from eutely.specimen import Specimen

RADII = ("radius 1", "radius 2", "radius 3")
"""The semi-axes, as features; the longest first."""

BOOKKEEPING = ("voxels", "detached", "border", "rejected")
"""Columns about the segmentation that are no property of a cell."""

DISCRIMINATING, MIXTURES = 0.1, 3
"""Ratio of the variance between cells to that within them from which a mixture of scores counts,
and the number of mixtures at most."""

ODD = 3.0
"""Spread of the scores of spurious nuclei, in spreads of those of usual nuclei."""

RANK_VARIANCE = 0.5
"""Variance of ranked scores within cells, relative to that between cells, before any matching."""

SHARED = 0.5
"""Share of the specimens, and of the nuclei of a specimen, that must have a feature."""


def feature_names(specimens: Sequence[Specimen], wanted: str = "all") -> tuple[str, ...]:
    """Return the names of the features that most specimens have and that differ between nuclei.

    Parameters
    ----------
    specimens
        of one cohort; features of one meaning may have different names, see `eutely.meaning`.
    wanted
        "all", "none", or names with commas between them; "radius" stands for the semi-axes. Of a
        channel of an image, "all" includes the mean only.
    """
    if wanted.strip() == "none":
        return ()
    chosen = {name.strip() for name in wanted.split(",")}
    columns = {key for specimen in specimens for key in specimen.features}
    usual = one_spelling([tuple(specimen.features) for specimen in specimens])
    names = [*RADII, *sorted({*usual, *(chosen & columns)})]
    unknown = chosen - {"all", "radius", *names}
    if unknown:
        there = ", ".join(["radius", *names[len(RADII) :]])
        raise EutelyError(
            f"no specimen has the feature '{min(unknown)}'; there are: {there} (or 'all', 'none')"
        )
    return tuple(
        name
        for name in names
        if (
            ("all" in chosen and not repeats(name, names))
            or name in chosen
            or ("radius" in chosen and name in RADII)
        )
        and name not in BOOKKEEPING
        and sum(_differs(_table(specimen, (name,))[:, 0]) for specimen in specimens)
        > SHARED * len(specimens)
    )


def features_told(wanted: Sequence[str], specimens: Sequence[Specimen]) -> Told:
    """Return what specimens have of the features of an atlas besides radii."""
    names = [name for name in wanted if name not in RADII]
    return told(names, [[c for c in one.features if c not in BOOKKEEPING] for one in specimens])


def scores(specimen: Specimen, names: Sequence[str]) -> NDArray[np.float64]:
    """Return (n, d), the scores of the features ``names``; NaN where not known.

    Columns of another name count where they mean the same, see `eutely.meaning.matched`.
    """
    given = _table(specimen, names)
    table = np.full(given.shape, np.nan)
    for number, column in enumerate(given.T):
        known = np.isfinite(column)
        if known.any():
            apart = column[known] - np.median(column[known])
            # Half of the nuclei may have the same value, drawn by hand for instance.
            spread = 1.4826 * np.median(np.abs(apart)) or 1.2533 * np.abs(apart).mean() or 1.0
            table[known, number] = np.arcsinh(apart / spread)
    return table


def _table(specimen: Specimen, names: Sequence[str]) -> NDArray[np.float64]:
    """Return (n, d), the features of these names or meanings; NaN where not known."""
    columns = matched(names, specimen.features)
    table = np.full((len(specimen), len(names)), np.nan)
    for number, name in enumerate(names):
        if name in RADII:
            table[:, number] = -np.sort(-specimen.radii, axis=1)[:, RADII.index(name)]
        elif name in columns:
            table[:, number] = specimen.features[columns[name]]
    return table


def _differs(column: NDArray[np.float64]) -> bool:
    """Return whether a column differs between nuclei, and does not just number them."""
    known = np.unique(column[np.isfinite(column)])
    numbered = len(known) == len(column) > 1 and bool((np.diff(known) == 1).all())
    return len(known) > 1 and not numbered


def cell_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (m, d), the mean scores of cells in specimens: (N, m, d), NaN left out.

    A specimen of average nuclei is added, so that a single nucleus does not decide. Features that
    are not `informative` are 0 for all cells.
    """
    known = np.isfinite(values)
    means = np.where(known, values, 0.0).sum(axis=0) / (known.sum(axis=0) + 1)
    return np.asarray(np.where(informative(values), means, 0.0))


def discriminating_scores(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (N, m, f), the few mixtures of scores (N, m, d) that discriminate cells best.

    Within cells each has variance 1. Where a score is not known, that of the cell stands in.
    """
    count, m, d = values.shape
    if not d:
        return values
    means = cell_means(values)
    kept = means.any(axis=0) if d > MANY else np.ones(d, bool)
    values, means, d = values[:, :, kept], means[:, kept], int(kept.sum())
    if not d:
        return values
    filled = np.where(np.isfinite(values), values, means)
    rest = (filled - means).reshape(-1, d)
    within = ridged((rest.T @ rest + PRIOR * np.eye(d)) / (count * m + PRIOR))
    apart = means - means.mean(axis=0)
    ratios, mixtures = eigh(apart.T @ apart / m, within)
    best = np.argsort(-ratios, kind="stable")[:MIXTURES]
    return np.asarray(filled @ mixtures[:, best[ratios[best] > DISCRIMINATING]])


def rank_costs(
    means: NDArray[np.float64], values: NDArray[np.float64], shown: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return (m, n): about the cost of the features of each nucleus if it is each cell.

    Before anything is matched: a nucleus is compared by its rank with the cell of the same rank
    among those in view. A part of a body need not look like the whole.

    Parameters
    ----------
    means, values
        (m, d) and (n, d), see `feature_costs`.
    shown
        (m,), cells that are in view.
    """
    spread = means[shown].var(axis=0) if shown.any() else np.zeros(means.shape[1])
    known = np.isfinite(values)
    used = np.flatnonzero((known.mean(axis=0) > SHARED) & (spread > 0))
    if not len(used):
        return np.zeros((len(means), len(values)))
    factor = np.sqrt(min(1.0, MIXTURES / len(used)) * 0.5 / (RANK_VARIANCE * spread[used]))
    there, here = means[:, used] * factor, np.zeros((len(values), len(used)))
    for number, column in enumerate(used.tolist()):
        rows = known[:, column]
        ranks = (stats.rankdata(values[rows, column]) - 0.5) / rows.sum()
        here[rows, number] = np.quantile(there[shown, number], ranks)
    mask = known[:, used].astype(np.float64)
    costs = there**2 @ mask.T - 2 * there @ (here * mask).T + (here**2 * mask).sum(axis=1)
    return np.asarray(costs + np.log(np.exp(-costs[shown]).mean(axis=0)))


def feature_costs(
    means: NDArray[np.float64],
    values: NDArray[np.float64],
    nuclei: NDArray[np.int32],
    freedom: float,
    places: NDArray[np.float64] | None = None,
) -> PairCosts | None:
    """Return the cost of the features of nuclei if they are cells.

    Minus the logarithm of how many times likelier its scores are for this cell than for anything
    in the specimen: usual nuclei, and equally often odd ones, whose scores spread three times as
    far.

    Parameters
    ----------
    means
        (m, d), mean scores of the cells.
    values
        (n, d), scores of the nuclei of a specimen; NaN where not known.
    nuclei
        (m,), a first matching: the nucleus of each cell, or -1.
    freedom
        degrees of freedom of the Student-t distributions.
    places
        (n, 3), where the nuclei are, if channels may mix and scores may change with the place.

    Returns
    -------
    costs
        None if the features are not informative.
    """
    cells = np.flatnonzero(nuclei >= 0)
    known = np.isfinite(values)
    used = known.mean(axis=0) > SHARED
    if used.sum() > MANY:
        used &= means.any(axis=0)
    if used.sum() > MANY:
        used &= following(means[cells], values[nuclei[cells]])
    if not used.any():
        return None
    means, values, known = means[:, used], values[:, used], known[:, used]
    cell_scores, scores = means[cells], values[nuclei[cells]]
    there = None
    if places is not None and len(cells):
        matched = places[nuclei[cells]]
        there = (places - matched.mean(axis=0)) / (matched.std(axis=0) + 1e-9)
    by_cell = agreement(
        cell_scores, scores, freedom, None if there is None else there[nuclei[cells]]
    )
    if by_cell is not None and there is not None:
        values = values - there @ by_cell.gradient
        scores = values[nuclei[cells]]
    at_large = at_random(scores, freedom)
    if by_cell is None or at_large is None:
        return None
    expected = by_cell.expected(means)
    patterns, which = known[:1], np.zeros(len(known), np.int32)
    if not known.all():
        patterns, inverse = np.unique(known, axis=0, return_inverse=True)
        which = inverse.ravel().astype(np.int32)
    there, here = np.zeros((len(patterns), *means.shape)), np.zeros(values.shape)
    factors, base = np.empty(len(patterns)), np.empty(len(values))
    for number, pattern in enumerate(patterns):
        rows, d = np.flatnonzero(which == number), int(pattern.sum())
        both, scores = np.ix_(pattern, pattern), values[np.ix_(rows, pattern)]
        usual, odd = (
            _student(scores - at_large.middle[pattern], scatter, freedom)
            for scatter in (at_large.scatter[both], ODD**2 * at_large.scatter[both])
        )
        root = np.linalg.cholesky(by_cell.scatter[both])
        white = np.linalg.inv(root)
        there[number, :, :d] = expected[:, pattern] @ white.T
        here[rows, :d] = scores @ white.T
        factors[number] = 0.5 * (freedom + d)
        height = np.log(np.diagonal(root)).sum()
        base[rows] = height + np.logaddexp(-usual, -odd) - np.log(2)
    prepared = there, here, which, factors, base, float(freedom)
    return PairCosts(partial(_on_pairs, prepared), base)


def _on_pairs(prepared: tuple[Any, ...], pairs: Candidates) -> NDArray[np.float64]:
    """Return (c,), the costs of features of candidates; see `_pair_costs`."""
    return np.asarray(_pair_costs(pairs.starts, pairs.points, *prepared))


@kernel
def _pair_costs(
    starts: Any,
    points: Any,
    there: Any,
    here: Any,
    which: Any,
    factors: Any,
    base: Any,
    freedom: float,
) -> Any:
    """Return (c,) float64, minus the log-density of scores around those of cells, plus ``base``.

    Parameters
    ----------
    starts, points
        candidates.
    there, here
        (p, m, d) and (n, d), white scores of cells and of nuclei, for each of p patterns of known
        features; 0 for unknown ones.
    which
        (n,) int32, the pattern of each nucleus.
    factors
        (p,), half of freedom and dimensions.
    base
        (n,), what each nucleus costs in any case.
    freedom
        of the Student-t distribution.
    """
    costs = np.empty(len(points))
    for i in range(len(starts) - 1):
        for at in range(starts[i], starts[i + 1]):
            j = np.uint32(points[at])
            pattern = np.uint32(which[j])
            squared = 0.0
            for k in range(here.shape[1]):
                squared += (there[pattern, i, k] - here[j, k]) ** 2
            costs[at] = factors[pattern] * np.log1p(squared / freedom) + base[j]
    return costs


def _student(
    away: NDArray[np.float64], scatter: NDArray[np.float64], freedom: float
) -> NDArray[np.float64]:
    """Return (n,), minus the log-density of values that are (n, d) away from their mean."""
    root = np.linalg.cholesky(scatter)
    white = np.linalg.inv(root) @ away.T
    spread = np.log1p((white**2).sum(axis=0) / freedom)
    height = np.log(np.diagonal(root)).sum()
    return np.asarray(0.5 * (freedom + len(scatter)) * spread + height)
