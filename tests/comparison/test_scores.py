"""Tests hold: p-values are uniform under the null, exact for few animals, and known where known."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import fisher_exact, kstest, permutation_test

from eutely.comparison.design import Contrast, Design, contrasts
from eutely.comparison.permutations import permutations
from eutely.comparison.scores import benjamini_hochberg, result_of, scores_of


def question(first: int, second: int) -> Contrast:
    labels = ["a"] * first + ["b"] * second
    (contrast,) = contrasts(["a", "b"], labels, list(map(str, range(first + second))), Design())
    return contrast


def test_p_values_are_uniform_and_family_wise_errors_rare() -> None:
    contrast = question(8, 8)
    exchanged = permutations(contrast, 500, 0)
    p, family, false = [], [], []
    for seed in range(40):
        random = np.random.default_rng(seed)
        values = random.standard_t(4, (16, 60, 3))
        weights = random.beta(8, 1, (16, 60)) * (random.random((16, 60)) < 0.95)
        found = scores_of(values, weights, contrast.nuisance)
        result = result_of(found, contrast, exchanged, pooled=True, deflate=1.0)
        p.append(result.p)
        family.append(result.family.min() <= 0.05)
        false.append(result.q.min() <= 0.05)
    assert kstest(np.concatenate(p), "uniform").statistic < 0.03
    assert np.mean(family) <= 0.15
    assert np.mean(false) <= 0.15


def test_few_animals_are_compared_exactly() -> None:
    contrast = question(3, 4)
    exchanged = permutations(contrast, 10_000, 0)
    assert exchanged.exact
    assert len(exchanged.values) == 35
    assert len(np.unique(exchanged.values.round(9), axis=0)) == 35
    values = np.random.default_rng(1).normal(size=(7, 5, 1))
    weights = np.ones((7, 5))
    found = scores_of(values, weights, contrast.nuisance, clip=False)
    result = result_of(found, contrast, exchanged, pooled=False, deflate=1.0)
    for cell in range(5):
        column = values[:, cell, 0]
        differences = [
            abs(column[list(chosen)].mean() - np.delete(column, chosen).mean())
            for chosen in combinations(range(7), 4)
        ]
        observed = abs(column[3:].mean() - column[:3].mean())
        expected = np.mean(np.array(differences) >= observed - 1e-9)
        assert result.p[cell] == pytest.approx(expected)


def test_presence_agrees_with_fishers_test() -> None:
    contrast = question(10, 10)
    counts = np.ones((20, 1, 1))
    counts[[0, 11, 12, 13, 14, 15, 16]] = 0
    found = scores_of(counts, np.ones((20, 1)), contrast.nuisance, clip=False)
    result = result_of(
        found, contrast, permutations(contrast, 20_000, 0), pooled=False, deflate=1.0
    )
    table = [[9, 1], [4, 6]]
    assert result.p[0] == pytest.approx(fisher_exact(table).pvalue, abs=0.01)


def test_a_difference_agrees_with_scipy() -> None:
    contrast = question(12, 12)
    values = np.random.default_rng(4).normal(size=(24, 1, 1))
    values[12:] += 0.8
    found = scores_of(values, np.ones((24, 1)), contrast.nuisance, clip=False)
    result = result_of(
        found, contrast, permutations(contrast, 20_000, 0), pooled=False, deflate=1.0
    )
    first, second = values[:12, 0, 0], values[12:, 0, 0]
    expected = permutation_test(
        (first, second), lambda a, b: abs(a.mean() - b.mean()), alternative="greater",
        n_resamples=20_000, rng=0,
    ).pvalue  # fmt: skip
    assert result.p[0] == pytest.approx(expected, abs=0.01)


def test_an_animal_far_off_does_not_make_a_finding() -> None:
    contrast = question(10, 10)
    values = np.random.default_rng(2).normal(size=(20, 30, 3))
    values[15, 7] += 60.0
    found = scores_of(values, np.ones((20, 30)), contrast.nuisance)
    assert found.weights[15, 7] < 0.3
    result = result_of(found, contrast, permutations(contrast, 2000, 0), pooled=True, deflate=1.0)
    assert result.q[7] > 0.05


def test_false_discovery_rates_are_monotone_and_bounded() -> None:
    p = np.array([0.001, 0.2, 0.01, 0.9, 0.012])
    q = benjamini_hochberg(p)
    np.testing.assert_allclose(q, [0.005, 0.25, 0.02, 0.9, 0.02])


def test_constant_cells_are_not_tested() -> None:
    contrast = question(4, 4)
    values = np.zeros((8, 2, 1))
    values[:, 1, 0] = np.arange(8)
    found = scores_of(values, np.ones((8, 2)), contrast.nuisance)
    result = result_of(found, contrast, permutations(contrast, 100, 0), pooled=False, deflate=1.0)
    assert np.isnan(result.p[0])
    assert result.p[1] == pytest.approx(2 / 70)


def test_missing_cells_are_found_among_cells_that_rarely_miss() -> None:
    random = np.random.default_rng(0)
    contrast = question(10, 10)
    exchanged = permutations(contrast, 500, 0)
    counts = (random.random((20, 300)) > 0.02).astype(np.float64)
    null = scores_of(counts[..., None], np.ones_like(counts), contrast.nuisance, clip=False)
    assert not (result_of(null, contrast, exchanged, pooled=True, deflate=1.0).q <= 0.05).any()
    counts[13:, :15] = 0.0  # seven of ten animals
    found = scores_of(counts[..., None], np.ones_like(counts), contrast.nuisance, clip=False)
    q = result_of(found, contrast, exchanged, pooled=True, deflate=1.0).q
    assert (q[:15] <= 0.05).sum() >= 12
    assert not (q[15:] <= 0.05).any()
