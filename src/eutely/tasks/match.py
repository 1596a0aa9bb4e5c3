"""Match two specimens as they come from files: common pose and size, then graph matching."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.align.affine import least_squares
from eutely.costs.gaussian import Costs, between
from eutely.errors import EutelyError
from eutely.fit.hypothesis import HANDS, Hands
from eutely.fit.model import model_of_nuclei
from eutely.fit.posterior import Target, best_of_hands
from eutely.frame import Body, canonical_order
from eutely.geometry import spacing
from eutely.pose import Oriented, orient, oriented, posed
from eutely.solver import solve
from eutely.specimen import UNKNOWN, Specimen
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

FREEDOM = 4.0
"""Degrees of freedom of the costs by which the second specimen is placed."""

CLEAR = 3.0
"""Log-odds from which the handedness is clear; a mirror image is taken only then."""

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


def match(
    first: Given,
    second: Given,
    *,
    effort: str = "default",
    handedness: Literal["auto", "as-is", "mirrored"] = "auto",
    seed: int = 0,
) -> Match:
    """Match the nuclei of two specimens in any pose.

    Names are not looked at. The second is placed in the nuclei of the first as in an atlas. Then
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
    given = oriented(first)
    target = given.poses[0]
    left = target.apply(given.specimen)
    body = Body(np.array(target.size), spacing(left.centroids))
    none = np.zeros((len(left), 0))
    cells = Target.of(model_of_nuclei(left.centroids, none, body, FREEDOM))
    right = oriented(second)
    placed, odds = _placed(cells, right, HANDS[handedness], first.unit == second.unit != UNKNOWN)
    mirrored = odds >= CLEAR if handedness == "auto" else handedness == "mirrored"
    specimen = placed[mirrored]
    partners, reached = _solved(left, specimen, effort, seed)
    distances = np.linalg.norm(left.centroids - specimen.centroids[partners], axis=1)
    return Match(
        partners,
        np.where(partners >= 0, distances, np.nan),
        reached,
        _chance(cells, left, placed.get(False, specimen), seed),
        mirrored,
        clear=handedness != "auto" or abs(odds) >= CLEAR,
    )


def _placed(
    cells: Target, given: Oriented, hands: Hands, known: bool
) -> tuple[dict[bool, Specimen], float]:
    """Place a specimen in the nuclei of another one in each handedness.

    Returns the log-odds that it is a mirror image as well. ``known`` says whether both have one
    known unit.
    """
    specimen = posed(given, cells.model.body.size)
    best = best_of_hands(cells, float(known), hands, specimen)
    found: dict[bool, Specimen] = {}
    for hand, (fit, *_) in best.items():
        matrix, shift = least_squares(given.specimen.centroids, fit.warped)
        moved = given.specimen.mapped(matrix, shift)
        found[hand] = replace(moved, centroids=fit.warped)
    for hand in hands:
        found.setdefault(hand, next(iter(found.values())))
    logs = [best[hand].log if hand in best else -np.inf for hand in (True, False)]
    return found, logs[0] - logs[1]


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


def _chance(cells: Target, left: Specimen, right: Specimen, seed: int) -> Agreement:
    """Return the agreement with specimens of the same outline and without any structure.

    Each nucleus of the second specimen is rolled about the body axis by an angle of its own; then
    all is done as before. The best of a few such specimens is what chance can do.
    """
    random = np.random.default_rng(seed)
    results = []
    for _ in range(SCRAMBLED):
        # In canonical order, so that the order of rows does not matter.
        angles = np.empty(len(right))
        angles[canonical_order(right)] = random.uniform(0, 2 * np.pi, len(right))
        x, y, z = right.centroids.T
        cosine, sine = np.cos(angles), np.sin(angles)
        places = np.stack([x, cosine * y - sine * z, sine * y + cosine * z], axis=1)
        scrambled = replace(right, centroids=places)
        found, _ = _placed(cells, Oriented(scrambled, tuple(orient(scrambled))), (False,), True)
        results.append(_solved(left, found[False], "fast", seed)[1])
    distances, kept, costs = zip(*results, strict=True)
    return Agreement(min(distances), max(kept), min(costs))
