"""Poses in which a specimen lies near the cells: the given ones, and rolls all around."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import KDTree

from eutely.align.target import POSE_FREEDOM, POSE_REACH, least_cost, pose_rules
from eutely.costs.grid import grid_of
from eutely.costs.near import nearest_squares
from eutely.fit.model import Model
from eutely.fit.soft import LARGE, WARP_COOLING, soft_warp
from eutely.frame import Points
from eutely.geometry import mean_nearness, nearness
from eutely.solver.assignment import assign, proved
from eutely.solver.softassign import student_costs

ROLLS = 12
"""Rolls that are tried all around."""

FEW_WITNESSES = 150
"""Nuclei by which poses are left out that are far off."""

FAIR = 1.2
"""Factor by which such a pose is farther off than one that would be matched; the nearest few are
never left out."""

MATCHED_POSES = 4
"""Poses that are matched with the cells in any case, the nearest ones."""

MIRROR = np.array([1.0, 1.0, -1.0])
"""Factors that turn a pose into its mirror image: left and right change places."""

RIVAL = 1.5
"""Poses up to so many times as far off as the nearest are matched too; of these, poses that cost up
to so many times the least are warped too, and the best match decides. A worm has two or three such
poses, a round embryo or a bent head a dozen."""

SURE = 1.04
"""Poses of a large body in which a slab of it costs, after a soft warp, up to so many times the
least are plausible. In wrong poses it costs 1.05 to 1.25 times as much."""

MARGIN = 6.0
"""Distance, in typical distances of neighbours, up to which cells beside a slab belong to it."""

SAME = 1e-6
"""Distance, in typical distances of neighbours, up to which nuclei of two poses are the same."""

LACKING, MOST_LACKING = 0.01, 0.12
"""Shares of the nuclei that a specimen lacks from which, and up to which, one end of the body may
be cut off. Where more is, its view is searched for."""


def plausible_poses(
    model: Model,
    poses: Sequence[Points],
    hands: Sequence[bool] = (False,),
    most: int | None = None,
) -> list[Points]:
    """Return the specimen in the poses in which it is nearest to the cells, the nearest first.

    Besides the given poses rolls all around are tried, both ways along the body: spurious nuclei
    can hide the symmetry that shows the roll.

    Parameters
    ----------
    model
        the cells.
    poses
        the nuclei (n, 3) in each pose; a single one is taken as it is.
    hands
        handednesses to try: False as it is, True for the mirror image.
    most
        poses to return at most; None for no limit.
    """
    if len(poses) == 1:
        return [poses[0]]
    broad, distance = model.broad(), model.body.spacing
    large = len(model.means) > LARGE
    # Many nuclei show the symmetry of the body, and with it the roll.
    tried = list(poses) if large else [*poses, *_rolled(poses[0])]
    tried = [posed * MIRROR if mirrored else posed for mirrored in hands for posed in tried]
    if large:
        return _by_slab(model, tried, most)
    few = slice(None, None, -(-len(poses[0]) // FEW_WITNESSES))
    witnesses = np.concatenate([posed[few] for posed in tried])
    grid = grid_of(model.means)
    rough = np.log1p(nearest_squares(grid, witnesses) / distance**2)
    rough = rough.reshape(len(tried), -1).mean(axis=1)
    fair = max(np.sort(rough)[: 2 * MATCHED_POSES][-1], FAIR * RIVAL * rough.min())
    tried = [posed for posed, far in zip(tried, rough, strict=True) if far <= fair]
    squares = [nearest_squares(grid, np.array(posed, order="C")) / distance**2 for posed in tried]
    near = np.array([mean_nearness(each) for each in squares])
    count = max(MATCHED_POSES, int((near <= RIVAL * near.min()).sum()))
    count = count if most is None else min(count, most)
    base = broad.heights[0] * min(len(model.means), len(poses[0]))
    rules = pose_rules(broad)
    costs: dict[int, float] = {}
    spare = max(len(poses[0]) - len(model.means), 0)
    seen: list[int] = []
    for at in np.argsort(near, kind="stable")[:count].tolist():
        if any(_same(tried[at], tried[other], model.body.spacing) for other in seen):
            continue
        seen.append(at)
        # A pose that cannot be among the best need not be matched.
        lowest = min(costs.values(), default=np.inf)
        if least_cost(squares[at], spare) <= max(RIVAL * lowest, lowest):
            costs[at] = base + assign(model.means, broad, tried[at], rules)[1]
    lowest = min(costs.values())
    limit = max(RIVAL * lowest, lowest)
    return [tried[at] for at in sorted(costs, key=costs.__getitem__) if costs[at] <= limit]


def _same(first: Points, second: Points, spacing: float) -> bool:
    """Return whether two poses are one: half a turn of a given pose is another given one."""
    return bool(
        np.abs(first[0] - second[0]).max() < SAME * spacing
        and np.abs(first - second).max() < SAME * spacing
    )


def nearest_pose(model: Model, poses: Sequence[Points]) -> Points:
    """Return the specimen in the one of its poses (n, 3) in which it is nearest to the cells."""
    if len(model.means) > LARGE:
        return _by_slab(model, list(poses), 1)[0]
    tree = KDTree(model.means)
    near = [nearness(tree, posed, model.body.spacing) for posed in poses]
    return poses[int(np.argmin(near))]


def _by_slab(model: Model, tried: list[Points], most: int | None) -> list[Points]:
    """Return the poses of a large body in which a slab of `LARGE` nuclei across it fits the cells.

    The slab is the middle of the nuclei along the body, so that its work is that of a small body.
    """
    count = len(tried[0])
    order = np.argsort(tried[0][:, 0], kind="stable")
    slab = order[max(count - LARGE, 0) // 2 :][:LARGE]
    costs = []
    for posed in tried:
        points = posed[slab]
        along, margin = model.means[:, 0], MARGIN * model.body.spacing
        low, high = points[:, 0].min() - margin, points[:, 0].max() + margin
        cells = model.among(np.flatnonzero((along >= low) & (along <= high)))
        unmatched = float(student_costs(np.array([POSE_REACH**2]), np.zeros(1), POSE_FREEDOM)[0])
        cost = unmatched * len(points)
        if len(cells.means):
            broad = cells.broad()
            warped = soft_warp(cells, points, None, cooling=WARP_COOLING[:4], warped=points)
            prices = proved(cells.means, broad, warped, pose_rules(broad))
            cost += float(prices.u.sum() + prices.v.sum())
        costs.append(cost)
    limit = SURE * min(costs)
    return [
        tried[at] for at in np.argsort(costs, kind="stable")[:most].tolist() if costs[at] <= limit
    ]


def without_an_end(model: Model, posed: Points) -> list[Points]:
    """Return where a specimen lies if it lacks nuclei because one end of the body is cut off.

    Its pose (n, 3) is that of a whole body: stretched along x as much as it lacks. Both ends are
    tried, as many cells as there are nuclei are covered; none if it lacks hardly any, or too many.
    """
    presence = model.background.presence
    if not LACKING < 1 - len(posed) / presence.sum() <= MOST_LACKING:
        return []
    order = np.argsort(model.means[:, 0], kind="stable")
    along, shares = model.means[order, 0], np.cumsum(presence[order]) / presence.sum()
    share = len(posed) / presence.sum()
    first, last = np.interp([1 - share, share], shares, along)
    low, high = posed[:, 0].min(), posed[:, 0].max()
    moved = []
    for ends in ((first, high), (low, last)):
        end = posed.copy()
        end[:, 0] = np.interp(posed[:, 0], (low, high), ends)
        moved.append(end)
    return moved


def _rolled(posed: Points) -> list[Points]:
    """Return the specimen rolled about x in steps all around, also end for end; not as it is."""
    rolled = []
    for first, ahead in ((1, posed), (0, posed * [-1.0, -1.0, 1.0])):
        for step in range(first, ROLLS):
            cosine, sine = np.cos(2 * np.pi * step / ROLLS), np.sin(2 * np.pi * step / ROLLS)
            y, z = ahead[:, 1], ahead[:, 2]
            rolled.append(np.stack([ahead[:, 0], cosine * y - sine * z, sine * y + cosine * z], 1))
    return rolled
