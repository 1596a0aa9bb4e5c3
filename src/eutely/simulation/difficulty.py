"""How hard a named cohort is to match: differences of individuals after an affine fit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eutely.errors import EutelyError
from eutely.specimen import Specimen

Floats = NDArray[np.float64]

_NEIGHBOURS = 6
"""Number of nearest neighbours with which the residuals of a nucleus are compared."""


@dataclass(frozen=True)
class Difficulty:
    """Measurements of k individuals that have the same n named cells.

    Attributes
    ----------
    spacing
        median distance of a nucleus to its nearest neighbour in the same individual.
    mean
        (n, 3) float64, the mean shape: x towards the dense end, z from the left (names that end in
        L) to the right (R), with the mean size of the individuals.
    residuals
        (k, n, 3) float64, individuals after an affine fit to the mean shape, minus the mean shape.
    sd
        (3,) float64, root mean square of the residuals along x, y, z.
    shared
        (3,) float64, correlation of the residuals of a nucleus and its six nearest neighbours: 0
        if all move independently, 1 if all move together.
    plain
        share of cells that a linear assignment to the mean shape by distance gets right.
    weighted
        the same by distance in units of ``sd``.
    """

    spacing: float
    mean: Floats
    residuals: Floats
    sd: Floats
    shared: Floats
    plain: float
    weighted: float


def difficulty(cohort: Sequence[Specimen]) -> Difficulty:
    """Measure how hard ``cohort`` is, by the cells that are named in all specimens."""
    from scipy.spatial import cKDTree

    from eutely.geometry import neighbour_distances

    if any(specimen.names is None for specimen in cohort) or not cohort:
        raise EutelyError("a specimen has no named cells; name the cells of all specimens")
    cells, shapes = _corresponding(cohort)
    distances = [neighbour_distances(specimen.centroids) for specimen in cohort]
    mean = _upright(_mean_shape(shapes), cells)
    for _ in range(3):
        fitted = np.array([affine_fit(shape, mean) for shape in shapes])
        mean = fitted.mean(axis=0)
    residuals = fitted - mean
    sd = np.sqrt(np.mean(residuals**2, axis=(0, 1)))
    near = np.asarray(cKDTree(mean).query(mean, min(_NEIGHBOURS + 1, len(mean)))[1])[:, 1:]
    offsets = residuals[:, near] - residuals[:, :, None]
    return Difficulty(
        spacing=float(np.median(np.concatenate(distances))),
        mean=mean,
        residuals=residuals,
        sd=sd,
        shared=1 - np.mean(offsets**2, axis=(0, 1, 2)) / (2 * sd**2),
        plain=assigned(fitted, mean),
        weighted=assigned(fitted / sd, mean / sd),
    )


def assigned(shapes: Floats, mean: Floats) -> float:
    """Return the share of points that a linear assignment to the mean shape gets right.

    Parameters
    ----------
    shapes
        (k, n, 3), points of k individuals.
    mean
        (n, 3), the mean shape; costs are squared distances.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    right = 0
    for shape in shapes:
        rows, columns = linear_sum_assignment(cdist(shape, mean, "sqeuclidean"))
        right += int(np.count_nonzero(rows == columns))
    return right / float(shapes.shape[0] * shapes.shape[1])


def affine_fit(shape: Floats, target: Floats) -> Floats:
    """Return ``shape`` (n, 3) after its least-squares affine fit to ``target``."""
    ones = np.c_[shape, np.ones(len(shape))]
    return np.asarray(ones @ np.linalg.lstsq(ones, target, rcond=None)[0])


def _corresponding(cohort: Sequence[Specimen]) -> tuple[list[str], Floats]:
    """Return the cells of all specimens, and their centroids (k, n, 3), centred per specimen."""
    rows = [
        {name: row for row, name in enumerate(specimen.names or ()) if name} for specimen in cohort
    ]
    cells = sorted(set.intersection(*map(set, rows)))
    if len(cells) < 4:
        raise EutelyError(f"{len(cells)} cells are named in all specimens, expected at least 4")
    points = [
        specimen.centroids[[row[cell] for cell in cells]]
        for specimen, row in zip(cohort, rows, strict=True)
    ]
    shapes = np.array(points)
    return cells, shapes - shapes.mean(axis=1, keepdims=True)


def _mean_shape(shapes: Floats) -> Floats:
    """Return the mean of (k, n, 3) ``shapes`` after rotating them onto each other, not mirrored."""
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
    """Rotate ``mean`` (n, 3): x along the body to its dense end, z from left to right."""
    x = np.linalg.svd(mean, full_matrices=False)[2][0]
    # The sparse end is farther from the barycentre.
    x *= -np.sign(np.sum((mean @ x) ** 3))
    side = np.array([cell.endswith("R") * 1.0 - cell.endswith("L") * 1.0 for cell in cells])
    if not side.any():
        side = mean @ np.linalg.svd(mean, full_matrices=False)[2][2]
    z = side @ (mean - mean.mean(axis=0))
    z -= x * (x @ z)
    z /= np.linalg.norm(z)
    return np.asarray(mean @ np.array([x, np.cross(z, x), z]).T)
