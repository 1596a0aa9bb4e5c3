from dataclasses import replace

import numpy as np
import pytest

from eutely import EutelyError, simulate
from eutely.simulation import Variation, body_plan, difficulty

STILL = Variation().scaled(0)


def test_affine_differences_are_no_difficulty():
    measured = difficulty(simulate(5, 60, variation=Variation(**{**vars(STILL), "shear": 0.0})))
    assert measured.sd == pytest.approx([0, 0, 0], abs=1e-6)
    assert measured.plain == 1


def test_mean_shape_is_the_plan():
    plan = body_plan(60)
    measured = difficulty(simulate(4, 60, variation=0))
    order = np.argsort(plan.names)
    there = plan.centroids - plan.centroids.mean(axis=0)
    off = np.linalg.norm(measured.mean - there[order], axis=1)
    assert off.max() < plan.spacing / 2  # the body's axis need not be the main axis


def test_jitter_is_not_shared_and_stretch_is():
    jitter = simulate(10, 200, variation=Variation(**{**vars(STILL), "jitter": (0.1, 0.1, 0.1)}))
    stretch = simulate(10, 200, variation=Variation(**{**vars(STILL), "stretch": 0.02}))
    assert difficulty(jitter).shared[0] < 0.1
    assert difficulty(stretch).shared[0] > 0.8


def test_cells_that_some_lack_do_not_count():
    measured = difficulty(simulate(3, 100, missing=0.05, spurious=0.1))
    assert 70 < len(measured.mean) < 95


def test_names_are_needed():
    with pytest.raises(EutelyError, match="named"):
        difficulty([worm.without_names() for worm in simulate(2, 10)])
    with pytest.raises(EutelyError, match="0 cells"):
        difficulty([*simulate(1, 10), replace(*simulate(1, 10), names=tuple("abcdefghij"))])
