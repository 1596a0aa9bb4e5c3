"""Allowed assignments: those near enough in position and size, or among the cheapest."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import longer, transpose
from eutely.costs.grid import grid_of, shell
from eutely.kernel import bare, kernel


class Gaussians(NamedTuple):
    """Expected positions and sizes of the nuclei of the left side (equations 2 and 3).

    Attributes
    ----------
    means
        (n, 3) float64, expected positions.
    precisions
        (n, 3, 3) float64, inverse covariances, or (1, 3, 3) if all share it.
    radii
        (n, 3) float64, expected semi-axes; NaN where unknown.
    radius_precisions
        (n, 3, 3) or (1, 3, 3) float64.
    """

    means: NDArray[np.float64]
    precisions: NDArray[np.float64]
    radii: NDArray[np.float64]
    radius_precisions: NDArray[np.float64]


class Limits(NamedTuple):
    """Weights and thresholds of the search for candidates, in the form that kernels take.

    Attributes
    ----------
    cen, rad
        weights of position and size in the cost.
    nu
        degrees of freedom of the positions' Student-t; 0 for a Gaussian.
    tau_centroid, tau_radius
        largest squared Mahalanobis distances allowed.
    k_min
        number of cheapest candidates always kept for every nucleus of either side.
    """

    cen: float
    rad: float
    nu: float
    tau_centroid: float
    tau_radius: float
    k_min: int


@bare
def robust(square: float, nu: float) -> float:
    """Return a squared distance, or the robust cost that grows with its logarithm.

    -2 log of the density of a Student-t with ``nu`` degrees of freedom in three dimensions is
    (nu + 3) log(1 + square / nu), up to a constant; ``nu`` = 0 stands for the Gaussian.
    """
    return square if nu == 0.0 else (nu + 3.0) * np.log1p(square / nu)


@bare
def _square_of(cost: float, nu: float) -> float:
    """Return the squared distance whose `robust` cost is ``cost``, rounded up."""
    square = cost if nu == 0.0 else nu * np.expm1(cost / (nu + 3.0))
    return square * (1.0 + 1e-12)


@bare
def squares(g: Any, i: Any, point: Any, radii: Any) -> Any:
    """Return the squared Mahalanobis distances of position and size; 0 for unknown sizes."""
    p = g.precisions[min(i, len(g.precisions) - 1)]
    x, y, z = point[0] - g.means[i, 0], point[1] - g.means[i, 1], point[2] - g.means[i, 2]
    cen = (
        p[0, 0] * x * x
        + p[1, 1] * y * y
        + p[2, 2] * z * z
        + 2.0 * (p[0, 1] * x * y + p[0, 2] * x * z + p[1, 2] * y * z)
    )
    p = g.radius_precisions[min(i, len(g.radius_precisions) - 1)]
    x, y, z = radii[0] - g.radii[i, 0], radii[1] - g.radii[i, 1], radii[2] - g.radii[i, 2]
    rad = (
        p[0, 0] * x * x
        + p[1, 1] * y * y
        + p[2, 2] * z * z
        + 2.0 * (p[0, 1] * x * y + p[0, 2] * x * z + p[1, 2] * y * z)
    )
    return cen, rad if rad == rad else 0.0


@kernel
def _search(
    g: Any, points: Any, radii: Any, grid: Any, centres: Any, floors: Any, by_left: bool, lim: Any
) -> Any:
    """Return, for every nucleus of one side, its candidates on the other side.

    ``centres`` and ``grid`` hold the scaled positions of this and of the other side; floors[i]
    times a squared distance is a lower bound of the squared Mahalanobis distance. By the left side:
    candidates within the thresholds and the cheapest; by the right side: only the cheapest.

    Returns starts, ends and costs of lists: the cheapest, in that order, then all others.
    """
    n = len(centres)
    starts = np.zeros(n + 1, dtype=np.int32)
    ends = np.empty(n * (lim.k_min + 8) + 8, dtype=np.int32)
    costs = np.empty(len(ends))
    inside_shell = np.empty(len(grid.points), dtype=np.int32)
    near = np.empty(len(grid.points), dtype=np.int32)
    near_costs = np.empty(len(grid.points))
    k_min = min(lim.k_min, len(grid.points))
    best = np.empty(k_min + 1, dtype=np.int32)
    best_costs = np.empty(k_min + 1)
    size = 0
    for i in range(n):
        held, inside, radius = 0, 0, 0
        bar = lim.tau_centroid if by_left else 0.0
        floor = floors[min(i, len(floors) - 1)]
        while True:
            count, reach = shell(grid, centres[i], radius, inside_shell)
            for k in range(count):
                j = inside_shell[k]
                square = (
                    (centres[i, 0] - grid.points[j, 0]) ** 2
                    + (centres[i, 1] - grid.points[j, 1]) ** 2
                    + (centres[i, 2] - grid.points[j, 2]) ** 2
                ) * floor
                if held == k_min and square > bar:
                    continue
                left, right = (i, np.int64(j)) if by_left else (np.int64(j), i)
                cen, rad = squares(g, left, points[right], radii[right])
                cost = lim.cen * robust(cen, lim.nu) + lim.rad * rad
                if by_left and cen <= lim.tau_centroid and rad <= lim.tau_radius:
                    near[inside], near_costs[inside] = j, cost
                    inside += 1
                if k_min and (held < k_min or cost < best_costs[held - 1]):
                    at = min(held, k_min - 1)
                    held = at + 1
                    while at > 0 and best_costs[at - 1] > cost:
                        best_costs[at], best[at] = best_costs[at - 1], best[at - 1]
                        at -= 1
                    best_costs[at], best[at] = cost, j
                    if held == k_min:
                        # Squared distance beyond which no point can be a candidate.
                        bar = np.inf
                        if lim.cen > 0.0:
                            bar = _square_of(best_costs[held - 1] / lim.cen, lim.nu)
                        if by_left:
                            bar = max(bar, lim.tau_centroid)
            if reach == np.inf:
                break
            if held == k_min and floor * reach * reach > bar:
                break
            radius += 1
        worst = best_costs[held - 1] if held else -np.inf
        if size + held + inside > len(ends):
            room = 2 * (size + held + inside)
            ends, costs = longer(ends, size, room), longer(costs, size, room)
        for k in range(held):
            ends[size], costs[size] = best[k], best_costs[k]
            size += 1
        for k in range(inside):
            listed = False
            if near_costs[k] <= worst:
                for at in range(held):
                    if best[at] == near[k]:
                        listed = True
            if not listed:
                ends[size], costs[size] = near[k], near_costs[k]
                size += 1
        starts[i + 1] = size
    return starts, ends[:size], costs[:size]


@kernel
def union(starts: Any, ends: Any, costs: Any, back_starts: Any, backs: Any, back_costs: Any) -> Any:
    """Return starts, labels, owners, costs of the union of lists by left and by right node."""
    n = len(starts) - 1
    total = len(ends) + len(backs)
    sizes = np.zeros(n + 1, dtype=np.int32)
    for k in range(len(backs)):
        sizes[backs[k] + 1] += 1
    for i in range(n):
        sizes[i + 1] += sizes[i]
    late = np.empty(len(backs), dtype=np.int32)
    late_costs = np.empty(len(backs))
    fill = np.empty(n + 1, dtype=np.int32)
    for i in range(n + 1):
        fill[i] = sizes[i]
    for s in range(len(back_starts) - 1):
        for k in range(back_starts[s], back_starts[s + 1]):
            i = backs[k]
            late[fill[i]], late_costs[fill[i]] = s, back_costs[k]
            fill[i] += 1
    out = np.zeros(n + 1, dtype=np.int32)
    labels = np.empty(total, dtype=np.int32)
    owners = np.empty(total, dtype=np.int32)
    linear = np.empty(total)
    size = 0
    for i in range(n):
        first = size
        for part in range(2):
            begin = starts[i] if part == 0 else sizes[i]
            end = starts[i + 1] if part == 0 else sizes[i + 1]
            for k in range(begin, end):
                s = ends[k] if part == 0 else late[k]
                cost = costs[k] if part == 0 else late_costs[k]
                at = size
                while at > first and labels[at - 1] >= s:
                    at -= 1
                if at < size and labels[at] == s:
                    continue
                for move in range(size, at, -1):
                    labels[move], linear[move] = labels[move - 1], linear[move - 1]
                labels[at], linear[at], owners[size] = s, cost, i
                size += 1
        out[i + 1] = size
    return out, labels[:size], owners[:size], linear[:size]


class Candidates(NamedTuple):
    """Allowed assignments; for the fields see `eutely.arrays.Arrays`."""

    starts: NDArray[np.int32]
    labels: NDArray[np.int32]
    owners: NDArray[np.int32]
    linear: NDArray[np.float64]
    column_starts: NDArray[np.int32]
    column_items: NDArray[np.int32]


def candidates(
    expected: Gaussians,
    points: NDArray[np.float64],
    radii: NDArray[np.float64],
    limits: Limits,
) -> Candidates:
    """Return the allowed assignments and their costs of position and size.

    An assignment is allowed if both squared distances are within their thresholds, or if it is
    among the ``k_min`` cheapest of its left or of its right nucleus.

    Parameters
    ----------
    expected
        left side.
    points, radii
        (m, 3) float64, right side; a radius of NaN costs nothing.
    limits
        weights and thresholds.
    """
    n, m = len(expected.means), len(points)
    if n == 0 or m == 0:
        empty = np.empty(0, dtype=np.int32)
        zeros = np.zeros(n + 1, dtype=np.int32), np.zeros(m + 1, dtype=np.int32)
        return Candidates(zeros[0], empty, empty, np.empty(0), zeros[1], empty)
    mine, theirs = both_searches(expected, points, radii, limits)
    starts, labels, owners, linear = union(*mine, *theirs)
    _, column_starts, column_items = transpose(starts, labels, m)
    return Candidates(starts, labels, owners, linear, column_starts, column_items)


def both_searches(
    expected: Gaussians,
    points: NDArray[np.float64],
    radii: NDArray[np.float64],
    limits: Limits,
) -> tuple[Any, Any]:
    """Return the candidates of each left and of each right nucleus, neither side empty.

    Both are starts, ends and costs of lists; the ``k_min`` cheapest come first, in that order.
    Parameters: see `candidates`.
    """
    # Scaled by the typical covariance, the search region is nearly a sphere; the shape of each
    # nucleus' covariance enters by the smallest eigenvalue of its precision.
    scale = np.sqrt(np.einsum("nkk->k", expected.precisions) / len(expected.precisions))
    left = np.ascontiguousarray(expected.means * scale)
    right = np.ascontiguousarray(points * scale)
    floors = np.linalg.eigvalsh(expected.precisions / np.outer(scale, scale))[:, 0].clip(0.0)
    lowest = floors.min(keepdims=True)
    mine = _search(expected, points, radii, grid_of(right), left, floors, True, limits)
    theirs = _search(expected, points, radii, grid_of(left), right, lowest, False, limits)
    return mine, theirs
