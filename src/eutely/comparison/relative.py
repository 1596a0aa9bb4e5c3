"""Where a cell lies relative to its neighbours, so that bend, stretch and warp do not count.

Places of cells of all animals: from their means, and relative to their neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.atlas import Atlas
from eutely.comparison.measured import Measured, filled, medians

Array = NDArray[np.float64]

RELIABILITY_ROUNDS = 2
"""Rounds of finding which cells predict others well."""


class Positions(NamedTuple):
    """Places of cells in animals, from all groups alike.

    Attributes
    ----------
    displaced
        (N, m, 3), from the mean of all animals.
    relative
        (N, m, 3), minus what neighbours predict.
    field
        (N, m, 3), what neighbours predict, also of cells that an animal lacks.
    means
        (m, 3), of all animals.
    predicting
        (N, m), how much each nucleus counts as a neighbour of others.
    """

    displaced: Array
    relative: Array
    field: Array
    means: Array
    predicting: Array

    def without(self, moved: NDArray[np.int64]) -> Positions:
        """Return the same with cells that predict no others, since they moved themselves."""
        predicting = self.predicting.copy()
        predicting[:, moved] = 0.0
        found = field(self.displaced, predicting, self.means)
        return self._replace(relative=self.displaced - found, field=found, predicting=predicting)


def positions(atlas: Atlas, cells: Measured) -> Positions:
    """Return places of cells from the means of all animals, and relative to their neighbours."""
    displaced, means = centred(cells.places, cells.weights)
    usual = np.trace(atlas.covariances, axis1=1, axis2=2)
    predicting = cells.weights
    found = field(displaced, predicting, means)
    for _ in range(RELIABILITY_ROUNDS):
        predicting = cells.weights * reliability(displaced - found, cells.weights, usual)
        found = field(displaced, predicting, means)
    return Positions(displaced, displaced - found, found, means, predicting)


NEIGHBOURS = 40
"""Cells that predict a place. With fewer, a neighbour that moved takes the cell along; with more,
the field is no longer affine over them."""

RIDGE = 0.03
"""Prior of the affine part, in neighbours at the typical distance: it needs several to be known."""


def centred(places: Array, weights: Array) -> tuple[Array, Array]:
    """Return displacements (N, m, 3) from the means of cells, and the means (m, 3).

    Means are over all animals, whatever their group, weighted; robust by two rounds of weights
    1 / (1 + d^2 / s^2) of the distance d, with s its median.
    """
    known, given, current = filled(places, weights)
    for _ in range(3):
        total = np.maximum(current.sum(axis=0), 1e-12)
        means = (current[..., None] * given).sum(axis=0) / total[:, None]
        apart = np.where(known, np.linalg.norm(given - means, axis=2), np.nan)
        scale = np.maximum(2.0 * medians(apart.T, 1.0), 1e-12)
        current = np.where(known, weights / (1 + np.nan_to_num(apart) ** 2 / scale**2), 0.0)
    return np.where(known[..., None], places - means, np.nan), means


def reliability(apart: Array, weights: Array, variances: Array) -> Array:
    """Return (m,), how well each cell predicts its neighbours, 0 .. 1; blind to groups.

    The squared ratio of the usual to the observed variance. A cell that moved in one of the groups
    varies more over all animals than it does in the atlas; it must not take its neighbours along.

    Parameters
    ----------
    apart
        (N, m, 3), places relative to neighbours.
    weights
        (N, m), confidences.
    variances
        (m,), of the cells of the atlas; their scale does not matter.
    """
    _, given, weight = filled(apart, weights)
    spread = (weight[..., None] * given**2).sum(axis=(0, 2))
    ratio = spread / np.maximum(weight.sum(axis=0), 1e-12) / variances
    usual = float(np.median(ratio[ratio > 0])) if (ratio > 0).any() else 1.0
    return np.asarray(np.minimum(1.0, usual / np.maximum(ratio, 1e-12)) ** 2)


def relative(
    displaced: Array, weights: Array, means: Array, apart: NDArray[np.int64] | None = None
) -> Array:
    """Return (N, m, 3), displacements minus those that the neighbours predict; see `field`."""
    return np.asarray(displaced - field(displaced, weights, means, apart))


def field(
    displaced: Array, weights: Array, means: Array, apart: NDArray[np.int64] | None = None
) -> Array:
    r"""Return (N, m, 3), the displacements that the neighbours of each cell predict.

    In each animal an affine field is fitted to the displacements :math:`u_j` of the nearest cells
    j of cell c,

    .. math:: \min_{a, B} \sum_j w_j k_j |u_j - a - B (\mu_j - \mu_c)|^2 + \rho |B|^2,

    with confidences w and a kernel k that falls with the distance; its value at the cell is a.
    The cell itself has no part in it. A batch that bends, stretches, scales or warps all animals
    is nearly affine among neighbours, and is removed.

    Parameters
    ----------
    displaced, means
        see `centred`; (N, m, 3), (m, 3).
    weights
        (N, m), how much each nucleus counts as a neighbour.
    apart
        (m,), sets of cells: no cell of the same set is a neighbour (-1: in no set).
    """
    cells = displaced.shape[1]
    _, given, weight = filled(displaced, weights)
    wanted = min(NEIGHBOURS, cells - 1)
    tree = KDTree(means)
    result = np.zeros_like(displaced)
    for cell in range(cells):
        near = _near(tree, means, cell, wanted, apart)
        if len(near) < 4:
            continue
        offsets = means[near] - means[cell]
        reach = max(float(np.median(np.linalg.norm(offsets, axis=1))), 1e-12)
        design = np.hstack([np.ones((len(near), 1)), offsets / reach])
        kernel = 1.0 / (1.0 + (offsets**2).sum(axis=1) / reach**2)
        weighted = weight[:, near] * kernel
        square = np.einsum("nj,ja,jb->nab", weighted, design, design)
        square += RIDGE * np.diag([1e-6, 1.0, 1.0, 1.0])
        right = np.einsum("nj,ja,njd->nad", weighted, design, given[:, near])
        result[:, cell] = np.linalg.solve(square, right)[:, 0]
    return result


def _near(
    tree: KDTree, means: Array, cell: int, wanted: int, apart: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Return the nearest cells, without the cell and those of its set."""
    several = wanted + 1 if apart is None or apart[cell] < 0 else len(means)
    near = np.atleast_1d(tree.query(means[cell], several)[1])
    near = near[near != cell]
    if apart is not None and apart[cell] >= 0:
        near = near[apart[near] != apart[cell]]
    return np.asarray(near[:wanted], dtype=np.int64)
