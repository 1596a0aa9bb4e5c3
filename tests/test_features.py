"""Features tell cells apart where they agree between specimens, and nothing where they do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import eutely
from eutely.agreement import agreement, at_random
from eutely.candidates import Candidates, PairCosts
from eutely.config import resolve
from eutely.errors import EutelyError
from eutely.evaluation import majority_names, pre_atlas
from eutely.features import cell_means, discriminating_scores, feature_costs, feature_names, scores
from eutely.informative import informative
from eutely.specimen import Specimen

N = 200


def specimen(**features: NDArray[np.float64]) -> Specimen:
    count = len(next(iter(features.values())))
    places = np.random.default_rng(0).normal(size=(count, 3))
    return Specimen.from_arrays("one", places, features=features)


@given(st.floats(0.01, 100), st.floats(-1e3, 1e3))
def test_scores_do_not_depend_on_the_unit(factor: float, shift: float) -> None:
    values = np.random.default_rng(1).normal(size=40)
    first = scores(specimen(colour=values), ["colour"])
    second = scores(specimen(colour=factor * values + shift), ["colour"])
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_scores_of_odd_columns() -> None:
    one = specimen(same=np.ones(9), some=np.array([np.nan, *range(8)]), drawn=np.eye(9)[0])
    found = scores(one, ["same", "some", "drawn", "unheard of"])
    np.testing.assert_array_equal(found[:, 0], 0.0)
    assert np.isnan(found[0, 1])
    assert np.isfinite(found[1:, 1]).all()
    assert np.isfinite(found[:, 2]).all()
    assert found[0, 2] > 1
    assert np.isnan(found[:, 3]).all()


def test_which_columns_are_features() -> None:
    values = np.random.default_rng(2).normal(size=8)
    one = specimen(
        colour=values, voxels=values, number=np.arange(3.0, 11.0), frame=np.ones(8), depth=values
    )
    other = specimen(colour=values)
    assert feature_names([one, one]) == ("colour", "depth")
    assert feature_names([one, other]) == ("colour",)
    assert feature_names([one, one], "depth, frame") == ("depth",)
    with pytest.raises(EutelyError, match="no specimen has the feature 'unheard of'; there are"):
        feature_names([one, one], "depth, unheard of")
    assert feature_names([one], "none") == ()
    round_ones = Specimen.from_arrays(
        "two", np.zeros((8, 3)) + np.arange(8)[:, None], radii=np.exp(values)[:, None] * np.ones(3)
    )
    assert feature_names([round_ones]) == ("radius 1", "radius 2", "radius 3")
    assert feature_names([round_ones], "radius") == feature_names([round_ones])


def drawn(noise: float, seed: int = 3) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return means of cells and values of their nuclei, two features each."""
    random = np.random.default_rng(seed)
    means = random.normal(size=(N, 2))
    return means, means + noise * random.normal(size=(N, 2))


def table(costs: PairCosts | None) -> NDArray[np.float64]:
    """Return the costs of all pairs: (N, N)."""
    assert costs is not None
    values = costs.on(Candidates.every(N, N))
    every = values.reshape(N, N)
    assert (costs.least <= every.min(axis=0)).all()
    return every


def test_a_telling_feature_favours_the_right_cell() -> None:
    means, values = drawn(0.3)
    costs = table(feature_costs(means, values, np.arange(N, dtype=np.int32), 8.0))
    assert np.diagonal(costs).mean() < -1
    assert costs.mean() > 1


def test_a_feature_that_disagrees_says_nothing() -> None:
    means, values = drawn(0.3)
    own = np.arange(N, dtype=np.int32)
    for wrong in (np.random.default_rng(4).permutation(values), -values):
        costs = table(feature_costs(means, wrong, own, 8.0))
        assert np.ptp(costs, axis=0).mean() < 0.5  # no cell is preferred


def test_other_exposure_is_learned_from_the_matches() -> None:
    means, values = drawn(0.3)
    own = np.arange(N, dtype=np.int32)
    both = values, 0.4 * values - 2
    plain, darker = (table(feature_costs(means, some, own, 8.0)) for some in both)
    ranks = [np.corrcoef(a, b)[0, 1] for a, b in zip(plain.T, darker.T, strict=True)]
    assert np.mean(ranks) > 0.95


def test_what_is_not_known_says_nothing() -> None:
    means, values = drawn(0.3)
    own = np.arange(N, dtype=np.int32)
    values[5] = np.nan
    values[6, 0] = np.nan
    costs = table(feature_costs(means, values, own, 8.0))
    np.testing.assert_array_equal(costs[:, 5], 0.0)
    assert np.isfinite(costs).all()
    assert np.ptp(costs[:, 6]) > 1
    assert feature_costs(means, np.full_like(values, np.nan), own, 8.0) is None
    assert feature_costs(means, values, np.full(N, -1, np.int32), 8.0) is None


def test_one_feature_twice_counts_once() -> None:
    means, values = (some[:, :1] for some in drawn(0.5))
    own = np.arange(N, dtype=np.int32)
    once = table(feature_costs(means, values, own, 8.0))
    twice = table(feature_costs(np.repeat(means, 2, 1), np.repeat(values, 2, 1), own, 8.0))
    spread = np.ptp(twice, axis=0).mean() / np.ptp(once, axis=0).mean()
    assert 0.8 < spread < 1.3


def test_means_of_cells_lean_to_the_usual() -> None:
    values = np.array([[[2.0], [np.nan]], [[2.0], [3.0]], [[2.0], [np.nan]]])
    np.testing.assert_allclose(cell_means(values), [[1.5], [1.5]])


def test_mixtures_that_tell_most() -> None:
    random = np.random.default_rng(5)
    means = np.stack([3 * random.normal(size=50), np.zeros(50)], axis=1)
    values = means + random.normal(size=(30, 50, 2))
    values[0, 0] = np.nan
    found = discriminating_scores(values)
    assert found.shape == (30, 50, 1)
    assert np.isfinite(found).all()
    assert abs(np.corrcoef(found[1, :, 0], values[1, :, 0])[0, 1]) > 0.99
    assert discriminating_scores(values[:, :, :0]).shape == (30, 50, 0)


def with_noise(table: NDArray[np.float64], count: int = 200) -> NDArray[np.float64]:
    """Return scores (..., d) with so many columns of noise behind them."""
    noise = np.random.default_rng(10).normal(size=(*table.shape[:-1], count))
    return np.concatenate([table, noise], axis=-1)


def test_among_many_features_those_that_say_nothing_are_left_out() -> None:
    random = np.random.default_rng(8)
    means = random.normal(size=(50, 2))
    values = means + random.normal(size=(12, 50, 2))
    values[random.random(values.shape) < 0.1] = np.nan
    many = with_noise(values)
    many[:, :, 5] = 1.0  # the same for all
    many[:, :, 6] = np.nan
    assert informative(values).all()
    np.testing.assert_array_equal(np.flatnonzero(informative(many)), [0, 1])
    np.testing.assert_array_equal(cell_means(many)[:, :2], cell_means(values))
    assert not cell_means(many)[:, 2:].any()
    np.testing.assert_allclose(
        np.abs(discriminating_scores(many)), np.abs(discriminating_scores(values))
    )


def test_many_features_that_say_nothing_cost_nothing() -> None:
    means, values = drawn(0.3)
    own = np.arange(N, dtype=np.int32)
    places = np.random.default_rng(9).normal(size=(N, 3))
    for there in (None, places):
        plain = feature_costs(means, values, own, 8.0, there)
        noise = np.random.default_rng(11).normal(size=(N, 200))
        noisy = np.concatenate([values, noise], axis=1)
        costs = feature_costs(with_noise(means), noisy, own, 8.0, there)
        assert plain is not None
        assert costs is not None
        pairs = Candidates.of_matching(own)
        np.testing.assert_array_equal(costs.on(pairs), plain.on(pairs))
    assert feature_costs(with_noise(means)[:, 2:], noise, own, 8.0) is None


def coloured(noise: float) -> list[Specimen]:
    """Return specimens that are hard to match by place, each cell with a colour of its own.

    Besides the colour there are 100 features that say nothing.
    """
    random = np.random.default_rng(6)
    cohort = eutely.simulate(specimens=14, cells=60, variation=1.6, seed=2)
    names = sorted({name for one in cohort for name in one.names or ()})
    colours = dict(zip(names, random.normal(size=len(names)), strict=True))
    return [
        replace(
            one,
            features={
                "colour": np.array([colours[name] for name in one.names or ()])
                + noise * random.normal(size=len(one)),
                **{f"noise {k}": random.normal(size=len(one)) for k in range(100)},
            },
        )
        for one in cohort
    ]


@pytest.mark.parametrize("supervised", [False, True])
def test_colour_helps_and_noise_does_not_harm(supervised: bool) -> None:
    cohort = coloured(0.2)
    train, new = cohort[:10], cohort[10:]
    right = {}
    for wanted in ("none", "colour", "all"):
        settings = resolve(
            overrides={
                "estimate.features": wanted,
                "refine.folds": 2,
                "refine.targets": 1,
                "refine.joint_rounds": 2,
            }
        )
        built = eutely.build(train, config=settings, supervised=supervised, workers=1)
        names = [one.names or () for one in built.specimens]
        atlas = built.atlas.named(majority_names(built.cells, names, len(built.atlas)))
        assert len(atlas.features) == {"none": 0, "colour": 1, "all": 104}[wanted]
        found = eutely.evaluate(atlas, new, workers=1).accuracies.mean()
        right[wanted] = found, pre_atlas(built.specimens, built.cells).accuracies.mean()
    assert right["colour"][0] > right["none"][0] + 0.03
    assert right["colour"][1] >= right["none"][1]
    assert right["all"][0] > right["colour"][0] - 0.02
    assert right["all"][1] > right["colour"][1] - 0.02


def test_scores_at_random_are_those_of_cells_without_scores() -> None:
    values = np.random.default_rng(3).normal(size=(80, 4)) @ np.triu(np.ones((4, 4)))
    values[:5] *= 20
    values[7, 1] = np.nan
    quick, slow = at_random(values, 3.0), agreement(np.zeros_like(values), values, 3.0)
    assert quick is not None
    assert slow is not None
    for got, expected in zip(quick[1:], slow[1:], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    assert at_random(values[:5], 3.0) is None
