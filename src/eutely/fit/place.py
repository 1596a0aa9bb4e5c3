"""Bring one specimen into the frame of an atlas and match it: pose, warp, mean field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.fit.rates import LEAST, Rates
from eutely.fit.model import Expectation, error_of, what_features_say
from eutely.fit.spurious import BENEFIT, crowd, oddity
from eutely.align.warp import fit_warp, rewarp
from eutely.solver.meanfield import COOLING, assign, settle
from eutely.solver.softassign import Shares, mean_places, soft_assign

POSE_FREEDOM = 20.0
"""Degrees of freedom when poses are compared: a few cells may be anywhere."""

WARP_COOLING = (4.0, 4.0, 2.0, 2.0, 1.0, 1.0)
"""Temperatures at which the warp is fitted to soft matches."""

REFITS = 2
"""Mean fields in turn; after each but the last the warp is fitted to its matches."""

UNMATCHED = 1e4
"""Cost of a nucleus without a cell while poses are compared: match all that can be."""

ROLLS = 12
"""Rolls that are tried all around."""

MATCHED_POSES = 4
"""Poses that are matched with the cells in any case, the nearest ones."""

RIVAL = 1.5
"""Poses up to so many times as far off as the nearest are matched too; of these, poses that cost up
to so many times the least are warped too, and the best match decides. A worm has two or three such
poses, a round embryo or a bent head a dozen."""


@dataclass(frozen=True, eq=False)
class Placed:
    """One specimen in the frame of an atlas.

    Attributes
    ----------
    posed
        (n, 3), its nuclei in the pose that was taken.
    warped
        (n, 3), after the warp.
    nuclei
        (m,) int32, the nucleus of each cell, or -1.
    cost
        of the matching; lower fits better.
    shares
        soft assignment of nuclei to cells, or None before the mean field.
    rates
        of missing cells and spurious nuclei, or None before any matching.
    features
        (n, d), scores of its nuclei, or None without any.
    error
        of the coordinates of its nuclei, beyond what is usual.
    """

    posed: NDArray[np.float64]
    warped: NDArray[np.float64]
    nuclei: NDArray[np.int32]
    cost: float
    shares: Shares | None = None
    rates: Rates | None = None
    features: NDArray[np.float64] | None = None
    error: float = 0.0


def place(
    expected: Expectation,
    poses: Sequence[NDArray[np.float64]],
    pins: NDArray[np.int32] | None = None,
    features: NDArray[np.float64] | None = None,
) -> Placed:
    """Choose the pose that fits best, warp the specimen and match it with the mean field.

    Parameters
    ----------
    expected
        from `expectation`.
    poses
        the nuclei (n, 3) in each pose to consider.
    pins
        (n,), the cell that each nucleus must be, as of `eutely.solver.softassign.soft_assign`.
    features
        (n, d), scores of its nuclei in the features of the atlas.
    """
    return match(expected, warped_match(expected, poses, pins, features), pins=pins)


def warped_match(
    expected: Expectation,
    poses: Sequence[NDArray[np.float64]],
    pins: NDArray[np.int32] | None = None,
    features: NDArray[np.float64] | None = None,
) -> Placed:
    """Choose a pose, warp to soft, then to hard matches; cells are taken one by one."""
    found = [_warped(expected, posed, pins, features) for posed in _plausible(expected, poses)]
    if len(found) == 1 or not expected.complete:
        return min(found, key=lambda one: one.cost)
    return min(found, key=lambda one: _by_usual_rates(expected, one, pins))


def _by_usual_rates(expected: Expectation, found: Placed, pins: NDArray[np.int32] | None) -> float:
    """Return the cost by which poses compare: with the rates of a specimen not known yet.

    In a wrong pose much seems to be missing and spurious, which would be cheap by its own rates.
    """
    own = expected.loosened(found.error)
    alone = own.unmatched(expected.background.start(len(found.posed)))
    extra = what_features_say(expected, found.features, found.nuclei)
    means, freedom = expected.field.means, expected.freedom
    return assign(means, own.centres, found.warped, freedom, alone, pins, extra)[1]


def _plausible(
    expected: Expectation, poses: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """Return the specimen in the poses in which it is nearest to the cells, the nearest first.

    Besides the given poses rolls all around are tried, both ways along the body: spurious nuclei
    can hide the symmetry that tells the roll.
    """
    if len(poses) == 1:
        return [poses[0]]
    means, broad = expected.field.means, expected.broad
    tree, spacing = KDTree(means), float(broad.spreads[0])
    tried = [*poses, *(turned for turned in _rolled(poses[0]))]
    near = [np.log1p((tree.query(posed)[0] / spacing) ** 2).mean() for posed in tried]
    count = max(MATCHED_POSES, int((np.array(near) <= RIVAL * min(near)).sum()))
    best = [tried[at] for at in np.argsort(near, kind="stable")[:count]]
    base = broad.heights[0] * min(len(means), len(poses[0]))
    costs = np.array(
        [base + assign(means, broad, posed, POSE_FREEDOM, UNMATCHED)[1] for posed in best]
    )
    order = np.argsort(costs, kind="stable")
    limit = max(RIVAL * costs[order[0]], costs[order[0]])
    return [best[at] for at in order if costs[at] <= limit]


def _rolled(posed: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return the specimen rolled about x in steps all around, also end for end; not as it is."""
    found = []
    for first, ahead in ((1, posed), (0, posed * [-1.0, -1.0, 1.0])):
        for step in range(first, ROLLS):
            cosine, sine = np.cos(2 * np.pi * step / ROLLS), np.sin(2 * np.pi * step / ROLLS)
            y, z = ahead[:, 1], ahead[:, 2]
            found.append(np.stack([ahead[:, 0], cosine * y - sine * z, sine * y + cosine * z], 1))
    return found


def _warped(
    expected: Expectation,
    posed: NDArray[np.float64],
    pins: NDArray[np.int32] | None,
    features: NDArray[np.float64] | None,
) -> Placed:
    means, background = expected.field.means, expected.background
    warped, rates = posed, background.start(len(posed))
    alone = background.unmatched(rates, np.inf)
    for temperature in WARP_COOLING:
        shares = soft_assign(
            means, expected.centres, warped, temperature=temperature, unmatched=alone, pins=pins
        )
        targets, weights = mean_places(shares, means, len(posed))
        warped = fit_warp(posed, targets, weights, expected.body)(posed)
    freedom = expected.freedom
    extra, error = None, 0.0
    for _ in range(REFITS):
        own = expected.loosened(error)
        alone = own.unmatched(rates)
        nuclei, cost = assign(means, own.centres, warped, freedom, alone, pins, extra)
        rates = background.rates(nuclei, len(posed))
        error = error_of(expected, warped, nuclei)
        warped = rewarp(posed, warped, nuclei, means, own.centres, own.body)
        extra = what_features_say(expected, features, nuclei)
    own = expected.loosened(error)
    nuclei, cost = assign(means, own.centres, warped, freedom, alone, pins, extra)
    return Placed(posed, warped, nuclei, cost, rates=rates, features=features, error=error)


def match(
    expected: Expectation,
    before: Placed,
    *,
    refits: int = REFITS,
    pins: NDArray[np.int32] | None = None,
) -> Placed:
    """Match a warped specimen with the mean field, and refine its warp by the matches."""
    field, error = expected.field, before.error
    warped, nuclei, start = before.warped, before.nuclei, field.means
    rates = before.rates or expected.background.start(len(warped))
    spurious = rates.spurious > LEAST and bool(expected.crowding.any())
    for left in reversed(range(refits + spurious)):
        extra = what_features_say(expected, before.features, nuclei)
        close = crowd(warped, expected.spacing, expected.crowding) if spurious else None
        if spurious and before.features is not None and before.features.size:
            odd = oddity(before.features, nuclei, close) - BENEFIT
            extra = np.tile(odd, (len(nuclei), 1)) if extra is None else extra + odd
        own = expected.loosened(error)
        found = settle(
            own.field,
            warped,
            start,
            freedom=expected.freedom,
            cooling=COOLING if start is field.means else COOLING[2:],
            unmatched=expected.unmatched(rates),
            pins=pins,
            extra=extra,
            crowd=close,
        )
        nuclei = found.nuclei
        rates = expected.background.rates(nuclei, len(warped))
        if left:
            error = error_of(expected, warped, nuclei, found.expected)
            warped = rewarp(before.posed, warped, nuclei, field.means, own.centres, own.body)
            start = field.means.copy()
            start[nuclei >= 0] = warped[nuclei[nuclei >= 0]]
    return replace(
        before,
        warped=warped,
        nuclei=nuclei,
        cost=found.cost,
        shares=found.shares,
        rates=rates,
        error=error,
    )
