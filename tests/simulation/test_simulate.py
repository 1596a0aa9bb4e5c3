import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely import EutelyError, simulate
from eutely.simulation import Variation, body_plan, difficulty


@pytest.fixture(scope="module")
def worms():
    return simulate(20)


def test_default_difficulty_is_that_of_real_worms(worms):
    """benchmarks/simulate.py measures the same figures in real worms."""
    measured = difficulty(worms)
    assert measured.spacing == pytest.approx(13, rel=0.05)
    assert measured.sd == pytest.approx([10.9, 3.0, 2.1], rel=0.1)
    assert measured.plain == pytest.approx(0.88, abs=0.02)
    assert measured.weighted == pytest.approx(0.955, abs=0.015)
    assert measured.shared == pytest.approx([0.33, 0.43, 0.34], abs=0.1)


def test_truth_is_complete_and_rows_carry_no_meaning(worms):
    names = set(body_plan().names)
    assert all(len(worm) == 558 and set(worm.names) == names for worm in worms)
    assert len({worm.name for worm in worms}) == 20
    assert worms[0].names != worms[1].names
    assert not np.array_equal(worms[0].ids, worms[1].ids)
    assert not np.array_equal(np.sort(worms[0].ids), worms[0].ids)


def test_no_mirror_images(worms):
    """The linear map that takes the plan to an individual never turns the inside out."""
    plan = body_plan()
    row = {name: number for number, name in enumerate(plan.names)}
    for worm in worms:
        there = plan.centroids[[row[name] for name in worm.names]]
        ones = np.c_[there, np.ones(len(there))]
        linear = np.linalg.lstsq(ones, worm.centroids, rcond=None)[0][:3]
        assert np.linalg.det(linear) > 0
        assert np.linalg.det(worm.axes) == pytest.approx(
            np.linalg.det(plan.axes[[row[name] for name in worm.names]])
        )


def test_poses_are_all_over_the_place(worms):
    heads = []
    for worm in worms:
        points = worm.centroids - worm.centroids.mean(axis=0)
        axis = np.linalg.svd(points, full_matrices=False)[2][0]
        heads.append(axis * -np.sign(np.sum((points @ axis) ** 3)))
    assert np.linalg.norm(np.mean(heads, axis=0)) < 0.5
    assert np.abs(heads).max(axis=0).min() > 0.7


def test_axis_pose_keeps_the_body_along_x():
    for worm in simulate(6, 60, pose="axis"):
        spread = worm.centroids.std(axis=0)
        assert spread[0] > 5 * spread[1:].max()
    turned = [worm.centroids[worm.names.index("m001")] for worm in simulate(6, 60, pose="axis")]
    still = [worm.centroids[worm.names.index("m001")] for worm in simulate(6, 60, pose="none")]
    assert not np.allclose(turned, still)


def test_individuals_do_not_depend_on_the_size_of_the_cohort():
    few, many = simulate(2, 40, seed=3), simulate(5, 40, seed=3)
    assert few == many[:2]
    assert few != simulate(2, 40, seed=4)
    assert few[0] != few[1]


def test_two_cohorts_of_one_organism():
    first, second = simulate(1, 40, seed=1, variation=0), simulate(1, 40, seed=2, variation=0)
    different = simulate(1, body_plan(40, seed=9), seed=1, variation=0)

    def distances(worm):
        rows = np.argsort(worm.names)
        points = worm.centroids[rows]
        return np.linalg.norm(points[:, None] - points, axis=2)

    assert distances(first[0]) == pytest.approx(distances(second[0]))
    assert distances(first[0]) != pytest.approx(distances(different[0]))


def test_anatomy_stays_when_errors_come():
    clean, flawed = simulate(1, 100), simulate(1, 100, missing=0.2, spurious=0.3)
    where = dict(zip(clean[0].names, clean[0].centroids.tolist(), strict=True))
    named = [row for row, name in enumerate(flawed[0].names) if name]
    assert 60 < len(named) < 95
    for row in named:
        assert flawed[0].centroids[row] == pytest.approx(where[flawed[0].names[row]])


def test_all_lengths_grow_with_spacing():
    small, large = simulate(1, 50)[0], simulate(1, body_plan(50, spacing=26))[0]
    assert large.centroids == pytest.approx(2 * small.centroids)
    assert large.radii == pytest.approx(2 * small.radii)


def test_each_kind_of_variation_can_be_chosen():
    still = Variation().scaled(0)
    plan = body_plan(80)
    bent = simulate(1, 80, pose="none", variation=Variation(**{**vars(still), "bend": (0.1, 0.0)}))
    points = dict(zip(bent[0].names, bent[0].centroids, strict=True))
    moved = np.array([points[name] for name in plan.names]) - plan.centroids
    assert np.abs(moved[:, 1]).max() > plan.spacing
    assert np.abs(moved[:, 2]).max() < plan.spacing / 10


@given(st.integers(4, 30), st.integers(0, 50))
def test_small_organisms(cells, seed):
    worm = simulate(1, body_plan(cells, seed=seed), seed=seed)[0]
    assert len(worm) == len(set(worm.names)) == cells


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"specimens": 0}, "0 specimens"),
        ({"cells": 3}, "3 cells"),
        ({"seed": -1}, "seed -1"),
        ({"variation": -1.0}, "variation -1.0"),
        ({"pose": "upright"}, "pose 'upright'"),
        ({"missing": -0.1}, "missing is -0.1"),
        ({"split": 1.1}, "split is 1.1"),
        ({"spurious": float("inf")}, "spurious is inf"),
        ({"radius_noise": float("nan")}, "radius_noise is nan"),
    ],
)
def test_bad_arguments_are_one_line(wrong, words):
    with pytest.raises(EutelyError, match=words) as caught:
        simulate(**{"specimens": 1, "cells": 10, **wrong})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"seed": -1}, "plan seed -1"),
        ({"spacing": 0.0}, "spacing 0.0"),
        ({"spacing": float("nan")}, "spacing nan"),
    ],
)
def test_bad_plans_are_refused(wrong, words):
    with pytest.raises(EutelyError, match=words):
        body_plan(10, **wrong)


def test_bad_variation_is_refused():
    with pytest.raises(EutelyError, match="'twist' is -1"):
        Variation(twist=-1)
