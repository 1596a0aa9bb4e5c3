"""Places of cells of all animals: from their means, and relative to their neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.comparison.measured import Measured
from eutely.comparison.relative import centred, field, reliability

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
