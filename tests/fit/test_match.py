"""One specimen in its pose: which nucleus is which cell, once it is warped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.costs.near import FREE, NOBODYS
from eutely.estimate import estimate
from eutely.fit.match import Fit, Pins, match_jointly
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.posterior import nucleus_cells
from eutely.fit.warp import warp_pose
from eutely.frame import Body, Points
from toy_bodies import CELLS, atlas_of_bodies, bodies, right, turned


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    return atlas_of_bodies()


@pytest.fixture(scope="module")
def model(atlas: Atlas) -> Model:
    return model_of_atlas(atlas)


def matched(model: Model, points: Points, pins: Pins = None, scores: Points | None = None) -> Fit:
    """Match a specimen as it lies."""
    scores = np.zeros((len(points), 0)) if scores is None else scores
    fit = warp_pose(model, points, scores, pins)
    return match_jointly(model, fit, pins=pins, probabilities=True)


def test_a_pose_is_taken_as_it_is(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    assert right(matched(model, body), np.arange(CELLS)) > 0.95
    upside_down = matched(model, turned(body, 180.0, back=False))
    np.testing.assert_array_equal(upside_down.posed, turned(body, 180.0, back=False))
    assert right(upside_down, np.arange(CELLS)) < 0.6


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_the_order_of_nuclei_does_not_matter(seed: int) -> None:
    places = bodies(8, seed=0)
    model = model_of_atlas(estimate(places, Body(np.array([300.0, 20.0]), 7.0), Estimate()))
    (body,) = bodies(1, seed=seed)
    order = np.random.default_rng(seed).permutation(CELLS)
    plain, mixed = matched(model, body), matched(model, body[order])
    np.testing.assert_array_equal(order[mixed.nuclei], plain.nuclei)
    assert mixed.cost == pytest.approx(plain.cost)


def test_pins_are_respected(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    pins = np.full(CELLS, FREE, np.int32)
    pins[4], pins[20] = 30, NOBODYS
    fit = matched(model, body, pins)
    assert fit.nuclei[30] == 4
    assert 20 not in fit.nuclei
    kept = np.setdiff1d(np.arange(CELLS), [4, 20, 30])
    assert (nucleus_cells([fit], alternatives=0).cells[kept] == kept).mean() > 0.9
    unchanged = matched(model, body, np.full(CELLS, FREE, np.int32))
    np.testing.assert_array_equal(unchanged.nuclei, matched(model, body).nuclei)


def test_spurious_nuclei_are_left_out(model: Model) -> None:
    """Four nuclei far from all cells, in an otherwise complete specimen."""
    (body,) = bodies(1, seed=3)
    spurious = body[[5, 20, 35, 50]] + [0.0, 0.0, 60.0]
    fit = matched(model, np.concatenate([body, spurious]))
    truth = np.append(np.arange(CELLS), [-1] * 4)
    assert right(fit, truth) > 0.95
    assert not set(range(CELLS, CELLS + 4)) & set(fit.nuclei.tolist())
    assert fit.rates.spurious == pytest.approx(4 / CELLS, rel=0.5)


def test_missing_cells_get_no_nucleus(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    kept = np.setdiff1d(np.arange(CELLS), [7, 8, 22, 41, 42, 43, 55])
    fit = matched(model, body[kept])
    assert right(fit, kept) > 0.9
    assert fit.rates.missing == pytest.approx(7 / CELLS, rel=0.5)
    assert (nucleus_cells([fit], alternatives=0).cells >= 0).mean() > 0.95


def test_errors_of_coordinates_are_noticed(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    noisy = body + np.random.default_rng(4).normal(0, 3.0, body.shape)
    assert matched(model, body).error < 1.0
    fit = matched(model, noisy)
    assert fit.error > 1.0
    assert (fit.nuclei >= 0).mean() > 0.9


def test_cells_that_are_being_found_are_matched_without_what_is_due_to_a_specimen(
    model: Model,
) -> None:
    """While cells are still being found, no error of coordinates is assumed."""
    (body,) = bodies(1, seed=3)
    noisy = body + np.random.default_rng(4).normal(0, 3.0, body.shape)
    growing = model._replace(complete=False, crowding=np.zeros(0))
    assert matched(growing, noisy).error == 0


def test_more_mean_fields_start_where_the_last_one_ended(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    single = warp_pose(model, body, np.zeros((CELLS, 0)), None)
    assert single.shares is None
    once, twice = (
        match_jointly(model, single, refits=refits, probabilities=True) for refits in (1, 2)
    )
    np.testing.assert_array_equal(once.warped, single.warped)
    assert np.abs(twice.warped - once.warped).max() > 0
    assert right(twice, np.arange(CELLS)) >= right(once, np.arange(CELLS)) - 0.02


def test_features_decide_where_places_do_not(model: Model, atlas: Atlas) -> None:
    """Two nuclei lie between their cells; their brightness tells which is which."""
    random = np.random.default_rng(8)
    bright = random.normal(size=(CELLS, 1))
    coloured = model_of_atlas(replace(atlas, features=("bright",), feature_means=bright))
    means = model.means
    first = 20
    second = int(np.argsort(np.linalg.norm(means - means[first], axis=1))[1])
    bright[[first, second]] = [[2.0], [-2.0]]
    coloured = coloured._replace(features=bright)
    body = means + random.normal(0, 0.3, means.shape)
    middle = (means[first] + means[second]) / 2
    for nearer, farther in ((first, second), (second, first)):
        points = body.copy()
        points[nearer], points[farther] = (
            middle + 0.2 * (means[farther] - middle),
            middle + 0.2 * (means[nearer] - middle),
        )
        scores = bright + random.normal(0, 0.2, bright.shape)
        by_places = matched(model, points, scores=scores)
        by_both = matched(coloured, points, scores=scores)
        assert by_places.nuclei[first] == second
        assert by_both.nuclei[first] == first


def test_nuclei_get_their_cells_confidence_and_alternatives(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    fit = matched(model, np.concatenate([body, body[[5]] + [0.0, 0.0, 60.0]]))
    nuclei = nucleus_cells([fit], alternatives=3)
    assert nuclei.other_cells.shape == nuclei.other_shares.shape == (CELLS + 1, 3)
    matched_nuclei = nuclei.cells >= 0
    np.testing.assert_array_equal(np.isnan(nuclei.confidence), ~matched_nuclei)
    assert (nuclei.confidence[matched_nuclei] >= 0).all()
    assert (nuclei.confidence[matched_nuclei] <= 1).all()
    for cell, others, shares in zip(
        nuclei.cells, nuclei.other_cells, nuclei.other_shares, strict=True
    ):
        assert cell < 0 or cell not in others
        assert (np.diff(shares) <= 0).all()
        assert (shares[others < 0] == 0).all()
    for cell, nucleus in enumerate(fit.nuclei):
        assert nucleus < 0 or nuclei.cells[nucleus] == cell
