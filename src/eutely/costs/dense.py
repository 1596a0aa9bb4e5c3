"""Linear costs of all pairs of nuclei, as one matrix (equations 1 to 3)."""

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
        in the same frame and unit.
    cen, rad
        (3,) variances of position and size that all nuclei share, in squared units. Sizes do not
        count without ``rad``, nor where they are unknown.
    c0
        cost of leaving a nucleus unmatched, subtracted from all costs.
    """
    precisions = np.zeros(6)
    precisions[:3] = 1.0 / variances(cen, "cen")
    if rad is not None:
        precisions[3:] = 1.0 / variances(rad, "rad")
    costs: NDArray[np.float64] = linear_costs(
        coordinates(left.centroids, left.radii),
        coordinates(right.centroids, right.radii),
        precisions,
        float(c0),
    )
    return costs


def coordinates(centroids: NDArray[np.float64], radii: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return centroids (n, 3) and radii (n, 3) as `linear_costs` takes them: (6, n) float64."""
    return np.ascontiguousarray(np.hstack([centroids, radii]).T, dtype=np.float64)


@kernel
def linear_costs(left: Any, right: Any, precisions: Any, c0: float) -> Any:
    """Return squared Mahalanobis distances of position and size, minus c0: (n, m) float64.

    Parameters
    ----------
    left, right
        (6, n), (6, m) float64: x, y, z and three radii; unknown radii (NaN) cost nothing.
    precisions
        (6,) float64, inverse variances.
    c0
        cost of leaving a nucleus unmatched.
    """
    n, m = left.shape[1], right.shape[1]
    costs = np.empty((n, m))
    p, q, r = precisions[0], precisions[1], precisions[2]
    u, v, w = precisions[3], precisions[4], precisions[5]
    for i in range(n):
        row = costs[i]
        for s in range(m):
            x, y, z = left[0, i] - right[0, s], left[1, i] - right[1, s], left[2, i] - right[2, s]
            row[s] = x * x * p + y * y * q + z * z * r - c0
        a, b, c = left[3, i], left[4, i], left[5, i]
        if np.isnan(a + b + c):
            continue
        for s in range(m):
            x, y, z = a - right[3, s], b - right[4, s], c - right[5, s]
            size = x * x * u + y * y * v + z * z * w
            row[s] += size if size == size else 0.0
    return costs
