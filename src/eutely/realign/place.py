"""Bring one specimen into the frame of an atlas and match it: pose, warp, mean field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.atlas import Atlas
from eutely.features import feature_costs
from eutely.realign.background import LEAST, Background, Rates
from eutely.realign.noise import likeliest_error, loosened
from eutely.realign.spurious import BENEFIT, crowd, oddity
from eutely.realign.warp import Body, fit_warp
from eutely.solve.meanfield import COOLING, Field, assign, settle
from eutely.solve.softassign import (
    Centres,
    Shares,
    centres_of,
    mean_places,
    soft_assign,
    squared_distances,
)

POSE_FREEDOM = 20.0
"""Degrees of freedom when poses are compared: a few cells may be anywhere."""

WARP_FREEDOM = 4.0
"""Degrees of freedom of the weights of matches in the fit of a warp."""

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


class Expectation(NamedTuple):
    """What placing a specimen needs of an atlas, prepared once for all specimens.

    Attributes
    ----------
    field
        cells given their neighbours.
    centres
        cells by themselves.
    broad
        centres as wide as cells are apart, to compare poses with.
    body
        that is warped.
    freedom
        of the Student-t costs.
    background
        what tells when cells and nuclei had better be left alone.
    features
        (m, d) float64, mean scores of the cells, as of `eutely.features`.
    spacing
        typical distance of neighbouring cells.
    crowding
        as of `eutely.realign.spurious`; without any, nothing is held against odd nuclei: while
        cells are still being found, a nucleus may have none for want of its cell.
    """

    field: Field
    centres: Centres
    broad: Centres
    body: Body
    freedom: float
    background: Background
    features: NDArray[np.float64]
    spacing: float
    crowding: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        field: Field,
        centres: Centres,
        size: NDArray[np.float64],
        spacing: float,
        freedom: float,
        seen: NDArray[np.int64] | None = None,
        most: float = np.inf,
        features: NDArray[np.float64] | None = None,
        crowding: NDArray[np.float64] | None = None,
        smooth: bool = True,
    ) -> Expectation:
        """Add what follows from the size of the body and the distance of its cells."""
        broad = np.broadcast_to(spacing**2 * np.eye(3), (len(field.means), 3, 3))
        background = Background.of(field.means, seen, most)
        scores = np.zeros((len(field.means), 0)) if features is None else features
        return cls(
            field,
            centres,
            centres_of(broad),
            Body.of(field.means, size, smooth=smooth),
            freedom,
            background,
            scores,
            spacing,
            np.zeros(0) if crowding is None else crowding,
        )

    @property
    def complete(self) -> bool:
        """Whether all cells are found: what does not fit any is the fault of the specimen."""
        return self.crowding.size > 0

    def loosened(self, error: float) -> Expectation:
        """Return the same for a specimen with such an error in the coordinates of its nuclei."""
        if not error:
            return self
        return self._replace(
            field=self.field._replace(centres=loosened(self.field.centres, error)),
            centres=loosened(self.centres, error),
        )

    def unmatched(self, rates: Rates) -> NDArray[np.float64]:
        """Return (m,), what it costs to leave each cell and a nucleus without each other."""
        return self.background.unmatched(rates, self.freedom)


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


def expectation(atlas: Atlas, spacing: float) -> Expectation:
    """Prepare ``atlas`` for `place`.

    Parameters
    ----------
    atlas
        to place specimens in.
    spacing
        typical distance of neighbouring cells, in the unit of the atlas.
    """
    return Expectation.of(
        Field(atlas.means, atlas.neighbours, atlas.predictors, centres_of(atlas.conditionals)),
        centres_of(atlas.covariances),
        atlas.size,
        spacing,
        atlas.freedom,
        atlas.seen,
        features=atlas.feature_means,
        crowding=atlas.crowding,
        smooth=atlas.warp,
    )


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
        (n,), the cell that each nucleus must be, as of `eutely.solve.softassign.soft_assign`.
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
        warped = refit(own, posed, warped, nuclei)
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
            warped = refit(own, before.posed, warped, nuclei)
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


def error_of(
    expected: Expectation,
    warped: NDArray[np.float64],
    nuclei: NDArray[np.int32],
    places: NDArray[np.float64] | None = None,
) -> float:
    """Return the error of a specimen's coordinates, told by its matched nuclei (m,).

    Cells are expected at ``places`` (m, 3) by their neighbours, or without them each by itself.
    """
    cells = np.flatnonzero(nuclei >= 0)
    if not (expected.complete and len(cells)):
        return 0.0
    field = expected.field
    centres = expected.centres if places is None else field.centres
    return likeliest_error(
        (field.means if places is None else places)[cells],
        Centres(*(values[cells] for values in centres)),
        warped[nuclei[cells]],
        freedom=expected.freedom,
        spacing=expected.spacing,
    )


def what_features_say(
    expected: Expectation, features: NDArray[np.float64] | None, nuclei: NDArray[np.int32]
) -> NDArray[np.float64] | None:
    """Return (m, n), the costs of features, learned from a matching so far; None without any."""
    if features is None or not features.size or not expected.features.size:
        return None
    return feature_costs(expected.features, features, nuclei, expected.freedom)


def refit(
    expected: Expectation,
    posed: NDArray[np.float64],
    warped: NDArray[np.float64],
    nuclei: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Return the specimen warped anew, by matches that weigh less the farther off they are."""
    cells = np.flatnonzero(nuclei >= 0)
    own = nuclei[cells]
    means = expected.field.means[cells]
    distances = squared_distances(means, expected.centres.whitening[cells], warped[own])
    weights = (WARP_FREEDOM + 3) / (WARP_FREEDOM + distances)
    return fit_warp(posed[own], means, weights, expected.body)(posed)
