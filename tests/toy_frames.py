"""Small cohorts for tests: frames of specimens, cells on a line, and runs without a folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eutely.cells import Cells
from eutely.config import Config
from eutely.execute import Executor
from eutely.frame import Body, Frame, canonical_order
from eutely.pose import anonymous, framed, oriented
from eutely.specimen import Specimen
from eutely.steps import Run
from eutely.store import Memory


def in_canonical_order(specimens: Sequence[Specimen]) -> list[Specimen]:
    """Return the specimens with their nuclei in the order of a frame."""
    return [one.take(canonical_order(one)) for one in specimens]


def frame_of(specimens: Sequence[Specimen], *, smooth: bool = True) -> Frame:
    """Bring specimens into one frame, without features."""
    poses = [oriented(anonymous(one, one.name)) for one in specimens]
    return framed(poses, (), scale=True, smooth=smooth)


def run_in_memory(config: Config, executor: Executor) -> Run:
    return Run(config, executor, Memory())


def cells_on_a_line(count: int, cells: int, seed: int = 0) -> Cells:
    r"""Return specimens whose nuclei are in the order of their cells, which are 10 apart.

    0 ---- 1 ---- 2 ---- 3 ----   each with an error of 1 along x, y and z
    """
    random = np.random.default_rng(seed)
    means = np.zeros((cells, 3))
    means[:, 0] = 10.0 * np.arange(cells)
    points = tuple(means + random.normal(size=means.shape) for _ in range(count))
    nuclei = tuple(np.arange(cells, dtype=np.int32) for _ in range(count))
    scores = tuple(np.zeros((cells, 0)) for _ in range(count))
    return Cells(points, points, nuclei, scores, Body(np.array([3.0 * cells, 1.0]), 10.0))
