"""An atlas follows the specimens of a series, as far as they are many and likelier by it."""

from __future__ import annotations

import numpy as np
import pytest

import eutely
from eutely.atlas import Atlas
from eutely.config import resolve
from eutely.fit.model import model_of_atlas
from eutely.fit.refit import place_standing
from eutely.series.shared import PRIOR, by_cell, gain, shifted
from toy_bodies import CELLS, atlas_of_bodies, bodies, posed

MOVED = np.array([4.0, -2.0, 1.0])


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    cohort = eutely.simulate(specimens=6, cells=60, variation=0.5)
    config = resolve(overrides={"refine.folds": 2})
    return eutely.build(cohort, config=config, supervised=True, workers=1).atlas


def test_cells_move_by_their_share(atlas: Atlas) -> None:
    moved = MOVED
    places = np.repeat((atlas.means + moved)[None], 5, axis=0)
    places[:, 3] = np.nan  # nobody has this cell
    places[1:, 7] = np.nan
    scored = np.full((5, len(atlas), 3), 0.6)
    scored[:, 3] = np.nan
    result = shifted(atlas, places, scored)
    before = atlas.feature_means
    np.testing.assert_allclose(result.feature_means[0], (3.0 + PRIOR * before[0]) / (5 + PRIOR))
    np.testing.assert_allclose(result.feature_means[3], before[3], rtol=1e-12)
    np.testing.assert_allclose(result.means[0], atlas.means[0] + moved * 5 / (5 + PRIOR))
    np.testing.assert_allclose(result.means[7], atlas.means[7] + moved / (1 + PRIOR))
    np.testing.assert_array_equal(result.means[3], atlas.means[3])
    first, second = atlas.edges.T
    change = (result.means - atlas.means)[first] - (result.means - atlas.means)[second]
    np.testing.assert_allclose(result.offsets - atlas.offsets, change, atol=1e-12)


def test_nobody_there_moves_nothing(atlas: Atlas) -> None:
    for nobody in (np.full((2, len(atlas), 3), np.nan), np.empty((0, len(atlas), 3))):
        assert shifted(atlas, nobody, nobody) is atlas


def test_values_of_nuclei_are_ordered_by_their_cells() -> None:
    model = model_of_atlas(atlas_of_bodies())
    (body,) = bodies(1, seed=3)
    fit = place_standing(model, posed(body[::-1].copy())).fit
    nuclei = fit.nuclei.copy()
    table = by_cell(fit, fit.posed)
    assert table.shape == (CELLS, 3)
    matched = nuclei >= 0
    np.testing.assert_array_equal(table[matched], fit.posed[nuclei[matched]])
    assert np.isnan(table[~matched]).all()


def test_a_shift_that_others_show_makes_a_specimen_of_their_series_likelier() -> None:
    atlas = atlas_of_bodies()
    model = model_of_atlas(atlas)
    push = np.random.default_rng(5).normal(0, 2.0, (CELLS, 3))

    def places(seed: int, count: int, sign: float) -> np.ndarray:
        return np.stack([
            by_cell(one.fit, one.fit.warped)
            for one in (place_standing(model, posed(b + sign * push)) for b in bodies(count, seed))
        ])  # fmt: skip

    none = np.zeros((20, CELLS, 0))
    moved = model_of_atlas(shifted(atlas, places(10, 20, 1.0), none))
    for sign, better in ((1.0, True), (-1.0, False)):
        points = bodies(1, seed=3)[0] + sign * push
        fit = place_standing(model, posed(points)).fit
        assert (gain(model, moved, fit, points) > 0) == better
