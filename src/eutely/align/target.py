"""The specimens to start from: those that resemble all others most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.execute import Executor
from eutely.frame import Frame, Points
from eutely.geometry import nearness
from eutely.solver.assignment import assign
from eutely.solver.softassign import Centres, Rules, centres_of, student_costs

POSE_FREEDOM = 20.0
"""Degrees of freedom when poses are compared: a few cells may be anywhere."""

POSE_REACH = 4.0
"""Distance, in typical distances of neighbours, beyond which nuclei count as unmatched when poses
are compared: how far off it is says nothing about a pose."""

ALL_MATCHED = 1e4
"""c0 far above all other costs: whatever can be matched is matched."""

OTHERS = 8
"""Specimens that each candidate for a target is compared with."""

USUAL_COUNT = 0.1
"""Share of the median number of nuclei by which the number of a usual specimen may differ."""

NEARLY_ALL, FEWEST_COMPLETE = 0.98, 6
"""Share of the nuclei of the most complete specimen that a target has, where some show parts (what
a target lacks has to be found from nuclei that are left over); and how many such specimens make
others needless."""


def usual_specimens(frame: Frame) -> NDArray[np.intp]:
    """Return the specimens with about the usual number of nuclei, all where no number is usual.

    Without that, a cohort of very different specimens would have no jury and no target. Usual is
    what those have that show the whole body; where none does, what the most complete has. Where
    some show parts and there are enough of the most complete ones, these.
    """
    numbers = np.array([len(posed) for posed in frame.specimens])
    whole = ~np.array(frame.parts or [False] * len(frame))
    complete = np.flatnonzero(numbers >= NEARLY_ALL * numbers.max())
    if not whole.all() and len(complete) >= FEWEST_COMPLETE:
        return complete
    middle = np.median(numbers[whole]) if whole.any() else numbers.max()
    usual = np.flatnonzero(np.abs(numbers - middle) <= USUAL_COUNT * middle)
    return usual if len(usual) else np.arange(len(numbers))


def pose_rules(broad: Centres, pins: NDArray[np.int32] | None = None) -> Rules:
    """Return how poses are compared, by centres as wide as neighbours are apart."""
    c0 = student_costs(np.full(len(broad.heights), POSE_REACH**2), broad.heights, POSE_FREEDOM)
    return Rules(POSE_FREEDOM, c0, pins)


def least_cost(squares: NDArray[np.float64], spare: int) -> float:
    """Return a bound of the cost by which a pose compares: every nucleus with its nearest cell.

    Parameters
    ----------
    squares
        squared distances of nuclei, all or some, to the nearest cell, in typical distances of
        neighbours.
    spare
        number of nuclei that must stay unmatched, since there are fewer cells.
    """
    nearest = np.sort(np.minimum(squares, POSE_REACH**2))[: max(len(squares) - spare, 0)]
    return float(student_costs(nearest, np.zeros(len(nearest)), POSE_FREEDOM).sum())


def choose_targets(frame: Frame, count: int, executor: Executor, *, seed: int = 0) -> list[int]:
    """Return the best of `rank_targets`, and others drawn from its better half: ``count`` in all.

    Parameters
    ----------
    frame, executor
        see `rank_targets`.
    count
        how many; fewer if there are no more.
    seed
        of the sample that targets are compared with, and of the draw among the good ones.
    """
    first, *rest = rank_targets(frame, executor, seed=seed)
    good = rest[: (len(rest) + 1) // 2]
    others = np.random.default_rng(seed).permutation(np.array(good, dtype=np.int64))
    return [first, *others[: count - 1].tolist()]


def rank_targets(frame: Frame, executor: Executor, *, seed: int = 0) -> list[int]:
    """Return the specimens that may be targets; those that others match at the lowest cost first.

    Among `usual_specimens` each is matched with up to 8 others, nucleus by nucleus, in whichever
    of their poses is nearest.

    Parameters
    ----------
    frame
        specimens in their plausible poses.
    executor, seed
        where to run, and which sample.
    """
    poses = frame.poses
    candidates = usual_specimens(frame)
    if len(candidates) == 1:
        return [int(candidates[0])]
    sample = np.random.default_rng(seed).permutation(candidates)[:OTHERS]
    compared = [poses[i] for i in sample.tolist()]
    items = [poses[i][0] for i in candidates.tolist()]
    table = np.array(list(executor.map(_costs, items, shared=(compared, frame.body.spacing))))
    # A specimen in the sample fits itself perfectly; that must not count for it.
    table[candidates[:, None] == sample[None]] = np.nan
    relative = table - np.nanmedian(table, axis=0)
    scores = [float(np.nanmean(row)) if np.isfinite(row).any() else np.inf for row in relative]
    return [int(candidates[at]) for at in np.argsort(scores, kind="stable")]


def _costs(compared: Sequence[Sequence[Points]], spacing: float, first: Points) -> list[float]:
    """Return the cost per match of ``first`` with each of the others, in its nearest pose."""
    centres = centres_of(np.broadcast_to(spacing**2 * np.eye(3), (len(first), 3, 3)))
    tree = KDTree(first)
    costs = []
    for poses in compared:
        near = [nearness(tree, posed, spacing) for posed in poses]
        nearest = poses[int(np.argmin(near))]
        _, cost = assign(first, centres, nearest, pose_rules(centres))
        costs.append(cost / max(min(len(first), len(poses[0])), 1))
    return costs
