"""Possible poses of a specimen from the positions of its nuclei, the most plausible first.

Agreement of a body with its mirror image, for every mirror plane along its long axis.
"""

from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from eutely.errors import SpecimenError
from eutely.geometry import spacing
from eutely.kernel import kernel
from eutely.pose.pose import Pose, body
from eutely.specimen import Specimen

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


DOUBT = 4.0
"""Standard errors by which the longest axis must exceed another one to exclude it."""

SMALLEST = 1e-30
"""Extent of a body, in any unit, below which powers of it are no numbers any more."""

FLAT = 1e-6
"""Ratio of standard deviations below which a body has no extent in a direction."""


def orient(specimen: Specimen, *, mirrored: bool = False) -> list[Pose]:
    """Return the possible poses of ``specimen``, from the positions of its nuclei alone.

    The body axis is the axis of largest variance, the head is its dense end. Roll comes from
    left-right symmetry: the plane along the body for which most nuclei have a partner at their
    mirrored place. The list holds, for this plane and for the best plane across it, both rolls
    (half a turn apart) and both directions of the body: 8 poses; 8 more for each further axis
    whose variance is not significantly smaller.

    The score is a sum of logarithms: of the normal probability that axis, head and dorsal side
    are correct, given the standard errors of the statistics that determine them, and of the
    agreement with the mirror image, per pair of nuclei.

    Parameters
    ----------
    specimen
        at least 4 nuclei at different places, not on one line. Its names, ids, radii and the
        order of its nuclei do not matter.
    mirrored
        add the mirror image of each pose, with the same score, after it.

    Returns
    -------
    list of Pose
        best first. Rotating the specimen rotates the poses.

    Raises
    ------
    SpecimenError
        if there are fewer than 4 nuclei at different places, or all lie on one line.
    """
    points = body(specimen)
    centre = points.mean(axis=0)
    points = points - centre
    variances, vectors = np.linalg.eigh(points.T @ points / len(points))
    variances, axes = variances[::-1], vectors.T[::-1]
    if 0 < variances[0] < SMALLEST**2:
        raise SpecimenError(
            f"{specimen.name}: all nuclei lie within {SMALLEST:g} of each other; check the unit"
        )
    if variances[1] <= max(FLAT**2 * variances[0], (1e-12 * np.abs(centre).max()) ** 2):
        raise SpecimenError(
            f"{specimen.name}: all nuclei lie on one line, so that roll is undefined; "
            "check the coordinates"
        )

    distance = spacing(points)
    poses = []
    for long in range(3):
        # The logarithm of a variance has the standard error sqrt(2 / n), the difference of two
        # such logarithms sqrt(4 / n).
        ratio = max(float(variances[long] / variances[0]), FLAT**2)
        lag = np.log(ratio) / np.sqrt(4 / len(points))
        if lag >= -DOUBT:
            frame = np.roll(axes, -long, axis=0)
            poses += _about(points, centre, frame, distance, float(log_ndtr(lag)))
    if mirrored:
        flip = np.diag([1.0, 1.0, -1.0])
        poses = [image for pose in poses for image in (pose, _turned(pose, flip))]
    return sorted(poses, key=lambda pose: -pose.score)


def _about(
    points: NDArray[np.float64],
    centre: NDArray[np.float64],
    frame: NDArray[np.float64],
    distance: float,
    score: float,
) -> list[Pose]:
    """Return the eight poses whose body axis is the first row of ``frame``.

    ``distance`` is the typical distance of neighbours, ``score`` the logarithm of the probability
    that this is the body axis.
    """
    frame = frame * np.array([1.0, 1.0, np.linalg.det(frame)])[:, None]
    inside = points @ frame.T
    spread = inside.var(axis=0)
    size = (float(np.sqrt(spread[0])), float(np.sqrt(spread[1:].mean())))
    straight = without_centre_line(inside)
    head = _skew(inside[:, 0])
    # With few nuclei, neighbours are as far apart as the body is wide, and every plane would agree.
    planes = best_rolls(mirror_agreement(straight, min(distance, size[1] / 2)))
    poses = []
    for roll, agreement in planes:
        dorsal = _lean(straight[:, 1:] @ np.array([np.cos(roll), np.sin(roll)]))
        for forward, upward in product((1.0, -1.0), repeat=2):
            y = upward * (np.cos(roll) * frame[1] + np.sin(roll) * frame[2])
            x = forward * frame[0]
            plausible = (
                score
                + float(log_ndtr(forward * head) + log_ndtr(upward * dorsal))
                + 0.5 * len(points) * (agreement - planes[0][1])
            )
            poses.append(_pose(np.stack([x, y, np.cross(x, y)]), centre, size, plausible))
    return poses


def _pose(
    rotation: NDArray[np.float64],
    centre: NDArray[np.float64],
    size: tuple[float, float],
    score: float,
) -> Pose:
    rotation.setflags(write=False)
    return Pose(rotation, centre, size, score)


def _turned(pose: Pose, turn: NDArray[np.float64]) -> Pose:
    return replace(pose, rotation=turn @ pose.rotation)


def _skew(values: NDArray[np.float64]) -> float:
    """Return how clearly the long tail of ``values`` is below the mean, in standard errors.

    Skewness has the standard error sqrt(6 / n). The long tail of a body is its sparse end.
    """
    inside = values - values.mean()
    spread = float(inside.std())
    if spread == 0:
        return 0.0
    return -float((inside**3).mean()) / spread**3 * float(np.sqrt(len(values) / 6))


def _lean(values: NDArray[np.float64]) -> float:
    """Return how clearly the dense side of ``values`` is the upper side, in standard errors.

    The median lies on the dense side of the mean. Their difference, in standard deviations, has
    the standard error sqrt((pi / 2 - 1) / n), and outliers move it less than the skewness.
    """
    spread = float(values.std())
    if spread == 0:
        return 0.0
    difference = float(np.median(values) - values.mean()) / spread
    return difference * float(np.sqrt(len(values) / (np.pi / 2 - 1)))
