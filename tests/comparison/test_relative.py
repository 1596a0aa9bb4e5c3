"""Places relative to neighbours: what all do does not count, what one does alone does."""

import numpy as np
import pytest

from eutely.comparison.relative import centred, relative, reliability

Cells = np.random.default_rng(0).uniform(size=(150, 3)) * np.array([20.0, 4.0, 4.0])


def cohort(animals: int = 20, seed: int = 1) -> np.ndarray:
    return Cells + 0.1 * np.random.default_rng(seed).normal(size=(animals, 150, 3))


def test_an_affine_deformation_of_half_of_the_animals_is_removed() -> None:
    places = cohort()
    plain = relative(*_centred(places))
    deformed = places.copy()
    deformed[10:] = deformed[10:] * np.array([1.2, 0.9, 1.0]) + np.array([1.0, 2.0, 3.0])
    apart = relative(*_centred(deformed))
    difference = np.linalg.norm(apart[10:].mean(axis=0) - apart[:10].mean(axis=0), axis=1)
    before = np.linalg.norm(plain[10:].mean(axis=0) - plain[:10].mean(axis=0), axis=1)
    assert np.median(difference) < 1.5 * np.median(before)
    assert np.linalg.norm(deformed[10:].mean(axis=(0, 1)) - Cells.mean(axis=0)) > 1.0


def test_a_bend_is_removed_nearly() -> None:
    places = cohort()
    bent = places.copy()
    bent[10:, :, 1] += 0.02 * (bent[10:, :, 0] - 10.0) ** 2
    apart = relative(*_centred(bent))
    moved = np.abs(bent[10:].mean(axis=0) - bent[:10].mean(axis=0))[:, 1]
    left = np.abs(apart[10:].mean(axis=0) - apart[:10].mean(axis=0))[:, 1]
    assert np.median(left) < 0.15 * np.median(moved)


def test_a_cell_that_moved_does_not_take_its_neighbours_along() -> None:
    places = cohort(40)
    places[20:, 5, 0] += 3.0
    displaced, weights, means = _centred(places)
    apart = relative(displaced, weights, means)
    trust = reliability(apart, weights, np.ones(150))
    assert trust[5] < 0.01
    assert np.median(trust) > 0.5
    again = relative(displaced, weights * trust, means)
    shifts = [(one[20:] - one[:20]).mean(axis=0)[:, 0] for one in (apart, again)]
    assert shifts[1][5] == pytest.approx(3.0, abs=0.2)
    others = np.delete(np.arange(150), 5)
    assert np.abs(shifts[1][others]).max() < 0.6 * np.abs(shifts[0][others]).max()


def test_missing_cells_are_left_out() -> None:
    places = cohort()
    places[3, 7] = np.nan
    apart = relative(*_centred(places))
    assert np.isnan(apart[3, 7]).all()
    assert np.isfinite(np.delete(apart[3], 7, axis=0)).all()


def test_cells_of_a_set_do_not_predict_each_other() -> None:
    places = cohort()
    members = np.full(150, -1, dtype=np.int64)
    members[np.argsort(Cells[:, 0])[60:72]] = 0
    places[10:, members == 0, 2] += 1.0
    displaced, weights, means = _centred(places)
    apart = relative(displaced, weights, means, members)
    shift = (apart[10:] - apart[:10]).mean(axis=0)[members == 0, 2]
    assert np.median(shift) == pytest.approx(1.0, abs=0.15)


def _centred(places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    weights = np.isfinite(places[..., 0]) * 1.0
    displaced, means = centred(places, weights)
    return displaced, weights, means
