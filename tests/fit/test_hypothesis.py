"""What is known about a specimen before its nuclei are looked at."""

from __future__ import annotations

import numpy as np
import pytest

from eutely.fit.hypothesis import ANY_UNIT, SAME_UNIT, Hypothesis, Prior, Scale


def test_a_specimen_of_the_unit_of_the_atlas_has_its_scale() -> None:
    prior = Prior.of(7.0, same=1.0)
    assert prior == Prior((Scale(0.0, SAME_UNIT),), (False, True))
    assert prior.log(np.eye(3)) > prior.log(1.3 * np.eye(3)) > prior.log(7.0 * np.eye(3))


def test_the_scale_of_any_other_is_that_of_distances_of_neighbours() -> None:
    prior = Prior.of(7.0, same=0.0, hands=(True,))
    assert prior == Prior((Scale(np.log(7.0), ANY_UNIT),), (True,))
    assert prior.log(7.0 * np.eye(3)) > prior.log(5.0 * np.eye(3)) > prior.log(np.eye(3))


def test_a_unit_that_may_be_that_of_the_atlas_is_one_possibility_of_two() -> None:
    prior = Prior.of(7.0, same=0.9)
    assert [scale.weight for scale in prior.scales] == pytest.approx([0.9, 0.1])
    same, other = (Prior((scale,)) for scale in prior.scales)
    for size in (0.9, 1.0, 3.0, 7.0):
        matrix = size * np.eye(3)
        assert prior.log(matrix) == pytest.approx(np.logaddexp(same.log(matrix), other.log(matrix)))
    at_one, at_seven = prior.log(np.eye(3)), prior.log(7.0 * np.eye(3))
    # The true scale is likelier by its weight, and by how much better it is known.
    assert at_one - at_seven == pytest.approx(np.log(9.0 * ANY_UNIT / SAME_UNIT), abs=1e-3)


def test_scales_that_are_considered_are_around_the_centre() -> None:
    low, high = Scale(np.log(2.0), 0.1).range
    assert low < 2.0 < high
    assert low * high == pytest.approx(4.0)


def test_stretched_specimens_are_less_likely_and_turned_or_mirrored_ones_are_not() -> None:
    prior = Prior.of(1.0, same=1.0)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for matrix in (turn, turn @ np.diag([1.0, 1.0, -1.0])):
        assert prior.log(matrix) == pytest.approx(prior.log(np.eye(3)))
    longer = np.diag([1.2, 1 / np.sqrt(1.2), 1 / np.sqrt(1.2)])
    longest = np.diag([2.0, 1 / np.sqrt(2.0), 1 / np.sqrt(2.0)])
    assert prior.log(np.eye(3)) > prior.log(longer) > prior.log(longest)


def test_a_hypothesis_maps_points() -> None:
    matrix, shift = np.diag([2.0, 2.0, -2.0]), np.array([1.0, 2.0, 3.0])
    one = Hypothesis(matrix, shift, Scale(0.0, 0.1), mirrored=True)
    np.testing.assert_allclose(one(np.ones((2, 3))), [[3.0, 4.0, 1.0]] * 2)
    assert one.mirrored
