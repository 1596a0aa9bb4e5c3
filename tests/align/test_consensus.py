"""Re-alignment of a cohort: poses, target, affine maps."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eutely.align.affine import fit_affine
from eutely.align.consensus import Aligned, align, fitted, realign, settle_poses
from eutely.align.target import rank_targets
from eutely.config.model import Realign
from eutely.execute import Executor, open_executor
from eutely.frame import Body, Frame, Posed
from eutely.learned import Parameters
from eutely.pairs import PairRules

Points = NDArray[np.float64]
TURNS = [np.diag(signs) for signs in ([1.0, 1, 1], [1, -1, -1], [-1, -1, 1], [-1, 1, -1])]
"""The poses that look alike: rolled over, turned round, both."""


@pytest.fixture(scope="module")
def executor() -> Executor:
    with open_executor(1) as one:
        yield one


def cohort(count: int = 6, stranger: bool = False, lacking: bool = False) -> Frame:
    """Return the poses of bodies of 40 cells, each sheared a little; some in a wrong first pose.

    One may be a stranger; or each second one may lack the last third of its cells.
    """
    plan = np.random.default_rng(5)
    cells = plan.normal(size=(40, 3)) * [60, 12, 8] + [0, 3, 0]
    random = np.random.default_rng(1)
    specimens = []
    for number in range(count):
        shear = np.eye(3) + random.normal(0, 0.03, (3, 3))
        body = plan.normal(size=(40, 3)) * [60, 12, 8] if stranger and number == 0 else cells
        points = body @ shear.T + random.normal(0, 0.3, (40, 3))
        if lacking and number % 2:
            points = points[:26]
        wrong = number in (2, 4)
        poses = tuple(points @ TURNS[turn ^ (2 * wrong)] for turn in range(4))
        specimens.append(Posed(poses, np.full(points.shape, 2.0), np.zeros((len(points), 0))))
    return Frame(tuple(specimens), Body(np.array([60.0, 12.0]), 7.0))


def aligned(executor: Executor, **how: bool) -> Aligned:
    return align(cohort(**how), Realign(), executor)


def test_poses_are_settled_by_the_majority(executor: Executor) -> None:
    chosen = settle_poses(cohort(), executor)
    assert chosen.tolist() == [0, 0, 2, 0, 2, 0]


def test_specimens_come_to_lie_on_each_other(executor: Executor) -> None:
    found = aligned(executor)
    for frame in found.frames:
        assert np.abs(frame - found.frames[found.target]).max() < 3
    # What the shears had moved: the fits undo it.
    before = [poses[pose] for poses, pose in zip(cohort().poses, found.poses, strict=True)]
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
    rules = PairRules(Parameters((49, 9, 9), (9, 9, 9), (49, 9, 9), 5), 1e4, effort="fast")
    found = []
    for workers in (1, 2):
        with open_executor(workers) as others:
            found.append(realign(before, rules, Realign(iterations=2), others))
    for one, two in zip(found[0].frames, found[1].frames, strict=True):
        np.testing.assert_array_equal(one, two)
    goal = before.frames[before.target]
    assert max(np.abs(frame - goal).max() for frame in found[0].frames) < 3


def test_no_iterations_change_nothing(executor: Executor) -> None:
    found = align(cohort(), Realign(iterations=0), executor)
    for poses, pose, frame in zip(cohort().poses, found.poses, found.frames, strict=True):
        np.testing.assert_array_equal(poses[pose], frame)


def test_a_jury_and_targets_are_there_when_no_number_of_nuclei_is_usual(
    executor: Executor,
) -> None:
    frame = cohort(lacking=True)
    assert {len(posed) for posed in frame.specimens} == {26, 40}  # the median is 33
    assert settle_poses(frame, executor).tolist() == [0, 0, 2, 0, 2, 0]
    assert sorted(rank_targets(frame, executor)) == list(range(6))


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
