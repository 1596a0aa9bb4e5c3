"""Bring one specimen into the frame of an atlas and match it: pose, warp, mean field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.realign.warp import fit_warp, span_of
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
"""Cost of a nucleus without a cell while specimens are placed: match all that can be."""


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
    span, width
        of the body, for the warp.
    freedom
        of the Student-t costs.
    """

    field: Field
    centres: Centres
    broad: Centres
    span: tuple[float, float]
    width: float
    freedom: float

    @classmethod
    def of(
        cls,
        field: Field,
        centres: Centres,
        size: NDArray[np.float64],
        spacing: float,
        freedom: float,
    ) -> Expectation:
        """Add what follows from the size of the body and the distance of its cells."""
        broad = np.broadcast_to(spacing**2 * np.eye(3), (len(field.means), 3, 3))
        span = span_of(field.means, float(size[0]))
        return cls(field, centres, centres_of(broad), span, float(size[1]), freedom)


@dataclass(frozen=True, eq=False)
class Placed:
    """One specimen in the frame of an atlas.

    Attributes
    ----------
    pose
        number of the pose that was taken.
    posed
        (n, 3), its nuclei in that pose.
    warped
        (n, 3), after the warp.
    nuclei
        (m,) int32, the nucleus of each cell, or -1.
    cost
        of the matching; lower fits better.
    shares
        soft assignment of nuclei to cells, or None before the mean field.
    """

    pose: int
    posed: NDArray[np.float64]
    warped: NDArray[np.float64]
    nuclei: NDArray[np.int32]
    cost: float
    shares: Shares | None = None


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
    )


def place(expected: Expectation, poses: Sequence[NDArray[np.float64]]) -> Placed:
    """Choose the pose that fits best, warp the specimen and match it with the mean field.

    Parameters
    ----------
    expected
        from `expectation`.
    poses
        the nuclei (n, 3) in each pose to consider.
    """
    return match(expected, warped_match(expected, poses))


def warped_match(expected: Expectation, poses: Sequence[NDArray[np.float64]]) -> Placed:
    """Choose a pose, warp to soft, then to hard matches; cells are taken one by one."""
    means = expected.field.means
    costs = [
        assign(means, expected.broad, posed, POSE_FREEDOM, UNMATCHED)[1] if len(poses) > 1 else 0.0
        for posed in poses
    ]
    pose = int(np.argmin(costs))
    posed = poses[pose]
    warped = posed
    for temperature in WARP_COOLING:
        shares = soft_assign(means, expected.centres, warped, temperature=temperature)
        targets, weights = mean_places(shares, means, len(posed))
        warped = fit_warp(posed, targets, weights, expected.span, expected.width)(posed)
    nuclei, _ = assign(means, expected.centres, warped, expected.freedom, UNMATCHED)
    warped = refit(expected, posed, warped, nuclei)
    nuclei, cost = assign(means, expected.centres, warped, expected.freedom, UNMATCHED)
    return Placed(pose, posed, warped, nuclei, cost)


def match(expected: Expectation, before: Placed, *, refits: int = REFITS) -> Placed:
    """Match a warped specimen with the mean field, and refine its warp by the matches."""
    field = expected.field
    warped, nuclei, start = before.warped, before.nuclei, field.means
    for left in reversed(range(refits)):
        found = settle(
            field,
            warped,
            start,
            freedom=expected.freedom,
            cooling=COOLING if start is field.means else COOLING[2:],
            unmatched=UNMATCHED,
        )
        nuclei = found.nuclei
        if left:
            warped = refit(expected, before.posed, warped, nuclei)
            start = field.means.copy()
            start[nuclei >= 0] = warped[nuclei[nuclei >= 0]]
    return Placed(before.pose, before.posed, warped, nuclei, found.cost, found.shares)


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
    return fit_warp(posed[own], means, weights, expected.span, expected.width)(posed)
