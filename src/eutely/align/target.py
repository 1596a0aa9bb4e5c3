"""The specimens to start from: those that resemble all others most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.execute import Executor
from eutely.fit.place import POSE_FREEDOM, UNMATCHED
from eutely.solver.meanfield import assign
from eutely.solver.softassign import centres_of

OTHERS = 8
"""Specimens that each one is compared with."""


def choose_targets(
    poses: Sequence[Sequence[NDArray[np.float64]]],
    count: int,
    *,
    spacing: float,
    executor: Executor,
    seed: int = 0,
) -> list[int]:
    """Return the best of `rank_targets`, and others drawn from its better half: ``count`` in all.

    Parameters
    ----------
    poses, spacing, executor
        as of `rank_targets`.
    count
        how many; fewer if there are no more.
    seed
        of the sample that targets are compared with, and which of the good ones are taken.
    """
    first, *rest = rank_targets(poses, spacing=spacing, executor=executor, seed=seed)
    good = rest[: (len(rest) + 1) // 2]
    others = np.random.default_rng(seed).permutation(np.array(good, dtype=np.int64))
    return [first, *others[: count - 1].tolist()]


def rank_targets(
    poses: Sequence[Sequence[NDArray[np.float64]]],
    *,
    spacing: float,
    executor: Executor,
    seed: int = 0,
) -> list[int]:
    """Return the specimens that may be targets; those that others match at the lowest cost first.

    Among specimens with about the usual number of nuclei (a tenth more or less) each is matched
    with up to 8 others, nucleus by nucleus, in whichever of their poses is nearest.

    Parameters
    ----------
    poses
        for each specimen its nuclei (n, 3) in each plausible pose, all of one size.
    spacing
        typical distance of neighbouring nuclei.
    executor, seed
        where to run, and which sample.
    """
    counts = np.array([len(one[0]) for one in poses])
    usual = np.flatnonzero(np.abs(counts - np.median(counts)) <= 0.1 * np.median(counts))
    candidates = usual if len(usual) else np.arange(len(poses))
    sample = np.random.default_rng(seed).permutation(candidates)[:OTHERS]
    compared = [poses[i] for i in sample.tolist()]
    items = [poses[i][0] for i in candidates.tolist()]
    table = np.array(list(executor.map(_costs, items, shared=(compared, spacing))))
    # A specimen in the sample fits itself perfectly; that must not count for it.
    table[candidates[:, None] == sample[None]] = np.nan
    own = table - np.nanmedian(table, axis=0)
    scores = [float(np.nanmean(row)) if np.isfinite(row).any() else np.inf for row in own]
    return [int(candidates[at]) for at in np.argsort(scores, kind="stable")]


def _costs(
    compared: Sequence[Sequence[NDArray[np.float64]]], spacing: float, first: NDArray[np.float64]
) -> list[float]:
    """Return the cost per match of ``first`` with each of the others, in its nearest pose."""
    centres = centres_of(np.broadcast_to(spacing**2 * np.eye(3), (len(first), 3, 3)))
    tree = KDTree(first)
    found = []
    for poses in compared:
        # Finding the pose by nearest neighbours takes a tenth of the time of matching.
        near = [np.log1p((tree.query(posed)[0] / spacing) ** 2).mean() for posed in poses]
        _, cost = assign(first, centres, poses[int(np.argmin(near))], POSE_FREEDOM, UNMATCHED)
        found.append(cost / max(min(len(first), len(poses[0])), 1))
    return found
