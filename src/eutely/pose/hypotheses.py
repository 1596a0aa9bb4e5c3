"""Possible poses of a specimen from the positions of its nuclei, the most plausible first."""

from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from eutely.errors import SpecimenError
from eutely.geometry import spacing
from eutely.pose.pose import Pose, body
from eutely.pose.symmetry import best_rolls, mirror_agreement, without_centre_line
from eutely.specimen import Specimen

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
