"""What fitting a specimen needs of the cells it may have, prepared once for all specimens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.align.warp import Goal, span_of
from eutely.atlas import Atlas
from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.estimate.joint import Joint, joint_gaussians
from eutely.features import cell_means
from eutely.fit.rates import Background, Rates, loosened, most_pairs
from eutely.frame import Body
from eutely.geometry import spacing
from eutely.solver.meanfield import Field
from eutely.solver.softassign import Centres, centres_of

GAUSSIAN = 1e8
"""Degrees of freedom that stand for infinitely many: costs agree to eight digits."""

SETTLED = 0.5
"""Presence from which a cell counts as one that is always there, while cells are being found in
parts of the body: what is missing there is rather a cell too many."""

LEFT_OVER = 2.0
"""Pairs of a missing cell and a spurious nucleus that a part of the body can have, per nucleus that
the median specimen has left over: its number of nuclei does not show whether it has such pairs, and
where it may have many, rows of cells are shifted by one."""


class Model(NamedTuple):
    """The cells that a specimen is matched with.

    Attributes
    ----------
    field
        cells given their neighbours.
    centres
        cells by themselves.
    body
        size and spacing of their frame.
    freedom
        of the Student-t costs.
    background
        from which the costs of missing cells and spurious nuclei follow.
    features
        (m, d) float64, mean scores of the cells, see `eutely.features`.
    crowding
        (10,) float64, costs of two nuclei too close to each other, see `eutely.atlas.Atlas`.
    complete
        whether all cells are found, so that what fits no cell is due to the specimen. While cells
        are still being found, a nucleus may be unmatched because its cell is not there yet.
    specimens
        from which the cells were estimated; inf where that does not matter.
    """

    field: Field
    centres: Centres
    body: Body
    freedom: float
    background: Background
    features: NDArray[np.float64]
    crowding: NDArray[np.float64] = np.zeros(0)
    complete: bool = False
    specimens: float = np.inf

    @property
    def means(self) -> NDArray[np.float64]:
        """(m, 3), where the cells are expected."""
        return self.field.means

    @property
    def goal(self) -> Goal:
        """What specimens are warped to."""
        return Goal(self.means, self.centres, span_of(self.means, self.body))

    def broad(self) -> Centres:
        """Return centres as wide as cells are apart, to compare poses with."""
        wide = self.body.spacing**2 * np.eye(3)
        return centres_of(np.broadcast_to(wide, (len(self.means), 3, 3)))

    def loosened(self, error: float) -> Model:
        """Return the model for a specimen with such an error in the coordinates of its nuclei."""
        if not error:
            return self
        return self._replace(
            field=self.field._replace(centres=loosened(self.field.centres, error)),
            centres=loosened(self.centres, error),
        )

    def through(self, view: NDArray[np.float64]) -> Model:
        """Return the model for a specimen that shows each cell with the probabilities (m,)."""
        presence = self.background.presence * view
        return self._replace(background=self.background._replace(presence=presence, partial=True))

    def c0(self, rates: Rates) -> NDArray[np.float64]:
        """Return (m,), the cost of leaving each cell and a nucleus unmatched."""
        return self.background.c0(rates, self.freedom)


def model_of_atlas(atlas: Atlas) -> Model:
    """Prepare an atlas."""
    # Copies can be written, as all other arrays here: for others kernels are compiled again.
    means, neighbours = atlas.means.copy(), atlas.neighbours.copy()
    background = Background.of(atlas.means, atlas.often)
    if atlas.origin_presence.shape[1] == 1:
        background = background._replace(presence=atlas.origin_presence[:, 0].copy())
    return Model(
        Field(means, neighbours, atlas.predictors.copy(), centres_of(atlas.conditionals)),
        centres_of(atlas.covariances),
        Body(atlas.size, spacing(atlas.means), atlas.warp),
        min(atlas.freedom, GAUSSIAN),
        background,
        atlas.feature_means,
        atlas.crowding,
        complete=True,
        specimens=float(atlas.specimens),
    )


def model_of_nuclei(
    points: NDArray[np.float64], scores: NDArray[np.float64], body: Body, freedom: float
) -> Model:
    """Prepare the nuclei (n, 3) of one specimen, and their scores (n, d), as cells to start from.

    Half the spacing: broad enough to reach the right nucleus, too narrow to blur neighbours.
    """
    m = len(points)
    centres = centres_of(np.broadcast_to((body.spacing / 2) ** 2 * np.eye(3), (m, 3, 3)))
    none = np.zeros((m, 0), np.int32), np.zeros((m, 0, 3, 3))
    field, background = Field(points.copy(), *none, centres), Background.of(points)
    scores = np.nan_to_num(scores)
    return Model(field, centres, body, freedom, background, scores, complete=True)


def model_of_cells(
    cells: Cells, settings: Estimate, chosen: NDArray[np.bool_] | None = None
) -> Model:
    """Prepare cells that are being found, estimated from the ``chosen`` specimens (N,).

    From all specimens where the chosen ones are not enough, see `Cells.enough`.
    """
    used = np.ones(len(cells), bool) if chosen is None else cells.enough(chosen)
    places, scores = cells.places()[used], cells.cell_scores()[used]
    partial = any(cells.parts)
    joint = joint_gaussians(places, cells.body.spacing, settings, partial=partial)
    model = joint_model(joint, cells, settings, cells.often(used), cell_means(scores))
    if not partial:
        return model
    background = model.background
    presence = np.where(background.presence >= SETTLED, 1.0, background.presence)
    left = np.median([int((labels < 0).sum()) for labels in cells.labels()])
    most = min(background.most, LEFT_OVER * float(left))
    return model._replace(background=background._replace(presence=presence, most=most))


def joint_model(
    joint: Joint,
    cells: Cells,
    settings: Estimate,
    seen: NDArray[np.float64] | None,
    features: NDArray[np.float64],
) -> Model:
    """Prepare cells that predict each other.

    Parameters
    ----------
    joint
        the cells by themselves and given their neighbours.
    cells
        the cohort that they are for.
    settings
        the section ``estimate`` of the configuration.
    seen
        (m,), number of specimens in which each cell was seen, see `Cells.often`; None for all.
    features
        (m, d), mean scores of the cells.
    """
    means = joint.cells.means
    background = Background.of(means, seen, most_pairs(cells.whole_counts()))
    return Model(
        Field(means, joint.neighbours, joint.predictors, centres_of(joint.conditionals)),
        centres_of(joint.cells.covariances),
        cells.body,
        settings.freedom,
        background._replace(partial=any(cells.parts)),
        features,
    )
