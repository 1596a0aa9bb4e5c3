"""One specimen and an atlas: its pose, its warp, and which nucleus is which cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.costs.near import FREE, NOBODYS
from eutely.estimate import estimate
from eutely.fit.again import posed_again
from eutely.fit.evidence import support
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.place import (
    FIRST_COOLING,
    Fit,
    match_jointly,
    match_singly,
    place,
    soft_warp,
    term_costs,
    warp_pose,
)
from eutely.fit.probabilities import nucleus_cells
from eutely.frame import Body, Posed
from eutely.solver.assignment import assign
from eutely.solver.softassign import Rules

CELLS = 60
Points = NDArray[np.float64]


def bodies(count: int, seed: int) -> Points:
    """Return (count, m, 3): long bodies, denser at one end, cells in order; head to +x.

    The back is round and the belly flat, so that roll and ends can be told.
    """
    plan = np.random.default_rng(99)
    cells = np.stack([300 * (1 - plan.random(CELLS) ** 2), *plan.normal(size=(2, CELLS))], axis=1)
    cells[:, 1:] *= [12, 7]
    cells[:, 1] += 0.06 * np.abs(cells[:, 2]) ** 1.5
    cells -= cells.mean(axis=0)
    random = np.random.default_rng(seed)
    bent = cells + random.normal(size=(count, CELLS, 3)) * [1.5, 0.7, 0.7]
    bent[:, :, 1] += 3 * np.sin(cells[:, 0] / 100 + random.uniform(0, 6, (count, 1)))
    return bent


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    places = bodies(15, seed=0)
    size = np.array([np.ptp(places[0, :, 0]), 20.0])
    return estimate(places, Body(size, 7.0), Estimate())


@pytest.fixture(scope="module")
def model(atlas: Atlas) -> Model:
    return model_of_atlas(atlas)


def posed(*poses: Points) -> Posed:
    count = len(poses[0])
    return Posed(poses, np.full((count, 3), np.nan), np.zeros((count, 0)))


def turned(points: Points, roll: float, back: bool) -> Points:
    """Roll a body about x by so many degrees, and turn it end for end."""
    rotation = Rotation.from_euler("x", roll, degrees=True)
    return rotation.apply(points * ([-1.0, -1.0, 1.0] if back else [1.0, 1.0, 1.0]))


def right(fit: Fit, truth: NDArray[np.int64]) -> float:
    """Return the share of nuclei that are their own cells; -1 for none."""
    cells = np.full(len(fit.posed), -1)
    cells[fit.nuclei[fit.nuclei >= 0]] = np.flatnonzero(fit.nuclei >= 0)
    return float((cells == truth).mean())


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("roll", [0.0, 77.0, 180.0, 250.0])
def test_a_rolled_or_turned_specimen_is_found(model: Model, roll: float, back: bool) -> None:
    """None of the given poses is right; rolls all around are tried as well."""
    (body,) = bodies(1, seed=3)
    first = turned(body, roll, back)
    specimen = posed(first, first * [1.0, -1.0, -1.0])
    fit = place(model, specimen)
    assert right(fit, np.arange(CELLS)) > 0.95
    assert np.abs(fit.warped - model.means).mean() < 3


def test_a_single_pose_is_taken_as_it_is(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    assert right(place(model, posed(body)), np.arange(CELLS)) > 0.95
    upside_down = place(model, posed(turned(body, 180.0, back=False)))
    np.testing.assert_array_equal(upside_down.posed, turned(body, 180.0, back=False))
    assert right(upside_down, np.arange(CELLS)) < 0.6


def test_a_pose_far_off_is_corrected_by_its_own_matches(model: Model) -> None:
    """The warp undoes a roll of 30 degrees, not of 40: there half of the body is matched right."""
    (body,) = bodies(1, seed=3)
    fit = place(model, posed(turned(body, 40.0, back=False)))
    assert right(fit, np.arange(CELLS)) < 0.9
    again, placed = posed_again(model, fit, body)
    assert right(again, np.arange(CELLS)) > 0.95
    assert placed == support(model, again, body)
    assert posed_again(model, again, body)[0] is again  # it lies well
    lost = place(model, posed(turned(body, 60.0, back=False)))
    assert posed_again(model, lost, body)[0] is lost  # hardly a match is right


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_the_order_of_nuclei_does_not_matter(seed: int) -> None:
    places = bodies(8, seed=0)
    model = model_of_atlas(estimate(places, Body(np.array([300.0, 20.0]), 7.0), Estimate()))
    (body,) = bodies(1, seed=seed)
    order = np.random.default_rng(seed).permutation(CELLS)
    plain, mixed = place(model, posed(body)), place(model, posed(body[order]))
    np.testing.assert_array_equal(order[mixed.nuclei], plain.nuclei)
    assert mixed.cost == pytest.approx(plain.cost)


def test_pins_are_respected(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    pins = np.full(CELLS, FREE, np.int32)
    pins[4], pins[20] = 30, NOBODYS
    fit = place(model, posed(body), pins)
    assert fit.nuclei[30] == 4
    assert 20 not in fit.nuclei
    kept = np.setdiff1d(np.arange(CELLS), [4, 20, 30])
    assert (nucleus_cells(fit, 0).cells[kept] == kept).mean() > 0.9
    unchanged = place(model, posed(body), np.full(CELLS, FREE, np.int32))
    np.testing.assert_array_equal(unchanged.nuclei, place(model, posed(body)).nuclei)


def test_spurious_nuclei_are_left_out(model: Model) -> None:
    """Four nuclei far from all cells, in an otherwise complete specimen."""
    (body,) = bodies(1, seed=3)
    spurious = body[[5, 20, 35, 50]] + [0.0, 0.0, 60.0]
    fit = place(model, posed(np.concatenate([body, spurious])))
    truth = np.append(np.arange(CELLS), [-1] * 4)
    assert right(fit, truth) > 0.95
    assert not set(range(CELLS, CELLS + 4)) & set(fit.nuclei.tolist())
    assert fit.rates.spurious == pytest.approx(4 / CELLS, rel=0.5)


def test_missing_cells_get_no_nucleus(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    kept = np.setdiff1d(np.arange(CELLS), [7, 8, 22, 41, 42, 43, 55])
    fit = place(model, posed(body[kept]))
    assert right(fit, kept) > 0.9
    assert fit.rates.missing == pytest.approx(7 / CELLS, rel=0.5)
    assert (nucleus_cells(fit, 0).cells >= 0).mean() > 0.95


@pytest.mark.parametrize(
    ("seed", "kept", "added"), [(2, 48, 6), (8, 48, 6), (25, 30, 6), (32, 48, 0), (41, 30, 6)]
)
def test_the_last_assignment_uses_the_rates_that_are_returned(
    model: Model, seed: int, kept: int, added: int
) -> None:
    """Specimens that lack many cells; with c0 of the rates before, other nuclei were matched."""
    random = np.random.default_rng((seed, kept, added))
    body = bodies(1, seed=seed + 100)[0] + random.normal(0, 1.5, (CELLS, 3))
    nuclei = body[np.sort(random.permutation(CELLS)[:kept])]
    low, high = model.means.min(axis=0), model.means.max(axis=0)
    specimen = posed(np.concatenate([nuclei, random.uniform(low, high, (added, 3))]))
    fit = match_singly(model, specimen)
    assert fit.rates.missing > 0.15
    wider = model.loosened(fit.error)
    rules = Rules(model.freedom, wider.c0(fit.rates), None, term_costs(model, fit))
    expected, cost = assign(model.means, wider.centres, fit.warped, rules)
    np.testing.assert_array_equal(fit.nuclei, expected)
    assert fit.cost == cost


def test_errors_of_coordinates_are_noticed(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    noisy = body + np.random.default_rng(4).normal(0, 3.0, body.shape)
    assert place(model, posed(body)).error < 1.0
    fit = place(model, posed(noisy))
    assert fit.error > 1.0
    assert (fit.nuclei >= 0).mean() > 0.9


def test_cells_that_are_being_found_are_matched_without_what_is_due_to_a_specimen(
    model: Model,
) -> None:
    """While cells are still being found, no error of coordinates is assumed."""
    (body,) = bodies(1, seed=3)
    noisy = body + np.random.default_rng(4).normal(0, 3.0, body.shape)
    growing = model._replace(complete=False, crowding=np.zeros(0))
    assert place(growing, posed(noisy)).error == 0


def test_more_mean_fields_start_where_the_last_one_ended(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    single = match_singly(model, posed(body))
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
        by_places = place(model, Posed((points,), np.full(points.shape, np.nan), scores))
        by_both = place(coloured, Posed((points,), np.full(points.shape, np.nan), scores))
        assert by_places.nuclei[first] == second
        assert by_both.nuclei[first] == first


def test_nuclei_get_their_cells_confidence_and_alternatives(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    fit = place(model, posed(np.concatenate([body, body[[5]] + [0.0, 0.0, 60.0]])))
    nuclei = nucleus_cells(fit, 3)
    assert nuclei.other_cells.shape == nuclei.other_shares.shape == (CELLS + 1, 3)
    matched = nuclei.cells >= 0
    np.testing.assert_array_equal(np.isnan(nuclei.confidence), ~matched)
    assert (nuclei.confidence[matched] >= 0).all()
    assert (nuclei.confidence[matched] <= 1).all()
    for cell, others, shares in zip(
        nuclei.cells, nuclei.other_cells, nuclei.other_shares, strict=True
    ):
        assert cell < 0 or cell not in others
        assert (np.diff(shares) <= 0).all()
        assert (shares[others < 0] == 0).all()
    for cell, nucleus in enumerate(fit.nuclei):
        assert nucleus < 0 or nuclei.cells[nucleus] == cell


def test_a_warp_that_was_begun_ends_as_if_it_was_not(model: Model) -> None:
    (body,) = bodies(1, seed=4)
    begun = soft_warp(model, body, None, cooling=FIRST_COOLING)
    scores = np.zeros((CELLS, 0))
    again, whole = (
        warp_pose(model, body, scores, None, begun=begun),
        warp_pose(model, body, scores, None),
    )
    np.testing.assert_array_equal(again.warped, whole.warped)
    np.testing.assert_array_equal(again.nuclei, whole.nuclei)
