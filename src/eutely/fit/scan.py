"""Score maps of a specimen into the frame of an atlas by the density of its cells.

The grid of all directions, rolls, tilts, sizes, mirror images and places along the body.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from eutely.fit.hypothesis import FARTHEST, WITNESS, Hypothesis, Prior, Scale
from eutely.fit.model import Model
from eutely.frame import Points, Posed
from eutely.kernel import kernel
from eutely.pose import strays

ROLLS = 12
"""Rolls that are tried all around."""

STEP = 0.13
"""Logarithm of the ratio of scales that are tried."""

TILT, FINEST_TILT = 0.45, 0.1
"""Angle, in radians, by which the long axis of a round specimen may be off that of the body; that
of a longer one is off by less, and below the second value it is not tilted."""

STARTS = 8
"""Windows of the body that are tried."""

WITNESSES = 64
"""Nuclei by which hypotheses of the grid are scored."""

MOST = 600
"""Nuclei that count, at most: scores of a sample of more are not more exact."""

OUTLIERS = 0.02
"""Share of the nuclei that may be anywhere."""


class Landscape(NamedTuple):
    """The cells of a model as hypotheses see them, in ascending x.

    Attributes
    ----------
    order
        (m,), the cell of each row.
    means, presence
        (m, 3) and (m,), where the cells are and how often they are seen.
    totals, across
        (m + 1,) and (m + 1, 2), cumulated presence, and y and z weighted by it.
    density, low, step
        log-density of cells in cubes of the edge length ``step``, from the corner ``low`` on.
    """

    order: NDArray[np.intp]
    means: NDArray[np.float64]
    presence: NDArray[np.float64]
    totals: NDArray[np.float64]
    across: NDArray[np.float64]
    density: NDArray[np.float64]
    low: NDArray[np.float64]
    step: float


def landscape(model: Model) -> Landscape:
    """Prepare the cells of a model."""
    inside = np.flatnonzero(~strays(model.means))
    order = inside[np.argsort(model.means[inside, 0], kind="stable")]
    means, presence = model.means[order], model.background.presence[order]
    step, margin = 0.5 * model.body.spacing, 4.0 * model.body.spacing
    low = means.min(axis=0) - margin
    shape = np.ceil((np.ptp(means, axis=0) + 2 * margin) / step).astype(int) + 1
    counts = np.zeros(shape)
    np.add.at(counts, tuple(np.floor((means - low) / step).astype(int).T), presence)
    smooth = gaussian_filter(counts, 1.0, truncate=3.0) / step**3
    usual = presence.sum() / len(means) * np.median(smooth[counts > 0])
    return Landscape(
        order,
        means,
        presence,
        np.concatenate([[0.0], np.cumsum(presence)]),
        np.concatenate([np.zeros((1, 2)), np.cumsum(presence[:, None] * means[:, 1:], axis=0)]),
        np.log(smooth + OUTLIERS * usual),
        low,
        step,
    )


def scanned(cells: Landscape, specimen: Posed, prior: Prior, scale: Scale) -> list[Hypothesis]:
    """Return the best places of each map of the grid."""
    points = specimen.unstretched()
    turns = _turns(points, np.concatenate([_sizes(scale), _windows(cells, points, scale)]))
    matrices = _both(np.concatenate([_bodies(specimen), turns]), prior)
    along = points @ matrices[:, 0].T
    witnesses = points[np.argsort(points[:, 0], kind="stable")]
    witnesses = np.ascontiguousarray(witnesses[:: max(len(points) // WITNESSES, 1)])
    logs, shifts = _scan(
        witnesses,
        matrices,
        np.column_stack([along.min(axis=0), along.max(axis=0)]),
        np.log(np.abs(np.linalg.det(matrices))),
        points.mean(axis=0),
        float(len(points)),
        cells.means,
        cells.totals,
        cells.across,
        cells.density,
        cells.low,
        cells.step,
    )
    known = WITNESS * scale.log(matrices)
    mirrored = (np.linalg.det(matrices) < 0).tolist()
    return [
        Hypothesis(matrices[k], shifts[k, j], scale, mirrored[k], float(logs[k, j] + known[k]))
        for k in range(len(matrices))
        for j in range(logs.shape[1])
        if np.isfinite(logs[k, j])
    ]


def _bodies(specimen: Posed) -> NDArray[np.float64]:
    """Return (k, 3, 3), maps by which the specimen is the whole body: its poses, and all rolls."""
    points = specimen.unstretched()
    design = np.column_stack([points, np.ones(len(points))])
    poses = [np.linalg.lstsq(design, posed, rcond=None)[0][:3].T for posed in specimen.poses]
    if len(poses) > 1:
        poses += [turn @ poses[0] for turn in _rolls()]
    return np.array(poses)


def _sizes(scale: Scale) -> NDArray[np.float64]:
    """Return scales in even steps."""
    reach = int(FARTHEST * scale.spread / STEP)
    return np.asarray(np.exp(scale.centre + STEP * np.arange(-reach, reach + 1)))


def _windows(cells: Landscape, points: Points, scale: Scale) -> NDArray[np.float64]:
    """Return scales by which windows of the body hold as many cells as there are nuclei.

    In a long body they are more exact than even steps.
    """
    total, along = cells.totals[-1], cells.means[:, 0]
    begin = np.linspace(0.0, max(total - len(points), 0.0), STARTS)
    low = np.interp(begin, cells.totals[1:], along)
    high = np.interp(begin + len(points), cells.totals[1:], along)
    sizes = np.unique((high - low) / max(float(np.ptp(points[:, 0])), 1e-12))
    least, most = scale.range
    return np.asarray(sizes[(sizes > least) & (sizes < most)])


def _turns(points: Points, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (k, 3, 3), similarities of all directions, rolls, tilts and sizes."""
    spread = points.std(axis=0)
    angle = TILT * min(float(np.sqrt((spread[1:] ** 2).mean()) / max(spread[0], 1e-12)), 1.0)
    turns = np.einsum("aij,bjk->abik", _rolls(), _tilts(angle)).reshape(-1, 3, 3)
    return np.asarray((sizes[:, None, None, None] * turns).reshape(-1, 3, 3))


def _both(matrices: NDArray[np.float64], prior: Prior) -> NDArray[np.float64]:
    """Return the maps in the handednesses to consider."""
    mirror = np.diag([1.0, 1.0, -1.0])
    return np.concatenate([mirror @ matrices if hand else matrices for hand in prior.hands])


def _rolls() -> NDArray[np.float64]:
    """Return (k, 3, 3), rolls about x all around, and the same end for end."""
    angles = 2 * np.pi * np.arange(ROLLS) / ROLLS
    turns = np.zeros((2, ROLLS, 3, 3))
    turns[:, :, 0, 0] = 1.0
    turns[:, :, 1, 1] = turns[:, :, 2, 2] = np.cos(angles)
    turns[:, :, 2, 1] = np.sin(angles)
    turns[:, :, 1, 2] = -np.sin(angles)
    turns[1] = turns[1] @ np.diag([-1.0, -1.0, 1.0])
    return turns.reshape(-1, 3, 3)


def _tilts(angle: float) -> NDArray[np.float64]:
    """Return (1, 3, 3) or (5, 3, 3), turns of the long axis by an angle to each side, and none."""
    if angle < FINEST_TILT:
        return np.eye(3)[None]
    cosine, sine = np.cos(angle), np.sin(angle)
    about_y = np.array([[cosine, 0, sine], [0, 1.0, 0], [-sine, 0, cosine]])
    about_z = np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1.0]])
    return np.array([np.eye(3), about_y, about_y.T, about_z, about_z.T])


@kernel
def _scan(
    points: Any,
    matrices: Any,
    ends: Any,
    growths: Any,
    centre: Any,
    count: float,
    means: Any,
    totals: Any,
    across: Any,
    density: Any,
    low: Any,
    step: float,
) -> Any:
    """Return the best two places of each map: log-likelihoods (k, 2) and shifts (k, 2, 3).

    Parameters
    ----------
    points
        (w, 3), some of the nuclei.
    matrices, ends, growths
        (k, 3, 3), (k, 2) where the specimen begins and ends along x by them, and (k,) logarithms
        of the volumes by which they grow.
    centre, count
        (3,) and number of all nuclei.
    means, totals, across, density, low, step
        see `Landscape`.
    """
    kinds, w, m = len(matrices), len(points), len(means)
    most = min(count, MOST)
    a, b, c = density.shape
    outside = density.min()
    logs = np.full((kinds, 2), -np.inf)
    shifts = np.zeros((kinds, 2, 3))
    turned = np.empty((w, 3))
    first, last = means[0, 0], means[m - 1, 0]
    spacing = 2 * step
    for k in range(kinds):
        matrix = matrices[k]
        for j in range(w):
            for i in range(3):
                turned[j, i] = (
                    matrix[i, 0] * points[j, 0]
                    + matrix[i, 1] * points[j, 1]
                    + matrix[i, 2] * points[j, 2]
                )
        middle_y = matrix[1, 0] * centre[0] + matrix[1, 1] * centre[1] + matrix[1, 2] * centre[2]
        middle_z = matrix[2, 0] * centre[0] + matrix[2, 1] * centre[1] + matrix[2, 2] * centre[2]
        begin, end = first - ends[k, 0], last - ends[k, 1]
        if end - begin < 3 * spacing:
            length = ends[k, 1] - ends[k, 0]
            middle = 0.5 * (begin + end)
            reach = max(0.25 * min(length, last - first), 3 * spacing)
            begin, end = middle - reach, middle + reach
        x = begin
        while x <= end:
            lowest = np.searchsorted(means[:, 0], ends[k, 0] + x)
            highest = np.searchsorted(means[:, 0], ends[k, 1] + x)
            inside = max(totals[highest] - totals[lowest], 1e-3)
            y = (across[highest, 0] - across[lowest, 0]) / inside - middle_y
            z = (across[highest, 1] - across[lowest, 1]) / inside - middle_z
            total = 0.0
            for j in range(w):
                p = int(np.floor((turned[j, 0] + x - low[0]) / step))
                q = int(np.floor((turned[j, 1] + y - low[1]) / step))
                r = int(np.floor((turned[j, 2] + z - low[2]) / step))
                if 0 <= p < a and 0 <= q < b and 0 <= r < c:
                    total += density[p, q, r]
                else:
                    total += outside
            value = most * (total / w + np.log(min(count / inside, 1.0)) + growths[k])
            # The second best place is not beside the best.
            if value > logs[k, 0]:
                if abs(shifts[k, 0, 0] - x) >= 3 * spacing:
                    logs[k, 1] = logs[k, 0]
                    shifts[k, 1] = shifts[k, 0]
                logs[k, 0] = value
                shifts[k, 0, 0], shifts[k, 0, 1], shifts[k, 0, 2] = x, y, z
            elif value > logs[k, 1] and abs(shifts[k, 0, 0] - x) >= 3 * spacing:
                logs[k, 1] = value
                shifts[k, 1, 0], shifts[k, 1, 1], shifts[k, 1, 2] = x, y, z
            x += spacing
    return logs, shifts
