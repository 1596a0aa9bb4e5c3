"""All specimens in one frame, and which nucleus of each is which cell: the state of a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eutely.config.model import Estimate
from eutely.estimate import robust_gaussians
from eutely.fit.rates import most_pairs
from eutely.fit.place import Placed
from eutely.align.warp import Body, recentred, rewarp
from eutely.solver.softassign import centres_of


@dataclass(frozen=True, eq=False)
class Cohort:
    """N specimens and m cells.

    Attributes
    ----------
    posed, warped
        for each specimen (n, 3): its nuclei in the chosen pose, and after the warp.
    nuclei
        for each specimen (m,) int32: the nucleus of each cell, or -1.
    size
        (2,), length and width of the common frame.
    spacing
        typical distance of neighbouring cells.
    features
        for each specimen (n, d), scores of its nuclei as of `eutely.features`; () for none.
    smooth
        whether specimens are warped smoothly; otherwise by affine maps.
    """

    posed: tuple[NDArray[np.float64], ...]
    warped: tuple[NDArray[np.float64], ...]
    nuclei: tuple[NDArray[np.int32], ...]
    size: NDArray[np.float64]
    spacing: float
    features: tuple[NDArray[np.float64], ...] = ()
    smooth: bool = True

    def __len__(self) -> int:
        """Return the number of specimens."""
        return len(self.posed)

    @property
    def most_pairs(self) -> float:
        """Pairs of a missing cell and a spurious nucleus that a specimen can have."""
        return most_pairs(np.array([len(points) for points in self.posed]))

    def placed(self) -> list[Placed]:
        """Return the specimens one by one."""
        features = self.features or (None,) * len(self)
        rows = zip(self.posed, self.warped, self.nuclei, features, strict=True)
        return [
            Placed(posed, warped, own, 0.0, features=scores) for posed, warped, own, scores in rows
        ]

    def replaced(self, placed: Sequence[Placed]) -> Cohort:
        """Return the cohort with other places and nuclei of its specimens."""
        return replace(
            self,
            posed=tuple(one.posed for one in placed),
            warped=tuple(one.warped for one in placed),
            nuclei=tuple(one.nuclei for one in placed),
        )

    def places(self, *, posed: bool = False) -> NDArray[np.float64]:
        """Return (N, m, 3), where each specimen has each cell; NaN where it has not."""
        found = np.full((len(self), len(self.nuclei[0]), 3), np.nan)
        for row, points, own in zip(
            found, self.posed if posed else self.warped, self.nuclei, strict=True
        ):
            row[own >= 0] = points[own[own >= 0]]
        return found

    def feature_values(self) -> NDArray[np.float64]:
        """Return (N, m, d), the scores of each cell in each specimen; NaN where not known."""
        d = self.features[0].shape[1] if self.features else 0
        found = np.full((len(self), len(self.nuclei[0]), d), np.nan)
        for row, scores, own in zip(found, self.features, self.nuclei, strict=False):
            row[own >= 0] = scores[own[own >= 0]]
        return found

    def rewarped(self, settings: Estimate) -> Cohort:
        """Return the cohort with every specimen warped to the mean of all, in the poses' frame."""
        cells = robust_gaussians(self.places(), settings)
        body = Body.of(cells.means, self.size, smooth=self.smooth)
        centres = centres_of(cells.covariances)
        warped = tuple(
            rewarp(*one, cells.means, centres, body)
            for one in zip(self.posed, self.warped, self.nuclei, strict=True)
        )
        return replace(self, warped=warped).centred()

    def centred(self) -> Cohort:
        """Return the cohort without the mean warp, so that its frame stays that of the poses."""
        seen = (np.array(self.nuclei) >= 0).any(axis=0)
        means = np.nanmean(self.places()[:, seen], axis=0)
        goal = np.nanmean(self.places(posed=True)[:, seen], axis=0)
        back = recentred(means, goal, Body.of(means, self.size, smooth=self.smooth))
        return replace(self, warped=tuple(back(points) for points in self.warped))

    def labels(self) -> list[NDArray[np.int32]]:
        """Return for each specimen (n,) int32: the cell of each nucleus, or -1."""
        found = []
        for points, own in zip(self.posed, self.nuclei, strict=True):
            cells = np.full(len(points), -1, np.int32)
            cells[own[own >= 0]] = np.flatnonzero(own >= 0)
            found.append(cells)
        return found
