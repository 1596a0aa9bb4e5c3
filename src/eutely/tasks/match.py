"""Match two specimens as they come from files: common pose and size, then graph matching."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eutely.align.affine import FEWEST_MATCHES, least_squares
from eutely.align.target import ALL_MATCHED
from eutely.costs.gaussian import Costs, between
from eutely.geometry import spacing
from eutely.pose import Pose, oriented
from eutely.solver import solve
from eutely.solver.meanfield import assign
from eutely.solver.softassign import Rules, centres_of
from eutely.specimen import Specimen

SPREAD_POSITION = (0.7, 0.23, 0.15)
"""Variances of positions along the body axes, in squared distances of neighbours; what was learned
from worms, without its unit."""

SPREAD_OFFSET = (0.92, 0.17, 0.23)
"""The same of offsets between neighbours."""

SPREAD_SIZE = (1.0, 1.0, 1.0)
"""The same of semi-axes: wide, since segmentations differ in size more than in place."""

C0 = 300.0
"""Cost of leaving a nucleus unmatched: about one of two whole worms stays so, as in the paper."""

FITS = 3
"""Affine fits to the matches so far."""

FREEDOM = 1.0
"""Degrees of freedom of the costs by which poses compare: nuclei far off hardly count."""

KEPT = 0.8
"""Share of the matches, the nearest ones, that an affine fit uses."""

STRETCH = 1.3
"""Largest factor by which a fit may change a length; what is beyond it is no fit."""


@dataclass(frozen=True, eq=False)
class Match:
    """Which nucleus of one specimen is which of another.

    Attributes
    ----------
    partners
        (n,) int32, position in the second specimen, or -1.
    distances
        (n,) float64, between the two in the common frame, in the first one's unit; NaN where
        unmatched.
    pose
        of the second specimen that fits best, after it was straightened.
    """

    partners: NDArray[np.int32]
    distances: NDArray[np.float64]
    pose: Pose


def match(first: Specimen, second: Specimen, *, effort: str = "default", seed: int = 0) -> Match:
    """Match the nuclei of two specimens in any pose.

    Names are not looked at. Both go into the canonical frame of `orient`, the second brought to
    the size of the first; the pose with the cheapest linear assignment counts, robust affine fits
    follow, then costs of positions, sizes and offsets to neighbours are minimised together.

    Parameters
    ----------
    first, second
        specimens of one organism, in one unit.
    effort
        of the solver: ``fast``, ``default`` or ``thorough``.
    seed
        of the solver.
    """
    left_oriented, right_oriented = oriented(first), oriented(second)
    target = left_oriented.poses[0]
    left = target.apply(left_oriented.specimen)
    distance = spacing(left.centroids)
    variances = np.array(SPREAD_POSITION) * distance**2
    trials: list[tuple[float, int, Pose, Specimen, NDArray[np.int32]]] = []
    for pose in right_oriented.poses:
        right = pose.apply(right_oriented.specimen, size=target.size)
        partners, cost = _assigned(left.centroids, right.centroids, variances)
        trials.append((cost, len(trials), pose, right, partners))
    _, _, pose, right, partners = min(trials, key=lambda trial: trial[:2])
    for _ in range(FITS):
        right = _fitted(left, right, partners)
        partners, _ = _assigned(left.centroids, right.centroids, variances)
    problem = between(
        left,
        right,
        variances,
        np.array(SPREAD_SIZE) * distance**2,
        np.array(SPREAD_OFFSET) * distance**2,
        Costs(c0=C0, tau_radius=1.0),
    )
    partners = solve(problem, effort, seed=seed).matching
    distances = np.linalg.norm(left.centroids - right.centroids[partners], axis=1)
    return Match(partners, np.where(partners >= 0, distances, np.nan), pose)


def _assigned(
    left: NDArray[np.float64], right: NDArray[np.float64], variances: NDArray[np.float64]
) -> tuple[NDArray[np.int32], float]:
    """Return partners and cost of the linear assignment; the cost of a pair levels off."""
    centres = centres_of(np.broadcast_to(np.diag(variances), (len(left), 3, 3)))
    return assign(left, centres, right, Rules(FREEDOM, ALL_MATCHED))


def _fitted(left: Specimen, right: Specimen, partners: NDArray[np.int32]) -> Specimen:
    """Map ``right`` onto ``left`` by the affine least-squares fit to the nearest matches."""
    chosen = np.flatnonzero(partners >= 0)
    goal, given = left.centroids[chosen], right.centroids[partners[chosen]]
    distances = np.linalg.norm(goal - given, axis=1)
    near = distances <= np.quantile(distances, KEPT)
    if near.sum() < FEWEST_MATCHES:
        return right
    matrix, shift = least_squares(given[near], goal[near])
    lengths = np.linalg.svd(matrix, compute_uv=False)
    if np.linalg.det(matrix) <= 0 or lengths.max() > STRETCH or lengths.min() < 1 / STRETCH:
        return right
    return right.mapped(matrix, shift)
