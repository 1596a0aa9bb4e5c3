"""Real worms in one frame and their matchings, as several benchmarks need them."""

import os
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from eutely import Specimen, read
from eutely.cliques import Cliques, Matchings
from eutely.kernel import kernel
from eutely.pose import orient
from eutely.solver.lap_dense import lap_dense
from eutely.solver.lap_sparse import lap_sparse, transpose

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("EUTELY_DATA", HERE.parents[1] / "shared" / "data"))
SCALE = 1.0 / np.array([130.0, 43.0, 28.0, 156.0, 200.0, 174.0])
"""One over the paper's variances of position and radii."""

UNASSIGNED = 1e4
"""The paper's unassignment cost c0."""

Points = NDArray[np.float64]


@cache
def worms(which: str = "train100") -> tuple[Specimen, ...]:
    """Return the worms of a set of rapcat, their nuclei shuffled: the files share one order."""
    rng = np.random.default_rng(1)
    return tuple(worm.take(rng.permutation(len(worm))) for worm in read(DATA / "rapcat" / which))


@kernel
def costs_of(left: Points, right: Points, scale: Points, unassigned: float) -> Points:
    """Return the linear costs (eq. 2, 3) of all assignments, minus c0: (n, m)."""
    table = np.empty((len(left), len(right)))
    for i in range(len(left)):
        for s in range(len(right)):
            table[i, s] = -unassigned
            for k in range(len(scale)):
                table[i, s] += (left[i, k] - right[s, k]) ** 2 * scale[k]
    return table


def match(left: Points, right: Points) -> tuple[NDArray[np.int32], Points]:
    """Return the partners of all left nuclei, and what each costs."""
    table = costs_of(left, right, SCALE, UNASSIGNED)
    partners = lap_dense(table)[0]
    return partners, np.where(partners >= 0, table[np.arange(len(left)), partners], 0.0)


@kernel
def dense_partners(features: Points, pairs: NDArray[np.int32], scale: Points, c0: float):
    """Match all pairs of equally large specimens: (P, n)."""
    partners = np.empty((len(pairs), features.shape[1]), np.int32)
    for pair in range(len(pairs)):
        left, right = features[pairs[pair, 0]], features[pairs[pair, 1]]
        partners[pair] = lap_dense(costs_of(left, right, scale, c0))[0]
    return partners


def dense_matchings(features: Points, pairs: NDArray[np.int32] | None = None) -> Matchings:
    """Match pairs (all if None) of specimens (N, n, 6) by their dense linear costs."""
    count, size = features.shape[:2]
    if pairs is None:
        pairs = np.transpose(np.triu_indices(count, 1)).astype(np.int32)
    partners = dense_partners(features, pairs, SCALE, UNASSIGNED)
    starts = np.arange(len(pairs) + 1, dtype=np.int64) * size
    return Matchings(np.full(count, size, np.int32), pairs, starts, partners.ravel())


def sparse_matchings(features: Points, nearest: int = 9, c0: float = 100.0) -> Matchings:
    """Match all pairs of specimens, each nucleus with its ``nearest`` on the other side only."""
    matchings, allowed = {}, {}
    for g, h in combinations(range(len(features)), 2):
        table = costs_of(features[g], features[h], SCALE, c0)
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
    poses = [orient(worm) for worm in worms()]
    size = np.median([found[0].size for found in poses], axis=0)

    def placed(worm: Specimen, at: int) -> Points:
        return np.hstack([poses_of[at].apply(worm, size).centroids, worm.radii])

    poses_of = poses[target]
    goal = placed(worms()[target], 0)
    result = []
    for worm, poses_of in zip(worms(), poses, strict=True):
        # Both rolls and both ends: a worm in the wrong pose is turned here.
        options = [placed(worm, at) for at in range(min(4, len(poses_of)))]
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
