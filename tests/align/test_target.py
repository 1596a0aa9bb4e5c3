"""Which specimens may be targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eutely.align.target import FEWEST_COMPLETE, usual_specimens
from eutely.frame import Body, Frame, Posed


def frame_with(counts: Sequence[int], parts: Sequence[int] = ()) -> Frame:
    """Return a frame of specimens with so many nuclei; ``parts`` are those that show a part."""
    random = np.random.default_rng(0)
    specimens = []
    for number, count in enumerate(counts):
        points = random.normal(size=(count, 3))
        unknown = np.full((count, 3), np.nan)
        specimens.append(Posed((points,), unknown, np.zeros((count, 0)), part=number in parts))
    return Frame(tuple(specimens), Body(np.array([3.0, 1.0]), 1.0))


def test_specimens_with_about_the_usual_number_of_nuclei_are_targets() -> None:
    assert usual_specimens(frame_with([100, 98, 95, 60, 140])).tolist() == [0, 1, 2]


def test_a_cohort_without_a_usual_number_has_targets_all_the_same() -> None:
    assert usual_specimens(frame_with([10, 30])).tolist() == [0, 1]


def test_beside_parts_the_most_complete_specimens_are_targets() -> None:
    complete = [100] * FEWEST_COMPLETE
    cohort = frame_with([*complete, 95, 60], parts=[FEWEST_COMPLETE + 1])
    assert usual_specimens(cohort).tolist() == list(range(FEWEST_COMPLETE))


def test_a_few_complete_specimens_beside_parts_are_not_the_only_targets() -> None:
    cohort = frame_with([100, 95, 93, 60], parts=[3])
    assert usual_specimens(cohort).tolist() == [0, 1, 2]
