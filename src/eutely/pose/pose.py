"""Pose of a specimen: where it lies, how it is turned, how large it is; and its body."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.errors import SpecimenError
from eutely.specimen import Specimen

FEWEST_NUCLEI = 4
"""Nuclei at different places that a pose needs: fewer lie in one plane and have no handedness."""

STRAY = 20.0
"""A nucleus is outside the body if its third neighbour is this many times the median away."""

CLUMP = 0.2
"""A nucleus is in a clump if its third neighbour is nearer than this part of the median."""


@dataclass(frozen=True, eq=False)
class Pose:
    """Where a specimen lies, how it is turned and how large it is.

    Canonical coordinates of a point p are ``rotation @ (p - centre)``: the barycentre is the
    origin; x runs along the body, towards its dense end (the head); y lies in the plane of
    left-right symmetry, towards the dense side; z is left-right, perpendicular to that plane.

    Attributes
    ----------
    rotation
        (3, 3) float64, its rows are the canonical axes in the specimen's coordinates;
        determinant +1 (-1 only for the mirror images that ``orient`` returns on request).
    centre
        (3,) float64, barycentre in the specimen's unit.
    size
        length and width in the specimen's unit: the standard deviation of the nuclei along x, and
        the root of their mean variance along y and z.
    score
        log-plausibility up to a constant, higher is better; comparable only between the poses of
        one specimen.
    """

    rotation: NDArray[np.float64]
    centre: NDArray[np.float64]
    size: tuple[float, float]
    score: float

    def __repr__(self) -> str:
        length, width = self.size
        return f"<Pose: length {length:.4g}, width {width:.4g}, score {self.score:.4g}>"

    def affine(
        self, size: Sequence[float] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the map into the canonical frame as ``matrix @ p + shift``.

        Parameters
        ----------
        size
            length and width that the specimen gets, for instance ``size`` of another specimen's
            pose; None keeps its size.

        Returns
        -------
        matrix, shift
            (3, 3) and (3,) float64.
        """
        matrix = self.rotation
        if size is not None:
            length, width = size[0] / self.size[0], size[1] / self.size[1]
            matrix = np.array([length, width, width])[:, None] * self.rotation
        return matrix, -matrix @ self.centre

    def apply(self, specimen: Specimen, size: Sequence[float] | None = None) -> Specimen:
        """Return ``specimen`` in the canonical frame, scaled to ``size`` if given."""
        matrix, shift = self.affine(size)
        return specimen.moved(matrix, shift) if size is None else specimen.mapped(matrix, shift)


def body(specimen: Specimen) -> NDArray[np.float64]:
    """Return the distinct centroids of the body, (n, 3), in lexical order.

    Segments at exactly the same place (rejects put at the origin, for instance) count once. Far
    strays, and clumps of segments closer together than nuclei can be, do not count.
    """
    points = np.unique(specimen.centroids, axis=0)
    if len(points) < FEWEST_NUCLEI:
        raise SpecimenError(
            f"{specimen.name}: {len(specimen)} nuclei at {len(points)} different places, but a "
            f"pose needs at least {FEWEST_NUCLEI}"
        )
    third = _third_neighbours(points)
    inside = ~strays(points) & (third >= CLUMP * np.median(third))
    return points[inside] if inside.sum() >= FEWEST_NUCLEI else points


def strays(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return (n,), which of the points (n, 3) lie far outside of the body."""
    if len(points) <= FEWEST_NUCLEI:
        return np.zeros(len(points), bool)
    third = _third_neighbours(points)
    away = third > STRAY * np.median(third)
    return away if (~away).sum() >= FEWEST_NUCLEI else np.zeros(len(points), bool)


def _third_neighbours(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n,), the distance of each point to its third neighbour."""
    distances, _ = KDTree(points).query(points, [4])  # the first neighbour is the point itself
    return np.asarray(distances, dtype=np.float64)[:, 0]
