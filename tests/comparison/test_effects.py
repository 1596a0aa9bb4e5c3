"""Effects: intervals cover the truth, lengths are free of chance, detectable effects are found."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from eutely.comparison.design import Contrast, Design, contrasts
from eutely.comparison.effects import detectable, effects_of, intervals, spread_residuals
from eutely.comparison.permutations import permutations
from eutely.comparison.scores import result_of, scores_of


def question(first: int, second: int) -> Contrast:
    labels = ["a"] * first + ["b"] * second
    (contrast,) = contrasts(["a", "b"], labels, list(map(str, range(first + second))), Design())
    return contrast


@pytest.mark.parametrize("animals", [5, 20])
@pytest.mark.parametrize("length", [0.0, 1.0, 4.0])
def test_intervals_of_lengths_cover_the_truth(animals: int, length: float) -> None:
    random = np.random.default_rng(animals)
    contrast = question(animals, animals)
    values = random.normal(size=(2 * animals, 400, 3)) * np.array([1.0, 0.7, 0.5])
    values[animals:, :, 1] += length
    found = scores_of(values, np.ones((2 * animals, 400)), contrast.nuisance)
    effect, low, high = intervals(effects_of(values, found, contrast))
    assert (low <= effect).all()
    assert (effect <= high).all()
    assert 0.92 <= np.mean((low <= length) & (length <= high)) <= 1.0
    assert np.median(effect) == pytest.approx(length, abs=0.3)


def test_signed_differences_are_those_of_welch() -> None:
    random = np.random.default_rng(3)
    contrast = question(30, 20)
    values = random.normal(size=(50, 200, 1))
    values[30:] = 2.0 * values[30:] + 0.5
    found = scores_of(values, np.ones((50, 200)), contrast.nuisance, clip=False)
    effect, low, high = intervals(effects_of(values, found, contrast))
    np.testing.assert_allclose(effect, values[30:, :, 0].mean(0) - values[:30, :, 0].mean(0))
    welch = ttest_ind(values[30:, :, 0], values[:30, :, 0], equal_var=False)
    bounds = welch.confidence_interval()
    assert np.median((high - low) / (bounds.high - bounds.low)) == pytest.approx(1.0, abs=0.1)
    assert 0.9 <= np.mean((low <= 0.5) & (high >= 0.5)) <= 0.99


def test_a_detectable_shift_is_found_in_most_experiments() -> None:
    random = np.random.default_rng(5)
    contrast = question(15, 15)
    exchanged = permutations(contrast, 1000, 0)
    values = random.normal(size=(30, 200, 3))
    weights = np.ones((30, 200))
    found = scores_of(values, weights, contrast.nuisance)
    result = result_of(found, contrast, exchanged, pooled=True, deflate=1.0)
    reach = detectable(effects_of(values, found, contrast), result.threshold, 30)
    way = random.normal(size=(200, 3))
    way *= (np.median(reach) / np.linalg.norm(way, axis=1))[:, None]
    moved = values.copy()
    moved[15:, ::4] += way[::4]
    again = scores_of(moved, weights, contrast.nuisance)
    second = result_of(again, contrast, exchanged, pooled=True, deflate=1.0)
    assert 0.6 <= (second.family[::4] <= 0.05).mean() <= 0.97


def test_scatter_is_measured_from_the_own_centre() -> None:
    random = np.random.default_rng(6)
    contrast = question(25, 15)
    values = random.normal(size=(40, 100, 3))
    values[25:] += 10.0  # a shift is no scatter
    values[25:, :30] *= 1.0
    wide = values.copy()
    centre = wide[25:].mean(axis=0)
    wide[25:] = centre + 2.0 * (wide[25:] - centre)
    for table, ratio in ((values, 1.0), (wide, 2.0)):
        found = scores_of(table, np.ones((40, 100)), contrast.nuisance)
        lengths = spread_residuals(table, found, contrast)
        difference = lengths[25:].mean() - lengths[:25].mean()
        assert np.exp(difference) == pytest.approx(ratio, rel=0.08)


def test_a_cell_that_no_animal_has_is_not_known() -> None:
    contrast = question(4, 4)
    values = np.random.default_rng(7).normal(size=(8, 3, 3))
    values[:, 1] = np.nan
    found = scores_of(values, np.ones((8, 3)), contrast.nuisance)
    effect, low, high = intervals(effects_of(values, found, contrast))
    assert np.isnan([effect[1], low[1], high[1]]).all()
    assert np.isfinite([effect[[0, 2]], low[[0, 2]], high[[0, 2]]]).all()
