"""Agreement of a body with its mirror image, for every mirror plane along its long axis."""

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import kernel

STEP = np.radians(3.0)
"""Angle between two rolls of the grid, in radians; the optimum is interpolated."""

REACH = 4.0
"""Distance, in typical distances of neighbours, beyond which a partner does not count."""

NEIGHBOURHOOD = 2.4
"""Width of the smoothing window of the centre line, in standard deviations along x / sqrt(n)."""


def without_centre_line(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``points`` with y and z relative to the smooth centre line along x.

    A bent body is not symmetric about any plane through its long axis, but its cross-sections are
    symmetric.

    Parameters
    ----------
    points
        (n, 3) float64, the long axis along x.
    """
    order = np.argsort(points[:, 0], kind="stable")
    width = NEIGHBOURHOOD / np.sqrt(len(points)) * points[:, 0].std()
    result = np.empty_like(points)
    result[order] = _without_means(np.ascontiguousarray(points[order]), width)
    return result


def mirror_agreement(points: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    r"""Return the agreement with the mirror image for each roll of a grid over half a turn.

    For the plane through x and (cos a, sin a) in (y, z), with M_a the reflection at it,

    .. math:: S(a) = 1/n \sum_i \exp(-\min_j |p_i - M_a p_j|^2 / (2 s^2)),

    the soft share of nuclei that have a partner at their mirrored place. Only the nearest
    partner counts, so that dense regions and missing or spurious nuclei get no extra weight.

    Parameters
    ----------
    points
        (n, 3) float64, relative to the centre line, the long axis along x.
    spacing
        s, the typical distance of neighbours.

    Returns
    -------
    (60,) float64
        S at the rolls 0, ``STEP``, ...; from 0 to 1.
    """
    rolls = STEP * np.arange(round(np.pi / STEP))
    scaled = points[np.argsort(points[:, 0], kind="stable")] / spacing
    distances = _nearest_mirrored(
        np.ascontiguousarray(scaled), np.cos(2 * rolls), np.sin(2 * rolls), REACH
    )
    agreement: NDArray[np.float64] = np.exp(-0.5 * distances).mean(axis=0)
    return agreement


def best_rolls(agreement: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Return the best roll, then the best roll across it, in radians, each with its agreement.

    A body with two nearly perpendicular symmetry planes gives both; the second plane lies at least
    45 degrees away, and is the plane at a right angle if there is no optimum.
    """
    count = len(agreement)
    peaks = (agreement >= np.roll(agreement, 1)) & (agreement >= np.roll(agreement, -1))
    best = int(np.argmax(agreement))
    gap = np.abs((np.arange(count) - best + count // 2) % count - count // 2)
    across = np.flatnonzero(peaks & (gap >= count // 4))
    second = (
        int(across[np.argmax(agreement[across])]) if len(across) else (best + count // 2) % count
    )
    return [_interpolated(agreement, best), _interpolated(agreement, second)]


def _interpolated(values: NDArray[np.float64], index: int) -> tuple[float, float]:
    """Return the roll at the optimum of the parabola around ``index``, and the value there."""
    before, here, after = (float(values[(index + shift) % len(values)]) for shift in (-1, 0, 1))
    bend = before - 2 * here + after
    if bend >= 0 or here < max(before, after):
        return index * STEP, here
    shift = 0.5 * (before - after) / bend
    return (index + shift) * STEP, here - 0.25 * (before - after) * shift


@kernel
def _without_means(points: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """Subtract from y and z their Gaussian-weighted means; ``points`` ascend in x."""
    count = len(points)
    result = np.empty((count, 3))
    for i in range(count):
        for a in range(3):
            result[i, a] = points[i, a]
    first = 0
    for i in range(count):
        while points[first, 0] < points[i, 0] - 4 * width:
            first += 1
        total, y, z = 0.0, 0.0, 0.0
        for j in range(first, count):
            step = (points[j, 0] - points[i, 0]) / width
            if step > 4:
                break
            weight = np.exp(-0.5 * step * step)
            total += weight
            y += weight * points[j, 1]
            z += weight * points[j, 2]
        result[i, 1] -= y / total
        result[i, 2] -= z / total
    return result


@kernel
def _nearest_mirrored(
    points: NDArray[np.float64],
    cosines: NDArray[np.float64],
    sines: NDArray[np.float64],
    reach: float,
) -> NDArray[np.float64]:
    """Return squared distances to the nearest mirrored nucleus, at most ``reach`` squared: (n, k).

    ``points`` (n, 3) ascend in x; ``cosines``, ``sines`` (k,) are those of twice the roll. In polar
    coordinates (x, r, t) of the cross-section a reflection takes t to 2a - t, so that
    d^2 = dx^2 + r_i^2 + r_j^2 - 2 r_i r_j cos(t_i + t_j - 2a), which is linear in the cosine
    and sine of 2a: the inner loop has only multiplications.
    """
    count, angles = len(points), len(cosines)
    limit = reach * reach
    nearest = np.empty((count, angles))
    squares = np.empty(count)
    for i in range(count):
        squares[i] = points[i, 1] * points[i, 1] + points[i, 2] * points[i, 2]
        for k in range(angles):
            nearest[i, k] = limit
    for i in range(count):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        for j in range(i, count):
            step = points[j, 0] - x
            if step > reach:
                break
            between = step * step + squares[i] + squares[j]
            if between - 2 * np.sqrt(squares[i] * squares[j]) >= limit:
                continue
            along = 2 * (y * points[j, 1] - z * points[j, 2])
            across = 2 * (z * points[j, 1] + y * points[j, 2])
            for k in range(angles):
                distance = between - along * cosines[k] - across * sines[k]
                nearest[i, k] = min(nearest[i, k], distance)
                nearest[j, k] = min(nearest[j, k], distance)
    return nearest
