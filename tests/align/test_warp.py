"""Affine maps and warps: what they must recover, and what they must not do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.align.affine import fit_affine
from eutely.align.warp import Span, fit_warp

SPAN = Span(-550.0, 550.0, 20.0)


def body(seed: int, count: int = 200) -> np.ndarray:
    """A long body: x within +-500, y and z within +-20."""
    return np.random.default_rng(seed).uniform(-1, 1, (count, 3)) * [500, 20, 20]


@given(st.integers(0, 1000))
def test_affine_ignores_wrong_matches(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix = np.eye(3) + random.uniform(-0.1, 0.1, (3, 3))
    points = random.normal(size=(100, 3)) * 10
    targets = points @ matrix.T + [1.0, 2.0, 3.0] + random.normal(size=points.shape) * 0.01
    targets[:10] += random.normal(size=(10, 3)) * 30
    found, shift = fit_affine(points, targets)
    np.testing.assert_allclose(found, matrix, atol=0.01)
    np.testing.assert_allclose(shift, [1, 2, 3], atol=0.05)


@given(st.integers(0, 1000))
def test_affine_never_mirrors_or_collapses(seed: int) -> None:
    random = np.random.default_rng(seed)
    points, targets = random.normal(size=(2, 30, 3))
    matrix, _ = fit_affine(points, targets * [1, 1, -0.01], stretch=1.2)
    values = np.linalg.svd(matrix, compute_uv=False)
    assert np.linalg.det(matrix) > 0
    assert values.min() >= 1 / 1.2 - 1e-9
    assert values.max() <= 1.2 + 1e-9


def test_warp_undoes_a_twist() -> None:
    points = body(0)
    angle = points[:, 0] / 500 * np.radians(25)
    y, z = points[:, 1], points[:, 2]
    turned = np.stack(
        [
            points[:, 0],
            np.cos(angle) * y - np.sin(angle) * z,
            np.sin(angle) * y + np.cos(angle) * z,
        ],
        axis=1,
    )
    warp = fit_warp(turned, points, np.ones(len(points)), SPAN)
    assert np.abs(warp(turned) - points).mean() < 0.25 * np.abs(turned - points).mean()


def test_no_match_no_warp() -> None:
    points = body(1)
    warp = fit_warp(points, points + 50, np.zeros(len(points)), SPAN)
    np.testing.assert_allclose(warp(points), points)


@pytest.mark.parametrize("end", [-550.0, 550.0])
def test_beyond_its_ends_the_warp_moves_like_the_end(end: float) -> None:
    points = body(2)
    warp = fit_warp(points, points + [5.0, 0, 0], np.ones(len(points)), SPAN)
    here, beyond = np.array([[end, 0.0, 0.0]]), np.array([[20 * end, 0.0, 0.0]])
    np.testing.assert_allclose(warp(beyond) - beyond, warp(here) - here)
    assert (warp(here) - here)[0, 0] > 1


def test_without_splines_a_warp_is_affine() -> None:
    points = body(4)
    matrix = np.eye(3) + np.random.default_rng(4).uniform(-0.05, 0.05, (3, 3))
    warp = fit_warp(
        points, points @ matrix.T + 3.0, np.ones(len(points)), SPAN._replace(smooth=False)
    )
    new = body(5)
    np.testing.assert_allclose(warp(new), new @ matrix.T + 3.0, atol=1.0)
    halves = warp(new / 2) - warp(np.zeros_like(new))
    np.testing.assert_allclose(2 * halves, warp(new) - warp(np.zeros_like(new)), atol=1e-9)


@pytest.mark.parametrize("span", [SPAN, SPAN._replace(smooth=False)])
def test_nothing_pulls_nothing_moves(span: Span) -> None:
    nothing, points = np.empty((0, 3)), body(6)
    np.testing.assert_array_equal(fit_warp(nothing, nothing, np.empty(0), span)(points), points)
