"""One answer to the question how a specimen lies in space, and how to undo it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eutely.specimen import Specimen


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
        determinant +1 (-1 only for the mirror images that ``orient`` gives when asked).
    centre
        (3,) float64, barycentre in the specimen's unit.
    size
        length, width in the specimen's unit: standard deviation of the nuclei along x, and the
        joint one (root of the mean variance) of y and z.
    score
        log-plausibility up to a constant, higher is better; comparable between the poses of one
        specimen only.
    """

    rotation: NDArray[np.float64]
    centre: NDArray[np.float64]
    size: tuple[float, float]
    score: float

    def affine(
        self, size: Sequence[float] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the map into the canonical frame as ``matrix @ p + shift``.

        Parameters
        ----------
        size
            length and width, for instance ``size`` of another specimen's pose, that the
            specimen shall have afterwards; None keeps its own.

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
        """Return ``specimen`` in the canonical frame, brought to ``size`` if one is given."""
        matrix, shift = self.affine(size)
        return specimen.moved(matrix, shift) if size is None else specimen.mapped(matrix, shift)
