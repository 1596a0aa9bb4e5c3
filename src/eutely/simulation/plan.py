"""The body plan of a simulated organism: positions of cells in the typical individual."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from eutely.errors import EutelyError

Floats = NDArray[np.float64]

# The outline of a worm from the tip of the head (0) to the tip of the tail (1): half height
# relative to its maximum, and number of nuclei per length relative to its maximum.
_STATIONS = np.array([0.00, 0.05, 0.12, 0.20, 0.28, 0.35, 0.50, 0.70, 0.79, 0.83, 0.88, 0.93, 1.00])
_HEIGHT = np.array([0.45, 0.72, 0.88, 1.00, 1.00, 1.00, 0.92, 0.72, 0.60, 0.52, 0.40, 0.26, 0.12])
_CROWD = np.array([0.12, 0.40, 0.82, 0.95, 1.00, 0.22, 0.20, 0.16, 0.16, 0.34, 0.32, 0.09, 0.03])

_FLAT = 0.74
"""Ratio of half width and half height."""

_SLENDER = 38.0
"""Ratio of body length and largest half height."""

_MIDLINE = 0.14
"""Share of unpaired cells."""

_VENTRAL = 0.1
"""Share of cells restricted to the ventral half; the others lie in either half."""

_CORD = 0.5
"""Share of the midline cells that lie in the ventral cord."""

_CANDIDATES = 12
"""Random places tried for each cell; more give more even distances."""

_RADIUS = 0.5
"""Ratio of the typical radius and the typical distance of neighbours."""

_ELONGATION = 0.13
"""SD of the logarithm of a semi-axis about the radius of the cell."""

_LOOSENESS = 0.8
"""SD of the logarithm of the displacement of a cell."""


@dataclass(frozen=True)
class Plan:
    """The typical individual: x to the head, y to the back, z to the right; origin in the middle.

    Attributes
    ----------
    names
        n cell names: ``c001L`` and ``c001R`` are mirror images in z, ``m001`` lies at z = 0.
    centroids
        (n, 3) float64.
    radii
        (n, 3) float64, semi-axes, descending.
    axes
        (n, 3, 3) float64, unit vectors of the semi-axes, one per row.
    looseness
        (n,) float64, relative displacement of each cell between individuals; mean square 1.
    length
        of the body.
    spacing
        median distance of a nucleus to its nearest neighbour; all lengths are in its unit.
    """

    names: tuple[str, ...]
    centroids: Floats
    radii: Floats
    axes: Floats
    looseness: Floats
    length: float
    spacing: float


def body_plan(cells: int = 558, *, seed: int = 0, spacing: float = 13.0) -> Plan:
    """Draw the body plan of an organism: bilaterally symmetric, dense in the head.

    Parameters
    ----------
    cells
        number of cells, at least 4.
    seed
        of the plan: another seed is another organism.
    spacing
        median distance of a nucleus to its nearest neighbour, micrometres; all lengths are
        proportional to it. The default is that of real L1 larvae in voxels.
    """
    from eutely.geometry import neighbour_distances  # here, because importing SciPy is slow

    if cells < 4:
        raise EutelyError(f"cannot simulate {cells} cells; give 4 or more")
    if seed < 0:
        raise EutelyError(f"plan seed {seed} is negative; give 0 or more")
    if not 0 < spacing < np.inf:
        raise EutelyError(f"spacing {spacing} is not a length; give a positive number")
    random = np.random.default_rng(seed)
    middle = round(_MIDLINE * cells)
    middle += (cells - middle) % 2
    pairs = (cells - middle) // 2
    points = _places(pairs, middle, random)
    nearest = neighbour_distances(points)
    scale = spacing / float(np.median(nearest))
    names = [f"c{number:03d}L" for number in range(1, pairs + 1)]
    names += [f"c{number:03d}R" for number in range(1, pairs + 1)]
    names += [f"m{number:03d}" for number in range(1, middle + 1)]

    # Nuclei with more room are larger and looser. Partners share size, shape and looseness.
    size = _RADIUS * spacing * (nearest * scale / spacing) ** 0.5
    kind = np.r_[:pairs, :pairs, pairs : pairs + middle]
    shape = np.exp(_ELONGATION * random.standard_normal((pairs + middle, 3)))[kind]
    # Drawn as quantiles, so that no organism is harder than another by chance.
    levels = (random.permutation(pairs + middle) + 0.5) / (pairs + middle)
    normal = np.array([NormalDist().inv_cdf(level) for level in levels])
    loose = np.exp(_LOOSENESS * normal)[kind] * size
    axes = rotations(random, pairs + middle)[kind]
    axes[pairs : 2 * pairs, :, 2] *= -1
    order = np.argsort(-shape, axis=1)
    return Plan(
        names=tuple(names),
        centroids=points * scale,
        radii=np.take_along_axis(size[:, None] * shape, order, axis=1),
        axes=np.take_along_axis(axes, order[:, :, None], axis=1),
        looseness=loose / np.sqrt(np.mean(loose**2)),
        length=_SLENDER * scale,
        spacing=spacing,
    )


def _places(pairs: int, middle: int, random: np.random.Generator) -> Floats:
    """Return left, right and midline centroids, (n, 3), in a body of half height 1.

    Each cell in turn takes the one of a few random places that is farthest from the others, so that
    density follows the outline and yet no two nuclei coincide.
    """
    fine = np.linspace(0, 1, 2001)
    crowd = np.interp(fine, _STATIONS, _CROWD)
    share = np.cumsum(crowd) / crowd.sum()
    points = np.zeros((2 * pairs + middle, 3))
    room = np.zeros(len(points))
    taken: list[int] = []
    # Midline cells first: they have the least choice.
    for number in [*range(2 * pairs, 2 * pairs + middle), *range(pairs)]:
        station = np.interp(random.random(_CANDIDATES), share, fine)
        height = np.interp(station, _STATIONS, _HEIGHT)
        angle = random.uniform(0, 2 * np.pi, _CANDIDATES)
        reach = random.random(_CANDIDATES) ** 0.3  # more often under the skin than in the gut
        up, side = reach * np.cos(angle), np.abs(reach * np.sin(angle))
        ventral, cord = random.random(2) < [_VENTRAL, _CORD]
        if ventral:
            up = -np.abs(up)
        if number >= 2 * pairs:
            side[:] = 0
            up = 0.3 * reach - 1 if cord else np.cos(angle)
        here = np.c_[_SLENDER * (0.5 - station), height * up, height * _FLAT * side]
        # The room of a nucleus at this station if all were evenly spaced.
        local = np.cbrt(height**2 / np.interp(station, _STATIONS, _CROWD))
        distance = np.full(_CANDIDATES, np.inf)
        if taken:
            gap = np.linalg.norm(here[:, None] - points[taken], axis=2)
            distance = (2 * gap / (local[:, None] + room[taken])).min(axis=1)
        if number < pairs:
            distance = np.minimum(distance, 2 * here[:, 2] / local)
        best = int(np.argmax(distance))
        points[number], room[number] = here[best], local[best]
        taken.append(number)
        if number < pairs:
            points[number + pairs], room[number + pairs] = here[best], local[best]
            points[number, 2] *= -1
            taken.append(number + pairs)
    return points


def rotations(random: np.random.Generator, count: int) -> Floats:
    """Return (count, 3, 3), uniformly distributed random rotations."""
    w, x, y, z = np.moveaxis(_unit(random.standard_normal((count, 4))), 1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def _unit(vectors: Floats) -> Floats:
    """Return the rows of ``vectors``, normalised."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
