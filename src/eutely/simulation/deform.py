"""How an individual differs from the body plan: size, stretch, bend, twist, displaced nuclei."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from eutely.errors import EutelyError
from eutely.simulation.plan import Plan

Floats = NDArray[np.float64]
Triple = tuple[float, float, float]

_HARMONICS = np.arange(1, 6)
"""Harmonics of the smooth functions along the body."""

_WAVES = 100
"""Number of waves whose sum is a random field."""

_TAIL = 5
"""Degrees of freedom of the Student-t of jitter: a few nuclei are displaced far."""

_ROUNDS = 15
"""Rounds of pushing overlapping nuclei apart."""

_GIVE = 0.25
"""Share of an overlap by which each of the two nuclei moves in a round."""


@dataclass(frozen=True)
class Variation:
    """Differences between individuals, as standard deviations; defaults are those of real L1 worms.

    Triples are along the body (x), back to belly (y) and left to right (z).

    Attributes
    ----------
    size
        relative, of the three extents of the body.
    shear
        relative, of the cross-sections against each other and along the body.
    stretch
        of the shift along the body, smooth along the body; in body lengths.
    bend
        of the shift of the body's axis in y and in z, smooth along the body; in body lengths.
    twist
        of the roll of the tail against the head, growing along the body; in degrees.
    field
        of the shift that nearby nuclei share; in spacings.
    reach
        distance over which nuclei share that shift; in spacings.
    jitter
        of the independent shift of each nucleus; in spacings.
    swelling
        relative, of the radii.
    """

    size: Triple = (0.064, 0.047, 0.068)
    shear: float = 0.02
    stretch: float = 0.008
    bend: tuple[float, float] = (0.0021, 0.0012)
    twist: float = 12.0
    field: Triple = (0.35, 0.16, 0.09)
    reach: float = 2.5
    jitter: Triple = (0.62, 0.165, 0.105)
    swelling: float = 0.08

    def __post_init__(self) -> None:
        for entry in fields(self):
            values = np.asarray(getattr(self, entry.name), dtype=np.float64)
            if not (np.isfinite(values) & (values >= 0)).all():
                raise EutelyError(
                    f"variation '{entry.name}' is {getattr(self, entry.name)}; "
                    "give finite numbers >= 0"
                )

    def scaled(self, factor: float) -> "Variation":
        """Return the variation multiplied by ``factor``; ``reach`` stays the same."""
        if not 0 <= factor < np.inf:
            raise EutelyError(f"variation {factor} is not a factor; give a number >= 0")

        def times(value: float | tuple[float, ...]) -> float | tuple[float, ...]:
            if isinstance(value, tuple):
                return tuple(factor * part for part in value)
            return factor * value

        keys = [entry.name for entry in fields(self) if entry.name != "reach"]
        return Variation(reach=self.reach, **{key: times(getattr(self, key)) for key in keys})  # type: ignore[arg-type]


def individual(
    plan: Plan, variation: Variation, random: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Return centroids (n, 3), radii (n, 3) and axes (n, 3, 3) of one individual, without a pose.

    First nuclei are displaced, then the body around them stretches, bends and twists, then it is
    scaled and sheared; finally nuclei that would overlap are pushed apart.
    """
    from eutely.geometry import neighbour_distances  # here, because importing SciPy is slow

    stray = random.standard_t(_TAIL, plan.centroids.shape) * np.sqrt((_TAIL - 2) / _TAIL)
    stray *= plan.looseness[:, None]
    points = plan.centroids + plan.spacing * np.array(variation.jitter) * stray
    shared = _random_field(plan.centroids / plan.spacing, variation.reach, random)
    points += plan.spacing * np.array(variation.field) * shared
    points[:, 0] = np.clip(points[:, 0], -plan.length / 2, plan.length / 2)  # inside the skin
    points, turns = _along_the_body(points, plan.length, variation, random)

    scale = np.diag(np.exp(np.array(variation.size) * random.standard_normal(3)))
    shear = np.eye(3) + np.triu(variation.shear * random.standard_normal((3, 3)), 1)
    points = points @ (scale @ shear).T  # triangular with a positive diagonal: no mirror image
    room = np.minimum(neighbour_distances(plan.centroids), 1.5 * plan.spacing)
    points = _pushed_apart(points, room)

    swelling = np.exp(variation.swelling * random.standard_normal((len(points), 1)))
    return points, plan.radii * swelling, plan.axes @ np.swapaxes(turns, 1, 2)


def _along_the_body(
    points: Floats, length: float, variation: Variation, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Stretch, bend and twist; return the points (n, 3) and the rotation at each, (n, 3, 3).

    Every point keeps its position in its cross-section, which moves with the axis of the body,
    stays perpendicular to it and rolls about it.
    """
    station = 0.5 - points[:, 0] / length  # 0 at the head, 1 at the tail
    weights = random.standard_normal((4, len(_HARMONICS))) / _HARMONICS
    weights *= np.sqrt(2 / np.sum(_HARMONICS**-2.0))
    phase = np.pi * _HARMONICS * station[:, None]
    amount = np.array([variation.stretch, *variation.bend])
    shift = length * amount * (np.cos(phase) @ weights[:3].T)
    slope = amount * ((np.pi * _HARMONICS * np.sin(phase)) @ weights[:3].T)  # of shift by x

    tangent = slope + [1.0, 0.0, 0.0]
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    # The smallest rotation of the x axis to the tangent, after the roll about the x axis.
    roll = np.radians(variation.twist) * (station * random.standard_normal())
    roll += np.radians(variation.twist) / 4 * (np.cos(phase) @ weights[3])
    turns = np.zeros((len(points), 3, 3))
    sine, cosine = np.sin(roll), np.cos(roll)
    for column, (y, z) in ((1, (cosine, sine)), (2, (-sine, cosine))):
        lean = (tangent[:, 1] * y + tangent[:, 2] * z) / (1 + tangent[:, 0])
        turns[:, 0, column] = -lean * (1 + tangent[:, 0])
        turns[:, 1, column] = y - lean * tangent[:, 1]
        turns[:, 2, column] = z - lean * tangent[:, 2]
    turns[:, :, 0] = tangent
    axis = shift + points * [1.0, 0.0, 0.0]
    return axis + turns[:, :, 1] * points[:, 1:2] + turns[:, :, 2] * points[:, 2:], turns


def _random_field(places: Floats, reach: float, random: np.random.Generator) -> Floats:
    """Return a smooth random shift of variance 1 at each of the (n, 3) ``places``.

    A sum of random waves; with Student-distributed wave vectors (3 degrees of freedom) its
    correlation falls as that of a Matern field of order 3/2.
    """
    if reach == 0:
        return random.standard_normal(places.shape)
    field = np.empty(places.shape)
    for axis in range(3):
        tail = np.sqrt(random.chisquare(3, (_WAVES, 1)) / 3)
        waves = random.standard_normal((_WAVES, 3)) / (reach * tail)
        phase = random.uniform(0, 2 * np.pi, _WAVES)
        field[:, axis] = np.cos(places @ waves.T + phase).sum(axis=1) * np.sqrt(2 / _WAVES)
    return field


def _pushed_apart(points: Floats, room: Floats) -> Floats:
    """Return the (n, 3) ``points`` after pushing nuclei apart that are too close to each other.

    The target distance of a pair is the mean of the ``room`` (n,) of its two nuclei.
    """
    from scipy.spatial import cKDTree  # here, because importing SciPy is slow

    points = points.copy()
    # Nuclei move by less than half of their room, so one list of neighbours is enough.
    close = cKDTree(points).query_pairs(1.5 * room.max(), output_type="ndarray")
    first, second = close[np.lexsort(close.T[::-1])].T
    for _ in range(_ROUNDS):
        gap = points[first] - points[second]
        distance = np.maximum(np.linalg.norm(gap, axis=1), 1e-9 * room.max())
        push = np.maximum((room[first] + room[second]) / 2 - distance, 0) / distance
        give = gap * (_GIVE * push[:, None])
        for axis in range(3):
            points[:, axis] += np.bincount(first, give[:, axis], len(points))
            points[:, axis] -= np.bincount(second, give[:, axis], len(points))
    return points
