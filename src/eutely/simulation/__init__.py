"""Simulated cohorts with known truth, as hard as real worms, with optional segmentation errors.

Modules: ``plan`` (typical positions of cells), ``deform`` (how individuals differ),
``segmentation`` (errors), ``volume`` (label volumes), ``difficulty`` (how hard a cohort is).
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eutely.errors import EutelyError, expect_number, expect_whole
from eutely.simulation.deform import Variation, individual
from eutely.simulation.difficulty import Difficulty, difficulty
from eutely.simulation.plan import Plan, body_plan, rotations
from eutely.simulation.segmentation import Flaws, Nuclei, flaws_of, segmented
from eutely.specimen import MICROMETRE, Specimen

__all__ = ["Difficulty", "Flaws", "Plan", "Variation", "body_plan", "difficulty", "simulate"]

Pose = Literal["any", "axis", "none"]
"""How specimens are turned; see `simulate`."""

_ANATOMY, _POSE, _ERRORS, _ORDER = range(4)
"""Numbers of the random streams of an individual."""


def simulate(
    specimens: int = 30,
    cells: int | Plan = 558,
    *,
    seed: int = 0,
    variation: float | Variation = 1.0,
    pose: Pose = "any",
    **flaws: float,
) -> list[Specimen]:
    """Simulate a cohort of one organism in which every nucleus has its true cell name.

    Individual k depends only on ``seed`` and k: it is the same in a cohort of 10 or of 100, and
    its anatomy and pose are the same with and without segmentation errors.

    Parameters
    ----------
    specimens
        number of individuals.
    cells
        number of cells of the organism, at least 4; or its body plan, see `body_plan`, for another
        organism or another size.
    seed
        of the individuals.
    variation
        how much individuals differ: a factor on the differences of real worms (0: not at all), or
        each kind of difference separately.
    pose
        ``any`` rotation and shift; ``axis``: the body stays along x, head at either end, any
        roll; ``none``: head to +x, back to +y, right side to +z. Never a mirror image.
    flaws
        segmentation errors: ``missing``, ``spurious``, ``split``, ``merged``, ``shift``,
        ``radius_noise``; see `Flaws`.

    Returns
    -------
    list of Specimen
        in micrometres, with shuffled rows and arbitrary ids; ``names`` are the true names.

    Examples
    --------
    >>> from eutely import simulate
    >>> cohort = simulate(3, cells=40, seed=7, missing=0.1)
    >>> [len(worm) for worm in cohort]
    [36, 36, 38]
    """
    expect_whole("specimens", specimens)
    expect_whole("seed", seed)
    if not isinstance(cells, Plan):
        expect_whole("cells", cells)
    if not isinstance(variation, Variation):
        expect_number("variation", variation)
    if specimens < 1:
        raise EutelyError(f"cannot simulate {specimens} specimens; give 1 or more")
    if seed < 0:
        raise EutelyError(f"seed {seed} is negative; give 0 or more")
    if pose not in ("any", "axis", "none"):
        raise EutelyError(f"pose '{pose}' is unknown; give any, axis or none")
    if not isinstance(variation, Variation):
        variation = Variation().scaled(variation)
    errors = flaws_of(flaws)
    plan = cells if isinstance(cells, Plan) else body_plan(cells)
    return [_specimen(plan, variation, pose, errors, seed, k) for k in range(specimens)]


def _specimen(
    plan: Plan, variation: Variation, pose: Pose, flaws: Flaws, seed: int, k: int
) -> Specimen:
    """Return individual ``k``: anatomy, segmented, posed, in random order."""
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
    """Return the random generator for one part of individual ``k``."""
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
