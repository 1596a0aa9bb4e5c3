"""Named nuclei become cells; all specimens are aligned by true correspondence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.config import Config
from eutely.errors import EutelyError
from eutely.evaluation import comparable, spellings
from eutely.find.refine import Cohort
from eutely.specimen import Specimen
from eutely.find.named.base import SHARED, base_maps

ROUNDS = 3
"""Rounds of warping all specimens to the mean of their cells; they settle in two or three."""


def names_of(specimens: Sequence[Specimen]) -> tuple[str, ...]:
    """Return all names in their usual spelling, in the order of the alphabet."""
    found = spellings(one.names or () for one in specimens)
    return tuple(found[key] for key in sorted(found))


def cells_by_name(
    specimens: Sequence[Specimen],
    poses: Sequence[Sequence[NDArray[np.float64]]],
    size: NDArray[np.float64],
    spacing: float,
    settings: Config,
) -> Cohort:
    """Return the cohort whose cells are the names; aligned by true correspondence.

    By the method ``learn`` specimens are first fitted to a base by affine maps, as in the paper;
    they are warped to the mean of all unless ``realign.warp`` is off.

    Parameters
    ----------
    specimens
        with names; nuclei without one belong to no cell. Of nuclei with the same name in one
        specimen the first counts.
    poses
        for each specimen its nuclei (n, 3) in each plausible pose.
    size, spacing
        of the common frame.
    settings
        of the run.
    """
    names = names_of(specimens)
    if len(names) < SHARED:
        raise EutelyError(
            f"{len(names)} different names in all specimens; a supervised atlas needs named nuclei "
            "(column 'name')"
        )
    nuclei = [_nuclei(one, names) for one in specimens]
    base = int(np.argmax([(own >= 0).sum() for own in nuclei]))
    chosen = [
        _nearest_pose(one, own, poses[base][0], nuclei[base])
        for one, own in zip(poses, nuclei, strict=True)
    ]
    cohort = Cohort(tuple(chosen), tuple(chosen), tuple(nuclei), size, spacing)
    if settings.method == "learn":
        maps = base_maps(cohort.places(), settings.estimate)[1]
        moved = (one @ matrix.T + shift for one, (matrix, shift) in zip(chosen, maps, strict=True))
        cohort = replace(cohort, warped=tuple(moved))
        if not settings.realign.warp:
            return cohort
    for _ in range(ROUNDS):
        cohort = cohort.rewarped(settings.estimate)
    return cohort


def _nuclei(specimen: Specimen, names: Sequence[str]) -> NDArray[np.int32]:
    first: dict[str, int] = {}
    for number, name in enumerate(specimen.names or ()):
        first.setdefault(comparable(name), number)
    return np.array([first.get(comparable(name), -1) for name in names], dtype=np.int32)


def _nearest_pose(
    poses: Sequence[NDArray[np.float64]],
    nuclei: NDArray[np.int32],
    base: NDArray[np.float64],
    base_nuclei: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Return the pose in which the nuclei lie nearest to those of the base with the same names."""
    both = (nuclei >= 0) & (base_nuclei >= 0)
    if both.sum() < SHARED:
        return poses[0]
    goal = base[base_nuclei[both]]
    apart = [float(((posed[nuclei[both]] - goal) ** 2).sum()) for posed in poses]
    return poses[int(np.argmin(apart))]
