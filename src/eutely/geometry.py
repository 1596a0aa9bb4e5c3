"""Small facts about point clouds that many rooms need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

AROUND = 10
"""Neighbours of a cell that show whether it is in view."""

INSIDE = 0.75
"""Quantile of the share of a cell's neighbours that are matched, well inside the view."""

OUT, IN = 0.15, 0.8
"""Shares, relative to that of the inside, up to which a cell is out of view, and from which it is
in view."""

WHOLE = 0.9
"""Share of the cells in view that are matched from which all are expected."""

UNSEEN = 0.02
"""Lowest probability that a cell is in view."""


def spacing(points: NDArray[np.float64]) -> float:
    """Return the median distance of points (n, 3) to their nearest neighbour; 1 for one point."""
    if len(points) < 2:
        return 1.0
    return float(np.median(neighbour_distances(points)))


def median_places(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (m, d), where most of N specimens have each cell: (N, m, d), NaN left out.

    The values of `numpy.nanmedian`, which takes ten times as long.
    """
    ascending = np.sort(np.moveaxis(places, 0, -1), axis=-1)  # NaN is sorted to the end
    counts = np.isfinite(ascending).sum(axis=-1, keepdims=True)
    middle = [np.maximum(at, 0) // 2 for at in (counts - 1, counts)]
    low, high = (np.take_along_axis(ascending, at, axis=-1)[..., 0] for at in middle)
    return np.asarray((low + high) / 2)


def neighbour_distances(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n,), the distance of each point (n, 3) to its nearest neighbour; n >= 2."""
    distances, _ = KDTree(points).query(points, [2])
    return np.asarray(distances, dtype=np.float64)[:, 0]


def nearness(tree: KDTree, points: NDArray[np.float64], spacing: float) -> float:
    """Return how far points (n, 3) lie from those of ``tree``, in spacings; lower is nearer.

    The mean of log(1 + distance^2): a few points far off do not decide. Comparing poses this way
    takes a tenth of the time of matching them.
    """
    return mean_nearness(np.asarray((tree.query(points)[0] / spacing) ** 2))


def mean_nearness(squares: NDArray[np.float64]) -> float:
    """Return the nearness of points at squared distances (n,) from the nearest, in spacings."""
    return float(np.log1p(squares).mean())


def in_view(
    means: NDArray[np.float64],
    presence: NDArray[np.float64],
    nuclei: NDArray[np.int32],
    count: int,
) -> NDArray[np.float64]:
    """Return (m,), how probably a specimen shows each cell, by how many around it are matched.

    Parameters
    ----------
    means
        (m, 3), all cells.
    presence
        (m,), how often a specimen has each cell that it shows.
    nuclei
        (m,), the nucleus of each cell, or -1.
    count
        nuclei of the specimen; about as many cells are in view.
    """
    matched = (nuclei >= 0).astype(np.float64)
    if not matched.any() or len(means) < 3:
        return np.full(len(means), min(count / presence.sum(), 1.0))
    most = min(AROUND + 1, len(means))
    _, near = KDTree(means).query(means, [*range(2, most + 1)])
    usual = matched.sum() / presence.sum()
    share = (matched[near].sum(axis=1) + usual) / (presence[near].sum(axis=1) + 1.0)
    inside = float(np.quantile(share[nuclei >= 0], INSIDE))
    within = np.clip((share / inside - OUT) / (IN - OUT), 0.0, 1.0)
    seen = min(count / float((presence * within).sum()), 1.0)
    return np.asarray(np.maximum((1.0 if seen > WHOLE else seen) * within, UNSEEN))


def between_ends(
    means: NDArray[np.float64], points: NDArray[np.float64], spacing: float
) -> NDArray[np.float64]:
    """Return (m,), how probably cells at ``means`` (m, 3) lie between the ends of points (n, 3).

    Along x; a cell is half a spacing off its mean at most, about.
    """
    along, ends = means[:, 0], points[:, 0]
    inside = np.minimum(along - ends.min(), ends.max() - along)
    return np.asarray(np.clip(0.5 + inside / spacing, UNSEEN, 1.0))


def folds(count: int, parts: int) -> NDArray[np.int64]:
    """Return (count,), the part of each of ``count`` items: 0, 1, .., parts - 1, 0, 1, .."""
    return np.arange(count) % parts
