"""Bent bodies: straight afterwards, not mirrored; and what is left alone."""

import numpy as np
import pytest

from eutely import Specimen, simulate
from eutely.pose import straighten
from poses import bent, kabsch, random_motions

WORM = simulate(1, seed=4, pose="none")[0]
LENGTH = np.ptp(WORM.centroids[:, 0])


def of(points: np.ndarray, axes: np.ndarray | None = None) -> Specimen:
    return Specimen.from_arrays(
        "worm", points, ids=np.arange(len(points)), radii=np.ones((len(points), 3)), axes=axes
    )


def off(points: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """How far each point is from its goal after the best motion, which does not mirror."""
    turn = kabsch(points, goal)
    return np.linalg.norm((points - points.mean(0)) @ turn.T - (goal - goal.mean(0)), axis=1)


def waves(points: np.ndarray, height: float) -> np.ndarray:
    """Points of a body along x laid along a wave of one and a half periods."""
    x = np.linspace(points[:, 0].min(), points[:, 0].max(), 2001)
    angle = height * np.sin(3 * np.pi * (x - x[0]) / LENGTH)
    step = np.diff(x, prepend=x[0])[:, None]
    line = np.cumsum(step * np.stack([np.cos(angle), np.sin(angle)], 1), axis=0)
    nearest = np.searchsorted(x, points[:, 0]).clip(0, len(x) - 1)
    across = np.stack([-np.sin(angle), np.cos(angle)], 1)[nearest]
    flat = line[nearest] + points[:, 1:2] * across
    return np.stack([flat[:, 0], flat[:, 1], points[:, 2]], 1)


@pytest.mark.parametrize("degrees", [40.0, 90.0, 180.0, 270.0])
def test_a_bent_body_becomes_straight(degrees: float) -> None:
    [lying] = random_motions([of(bent(WORM.centroids, degrees))], 3)
    goal = WORM.centroids[lying.ids]
    before, after = off(lying.centroids, goal), off(straighten(lying).centroids, goal)
    assert np.median(before) > 0.015 * LENGTH
    assert np.median(after) < 0.005 * LENGTH


@pytest.mark.parametrize("degrees", [18.0, 24.0])
def test_a_slight_bend_of_a_long_body_is_undone(degrees: float) -> None:
    lying = of(bent(WORM.centroids, degrees))
    straight = straighten(lying)
    assert straight is not lying
    before, after = off(lying.centroids, WORM.centroids), off(straight.centroids, WORM.centroids)
    assert np.median(after) < 0.6 * np.median(before)


@pytest.mark.parametrize("degrees", [0.0, 20.0])
def test_a_short_part_does_not_count_as_bent(degrees: float) -> None:
    """The direction of few nuclei is uncertain, and the warp copes with such a bend."""
    part = WORM.take(np.flatnonzero(WORM.centroids[:, 0] < np.quantile(WORM.centroids[:, 0], 0.3)))
    bent_part = of(bent(part.centroids, degrees))
    assert straighten(bent_part) is bent_part


def test_a_body_in_waves_becomes_straight() -> None:
    lying = of(waves(WORM.centroids, 0.7))
    assert np.median(off(lying.centroids, WORM.centroids)) > 0.02 * LENGTH
    assert np.median(off(straighten(lying).centroids, WORM.centroids)) < 0.01 * LENGTH


def test_ellipsoids_turn_along() -> None:
    turns = np.radians(120.0) * (WORM.centroids[:, 0] - WORM.centroids[:, 0].mean()) / LENGTH
    axes = np.zeros((len(WORM), 3, 3))
    axes[:, 0, :2] = np.stack([np.cos(turns), np.sin(turns)], 1)
    axes[:, 1, :2] = np.stack([-np.sin(turns), np.cos(turns)], 1)
    axes[:, 2, 2] = 1
    turned = straighten(of(bent(WORM.centroids, 120.0), axes)).axes
    assert turned is not None
    forward = np.abs(turned[:, 0, 0])
    assert np.median(forward) > 0.99


def test_order_does_not_matter() -> None:
    lying = of(bent(WORM.centroids, 90.0))
    order = np.random.default_rng(0).permutation(len(lying))
    np.testing.assert_array_equal(
        straighten(lying.take(order)).centroids, straighten(lying).centroids[order]
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", ["line", "ring", "disc", "parts"])
def test_odd_bodies_do_no_harm(shape: str) -> None:
    random = np.random.default_rng(1)
    x, angle = np.linspace(-1, 1, 300), np.linspace(0, 2 * np.pi, 300, endpoint=False)
    points = {
        "line": np.stack([x, 0 * x, 0 * x], 1),
        "ring": np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1),
        "disc": np.stack([*random.normal(size=(2, 300)), 0 * x], 1),
        "parts": random.normal(size=(300, 3)) + np.repeat([[0, 0, 0], [50, 0, 0]], 150, axis=0),
    }[shape]
    assert np.isfinite(straighten(of(100 * points)).centroids).all()


@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_bent_stays(seed: int) -> None:
    random = np.random.default_rng(seed)
    [worm] = simulate(1, seed=seed)
    ball = random.normal(size=(300, 3))
    few = bent(random.uniform(-1, 1, (20, 3)) * [500, 10, 10], 90.0)
    for specimen in (worm, of(ball), of(few)):
        assert straighten(specimen) is specimen
