"""True rotations from names, and errors of poses against them, for tests and benchmarks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from eutely import Specimen
from eutely.pose import Pose

Array = NDArray[np.float64]


def random_motions(cohort: list[Specimen], seed: int) -> list[Specimen]:
    """Return the specimens after random rigid motions, with shuffled rows."""
    rng = np.random.default_rng(seed)
    turns = Rotation.random(len(cohort), rng).as_matrix()
    return [
        specimen.moved(turn, rng.normal(0, 1000, 3)).take(rng.permutation(len(specimen)))
        for specimen, turn in zip(cohort, turns, strict=True)
    ]


def bent(points: Array, degrees: float) -> Array:
    """Bend the long axis (x) into an arc in the plane of x and y."""
    if not degrees:
        return points
    middle = points.mean(axis=0)
    x, y, z = (points - middle).T
    radius = np.ptp(x) / np.radians(degrees)
    angle = x / radius
    return middle + np.stack(
        [(radius - y) * np.sin(angle), radius - (radius - y) * np.cos(angle), z], 1
    )


def kabsch(points: Array, target: Array) -> Array:
    """Return the proper rotation that takes centred ``points`` (n, 3) closest to ``target``."""
    left, _, right = np.linalg.svd((target - target.mean(0)).T @ (points - points.mean(0)))
    return left @ np.diag([1, 1, np.linalg.det(left @ right)]) @ right


def positions(specimen: Specimen) -> dict[str, Array]:
    assert specimen.names is not None
    return {
        name: place for name, place in zip(specimen.names, specimen.centroids, strict=True) if name
    }


def rotation_to(specimen: Specimen, target: dict[str, Array]) -> Array:
    """Return the rotation of ``specimen`` to ``target`` by the cells that both have."""
    place_of = positions(specimen)
    shared = [name for name in place_of if name in target]
    return kabsch(
        np.array([place_of[name] for name in shared]), np.array([target[name] for name in shared])
    )


def consensus(cohort: list[Specimen], rounds: int = 4) -> dict[str, Array]:
    """Return the Procrustes mean of all specimens (rotation and one scale), by names."""
    mean = positions(cohort[0])
    for _ in range(rounds):
        places: dict[str, list[Array]] = {}
        for specimen in cohort:
            place_of = positions(specimen)
            shared = [name for name in place_of if name in mean]
            points = np.array([place_of[name] for name in shared])
            target = np.array([mean[name] for name in shared])
            scale = np.sqrt(target.var(0).sum() / points.var(0).sum())
            turn = kabsch(points, target) * scale
            moved = (np.array(list(place_of.values())) - points.mean(0)) @ turn.T + target.mean(0)
            for name, place in zip(place_of, moved, strict=True):
                places.setdefault(name, []).append(place)
        mean = {
            name: np.mean(points, axis=0)
            for name, points in places.items()
            if len(points) > len(cohort) / 2
        }
    return mean


def roll(rotation: Array) -> float:
    """Return the part of ``rotation`` about x, in degrees."""
    return float(
        np.degrees(np.arctan2(rotation[2, 1] - rotation[1, 2], rotation[1, 1] + rotation[2, 2]))
    )


def wrapped(degrees: Array) -> Array:
    return (degrees + 180) % 360 - 180


def errors(
    poses: list[list[Pose]], truths: list[Array], frame: Array | None = None
) -> tuple[NDArray[np.bool_], Array, Array]:
    """Compare poses with the true rotations into a common frame.

    The canonical axes in the common frame are ``frame`` (for instance: the pose of the reference
    specimen), or without it the consensus: the direction of x that most first poses have, and
    the circular median of the roll of first poses.

    Returns
    -------
    heads (n, k) bool, right end of the body; rolls (n, k) degrees, absolute error of roll;
    tilts (n, k) degrees between the body axis and the common x. Only k poses that all have.
    """
    count = min(map(len, poses))
    found = np.array(
        [
            [pose.rotation @ truth.T for pose in ranked[:count]]
            for ranked, truth in zip(poses, truths, strict=True)
        ]
    )
    if frame is None:
        # A median over rotations: the first pose that is closest to all others.
        first = found[:, 0]
        near = np.einsum("aij,bij->ab", first, first)
        frame = first[np.argmax(np.median(near, axis=1))]
        shift = np.median(wrapped(np.array([roll(one @ frame.T) for one in first])))
        frame = Rotation.from_euler("x", shift, degrees=True).as_matrix() @ frame
    relative = found @ frame.T
    ahead = relative[..., 0, 0]
    rolls = np.array([[abs(roll(one)) for one in row] for row in relative])
    tilts = np.degrees(np.arccos(np.clip(ahead, -1, 1)))
    return ahead > 0, rolls, tilts


def best_rolls(heads: NDArray[np.bool_], rolls: Array, first: int) -> Array:
    """Return the smallest roll error among the ``first`` poses that have the head right."""
    return np.where(heads, rolls, 180.0)[:, :first].min(axis=1)
