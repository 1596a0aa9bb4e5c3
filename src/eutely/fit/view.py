"""The view of a specimen: how it lies, how large it is, and which part of an atlas it shows.

Nuclei are a sample of the cells in view. A pose is a map of the specimen into the frame of the
atlas; its likelihood is that of a mixture of all cells in view, each as likely to be seen as there
are nuclei per cell. Cells out of view count for nothing. So a dense part of the body does not
attract every specimen, and no size must be known beforehand.

First a grid of rolls, mirror images, scales and places along the body is scored by the density of
cells; then the best poses of the grid are fitted by expectation-maximisation, features included, at
smaller and smaller widths of the mixture, and the best of these are returned.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from eutely import geometry
from eutely.features import rank_costs
from eutely.fit.model import Model
from eutely.frame import Points
from eutely.kernel import kernel

ROLLS = 12
"""Rolls that are tried all around."""

KNOWN_SCALES = (0.88, 1.0, 1.14)
"""Scales that are tried where specimen and atlas have one unit."""

SCALES = tuple(np.exp(np.linspace(-np.log(2.2), np.log(2.2), 13)).tolist())
"""Scales that are tried where nothing is known."""

SCALE_SPREAD = 0.15
"""Standard deviation of the logarithm of the scale where the unit is known."""

WITNESSES = 100
"""Nuclei by which poses of the grid are scored."""

WIDTHS = ((0.8, 3), (0.6, 3), (0.45, 4))
"""Widths of the mixture in typical distances of neighbours, and fits at each."""

TILT = np.radians(15.0)
"""Angle by which the long axis of a small part may be off that of the body."""

KEPT, MANY = (32, 12, 4), 200
"""Poses of each handedness that are kept of the grid, and after the fits of each width; half as
many for specimens of so many nuclei and of known scale, which are more informative."""

DOUBT, DOUBTFUL = 0.1, 10.0
"""Log-likelihood by which poses may be behind the best, per nucleus and in total; three times as
much where no pose fitted before."""

THOROUGH = (1500, 36, 12)
"""Poses that are kept where no pose of few nuclei fitted before."""

REACH = 3.5
"""Distance, in standard deviations, beyond which a cell does not explain a nucleus."""

OUTLIERS = 0.02
"""Share of the nuclei that may be anywhere."""

STRETCH = 1.6
"""Largest factor by which a fit may change lengths along any axis, besides the scale."""

RIDGE = 0.05
"""Weight of the similarity against which shear is fitted."""


class Unposed(NamedTuple):
    """A specimen in its own size, straight, the long axis along x.

    Attributes
    ----------
    points
        (n, 3), its nuclei in its own unit.
    scale
        of that unit in the atlas's; None if it is not known.
    whole
        whether it has about the shape of the whole body, and the size if that is known.
    hands
        handednesses to consider: False as it is, True for its mirror image.
    """

    points: Points
    scale: float | None = None
    whole: bool = True
    hands: tuple[bool, ...] = (False, True)


class View(NamedTuple):
    """A map into the frame of an atlas, ``matrix @ x + shift``, and its log-likelihood."""

    matrix: NDArray[np.float64]
    shift: NDArray[np.float64]
    score: float

    def __call__(self, points: Points) -> Points:
        """Return points (n, 3) in the frame of the atlas."""
        return points @ self.matrix.T + self.shift


def search(model: Model, unposed: Unposed, scores: Points, *, thorough: bool = False) -> list[View]:
    """Return the likeliest views of a specimen, the best first.

    Parameters
    ----------
    model
        the cells of an atlas.
    unposed
        the specimen.
    scores
        (n, d), features of its nuclei; d may be 0.
    thorough
        keep more poses; for few nuclei also try twice as many rolls, a tilted long axis, and
        several places for each.
    """
    points = unposed.points
    views: list[View] = []
    many = len(points) >= MANY
    counts: tuple[int, ...] = KEPT if many else THOROUGH
    if not thorough:
        counts = tuple(n // 2 for n in KEPT) if many and unposed.scale is not None else KEPT
    for hand in unposed.hands:
        tried = _grid(model, unposed, hand=hand, thorough=thorough and not many)
        for (width, fits), kept in zip(WIDTHS, counts, strict=True):
            tried = [
                _fitted(model, unposed, scores, view, (width, fits))
                for view in _best(model, points, tried, kept)
            ]
        views += tried
    best = max(view.score for view in views)
    doubt = (3 * DOUBT if thorough else DOUBT) + DOUBTFUL / len(points)
    close = [view for view in views if view.score > best - doubt]
    return sorted(close, key=lambda view: -view.score)


def _best(model: Model, points: Points, views: list[View], most: int) -> list[View]:
    """Return the likeliest views that differ from each other."""
    chosen: list[View] = []
    places = np.empty((min(most, len(views)), *points.shape))
    for view in sorted(views, key=lambda view: -view.score):
        here = view(points)
        apart = np.abs(places[: len(chosen)] - here).mean(axis=(1, 2))
        if (apart > 0.5 * model.body.spacing).all():
            places[len(chosen)] = here
            chosen.append(view)
        if len(chosen) == most:
            break
    return chosen


def _grid(model: Model, unposed: Unposed, *, hand: bool, thorough: bool) -> list[View]:
    """Return the best places of each roll, direction and scale."""
    points, scale = unposed.points, unposed.scale
    means, spacing, presence = model.means, model.body.spacing, model.background.presence
    density, low = _density(means, presence, spacing)
    order = np.argsort(means[:, 0], kind="stable")
    along = means[order, 0]
    totals = np.concatenate([[0.0], np.cumsum(presence[order])])
    across = np.concatenate(
        [np.zeros((1, 2)), np.cumsum(presence[order, None] * means[order, 1:], axis=0)]
    )
    witnesses = points[np.argsort(points[:, 0], kind="stable")]
    witnesses = np.ascontiguousarray(witnesses[:: max(len(points) // WITNESSES, 1)])
    sizes = list(SCALES) if scale is None else [scale * factor for factor in KNOWN_SCALES]
    if thorough and scale is not None:
        sizes += [0.76 * scale, scale / 0.76]
    views = []
    rolls, places = (2 * ROLLS, 4) if thorough else (ROLLS, 1)
    tilts = _tilts() if thorough else [np.eye(3)]
    for back, roll, size, tilt in product((False, True), range(rolls), sizes, tilts):
        turn = _turn(2 * np.pi * roll / rolls, back=back, mirror=hand) @ tilt
        extent = size * (points @ turn[0])
        shifts = np.arange(along[0] - extent.min(), along[-1] - extent.max(), spacing)
        if len(shifts) < 3:
            middle = 0.5 * (along[0] + along[-1] - extent.min() - extent.max())
            reach = max(0.25 * np.ptp(extent), 3 * spacing)
            shifts = middle + np.arange(-reach, reach, spacing)
        first = np.searchsorted(along, extent.min() + shifts)
        last = np.searchsorted(along, extent.max() + shifts)
        inside = np.maximum(totals[last] - totals[first], 1e-3)
        centre = (across[last] - across[first]) / inside[:, None]
        moves = np.column_stack([shifts, centre - size * (points @ turn[1:].T).mean(axis=0)])
        sums = _grid_sums(witnesses @ (size * turn).T, moves, density, low, 0.5 * spacing)
        share = np.minimum(len(points) / inside, 1.0)
        logs = sums / len(witnesses) + np.log(share) + 3 * np.log(size)
        if scale is not None:
            logs -= 0.5 * (np.log(size / scale) / SCALE_SPREAD) ** 2 / len(points)
        for _ in range(places):
            at = int(np.argmax(logs))
            views.append(View(size * turn, moves[at], float(logs[at])))
            logs[np.abs(shifts - shifts[at]) < 3 * spacing] = -np.inf
    return views


def _turn(angle: float, *, back: bool, mirror: bool) -> NDArray[np.float64]:
    """Return the matrix of a roll about x, end for end or not, mirrored or not."""
    cosine, sine = np.cos(angle), np.sin(angle)
    roll = np.array([[1.0, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
    roll = roll @ np.diag([-1.0, -1.0, 1.0]) if back else roll
    return roll @ np.diag([1.0, 1.0, -1.0]) if mirror else roll


def _tilts() -> list[NDArray[np.float64]]:
    """Return matrices that turn the long axis of a specimen a little to each side, and none."""
    cosine, sine = np.cos(TILT), np.sin(TILT)
    about_y = np.array([[cosine, 0, sine], [0, 1.0, 0], [-sine, 0, cosine]])
    about_z = np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1.0]])
    return [np.eye(3), about_y, about_y.T, about_z, about_z.T]


def _density(
    means: Points, presence: NDArray[np.float64], spacing: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logarithm of the smoothed density of cells on a grid, and its lowest corner."""
    step, margin = 0.5 * spacing, 4.0 * spacing
    low = means.min(axis=0) - margin
    shape = np.ceil((np.ptp(means, axis=0) + 2 * margin) / step).astype(int) + 1
    counts = np.zeros(shape)
    np.add.at(counts, tuple(np.floor((means - low) / step).astype(int).T), presence)
    smooth = gaussian_filter(counts, 1.0, truncate=3.0) / step**3
    usual = presence.sum() / len(means) * np.median(smooth[counts > 0])
    return np.log(smooth + OUTLIERS * usual), low


def _fitted(
    model: Model, unposed: Unposed, scores: Points, view: View, step: tuple[float, int]
) -> View:
    """Fit a view by expectation-maximisation, at one width of the mixture and so many times."""
    points = unposed.points
    variance = (step[0] * model.body.spacing) ** 2
    extra = None
    if scores.size and model.features.size:
        extra = rank_costs(model.features, scores, _window(model, view(points)))
    for _ in range(step[1]):
        targets, weights, _ = _mixed(model, view(points), variance, extra)
        view = _refitted(points, targets, weights, view, unposed.scale)
    _, _, total = _mixed(model, view(points), variance, extra)
    score = total / len(points) + np.log(abs(np.linalg.det(view.matrix)))
    return view._replace(score=float(score))


def _window(model: Model, posed: Points) -> NDArray[np.bool_]:
    """Return (m,), which cells lie between the ends of a specimen, about."""
    along, spare = model.means[:, 0], 0.6 * model.body.spacing
    low, high = posed[:, 0].min() - spare, posed[:, 0].max() + spare
    return np.asarray((along >= low) & (along <= high))


def _mixed(
    model: Model, posed: Points, variance: float, extra: NDArray[np.float64] | None
) -> tuple[Points, NDArray[np.float64], float]:
    """Return mean cells (n, 3), how sure they are (n,), and the log-likelihood of a pose."""
    means, background = model.means, model.background
    prior = background.presence * np.where(_window(model, posed), 1.0, geometry.UNSEEN)
    share = min(len(posed) / prior.sum(), 1.0)
    order = np.argsort(means[:, 0], kind="stable")
    costs = np.zeros((0, 0)) if extra is None else np.ascontiguousarray(extra[order])
    noise = OUTLIERS * share * np.exp(background.density)
    targets, weights, total = _mixture(
        np.ascontiguousarray(means[order]), share * prior[order], posed, costs, variance, noise
    )
    return targets, weights, float(total)


def _refitted(
    points: Points, targets: Points, weights: NDArray[np.float64], view: View, scale: float | None
) -> View:
    """Fit the map to targets (n, 3): a similarity of the same handedness, and a little shear."""
    total = weights.sum()
    if total < 4:
        return view
    centre, goal = weights @ points / total, weights @ targets / total
    here, there = points - centre, targets - goal
    weighted = weights[:, None] * here
    moments, mixed = here.T @ weighted, there.T @ weighted
    left, values, right = np.linalg.svd(mixed)
    signs = np.ones(3)
    if np.linalg.det(left @ right) * np.linalg.det(view.matrix) < 0:
        signs[2] = -1.0
    size = float((values * signs).sum() / np.trace(moments))
    if scale is not None:
        size = float(np.clip(size, 0.75 * scale, scale / 0.75))
    matrix = size * (left * signs) @ right
    prior = RIDGE * np.trace(moments) / 3 * np.eye(3)
    matrix = np.linalg.solve(moments + prior, (mixed + matrix @ prior).T).T
    left, values, right = np.linalg.svd(matrix)
    values = np.clip(values, size / STRETCH, size * STRETCH)
    matrix = (left * values) @ right
    return View(matrix, goal - matrix @ centre, view.score)


def in_view(model: Model, nuclei: NDArray[np.int32], points: Points) -> NDArray[np.float64]:
    """Return (m,), how probably each cell is in view, by how many cells around it are matched.

    While cells are being found, those beyond the ends of a specimen are out of view: else the last
    nuclei at a cut would be taken for them, and all cells before the cut shifted by one.

    Parameters
    ----------
    model
        all cells.
    nuclei
        (m,), the nucleus of each cell, or -1.
    points
        (n, 3), the nuclei of the specimen; about as many cells are in view.
    """
    means, presence = model.means, model.background.presence
    if model.complete:
        return geometry.in_view(means, presence, nuclei, len(points))
    inside = geometry.between_ends(means, points, model.body.spacing)
    return inside * geometry.in_view(means, inside * presence, nuclei, len(points))


@kernel
def _grid_sums(points: Any, moves: Any, density: Any, low: Any, step: float) -> Any:
    """Return (k,), the sum of a log-density over points (n, 3), for each of the moves (k, 3).

    ``density`` (a, b, c) holds the log-density in cubes of the edge length ``step``, from the
    corner ``low`` (3,) on; outside it has its lowest value.
    """
    sums = np.empty(len(moves))
    a, b, c = density.shape
    outside = density.min()
    for k in range(len(moves)):
        total = 0.0
        for j in range(len(points)):
            x = int(np.floor((points[j, 0] + moves[k, 0] - low[0]) / step))
            y = int(np.floor((points[j, 1] + moves[k, 1] - low[1]) / step))
            z = int(np.floor((points[j, 2] + moves[k, 2] - low[2]) / step))
            if 0 <= x < a and 0 <= y < b and 0 <= z < c:
                total += density[x, y, z]
            else:
                total += outside
        sums[k] = total
    return sums


@kernel
def _mixture(means: Any, prior: Any, points: Any, extra: Any, variance: float, noise: float) -> Any:
    """Return where the cells of points are on average, (n, 3), how surely, (n,), and the score.

    The score is the sum of the log-density of points (n, 3) under cells at ``means`` (m, 3), which
    ascend in x, with weights ``prior`` (m,), costs of features ``extra`` (m, n) or (0, 0), and
    ``noise``, the density of points that are no cell.
    """
    n = len(points)
    targets = np.zeros((n, 3))
    weights = np.zeros(n)
    height = (2 * np.pi * variance) ** -1.5
    reach = REACH * np.sqrt(variance)
    score = 0.0
    for j in range(n):
        low = np.searchsorted(means[:, 0], points[j, 0] - reach)
        high = np.searchsorted(means[:, 0], points[j, 0] + reach)
        total = 0.0
        for i in range(low, high):
            squared = 0.0
            for a in range(3):
                squared += (points[j, a] - means[i, a]) ** 2
            if squared > reach * reach:
                continue
            cost = 0.5 * squared / variance
            if len(extra):
                cost += extra[i, j]
            value = prior[i] * height * np.exp(-cost)
            total += value
            for a in range(3):
                targets[j, a] += value * means[i, a]
        if total > 0:
            for a in range(3):
                targets[j, a] /= total
        weights[j] = total / (total + noise)
        score += np.log(total + noise)
    return targets, weights, score
