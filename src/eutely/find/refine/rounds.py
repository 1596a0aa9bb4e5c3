"""Matching all specimens to an atlas estimated from others of them, again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.config.model import Estimate
from eutely.estimate import Gaussians, joint_gaussians, robust_gaussians
from eutely.execute import Executor
from eutely.features import cell_means
from eutely.fit.place import Placed, match, warped_match
from eutely.fit.model import Expectation
from eutely.cells import Cohort
from eutely.solver.meanfield import Field
from eutely.solver.softassign import centres_of

NO_NEIGHBOURS = 0
"""Neighbours of the cells while only places by themselves count."""


def linear_round(
    cohort: Cohort,
    poses: Sequence[Sequence[NDArray[np.float64]]],
    cells: Gaussians,
    features: NDArray[np.float64],
    executor: Executor,
    freedom: float,
) -> Cohort:
    """Warp and match every specimen to ``cells``, one by one; choose among its poses.

    The cells' scores are ``features`` (m, d), as of `eutely.features`.
    """
    expected = independent(cells, features, cohort, freedom)
    items = list(zip(poses, cohort.features or (None,) * len(poses), strict=True))
    placed = list(executor.map(_warped_match, items, shared=(expected,)))
    return cohort.replaced(placed).centred()


def _warped_match(
    expected: Expectation,
    item: tuple[Sequence[NDArray[np.float64]], NDArray[np.float64] | None],
) -> Placed:
    return warped_match(expected, item[0], features=item[1])


def independent(
    cells: Gaussians, features: NDArray[np.float64], cohort: Cohort, freedom: float
) -> Expectation:
    """Return what to expect of cells that tell nothing about each other."""
    m = len(cells.means)
    centres = centres_of(cells.covariances)
    nobody = np.zeros((m, NO_NEIGHBOURS), np.int32)
    field = Field(cells.means, nobody, np.zeros((m, NO_NEIGHBOURS, 3, 3)), centres)
    most = cohort.most_pairs
    return Expectation.of(
        field,
        centres,
        cohort.size,
        cohort.spacing,
        freedom,
        most=most,
        features=features,
        smooth=cohort.smooth,
    )


def joint_round(
    cohort: Cohort, settings: Estimate, executor: Executor, *, folds: int, afresh: bool
) -> tuple[Cohort, float]:
    """Match every specimen to an atlas of the others, with cells that predict each other.

    A specimen that helped to estimate an atlas finds its own errors confirmed there. So the
    cohort is dealt into ``folds`` and each fold is matched to the atlas of the others.

    Parameters
    ----------
    cohort, settings, executor
        what to match, how to estimate, where to run.
    folds
        parts of the cohort; 1 matches everybody to the atlas of all.
    afresh
        whether to warp each specimen anew from its pose, which repairs bad starts.

    Returns
    -------
    cohort, cost
        the matched cohort, and the mean cost of a specimen: minus its log-density, held out.
    """
    cohort = cohort.rewarped(settings)
    expected = expect_others(cohort, settings, executor, folds)
    items = [(number % folds, before) for number, before in enumerate(cohort.placed())]
    found = list(executor.map(_rematch, items, shared=(expected, afresh)))
    return cohort.replaced(found).centred(), float(np.mean([one.cost for one in found]))


def expect_others(
    cohort: Cohort, settings: Estimate, executor: Executor, folds: int
) -> list[Expectation]:
    """Return what to expect of the specimens ``part``, ``part + folds``, ...: from the others."""
    shared = (
        cohort.places(),
        cohort.feature_values(),
        folds,
        cohort.size,
        cohort.spacing,
        settings,
        cohort.most_pairs,
        cohort.smooth,
    )
    return list(executor.map(_expect_others, range(folds), shared=shared))


def _expect_others(
    places: NDArray[np.float64],
    features: NDArray[np.float64],
    folds: int,
    size: NDArray[np.float64],
    spacing: float,
    settings: Estimate,
    most: float,
    smooth: bool,
    part: int,
) -> Expectation:
    """Estimate from the specimens outside of one fold, or from all if there is but one fold."""
    others = np.arange(len(places)) % folds != part
    # A cell that only this fold has would otherwise stop the estimate.
    if folds > 1 and np.isfinite(places[others, :, 0]).any(axis=0).all():
        places, features = places[others], features[others]
    return expect(places, features, size, spacing, settings, most, smooth=smooth)


def expect(
    places: NDArray[np.float64],
    features: NDArray[np.float64],
    size: NDArray[np.float64],
    spacing: float,
    settings: Estimate,
    most: float,
    *,
    smooth: bool,
) -> Expectation:
    """Return what to expect of cells at ``places`` (N, m, 3) with ``features`` (N, m, d)."""
    cells, neighbours, predictors, conditionals = joint_gaussians(places, spacing, settings)
    field = Field(cells.means, neighbours, predictors, centres_of(conditionals))
    seen = np.isfinite(places[:, :, 0]).sum(axis=0)
    centres = centres_of(cells.covariances)
    means, freedom = cell_means(features), settings.freedom
    return Expectation.of(field, centres, size, spacing, freedom, seen, most, means, smooth=smooth)


def _rematch(expected: Sequence[Expectation], afresh: bool, item: tuple[int, Placed]) -> Placed:
    own, before = expected[item[0]], item[1]
    if afresh:
        before = warped_match(own, [before.posed], features=before.features)
    return match(own, before)


def cells_of(cohort: Cohort, settings: Estimate) -> Gaussians:
    """Return the cells of the cohort as it stands, each by itself."""
    return robust_gaussians(cohort.places(), settings)
