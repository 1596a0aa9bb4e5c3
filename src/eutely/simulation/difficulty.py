"""How hard a named cohort is to match: what is left between individuals after an affine fit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eutely.errors import EutelyError
from eutely.simulation.plan import nearest_distances
from eutely.specimen import Specimen

Floats = NDArray[np.float64]

_NEIGHBOURS = 6


@dataclass(frozen=True)
class Difficulty:
    """Measurements of k individuals of which every one has the same n named cells.

    Attributes
    ----------
    spacing
        median distance of a nucleus to its nearest neighbour in the same individual.
    mean
        (n, 3) float64, the mean shape: x to the crowded end, z from the left (names that end in
        L) to the right (R), as large as the individuals in the mean.
    residuals
        (k, n, 3) float64, individuals after their affine fit to the mean shape, minus it.
    sd
        (3,) float64, root mean square of the residuals along x, y, z.
    shared
        (3,) float64, how much of a residual a nucleus shares with its six nearest neighbours:
        correlation, 0 where each strays for itself, 1 where all move together.
    plain
        share of cells that linear assignment to the mean shape gets right, by distance.
    weighted
        the same, by distance in units of ``sd``.
    """

    spacing: float
    mean: Floats
    residuals: Floats
    sd: Floats
    shared: Floats
    plain: float
    weighted: float


def difficulty(cohort: Sequence[Specimen]) -> Difficulty:
    """Measure how hard ``cohort`` is, with the true names; only cells that all have count."""
    from scipy.spatial import cKDTree

    if any(one.names is None for one in cohort) or not cohort:
        raise EutelyError("difficulty needs named specimens; give cell names to all")
    cells, shapes = _corresponding(cohort)
    spacing = np.median(np.concatenate([nearest_distances(one.centroids) for one in cohort]))
    mean = _upright(_mean_shape(shapes), cells)
    for _ in range(3):
        fitted = np.array([affine_fit(shape, mean) for shape in shapes])
        mean = fitted.mean(axis=0)
    residuals = fitted - mean
    sd = np.sqrt(np.mean(residuals**2, axis=(0, 1)))
    near = np.asarray(cKDTree(mean).query(mean, min(_NEIGHBOURS + 1, len(mean)))[1])[:, 1:]
    offsets = residuals[:, near] - residuals[:, :, None]
    return Difficulty(
        spacing=float(spacing),
        mean=mean,
        residuals=residuals,
        sd=sd,
        shared=1 - np.mean(offsets**2, axis=(0, 1, 2)) / (2 * sd**2),
        plain=assigned(fitted, mean),
        weighted=assigned(fitted / sd, mean / sd),
    )


def assigned(shapes: Floats, mean: Floats) -> float:
    """Return the share of points that a linear assignment gives to their own in the mean shape.

    Parameters
    ----------
    shapes
        (k, n, 3)
    mean
        (n, 3); squared distances to it are the costs.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    right = 0
    for shape in shapes:
        rows, columns = linear_sum_assignment(cdist(shape, mean, "sqeuclidean"))
        right += int(np.count_nonzero(rows == columns))
    return right / float(shapes.shape[0] * shapes.shape[1])


def affine_fit(shape: Floats, target: Floats) -> Floats:
    """Return ``shape`` (n, 3) after the affine map that takes it closest to ``target``."""
    ones = np.c_[shape, np.ones(len(shape))]
    return np.asarray(ones @ np.linalg.lstsq(ones, target, rcond=None)[0])


def _corresponding(cohort: Sequence[Specimen]) -> tuple[list[str], Floats]:
    """Return the cells that all have, and their centroids (k, n, 3), each about its mean."""
    rows = [{name: row for row, name in enumerate(one.names or ()) if name} for one in cohort]
    cells = sorted(set.intersection(*(set(each) for each in rows)))
    if len(cells) < 4:
        raise EutelyError(f"{len(cells)} cells have the same name in all specimens; 4 are needed")
    points = [one.centroids[[row[c] for c in cells]] for one, row in zip(cohort, rows, strict=True)]
    shapes = np.array(points)
    return cells, shapes - shapes.mean(axis=1, keepdims=True)


def _mean_shape(shapes: Floats) -> Floats:
    """Return the mean of (k, n, 3) ``shapes`` turned onto each other, never mirrored."""
    mean = shapes[0]
    for _ in range(5):
        turned = []
        for shape in shapes:
            left, _, right = np.linalg.svd(shape.T @ mean)
            sign = np.sign(np.linalg.det(left @ right))
            turned.append(shape @ (left * [1, 1, sign]) @ right)
        mean = np.mean(turned, axis=0)
    return np.asarray(mean)


def _upright(mean: Floats, cells: Sequence[str]) -> Floats:
    """Turn ``mean`` (n, 3): x along the body to its crowded end, z from left to right."""
    x = np.linalg.svd(mean, full_matrices=False)[2][0]
    # The thin end has the longer way to the barycentre.
    x *= -np.sign(np.sum((mean @ x) ** 3))
    side = np.array([cell.endswith("R") * 1.0 - cell.endswith("L") * 1.0 for cell in cells])
    if not side.any():
        side = mean @ np.linalg.svd(mean, full_matrices=False)[2][2]
    z = side @ (mean - mean.mean(axis=0))
    z -= x * (x @ z)
    z /= np.linalg.norm(z)
    return np.asarray(mean @ np.array([x, np.cross(z, x), z]).T)
