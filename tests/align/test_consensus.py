"""Re-alignment of a cohort: poses, target, affine maps."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eutely.config.model import Realign
from eutely.execute import Executor, open_executor
from eutely.learned import Parameters
from eutely.align.affine import fit_affine
from eutely.align.consensus import Aligned, align, fitted, realign, settle_poses

Points = NDArray[np.float64]
TURNS = [np.diag(signs) for signs in ([1.0, 1, 1], [1, -1, -1], [-1, -1, 1], [-1, 1, -1])]
"""The poses that look alike: rolled over, turned round, both."""


@pytest.fixture(scope="module")
def executor() -> Executor:
    with open_executor(1) as one:
        yield one


def cohort(count: int = 6, stranger: bool = False) -> tuple[list[list[Points]], list[Points]]:
    """Return the poses of bodies of 40 cells, each sheared a little; some in a wrong first pose."""
    plan = np.random.default_rng(5)
    cells = plan.normal(size=(40, 3)) * [60, 12, 8] + [0, 3, 0]
    random = np.random.default_rng(1)
    poses = []
    for number in range(count):
        shear = np.eye(3) + random.normal(0, 0.03, (3, 3))
        own = plan.normal(size=(40, 3)) * [60, 12, 8] if stranger and number == 0 else cells
        points = own @ shear.T + random.normal(0, 0.3, (40, 3))
        wrong = number in (2, 4)
        poses.append([points @ TURNS[turn ^ (2 * wrong)] for turn in range(4)])
    return poses, [np.full((40, 3), 2.0) for _ in range(count)]


def aligned(executor: Executor, **how: bool) -> Aligned:
    poses, radii = cohort(**how)
    return align(poses, radii, spacing=7.0, settings=Realign(), executor=executor)


def test_poses_are_settled_by_the_majority(executor: Executor) -> None:
    chosen = settle_poses(cohort()[0], spacing=7.0, executor=executor)
    assert chosen.tolist() == [0, 0, 2, 0, 2, 0]


def test_specimens_come_to_lie_on_each_other(executor: Executor) -> None:
    found = aligned(executor)
    for frame in found.frames:
        assert np.abs(frame - found.frames[found.target]).max() < 3
    # What the shears had moved: the fits undo it.
    poses, _ = cohort()
    before = [own[pose] for own, pose in zip(poses, found.poses, strict=True)]
    goal = found.frames[found.target]
    apart = np.mean([np.linalg.norm(one - goal, axis=1).mean() for one in before])
    now = np.mean([np.linalg.norm(one - goal, axis=1).mean() for one in found.frames])
    assert now < apart / 2


def test_a_stranger_is_no_target_and_stands_out(executor: Executor) -> None:
    found = aligned(executor, stranger=True)
    assert found.target != 0
    assert found.distance[0] > 2 * found.distance[1:].max()
    assert found.distance[found.target] == 0


def test_the_learned_model_aligns_too_whoever_works(executor: Executor) -> None:
    before = aligned(executor)
    how = Parameters((49, 9, 9), (9, 9, 9), (49, 9, 9), 5)
    found = []
    for workers in (1, 2):
        with open_executor(workers) as others:
            found.append(realign(before, how, settings=Realign(iterations=2), executor=others))
    for one, two in zip(found[0].frames, found[1].frames, strict=True):
        np.testing.assert_array_equal(one, two)
    goal = before.frames[before.target]
    assert max(np.abs(frame - goal).max() for frame in found[0].frames) < 3


def test_no_iterations_change_nothing(executor: Executor) -> None:
    poses, radii = cohort()
    found = align(poses, radii, spacing=7.0, settings=Realign(iterations=0), executor=executor)
    for own, pose, frame in zip(poses, found.poses, found.frames, strict=True):
        np.testing.assert_array_equal(own[pose], frame)


def test_wrong_matches_can_neither_mirror_nor_collapse() -> None:
    points = np.random.default_rng(0).normal(size=(50, 3))
    for goal in (points * [1, 1, -1], points * 0.01):
        matrix, _ = fit_affine(points, goal, stretch=1.5)
        assert np.linalg.det(matrix) > 0
        lengths = np.linalg.svd(matrix, compute_uv=False)
        assert lengths.min() >= 1 / 1.5 - 1e-9
        assert lengths.max() <= 1.5 + 1e-9


def test_the_worst_matches_do_not_count_and_too_few_fit_nothing() -> None:
    points = np.random.default_rng(0).normal(size=(50, 3))
    goal = points + [0.5, 0, 0]
    goal[:4] += 1000.0
    partners = np.arange(50, dtype=np.int32)
    matrix, shift = fitted(points, points, goal, partners, Realign(trim=0.1))
    np.testing.assert_allclose(matrix, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(shift, [0.5, 0, 0], atol=1e-9)
    partners[3:] = -1
    matrix, shift = fitted(points, points, goal, partners, Realign())
    np.testing.assert_array_equal(matrix, np.eye(3))
    np.testing.assert_array_equal(shift, np.zeros(3))
