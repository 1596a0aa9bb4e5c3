"""An atlas from means and covariances of cells that were estimated elsewhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.errors import AtlasError
from eutely.estimate.atlas import nearest_pairs
from eutely.estimate.gaussians import Gaussians
from eutely.estimate.joint import prior_gaussians
from eutely.features import feature_names, scores
from eutely.geometry import spacing
from eutely.pose import orient
from eutely.specimen import Specimen

SPREAD = 0.5
"""Standard deviation of cells whose covariance is not known, in distances of neighbours."""

NEIGHBOURS = 6
"""Nearest cells to which edges go."""


def atlas_of_means(
    cells: Specimen, covariances: NDArray[np.float64] | None = None, specimens: int = 1
) -> Atlas:
    """Return the atlas of cells of which only means (and covariances) are known.

    How neighbours move together is not known from means: displacements are taken to be correlated
    as in the prior of `eutely.estimate.joint`.

    Parameters
    ----------
    cells
        means, names, radii and features of the cells, as if they were the nuclei of a specimen.
    covariances
        (m, 3, 3), of their places; by default half the distance of neighbours in all directions.
    specimens
        number of specimens they were estimated from, if known.
    """
    if len(cells) < 4:
        raise AtlasError(f"{cells.name}: {len(cells)} cells, expected at least 4")
    settings = Estimate()
    pose = orient(cells)[0]
    matrix, shift = pose.affine()
    means = cells.centroids @ matrix.T + shift
    distance = spacing(means)
    if covariances is None:
        covariances = np.broadcast_to((SPREAD * distance) ** 2 * np.eye(3), (len(means), 3, 3))
    turned = matrix @ covariances @ matrix.T
    turned = (turned + turned.swapaxes(1, 2)) / 2
    joint = prior_gaussians(Gaussians(means, turned), distance, settings)
    features = feature_names([cells])
    edges = nearest_pairs(means, NEIGHBOURS)
    first, second = edges.T
    count = np.full(len(means), specimens)
    return Atlas(
        means=means,
        covariances=turned,
        radii=cells.radii,
        radius_covariances=np.full((len(means), 3, 3), np.nan),
        seen=count,
        rare=count < settings.fewest,
        edges=edges,
        offsets=means[first] - means[second],
        offset_covariances=turned[first] + turned[second],
        neighbours=joint.neighbours,
        predictors=joint.predictors,
        conditionals=joint.conditionals,
        size=np.array(pose.size),
        specimens=specimens,
        freedom=settings.freedom,
        names=cells.names or (),
        unit=cells.unit,
        features=features,
        feature_means=np.nan_to_num(scores(cells, features)),
    )
