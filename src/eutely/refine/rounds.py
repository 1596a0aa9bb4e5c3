"""Matching all specimens to an atlas estimated from others of them, again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.estimate import Gaussians, estimate, robust_gaussians
from eutely.execute import Executor
from eutely.realign import Placed, expectation, match, warped_match
from eutely.realign.place import Expectation
from eutely.realign.warp import span_of
from eutely.refine.cohort import Cohort
from eutely.solve.meanfield import Field
from eutely.solve.softassign import centres_of

NO_NEIGHBOURS = 0
"""Neighbours of the cells while only places by themselves count."""


def linear_round(
    cohort: Cohort,
    poses: Sequence[Sequence[NDArray[np.float64]]],
    cells: Gaussians,
    executor: Executor,
    freedom: float,
) -> tuple[Cohort, list[int]]:
    """Warp and match every specimen to ``cells``, one by one; choose among its poses.

    Returns
    -------
    cohort, chosen
        the matched cohort, and the number of the pose of each specimen.
    """
    expected = independent(cells, cohort.size, cohort.spacing, freedom)
    placed = list(executor.map(warped_match, poses, shared=(expected,)))
    return _with(cohort, placed).centred(), [one.pose for one in placed]


def independent(
    cells: Gaussians, size: NDArray[np.float64], spacing: float, freedom: float
) -> Expectation:
    """Return what to expect of cells that tell nothing about each other."""
    m = len(cells.means)
    centres = centres_of(cells.covariances)
    nobody = np.zeros((m, NO_NEIGHBOURS), np.int32)
    field = Field(cells.means, nobody, np.zeros((m, NO_NEIGHBOURS, 3, 3)), centres)
    broad = centres_of(np.broadcast_to(spacing**2 * np.eye(3), (m, 3, 3)))
    span = span_of(cells.means, float(size[0]))
    return Expectation(field, centres, broad, span, float(size[1]), freedom)


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
    places = cohort.places()
    fold = np.arange(len(cohort)) % folds
    placed: dict[int, Placed] = {}
    for part in range(folds):
        inside = np.flatnonzero(fold == part)
        others = np.flatnonzero(fold != part) if folds > 1 else inside
        seen = np.isfinite(places[others, :, 0]).any(axis=0)
        # A cell that only this fold has would otherwise stop the estimate.
        train = places[others] if seen.all() else places
        atlas = _atlas(train, cohort, settings)
        items = [
            Placed(0, cohort.posed[i], cohort.warped[i], cohort.nuclei[i], 0.0) for i in inside
        ]
        shared = (expectation(atlas, cohort.spacing), afresh)
        placed |= dict(
            zip(inside.tolist(), executor.map(_rematch, items, shared=shared), strict=True)
        )
    found = [placed[i] for i in range(len(cohort))]
    return _with(cohort, found).centred(), float(np.mean([one.cost for one in found]))


def _rematch(expected: Expectation, afresh: bool, before: Placed) -> Placed:
    return match(expected, warped_match(expected, [before.posed]) if afresh else before)


def _atlas(places: NDArray[np.float64], cohort: Cohort, settings: Estimate) -> Atlas:
    return estimate(places, size=cohort.size, spacing=cohort.spacing, settings=settings)


def _with(cohort: Cohort, placed: Sequence[Placed]) -> Cohort:
    return replace(
        cohort,
        posed=tuple(one.posed for one in placed),
        warped=tuple(one.warped for one in placed),
        nuclei=tuple(one.nuclei for one in placed),
    )


def cells_of(cohort: Cohort, settings: Estimate) -> Gaussians:
    """Return the cells of the cohort as it stands, each by itself."""
    return robust_gaussians(cohort.places(), settings)
