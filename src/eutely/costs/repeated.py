"""Pairs of specimens that are matched many times, as trials of learning do: what stays is kept.

Trials differ in thresholds or in offsets, not in the costs of position and size. So the candidates
within the widest limits of all trials are found once, with what limits depend on: both squared
distances, and the rank of a candidate among those of its left and of its right nucleus. Those of a
trial are then selected by comparing numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eutely.arrays import longer, transpose
from eutely.costs.candidates import (
    Candidates,
    Gaussians,
    Limits,
    both_searches,
    candidates,
    squares,
    union,
)
from eutely.costs.gaussian import Costs, assembled, limits_of, shared_offsets
from eutely.costs.offsets import Layout, layout_of
from eutely.kernel import kernel
from eutely.problem import PairProblem
from eutely.specimen import Specimen

Triple = tuple[float, float, float]

REMEMBERED = 128
"""Pairs that are kept: as many as the costs are learned on, 70 MB of worms."""

MOST = 100
"""Candidates within the widest limits, for each nucleus in the mean, above which none are kept:
searching again then needs less memory and is not much slower."""

SMALL = 1000
"""Largest number of nuclei of a specimen whose pairs are kept."""

UNRANKED = 1 << 30
"""Rank of a candidate that is not among the cheapest of a nucleus."""


class Ranked(NamedTuple):
    """Candidates within the widest limits.

    Attributes
    ----------
    starts, labels, owners, linear
        see `eutely.arrays.Arrays`.
    centroid_squares, radius_squares
        (c,) float64, squared Mahalanobis distances of position and size.
    row_ranks, column_ranks
        (c,) int32, place among the cheapest of the left and of the right nucleus, from 0.
    """

    starts: NDArray[np.int32]
    labels: NDArray[np.int32]
    owners: NDArray[np.int32]
    linear: NDArray[np.float64]
    centroid_squares: NDArray[np.float64]
    radius_squares: NDArray[np.float64]
    row_ranks: NDArray[np.int32]
    column_ranks: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class RepeatedPair:
    """Two aligned specimens, and all candidates that trials may allow.

    Attributes
    ----------
    expected
        left side.
    points, radii
        (m, 3) float64, right side.
    widest, ranked
        limits, and the candidates within them; None where they are too many to be kept.
    """

    expected: Gaussians
    points: NDArray[np.float64]
    radii: NDArray[np.float64]
    widest: Limits | None
    ranked: Ranked | None

    def allowed(self, limits: Limits) -> Candidates:
        """Return the candidates within ``limits``, the same as `candidates` finds.

        They are searched for if ``limits`` are not within the widest.
        """
        if self.ranked is None or not _within(limits, self.widest):
            return candidates(self.expected, self.points, self.radii, limits)
        starts, labels, owners, linear = _selected(
            self.ranked, limits.tau_centroid, limits.tau_radius, limits.k_min
        )
        _, column_starts, column_items = transpose(starts, labels, len(self.points))
        return Candidates(starts, labels, owners, linear, column_starts, column_items)

    def problem(
        self, off: ArrayLike, costs: Costs, room: NDArray[np.float32] | None = None
    ) -> PairProblem:
        """Return the same problem as `eutely.costs.gaussian.between`; ``room``: see `assembled`."""
        offsets = shared_offsets(self.expected.means, costs.neighbours, off)
        allowed, layout = _laid_out(self, limits_of(costs), costs.neighbours)
        if room is not None and len(room) < layout.row_starts[-1]:
            room = None
        return assembled(allowed, (self.expected.means, self.points), offsets, costs, layout, room)


@lru_cache(maxsize=REMEMBERED)
def _laid_out(pair: RepeatedPair, limits: Limits, neighbours: int) -> tuple[Candidates, Layout]:
    """Return candidates and the layout of their tables; trials of offsets share both."""
    allowed = pair.allowed(limits)
    offsets = shared_offsets(pair.expected.means, neighbours, np.ones(3))
    return allowed, layout_of(allowed, offsets, len(pair.points))


def repeated_pair(
    left: Specimen, right: Specimen, cen: Triple, rad: Triple, widest: Limits
) -> RepeatedPair:
    """Return a pair of specimens to be matched within limits up to ``widest``.

    Parameters
    ----------
    left, right, cen, rad
        see `eutely.costs.gaussian.between`.
    widest
        no trial has a higher threshold or k_min.
    """
    sides = [values.tobytes() for one in (left, right) for values in (one.centroids, one.radii)]
    small = max(len(left), len(right)) <= SMALL
    pair = _pair if small else _pair.__wrapped__
    return pair(*sides, tuple(cen), tuple(rad), widest if small else None)


@lru_cache(maxsize=REMEMBERED)
def _pair(
    centroids: bytes,
    radii: bytes,
    other_centroids: bytes,
    other_radii: bytes,
    cen: Triple,
    rad: Triple,
    widest: Limits | None,
) -> RepeatedPair:
    """Return a pair of specimens whose arrays are given by their bytes."""
    means, sizes, points, others = (
        np.frombuffer(values).reshape(-1, 3).copy()
        for values in (centroids, radii, other_centroids, other_radii)
    )
    precisions = (np.diag(1.0 / np.array(variances))[None] for variances in (cen, rad))
    expected = Gaussians(means, next(precisions), sizes, next(precisions))
    ranked = None
    if widest is not None and len(means) and len(points):
        ranked = _ranked(expected, points, others, widest)
    return RepeatedPair(expected, points, others, widest, ranked)


def _within(limits: Limits, widest: Limits | None) -> bool:
    """Return whether the costs are those of the widest limits, and no limit is above them."""
    if widest is None or limits[:3] != widest[:3]:
        return False
    return all(value <= most for value, most in zip(limits[3:], widest[3:], strict=True))


def _ranked(
    expected: Gaussians, points: NDArray[np.float64], radii: NDArray[np.float64], widest: Limits
) -> Ranked | None:
    """Return all candidates within the widest limits; None if there are too many."""
    mine, theirs = both_searches(expected, points, radii, widest)
    if len(mine[1]) > MOST * len(expected.means):
        return None
    starts, labels, owners, linear = union(*mine, *theirs)
    described = _described(
        (expected, points, radii),
        (starts, labels, owners),
        (mine[0], mine[1], theirs[0], theirs[1]),
        widest.k_min,
    )
    return Ranked(starts, labels, owners, linear, *described)


@kernel
def _described(sides: Any, lists: Any, cheapest: Any, k_min: int) -> Any:
    """Return squared distances of position and size, and ranks by left and by right nucleus.

    ``cheapest`` are starts and ends of what both searches found.
    """
    expected, points, radii = sides
    starts, labels, owners = lists
    mine_starts, mine, their_starts, theirs = cheapest
    count, n, m = len(labels), len(starts) - 1, len(points)
    centroid_squares, radius_squares = np.empty(count), np.empty(count)
    row_ranks = np.full(count, UNRANKED, np.int32)
    column_ranks = np.full(count, UNRANKED, np.int32)
    for a in range(count):
        at = np.int64(labels[a])
        squared = squares(expected, np.int64(owners[a]), points[at], radii[at])
        centroid_squares[a], radius_squares[a] = squared
    for i in range(n):
        for rank in range(min(k_min, m)):
            label = mine[mine_starts[i] + rank]
            for a in range(starts[i], starts[i + 1]):
                if labels[a] == label:
                    row_ranks[a] = rank
    for s in range(m):
        for rank in range(min(k_min, n)):
            owner = theirs[their_starts[s] + rank]
            for a in range(starts[owner], starts[owner + 1]):
                if labels[a] == s:
                    column_ranks[a] = rank
    return centroid_squares, radius_squares, row_ranks, column_ranks


@kernel
def _selected(ranked: Any, tau_centroid: float, tau_radius: float, k_min: int) -> Any:
    """Return starts, labels, owners and costs of the candidates within limits."""
    n = len(ranked.starts) - 1
    starts = np.zeros(n + 1, np.int32)
    labels = np.empty(len(ranked.labels), np.int32)
    owners = np.empty(len(ranked.labels), np.int32)
    linear = np.empty(len(ranked.labels))
    size = 0
    for i in range(n):
        for at in range(ranked.starts[i], ranked.starts[i + 1]):
            a = np.uint32(at)  # unsigned, so that it is not compared with 0
            near = ranked.centroid_squares[a] <= tau_centroid
            near &= ranked.radius_squares[a] <= tau_radius
            near |= ranked.row_ranks[a] < k_min
            near |= ranked.column_ranks[a] < k_min
            # Written in any case: which are near enough cannot be predicted.
            labels[size], owners[size], linear[size] = ranked.labels[a], i, ranked.linear[a]
            size += near
        starts[i + 1] = size
    return (
        starts,
        longer(labels, size, size),
        longer(owners, size, size),
        longer(linear, size, size),
    )
