"""Matching problems of two specimens, or of an atlas and a specimen (equations 1 to 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eutely.arrays import Arrays, table_layout
from eutely.costs.candidates import Gaussians, Limits, candidates
from eutely.costs.grid import neighbour_graph
from eutely.costs.offsets import Offsets, fill_offsets
from eutely.errors import ProblemError
from eutely.problem import PairProblem
from eutely.specimen import Specimen

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Costs:
    """What the costs of a matching problem depend on; the defaults are those of the paper.

    Attributes
    ----------
    unassigned
        cost c0 of leaving a nucleus unmatched; subtracted from every linear cost.
    weights
        lambda of position, size and offset.
    tau_cen, tau_rad
        largest squared Mahalanobis distance of position and size; above it an assignment is
        forbidden ...
    least
        ... unless it is among the K_min cheapest of one of its nuclei.
    neighbours
        number of nearest neighbours each nucleus shares an offset cost with; 0 for none.
    nu_cen, nu_off
        degrees of freedom of a Student-t for positions and offsets; 0 for a Gaussian.
    """

    unassigned: float = 10000.0
    weights: Triple = (1.0, 1.0, 1.0)
    tau_cen: float = 1.95
    tau_rad: float = 0.15
    least: int = 14
    neighbours: int = 8
    nu_cen: float = 0.0
    nu_off: float = 0.0


def between(
    left: Specimen,
    right: Specimen,
    cen: ArrayLike,
    rad: ArrayLike,
    off: ArrayLike,
    costs: Costs | None = None,
) -> PairProblem:
    """Return the problem of matching two aligned specimens.

    Parameters
    ----------
    left, right
        in one frame and unit.
    cen, rad, off
        (3,) variances of position, size and offset that all nuclei share, in squared units.
    costs
        weights, thresholds and the cost of leaving a nucleus unmatched.
    """
    costs = costs or Costs()
    expected = Gaussians(
        _writable(left.centroids), _shared(cen, "cen"), _writable(left.radii), _shared(rad, "rad")
    )
    starts, ends = neighbour_graph(left.centroids, costs.neighbours)
    offsets = Offsets(starts, ends, np.zeros((1, 3)), np.sqrt(_shared(off, "off")))
    return _problem(expected, offsets, right, costs)


def _writable(values: ArrayLike) -> NDArray[np.float64]:
    """Return a copy; kernels would be compiled a second time for a specimen's locked arrays."""
    return np.array(values, dtype=np.float64)


def _shared(variances: ArrayLike, what: str) -> NDArray[np.float64]:
    values = np.asarray(variances, dtype=np.float64)
    if values.shape != (3,) or not (values > 0).all():
        raise ProblemError(
            f"variances '{what}' are {values.tolist()}; expected three positive numbers"
        )
    return np.diag(1.0 / values)[None]


def _problem(expected: Gaussians, offsets: Offsets, right: Specimen, costs: Costs) -> PairProblem:
    """Return the problem of matching expected nuclei to those of a specimen."""
    cen, rad, off = costs.weights
    limits = Limits(cen, rad, costs.nu_cen, costs.tau_cen, costs.tau_rad, costs.least)
    points = _writable(right.centroids)
    found = candidates(expected, points, _writable(right.radii), limits)
    layout, rows = table_layout(found.starts, offsets.starts, offsets.ends)
    values = fill_offsets(
        found.starts,
        found.labels,
        expected.means,
        points,
        offsets,
        rows,
        layout,
        off,
        costs.nu_off,
    )
    arrays = Arrays(
        found.starts,
        found.labels,
        found.owners,
        found.linear - costs.unassigned,
        found.column_starts,
        found.column_items,
        offsets.starts,
        offsets.ends,
        layout,
        rows,
        np.empty(0, dtype=np.int32),
        values,
        np.zeros(1),
    )
    return PairProblem(len(expected.means), len(right), arrays)
