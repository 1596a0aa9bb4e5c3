"""Bodies so large that nuclei lie several neighbours off their cells before any warp."""

import numpy as np
import pytest

import eutely
from eutely.config import Config
from eutely.find.hands import single_model
from eutely.fit.model import Model
from eutely.fit.poses import nearest_pose, plausible_poses
from eutely.fit.soft import LARGE, soft_warp
from eutely.frame import Points
from eutely.pose import anonymous, framed, oriented
from eutely.tasks.build import in_order

CELLS = 1500


@pytest.fixture(scope="module")
def bodies() -> tuple[Model, tuple[Points, ...], Points]:
    """Return the cells of a specimen, the poses of another, and the places of its cells."""
    cohort = in_order(eutely.simulate(2, cells=CELLS, seed=1))
    frame = framed([oriented(anonymous(one, "one")) for one in cohort], (), scale=True, smooth=True)
    model = single_model(frame, frame.specimens[0], Config().estimate)
    first, second = (one.names or () for one in cohort)
    number = {name: at for at, name in enumerate(first)}
    cells = np.array([number[name] for name in second])
    return model, frame.specimens[1].poses, model.means[cells]


def apart(points: Points, places: Points, model: Model) -> float:
    """Return the median distance of nuclei from their cells, in typical distances of neighbours."""
    distances = np.linalg.norm(points - places, axis=1)
    return float(np.median(distances)) / model.body.spacing


def test_the_right_pose_is_the_nearest(bodies: tuple[Model, tuple[Points, ...], Points]) -> None:
    model, poses, places = bodies
    assert len(poses[0]) > LARGE
    right = min(poses, key=lambda posed: apart(posed, places, model))
    for order in (poses, poses[::-1]):
        assert nearest_pose(model, order) is right
        assert plausible_poses(model, order)[0] is right


def test_a_warp_brings_nuclei_to_their_cells(
    bodies: tuple[Model, tuple[Points, ...], Points],
) -> None:
    model, poses, places = bodies
    right = min(poses, key=lambda posed: apart(posed, places, model))
    far = right + 2.0 * model.body.spacing * np.array([1.0, 0.0, 0.0])
    rough, gentle = soft_warp(model, far, None), soft_warp(model, far, None, warped=far)
    assert apart(rough, places, model) < 0.8 * apart(gentle, places, model), "no rough warp first"
    assert apart(rough, places, model) < 0.6 * apart(far, places, model)
