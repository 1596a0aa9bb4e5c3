"""The nuclei that tell how a specimen lies: its body without strays and clumps."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.errors import SpecimenError
from eutely.specimen import Specimen

FEWEST_NUCLEI = 4
"""Nuclei at different places needed: fewer lie in one plane and have no handedness."""

STRAY = 20.0
"""A nucleus is no part of the body when its third neighbour is so many times farther than usual."""

CLUMP = 0.2
"""Nor is it one when its third neighbour is nearer than this part of the usual distance."""


def body(specimen: Specimen) -> NDArray[np.float64]:
    """Return the different centroids, without far strays, in an order that depends on no other.

    Segments at one and the same place (rejects put at the origin, for instance) count once, and
    clumps of segments that lie closer together than nuclei can do not count at all.
    """
    points = np.unique(specimen.centroids, axis=0)
    if len(points) < FEWEST_NUCLEI:
        raise SpecimenError(
            f"{specimen.name}: {len(specimen)} nuclei at {len(points)} different places, but a "
            f"pose needs at least {FEWEST_NUCLEI}"
        )
    third = neighbour_distances(points, 3)
    usual = np.median(third)
    near = (third <= STRAY * usual) & (third >= CLUMP * usual)
    return points[near] if near.sum() >= FEWEST_NUCLEI else points


def neighbour_distances(points: NDArray[np.float64], rank: int) -> NDArray[np.float64]:
    """Return (n,), the distance of each point to its ``rank``-th nearest other one."""
    distances, _ = KDTree(points).query(points, [rank + 1])
    return np.asarray(distances, dtype=np.float64)[:, 0]
