"""What to expect of a specimen: the cells of an atlas, prepared for matching."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.features import feature_costs
from eutely.fit.rates import Background, Rates
from eutely.fit.noise import likeliest_error, loosened
from eutely.align.warp import Body
from eutely.solver.meanfield import Field
from eutely.solver.softassign import Centres, centres_of


class Expectation(NamedTuple):
    """What placing a specimen needs of an atlas, prepared once for all specimens.

    Attributes
    ----------
    field
        cells given their neighbours.
    centres
        cells by themselves.
    broad
        centres as wide as cells are apart, to compare poses with.
    body
        that is warped.
    freedom
        of the Student-t costs.
    background
        what tells when cells and nuclei had better be left alone.
    features
        (m, d) float64, mean scores of the cells, as of `eutely.features`.
    spacing
        typical distance of neighbouring cells.
    crowding
        as of `eutely.fit.spurious`; without any, nothing is held against odd nuclei: while
        cells are still being found, a nucleus may have none for want of its cell.
    """

    field: Field
    centres: Centres
    broad: Centres
    body: Body
    freedom: float
    background: Background
    features: NDArray[np.float64]
    spacing: float
    crowding: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        field: Field,
        centres: Centres,
        size: NDArray[np.float64],
        spacing: float,
        freedom: float,
        seen: NDArray[np.int64] | None = None,
        most: float = np.inf,
        features: NDArray[np.float64] | None = None,
        crowding: NDArray[np.float64] | None = None,
        smooth: bool = True,
    ) -> Expectation:
        """Add what follows from the size of the body and the distance of its cells."""
        broad = np.broadcast_to(spacing**2 * np.eye(3), (len(field.means), 3, 3))
        background = Background.of(field.means, seen, most)
        scores = np.zeros((len(field.means), 0)) if features is None else features
        return cls(
            field,
            centres,
            centres_of(broad),
            Body.of(field.means, size, smooth=smooth),
            freedom,
            background,
            scores,
            spacing,
            np.zeros(0) if crowding is None else crowding,
        )

    @property
    def complete(self) -> bool:
        """Whether all cells are found: what does not fit any is the fault of the specimen."""
        return self.crowding.size > 0

    def loosened(self, error: float) -> Expectation:
        """Return the same for a specimen with such an error in the coordinates of its nuclei."""
        if not error:
            return self
        return self._replace(
            field=self.field._replace(centres=loosened(self.field.centres, error)),
            centres=loosened(self.centres, error),
        )

    def unmatched(self, rates: Rates) -> NDArray[np.float64]:
        """Return (m,), what it costs to leave each cell and a nucleus without each other."""
        return self.background.unmatched(rates, self.freedom)


def expectation(atlas: Atlas, spacing: float) -> Expectation:
    """Prepare ``atlas`` for `place`.

    Parameters
    ----------
    atlas
        to place specimens in.
    spacing
        typical distance of neighbouring cells, in the unit of the atlas.
    """
    return Expectation.of(
        Field(atlas.means, atlas.neighbours, atlas.predictors, centres_of(atlas.conditionals)),
        centres_of(atlas.covariances),
        atlas.size,
        spacing,
        atlas.freedom,
        atlas.seen,
        features=atlas.feature_means,
        crowding=atlas.crowding,
        smooth=atlas.warp,
    )


def error_of(
    expected: Expectation,
    warped: NDArray[np.float64],
    nuclei: NDArray[np.int32],
    places: NDArray[np.float64] | None = None,
) -> float:
    """Return the error of a specimen's coordinates, told by its matched nuclei (m,).

    Cells are expected at ``places`` (m, 3) by their neighbours, or without them each by itself.
    """
    cells = np.flatnonzero(nuclei >= 0)
    if not (expected.complete and len(cells)):
        return 0.0
    field = expected.field
    centres = expected.centres if places is None else field.centres
    return likeliest_error(
        (field.means if places is None else places)[cells],
        Centres(*(values[cells] for values in centres)),
        warped[nuclei[cells]],
        freedom=expected.freedom,
        spacing=expected.spacing,
    )


def what_features_say(
    expected: Expectation, features: NDArray[np.float64] | None, nuclei: NDArray[np.int32]
) -> NDArray[np.float64] | None:
    """Return (m, n), the costs of features, learned from a matching so far; None without any."""
    if features is None or not features.size or not expected.features.size:
        return None
    return feature_costs(expected.features, features, nuclei, expected.freedom)
