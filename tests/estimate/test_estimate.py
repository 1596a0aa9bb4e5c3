"""Estimation of Gaussians: exact where it can be, robust and shrunk where it must be."""

import numpy as np
import pytest

from eutely.config.model import Estimate
from eutely.errors import AtlasError
from eutely.estimate import estimate, joint_gaussians, robust_gaussians
from eutely.frame import Body

BODY = Body(np.array([10.0, 5.0]), 4.0)


def cohort(count: int, seed: int = 0) -> np.ndarray:
    """Eight cells on a line, 4 apart, that move together by 2 and each by itself by 0.5."""
    random = np.random.default_rng(seed)
    means = np.zeros((8, 3))
    means[:, 0] = 4.0 * np.arange(8)
    together = 2 * random.normal(size=(count, 1, 3))
    return means + together + 0.5 * random.normal(size=(count, 8, 3))


def test_outliers_hardly_move_a_mean() -> None:
    places = cohort(50)
    spoilt = places.copy()
    spoilt[0, 3] += 1000
    clean, dirty = robust_gaussians(places, Estimate()), robust_gaussians(spoilt, Estimate())
    assert np.abs(clean.means[3] - dirty.means[3]).max() < 0.3


def test_a_cell_seen_once_has_the_typical_covariance() -> None:
    places = cohort(40)
    places[1:, 2] = np.nan
    found = robust_gaussians(places, Estimate())
    typical = np.trace(np.median(found.covariances, axis=0))
    assert 0.5 < np.trace(found.covariances[2]) / typical < 1.2
    np.testing.assert_allclose(found.means[2], places[0, 2])


def test_cells_seen_once_do_not_narrow_the_others() -> None:
    places = cohort(40)
    usual = robust_gaussians(places, Estimate())
    many = np.concatenate([places, *[places[:, :1] + 100.0 * n for n in range(1, 40)]], axis=1)
    many[1:, places.shape[1] :] = np.nan
    found = robust_gaussians(many, Estimate())
    np.testing.assert_allclose(found.covariances[1], usual.covariances[1], rtol=0.2)


def test_neighbours_predict_where_a_cell_is() -> None:
    little = Estimate.model_construct(shrinkage=1.0, fade=50.0)
    atlas = estimate(cohort(200), BODY, little)
    # Apart from the common shift a cell moves by 0.5, in variance 0.25 of 4.25.
    ratio = np.trace(atlas.conditionals, axis1=1, axis2=2) / np.trace(
        atlas.covariances, axis1=1, axis2=2
    )
    assert ratio.max() < 0.15
    shift = np.array([1.0, -1.0, 0.5])
    expected = np.einsum("mkij,j->mi", atlas.predictors, shift)
    assert np.abs(expected - shift).max() < 0.4


def test_two_specimens_are_enough_and_rare_cells_are_flagged() -> None:
    places = cohort(4)
    places[1:, 5] = np.nan
    atlas = estimate(places, BODY, Estimate())
    assert atlas.rare.tolist() == [False] * 5 + [True] + [False] * 2
    assert atlas.seen[5] == 1
    assert estimate(places[:2], BODY, Estimate()).specimens == 2


def test_edges_go_to_the_nearest() -> None:
    atlas = estimate(cohort(30), BODY, Estimate(), neighbours=1)
    assert (np.diff(atlas.edges, axis=1) == 1).all()
    assert len(np.unique(atlas.edges)) == 8


def test_a_cell_that_nobody_has_is_an_error() -> None:
    places = cohort(5)
    places[:, 1] = np.nan
    with pytest.raises(AtlasError, match="at least one specimen"):
        estimate(places, BODY, Estimate())


def test_the_prior_counts_for_more_where_few_of_the_parts_show_a_cell() -> None:
    settings = Estimate.model_construct(shrinkage=5.0, strength=0.0, fade=50.0)
    places = cohort(40)
    same, whole = (joint_gaussians(places, 4.0, settings, partial=p) for p in (True, False))
    np.testing.assert_allclose(same.predictors, whole.predictors, atol=1e-9)
    np.testing.assert_allclose(same.conditionals, whole.conditionals, atol=1e-9)
    places[4:, 6:] = np.nan  # most are cut in front of the last two cells
    parts = joint_gaussians(places, 4.0, settings, partial=True)
    as_if_all = joint_gaussians(places, 4.0, settings)
    # By a prior without correlations, a cell of four specimens is predicted less well.
    left = [np.trace(joint.conditionals[7]) for joint in (parts, as_if_all)]
    assert left[0] > 1.5 * left[1]
    np.testing.assert_allclose(parts.conditionals[0], as_if_all.conditionals[0], atol=0.02)
