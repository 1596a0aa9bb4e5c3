"""Linear costs of all pairs of nuclei, as one matrix (equations 2 and 3)."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eutely.costs.gaussian import variances
from eutely.kernel import kernel
from eutely.specimen import Specimen


def dense_costs(
    left: Specimen,
    right: Specimen,
    cen: ArrayLike,
    rad: ArrayLike | None = None,
    c0: float = 10000.0,
) -> NDArray[np.float64]:
    """Return the costs of matching any two nuclei of aligned specimens: (n_left, n_right).

    The dense counterpart of `eutely.costs.gaussian.between`, without costs of offsets; see
    `eutely.solver.solve_dense`.

    Parameters
    ----------
    left, right
        in one frame and unit.
    cen, rad
        (3,) variances of position and size that all nuclei share, in squared units; without
        ``rad`` sizes do not count, nor do those that are not known.
    c0
        cost of leaving a nucleus unmatched, subtracted from all costs.
    """
    roots = np.sqrt(1.0 / variances(cen, "cen"))
    sizes = np.zeros(3) if rad is None else np.sqrt(1.0 / variances(rad, "rad"))
    costs: NDArray[np.float64] = _costs(
        np.ascontiguousarray((left.centroids * roots).T),
        np.ascontiguousarray((right.centroids * roots).T),
        np.ascontiguousarray((left.radii * sizes).T),
        np.ascontiguousarray((right.radii * sizes).T),
        float(c0),
    )
    return costs


@kernel
def _costs(left: Any, right: Any, left_radii: Any, right_radii: Any, c0: float) -> Any:
    """Return squared distances of positions and sizes, given as (3, n) and (3, m), minus c0."""
    n, m = left.shape[1], right.shape[1]
    costs = np.empty((n, m))
    for i in range(n):
        row = costs[i]
        for s in range(m):
            x, y, z = left[0, i] - right[0, s], left[1, i] - right[1, s], left[2, i] - right[2, s]
            row[s] = x * x + y * y + z * z - c0
        a, b, c = left_radii[0, i], left_radii[1, i], left_radii[2, i]
        if np.isnan(a + b + c):
            continue
        for s in range(m):
            x, y, z = a - right_radii[0, s], b - right_radii[1, s], c - right_radii[2, s]
            size = x * x + y * y + z * z
            row[s] += size if size == size else 0.0
    return costs
