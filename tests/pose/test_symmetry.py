import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.pose.hypotheses import REACH, STEP, best_rolls, mirror_agreement, without_centre_line


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.floats(0.1, 5))
def test_agreement_is_that_of_all_pairs(seed, count, spacing):
    points = np.random.default_rng(seed).normal(0, 2, (count, 3))
    agreement = mirror_agreement(points, spacing)
    for index in (0, 7, 31, 59):
        y, z = np.cos(2 * index * STEP), np.sin(2 * index * STEP)
        mirror = points @ np.array([[1, 0, 0], [0, y, z], [0, z, -y]])
        squares = ((points[:, None] - mirror[None]) ** 2).sum(2) / spacing**2
        expected = np.exp(-0.5 * np.minimum(squares.min(1), REACH**2)).mean()
        assert agreement[index] == pytest.approx(expected, abs=1e-9)


def test_a_symmetric_body_agrees_with_its_mirror_image_at_its_plane():
    half = np.random.default_rng(0).normal(0, 3, (50, 3))
    body = np.vstack([half, half * [1, 1, -1]])
    agreement = mirror_agreement(body, 1.0)
    assert agreement[0] == pytest.approx(1)
    assert agreement.argmax() == 0


@given(st.floats(0, np.pi), st.floats(0.1, 1))
def test_the_optimum_is_interpolated_and_the_plane_across_comes_second(angle, height):
    rolls = STEP * np.arange(60)
    waves = height * np.cos(4 * (rolls - angle)) + 0.3 * height * np.cos(2 * (rolls - angle))
    (first, best), (second, lower) = best_rolls(waves)
    assert np.sin(first - angle) == pytest.approx(0, abs=0.002)
    assert np.cos(second - angle) == pytest.approx(0, abs=0.002)
    assert best == pytest.approx(1.3 * height, rel=0.01)
    assert lower == pytest.approx(0.7 * height, rel=0.01)


def test_a_plane_at_a_right_angle_stands_in_where_no_optimum_is_across():
    first, second = best_rolls(np.cos(2 * STEP * (np.arange(60) - 10)))
    assert first[0] == pytest.approx(10 * STEP)
    assert second[0] == pytest.approx(40 * STEP)


def test_a_bent_body_is_straightened():
    rng = np.random.default_rng(1)
    body = np.column_stack([rng.uniform(-100, 100, 2000), rng.normal(0, 3, (2000, 2))])
    bent = body + np.column_stack([np.zeros(2000), 0.002 * body[:, 0] ** 2, 0.05 * body[:, 0]])
    inner = np.abs(body[:, 0]) < 80
    straight = without_centre_line(bent)
    assert np.array_equal(straight[:, 0], body[:, 0])
    assert np.abs((straight - body)[inner, 1:]).max() < 1.0
