"""Real worms, common frames, and matchings of all pairs, for several benchmarks."""

import os
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from eutely import Specimen, read
from eutely.atlas import Atlas
from eutely.cliques import Cliques, Matchings
from eutely.config import Config
from eutely.costs.dense import linear_costs
from eutely.evaluation import majority_names
from eutely.execute import open_executor
from eutely.features import feature_names
from eutely.find.poses import settled_poses
from eutely.frame import Frame
from eutely.learned import Parameters
from eutely.pairs import PairRules, match_pairs
from eutely.pose import Pose, anonymous, framed, orient
from eutely.solver.lap_dense import lap_dense
from eutely.solver.lap_sparse import lap_sparse, transpose
from eutely.specimen import UNKNOWN
from eutely.steps import Run
from eutely.store import Memory
from eutely.tasks.build import poses

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("EUTELY_DATA", HERE.parents[1] / "shared" / "data"))
PAPER = Parameters((130.0, 43.0, 28.0), (156.0, 200.0, 174.0), (172.0, 32.0, 44.0))
"""The parameters that the paper learned from worms."""

PRECISIONS = 1 / np.array([*PAPER.centroids, *PAPER.radii])

C0 = 1e4
"""The paper's cost of leaving a nucleus unmatched."""

Points = NDArray[np.float64]


@cache
def worms(which: str = "train100") -> tuple[Specimen, ...]:
    """Return the worms of a set of rapcat, their nuclei shuffled: the files share one order."""
    rng = np.random.default_rng(1)
    return tuple(worm.take(rng.permutation(len(worm))) for worm in read(DATA / "rapcat" / which))


def named(atlas: Atlas, specimens: Sequence[Specimen], cells: Sequence[NDArray[np.int32]]) -> Atlas:
    """Name an atlas by the specimens that it was built from and the cells of their nuclei."""
    names = [specimen.names or () for specimen in specimens]
    return atlas.named(majority_names(cells, names, len(atlas)))


def frame_of(run: Run, specimens: Sequence[Specimen]) -> Frame:
    """Return specimens in order (`eutely.tasks.build.in_order`) in one frame, as a build has it."""
    bare = tuple(anonymous(specimen, specimen.name) for specimen in specimens)
    return framed(
        run(poses, bare),
        feature_names(specimens, run.config.estimate.features),
        scale=run.config.realign.scale,
        smooth=run.config.realign.warp,
    )


def settled_frame(specimens: Sequence[Specimen]) -> Frame:
    """Return specimens in the poses that a build without names finds, mirror images undone."""
    with open_executor(1) as executor:
        run = Run(Config(), executor, Memory())
        bare = tuple(anonymous(specimen, specimen.name) for specimen in specimens)
        sizes = np.array([one.poses[0].size for one in run(poses, bare)])
        known = specimens[0].unit != UNKNOWN
        return run(settled_poses, frame_of(run, specimens), sizes, known)


def costs_of(left: Points, right: Points, c0: float = C0) -> Points:
    """Return the linear costs (equations 2 and 3) of all assignments, minus c0: (n, m)."""
    return linear_costs(np.ascontiguousarray(left.T), np.ascontiguousarray(right.T), PRECISIONS, c0)


def match(left: Points, right: Points) -> tuple[NDArray[np.int32], Points]:
    """Return the partners of all left nuclei, and what each costs."""
    table = costs_of(left, right)
    partners = lap_dense(table)[0]
    return partners, np.where(partners >= 0, table[np.arange(len(left)), partners], 0.0)


def dense_matchings(features: Points, pairs: NDArray[np.int32] | None = None) -> Matchings:
    """Match pairs (all if None) of specimens (N, n, 6) by their dense linear costs."""
    rules = PairRules(PAPER, C0, dense=True)
    with open_executor(1) as executor:
        return match_pairs(features[..., :3], features[..., 3:], rules, executor, pairs=pairs)


def sparse_matchings(features: Points, nearest: int = 9, c0: float = 100.0) -> Matchings:
    """Match all pairs of specimens, each nucleus with its ``nearest`` on the other side only."""
    matchings, allowed = {}, {}
    for g, h in combinations(range(len(features)), 2):
        table = costs_of(features[g], features[h], c0)
        near = np.zeros(table.shape, dtype=bool)
        for way, cost in ((near, table), (near.T, table.T)):
            closest = np.argpartition(cost, nearest, axis=1)[:, :nearest]
            way[np.arange(len(cost))[:, None], closest] = True
        rows, columns = np.nonzero(near)
        starts = np.searchsorted(rows, np.arange(len(table) + 1)).astype(np.int32)
        labels = columns.astype(np.int32)
        lists = transpose(starts, labels, table.shape[1])
        prices = np.zeros(table.shape[1])
        chosen, _ = lap_sparse(starts, labels, *lists, table[rows, columns], prices)
        matchings[g, h] = np.where(chosen >= 0, labels[chosen], -1)
        allowed[g, h] = near
    sizes = [features.shape[1]] * len(features)
    return Matchings.from_pairs(sizes, matchings, allowed=allowed)


@cache
def oriented(target: int) -> Points:
    """Bring all worms to one size and to the pose that is nearest to the target: (100, 558, 6)."""
    poses_of_worms = [orient(worm) for worm in worms()]
    size = np.median([found[0].size for found in poses_of_worms], axis=0)

    def placed(worm: Specimen, pose: Pose) -> Points:
        return np.hstack([pose.apply(worm, size).centroids, worm.radii])

    goal = placed(worms()[target], poses_of_worms[target][0])
    result = []
    for worm, found in zip(worms(), poses_of_worms, strict=True):
        # Both rolls and both ends: a worm in the wrong pose is turned here.
        options = [placed(worm, pose) for pose in found[:4]]
        result.append(min(options, key=lambda points: match(points, goal)[1].sum()))
    return np.array(result)


def fitted(points: Points, goal: Points, design: Points, ridge: float) -> Points:
    """Move one worm towards its partners in ``goal`` along ``design``; the worst tenth is left."""
    partners, cost = match(points, goal)
    kept = (partners >= 0) & (cost <= np.quantile(cost, 0.9))
    basis, lack = design[kept], goal[partners[kept], :3] - points[kept, :3]
    square = basis.T @ basis + ridge * np.eye(basis.shape[1])
    moved = points.copy()
    moved[:, :3] += design @ np.linalg.solve(square, basis.T @ lack)
    return moved


def affine(points: Points) -> Points:
    """Return the design matrix of an affine map: (n, 4)."""
    return np.hstack([np.ones((len(points), 1)), points[:, :3] / points[:, :3].std(axis=0)])


def bending(points: Points, intervals: int = 20) -> Points:
    """Return the design matrix of a map that is affine across the body and smooth along it."""
    along, across = points[:, 0], points[:, 1:3] / points[:, 1:3].std()
    low, high = along.min(), along.max() + 1e-6
    knots = np.concatenate([[low] * 3, np.linspace(low, high, intervals + 1), [high] * 3])
    curve = BSpline.design_matrix(along, knots, 3).toarray()
    return np.hstack([curve, curve * across[:, :1], curve * across[:, 1:]])


@cache
def aligned(target: int = 8, rounds: int = 3) -> Points:
    """Fit all worms to a target worm by affine maps: (100, 558, 6)."""
    goal = oriented(target)[target]
    result = []
    for points in oriented(target):
        for _ in range(rounds):
            points = fitted(points, goal, affine(points), 1e-3)
        result.append(points)
    return np.array(result)


def warped(features: Points, cliques: Cliques, rounds: int = 4) -> Points:
    """Fit all worms to the mean of their large cliques, first affine, then bending."""
    table = cliques.table(minimum=len(cliques) // 2)
    members = [
        np.where(table[:, g, None] >= 0, points[table[:, g]], np.nan)
        for g, points in enumerate(features)
    ]
    goal = np.nanmean(members, axis=0)
    result = []
    for points in features:
        for turn in range(rounds):
            design = bending(points) if turn else affine(points)
            points = fitted(points, goal, design, 10.0 if turn else 1e-3)
        result.append(points)
    return np.array(result)
