"""Atlases from the cells of a build."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.config import Config
from eutely.estimate import estimate
from eutely.find.learn.steps import with_offsets
from eutely.frame import Framed
from eutely.find.refine import Cohort


@dataclass(frozen=True, eq=False)
class Estimator:
    """Estimates atlases from the cells of a cohort: of all specimens, or of some.

    Attributes
    ----------
    cohort, frame, settings
        cells, specimens, and how to estimate.
    weights
        (3,) of the costs, for an atlas that specimens are matched with as in the paper; or None.
    """

    cohort: Cohort
    frame: Framed
    settings: Config
    weights: NDArray[np.float64] | None

    def atlas(self, chosen: NDArray[np.bool_] | None = None) -> Atlas:
        """Return the atlas of the ``chosen`` specimens (N,); of all if they lack a cell."""
        places, radii, scores = self.cohort.places(), self.radii(), self.cohort.feature_values()
        if chosen is not None and np.isfinite(places[chosen, :, 0]).any(axis=0).all():
            places, radii, scores = places[chosen], radii[chosen], scores[chosen]
        atlas = estimate(
            places,
            size=self.cohort.size,
            spacing=self.cohort.spacing,
            settings=self.settings.estimate,
            radii=radii,
            features=self.frame.features(self.settings)[0] if self.cohort.features else (),
            scores=scores,
            neighbours=self.settings.costs.neighbours,
            unit=self.frame.specimens[0].unit,
        )
        settings = self.settings.realign
        atlas = replace(atlas, warp=settings.warp, scale=settings.scale)
        if self.weights is None:
            return atlas
        return with_offsets(atlas, self.weights, self.settings)

    def radii(self) -> NDArray[np.float64]:
        """Return (N, m, 3), the semi-axes of each cell; NaN where a specimen lacks it."""
        found = np.full(self.cohort.places().shape, np.nan)
        for row, own, nuclei in zip(found, self.frame.radii, self.cohort.nuclei, strict=True):
            row[nuclei >= 0] = own[nuclei[nuclei >= 0]]
        return found
