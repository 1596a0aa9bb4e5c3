"""Cohorts with known truth, as hard as real worms, and segmentation errors on demand.

Rooms: ``plan`` (where cells lie in the typical individual), ``deform`` (how individuals differ),
``segmentation`` (errors), ``volume`` (label volumes), ``difficulty`` (how hard a cohort is).
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eutely.errors import EutelyError
from eutely.simulation.deform import Variation, individual
from eutely.simulation.difficulty import Difficulty, difficulty
from eutely.simulation.plan import Plan, body_plan, rotations
from eutely.simulation.segmentation import Flaws, Nuclei, segmented
from eutely.specimen import MICROMETRE, Specimen

__all__ = ["Difficulty", "Flaws", "Plan", "Variation", "body_plan", "difficulty", "simulate"]

Pose = Literal["any", "axis", "none"]

_ANATOMY, _POSE, _ERRORS, _ORDER = range(4)  # random streams of an individual


def simulate(
    specimens: int = 30,
    cells: int = 558,
    *,
    seed: int = 0,
    plan_seed: int = 0,
    spacing: float = 13.0,
    variation: float | Variation = 1.0,
    pose: Pose = "any",
    missing: float = 0.0,
    spurious: float = 0.0,
    split: float = 0.0,
    merged: float = 0.0,
    shift: float = 0.0,
    radius_noise: float = 0.0,
) -> list[Specimen]:
    """Simulate a cohort of one organism, every nucleus with its true cell name.

    Individual k depends on ``seed`` and k alone: it is the same in a cohort of 10 or of 100, and
    its anatomy and pose are the same with and without segmentation errors.

    Parameters
    ----------
    specimens
        how many individuals.
    cells
        of the organism, at least 4.
    seed
        of the individuals.
    plan_seed
        of the body plan: another one is another organism.
    spacing
        median distance of a nucleus to its nearest neighbour in the body plan, micrometres; all
        lengths grow with it. The default is that of real L1 larvae counted in voxels.
    variation
        how much individuals differ: a factor on the differences of real worms (0: not at all),
        or each kind of difference by itself.
    pose
        ``any`` rotation and shift; ``axis``: the body stays along x, head at either end, any
        roll; ``none``: head to +x, back to +y, right side to +z. Never a mirror image.
    missing, split, merged
        share of the nuclei that are not found, found as two, found as one with a neighbour.
    spurious
        made-up nuclei (with the name ""), by the number of true ones.
    shift
        SD of the error of a centroid along each axis, micrometres.
    radius_noise
        relative SD of the error of each semi-axis.

    Returns
    -------
    list of Specimen
        with shuffled rows, arbitrary ids, and in ``names`` the truth.

    Examples
    --------
    >>> from eutely import simulate
    >>> cohort = simulate(3, cells=40, seed=7, missing=0.1)
    >>> [len(worm) for worm in cohort]
    [36, 36, 38]
    """
    if specimens < 1:
        raise EutelyError(f"cannot simulate {specimens} specimens; ask for 1 or more")
    if seed < 0:
        raise EutelyError(f"seed {seed} is negative; give 0 or more")
    if pose not in ("any", "axis", "none"):
        raise EutelyError(f"pose '{pose}' is unknown; give any, axis or none")
    if not isinstance(variation, Variation):
        variation = Variation().scaled(variation)
    flaws = Flaws(missing, spurious, split, merged, shift, radius_noise)
    plan = body_plan(cells, seed=plan_seed, spacing=spacing)
    return [_specimen(plan, variation, pose, flaws, seed, k) for k in range(specimens)]


def _specimen(
    plan: Plan, variation: Variation, pose: Pose, flaws: Flaws, seed: int, k: int
) -> Specimen:
    """Return individual ``k``: its anatomy, segmented, posed, in arbitrary order."""
    names = list(plan.names)
    anatomy = Nuclei(names, *individual(plan, variation, _stream(seed, k, _ANATOMY)))
    nuclei = segmented(anatomy, flaws, _stream(seed, k, _ERRORS))
    random = _stream(seed, k, _ORDER)
    count = len(nuclei.names)
    nuclei = nuclei.take(random.permutation(count))
    ids = 1 + random.choice(10 * count, count, replace=False)
    specimen = Specimen(
        name=f"worm{k + 1:03d}",
        ids=ids,
        centroids=nuclei.centroids,
        radii=nuclei.radii,
        axes=nuclei.axes,
        names=tuple(nuclei.names),
        unit=MICROMETRE,
    )
    return specimen.moved(*_pose(pose, plan.length, _stream(seed, k, _POSE)))


def _stream(seed: int, k: int, part: int) -> np.random.Generator:
    """Return the random numbers for one part of individual ``k``."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k, part)))


def _pose(
    pose: Pose, length: float, random: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a rotation (3, 3) and a shift (3,)."""
    turn = rotations(random, 1)[0]
    move = length * random.standard_normal(3)
    if pose == "none":
        return np.eye(3), np.zeros(3)
    if pose == "axis":
        roll = random.uniform(0, 2 * np.pi)
        head = random.choice([-1.0, 1.0])
        cosine, sine = np.cos(roll), np.sin(roll)
        turn = np.array([[head, 0, 0], [0, head * cosine, -sine], [0, head * sine, cosine]])
    return turn, move
