"""The origin of a specimen: which specimens were imaged alike, so that they share a handedness.

Whether coordinates are a mirror image of the animal depends on the microscope and on the program
that wrote them, not on the animal. Both leave a trace: centroids of whole voxels lie on a grid.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.specimen import MICROMETRE, Specimen

FEWEST = 20
"""Nuclei whose coordinates show a grid."""

STRAY = 0.1
"""Deviation from the grid, in its steps, that rounding in a file explains."""


def origin_of(specimen: Specimen) -> str:
    """Return the series of a specimen, or else the grid of its voxels; "" if neither is known.

    The grid needs micrometres: numbers of voxels are whole with every microscope.
    """
    if specimen.series:
        return specimen.series
    if specimen.unit != MICROMETRE or len(specimen) < FEWEST:
        return ""
    steps = [_step(column) for column in specimen.centroids.T]
    if not all(steps):
        return ""
    return "voxels of " + " x ".join(f"{step:.2g}" for step in steps) + f" {MICROMETRE}"


def _step(values: NDArray[np.float64]) -> float:
    """Return the step of which all differences of coordinates (n,) are multiples; 0 if none is."""
    apart = np.diff(np.unique(values.round(6)))
    if not len(apart):
        return 0.0
    step = float(apart.min())
    steps = apart / step
    on_grid = np.abs(steps - steps.round()) < STRAY * np.sqrt(steps)
    # Without a grid the smallest difference is tiny: multiples of it are everywhere.
    return step if on_grid.all() and np.median(steps) < 1 / STRAY else 0.0


def groups_of(origins: Sequence[str]) -> list[list[int]]:
    """Return the numbers of the specimens of each origin; those of no known one are together."""
    return [
        [at for at, other in enumerate(origins) if other == origin]
        for origin in sorted(set(origins))
    ]
