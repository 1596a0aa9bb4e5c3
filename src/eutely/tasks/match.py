"""Match two specimens as they come from files: common pose and size, then graph matching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.align.affine import FEWEST_MATCHES, least_squares
from eutely.align.target import ALL_MATCHED
from eutely.costs.gaussian import Costs, between
from eutely.errors import EutelyError
from eutely.fit.poses import RIVAL, ROLLS
from eutely.frame import canonical_order
from eutely.geometry import nearness, spacing
from eutely.pose import Pose, oriented
from eutely.solver import solve
from eutely.solver.assignment import assign
from eutely.solver.softassign import Rules, centres_of
from eutely.specimen import Specimen
from eutely.tasks.inputs import Given, check_seed, one_specimen

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

MATCHED_POSES = 6
"""Poses that are matched in any case, the nearest ones."""

HANDS = {"auto": (False, True), "as-is": (False,), "mirrored": (True,)}
"""Whether the second specimen is matched as it is, as its mirror image, or both."""

MIRROR = np.diag([1.0, 1.0, -1.0])
"""Exchanges left and right."""

CLEARER = 0.08
"""How much less the match of a mirror image must cost, as a share of the least that chance reaches.

Of 25 pairs of training worms, the wrong handedness costs 0.09 to 0.21 more in 20, and 0.005 to 0.05
in five, whose handedness stays unclear. By chance a mirror image costs up to 0.04 less in worms
with errors, and up to 0.1 in simulated animals, whose sides are alike. So without clear evidence
specimens are matched as they are.
"""

FITTED_POSES = 4
"""Of these, poses to which affine maps are fitted: the cheapest ones."""

NEIGHBOURS = 6
"""Nearest neighbours of a nucleus by which the agreement is measured."""

SCRAMBLED = 5
"""Specimens without structure with which the agreement is compared."""

LOOSE, CHANCE = 0.7, 0.8
"""Cost of a match, as a share of the least that chance reaches, above which many matches are wrong,
and above which it may as well be chance.

Measured on pairs of training worms, embryos and simulated animals (``benchmarks/match.py``): up to
0.7, 56 to 97% of the nuclei are matched right, unless left and right are exchanged; between the two
36 to 93% but for one pair of embryos; above 0 to 60%, and 0 to 5% of two organisms, which all are
above.
"""

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
    agreement
        how well the two fit each other.
    chance
        the same of the best of `SCRAMBLED` specimens without any structure.
    mirrored
        whether the second specimen was matched as a mirror image.
    clear
        whether the handedness was given, or the other one fits clearly worse.
    """

    partners: NDArray[np.int32]
    distances: NDArray[np.float64]
    pose: Pose
    agreement: Agreement
    chance: Agreement
    mirrored: bool = False
    clear: bool = True

    def __repr__(self) -> str:
        matched = int((self.partners >= 0).sum())
        words = [f"{matched} of {len(self.partners)} nuclei"]
        words += ["mirrored"] * self.mirrored + [self.doubt] * bool(self.doubt)
        return f"<Match: {', '.join(words)}>"

    @property
    def doubt(self) -> Literal["", "loose", "chance"]:
        """How far the matches can be trusted, from the agreement beside that of chance.

        ``loose``: a quarter to a half of them are likely wrong; ``chance``: half of them or more,
        and all if the two are not of one organism.
        """
        share = self.agreement.cost / self.chance.cost
        return "chance" if not share <= CHANCE else "loose" if share > LOOSE else ""


class Agreement(NamedTuple):
    """How well two specimens fit each other.

    Attributes
    ----------
    distance
        median distance of matched nuclei, in distances of neighbours.
    kept
        share of the mutual neighbours of the first specimen that are neighbours in the second.
    cost
        of a matched nucleus: of its position, size and offsets to neighbours.
    """

    distance: float
    kept: float
    cost: float


class _Tried(NamedTuple):
    """The second specimen in a pose, brought to the first one, and the cost of its matching."""

    cost: float
    pose: Pose
    specimen: Specimen
    partners: NDArray[np.int32]


def match(
    first: Given,
    second: Given,
    *,
    effort: str = "default",
    handedness: Literal["auto", "as-is", "mirrored"] = "auto",
    seed: int = 0,
) -> Match:
    """Match the nuclei of two specimens in any pose.

    Names are not looked at. Both go into the canonical frame of `orient`, the second brought to
    the size of the first. Its plausible poses are tried, and rolls all around, both ways along the
    body; robust affine fits follow, and the pose with the cheapest linear assignment counts. Then
    costs of positions, sizes and offsets to neighbours are minimised together.

    Parameters
    ----------
    first, second
        specimens of one organism, in one unit; or what they are read from.
    effort
        of the solver: ``fast``, ``default`` or ``thorough``.
    handedness
        whether the second is a mirror image of the first; ``auto``: only if it fits clearly better.
    seed
        of the solver, and of what the agreement is compared with.
    """
    if handedness not in HANDS:
        raise EutelyError(f"handedness '{handedness}'; there are: {', '.join(HANDS)}")
    check_seed(seed)
    first, second = one_specimen(first, "match"), one_specimen(second, "match")
    left_oriented, right_oriented = oriented(first), oriented(second)
    target = left_oriented.poses[0]
    left = target.apply(left_oriented.specimen)
    posed = [
        (pose, pose.apply(right_oriented.specimen, size=target.size))
        for pose in _with_rolls(right_oriented.poses)
    ]
    chance = _chance(left, posed[0][1], seed)
    tried: list[Match] = []
    for mirrored in HANDS[handedness]:
        best = _nearest(left, _mirrored(posed) if mirrored else posed)
        partners, reached = _solved(left, best.specimen, effort, seed)
        distances = np.linalg.norm(left.centroids - best.specimen.centroids[partners], axis=1)
        apart = np.where(partners >= 0, distances, np.nan)
        tried.append(Match(partners, apart, best.pose, reached, chance, mirrored))
    as_it_is, image = tried[0].agreement.cost, tried[-1].agreement.cost
    enough = CLEARER * chance.cost
    clear = len(tried) == 1 or not abs(as_it_is - image) <= enough
    return replace(tried[-1] if as_it_is - image > enough else tried[0], clear=clear)


def _mirrored(posed: Sequence[tuple[Pose, Specimen]]) -> list[tuple[Pose, Specimen]]:
    """Return specimens in their poses as mirror images."""
    return [(pose, specimen.mapped(MIRROR, np.zeros(3))) for pose, specimen in posed]


def _solved(
    left: Specimen, right: Specimen, effort: str, seed: int
) -> tuple[NDArray[np.int32], Agreement]:
    """Match two specimens in one frame by all costs; return partners and how well they fit."""
    distance = spacing(left.centroids)
    problem = between(
        left,
        right,
        np.array(SPREAD_POSITION) * distance**2,
        np.array(SPREAD_SIZE) * distance**2,
        np.array(SPREAD_OFFSET) * distance**2,
        Costs(c0=C0, tau_radius=1.0),
    )
    solution = solve(problem, effort, seed=seed)
    partners = solution.matching
    matched = np.flatnonzero(partners >= 0)
    if len(matched) < 2:
        return partners, Agreement(np.inf, 0.0, np.inf)
    begins, ends = left.centroids[matched], right.centroids[partners[matched]]
    before, after = _mutual(begins), _mutual(ends)
    return partners, Agreement(
        float(np.median(np.linalg.norm(begins - ends, axis=1))) / distance,
        len(before & after) / max(len(before), 1),
        C0 + solution.objective / len(matched),
    )


def _mutual(points: NDArray[np.float64]) -> set[tuple[int, int]]:
    """Return the pairs of points of which each is among the nearest neighbours of the other."""
    count = min(NEIGHBOURS + 1, len(points))
    near = np.asarray(KDTree(points).query(points, count)[1]).reshape(len(points), -1)
    pairs = {(i, int(j)) for i, row in enumerate(near) for j in row if i != j}
    return {(i, j) for i, j in pairs if i < j and (j, i) in pairs}


def _with_rolls(poses: Sequence[Pose]) -> list[Pose]:
    """Return the poses, and the first one rolled all around, both ways along the body.

    Missing or spurious nuclei can hide which end is the head, and the symmetry that shows the
    roll; `eutely.annotate` tries the same rolls.
    """
    first = poses[0]
    tried = list(poses)
    for ahead in (1.0, -1.0):
        for step in range(ROLLS):
            angle = 2 * np.pi * step / ROLLS
            cosine, sine = np.cos(angle), np.sin(angle)
            roll = np.array([[1.0, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
            turn = roll @ np.diag([ahead, ahead, 1.0])
            if ahead < 0 or step:
                tried.append(replace(first, rotation=turn @ first.rotation))
    return tried


def _nearest(left: Specimen, posed: Sequence[tuple[Pose, Specimen]]) -> _Tried:
    """Fit the second specimen in each of its plausible poses to the first; return the cheapest."""
    tree, distance = KDTree(left.centroids), spacing(left.centroids)
    variances = np.array(SPREAD_POSITION) * distance**2
    near = np.array([nearness(tree, right.centroids, distance) for _, right in posed])
    count = max(MATCHED_POSES, int((near <= RIVAL * near.min()).sum()))
    tried: list[_Tried] = []
    for number in np.argsort(near, kind="stable")[:count].tolist():
        pose, right = posed[number]
        partners, cost = _assigned(left.centroids, right.centroids, variances)
        tried.append(_Tried(cost, pose, right, partners))
    tried.sort(key=lambda one: one.cost)
    fitted: list[_Tried] = []
    for cost, pose, right, partners in tried[:FITTED_POSES]:
        for _ in range(FITS):
            right = _fitted(left, right, partners)
            partners, cost = _assigned(left.centroids, right.centroids, variances)
        fitted.append(_Tried(cost, pose, right, partners))
    return min(fitted, key=lambda one: one.cost)


def _chance(left: Specimen, right: Specimen, seed: int) -> Agreement:
    """Return the agreement with specimens of the same outline and without any structure.

    Each nucleus of the second specimen is rolled about the body axis by an angle of its own; then
    all is done as before. The best of a few such specimens is what chance can do.
    """
    random = np.random.default_rng(seed)
    as_it_is = Pose(np.eye(3), np.zeros(3), (1.0, 1.0), 0.0)
    results = []
    for _ in range(SCRAMBLED):
        # In canonical order, so that the order of rows does not matter.
        angles = np.empty(len(right))
        angles[canonical_order(right)] = random.uniform(0, 2 * np.pi, len(right))
        x, y, z = right.centroids.T
        cosine, sine = np.cos(angles), np.sin(angles)
        places = np.stack([x, cosine * y - sine * z, sine * y + cosine * z], axis=1)
        scrambled = replace(right, centroids=places)
        posed = [(pose, pose.apply(scrambled)) for pose in _with_rolls([as_it_is])]
        results.append(_solved(left, _nearest(left, posed).specimen, "fast", seed)[1])
    distances, kept, costs = zip(*results, strict=True)
    return Agreement(min(distances), max(kept), min(costs))


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
