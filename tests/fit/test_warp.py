"""Warps of specimens that lie near their cells: large bodies, parts, rates of the last matching."""

from __future__ import annotations

import numpy as np
import pytest

import eutely
from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.estimate import independent_gaussians
from eutely.find.refine.rounds import nuclei_as_cells
from eutely.fit.match import term_costs
from eutely.fit.model import Model, joint_model, model_of_atlas
from eutely.fit.warp import LARGE, from_matches, soft_warp, warp_part, warp_pose
from eutely.frame import Points
from eutely.solver.assignment import assign
from eutely.solver.softassign import Rules
from eutely.tasks.build import in_order
from toy_bodies import CELLS, atlas_of_bodies, bodies, right, turned
from toy_frames import frame_of

MANY = 1500
"""Cells of a body so large that nuclei lie several neighbours off their cells before any warp."""


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of_atlas(atlas_of_bodies())


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
    points = np.concatenate([nuclei, random.uniform(low, high, (added, 3))])
    fit = warp_pose(model, points, np.zeros((len(points), 0)), None)
    assert fit.rates.missing > 0.15
    wider = model.loosened(fit.error)
    rules = Rules(model.freedom, wider.c0(fit.rates), None, term_costs(model, fit))
    expected, cost = assign(model.means, wider.centres, fit.warped, rules)
    np.testing.assert_array_equal(fit.nuclei, expected)
    assert fit.cost == cost


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.6), (0.4, 1.0), (0.2, 0.8)])
def test_what_is_out_of_view_of_a_part_is_not_missing(
    model: Model, low: float, high: float
) -> None:
    (body,) = bodies(1, seed=3)
    share = (body[:, 0] - body[:, 0].min()) / np.ptp(body[:, 0])
    kept = np.flatnonzero((share >= low) & (share <= high))
    fit = warp_part(model, body[kept], np.zeros((len(kept), 0)), None)
    assert right(fit, kept) > 0.9
    assert fit.view is not None
    far = np.maximum(low - share, share - high)
    assert fit.view[kept].mean() > 0.8
    assert fit.view[far > 0.15].mean() < 0.3
    assert fit.rates.missing < 0.15


def test_matches_bring_a_body_that_is_far_off_to_its_cells(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    fit = warp_pose(model, body, np.zeros((CELLS, 0)), None)
    points = 7.0 * turned(body, 110.0, back=True) + [900.0, -50.0, 3.0]
    again = from_matches(model, fit, points, None)
    assert right(again, np.arange(CELLS)) > 0.95
    assert np.abs(again.warped - model.means).mean() < 3


@pytest.fixture(scope="module")
def large() -> tuple[Model, Points, Points]:
    """Return the nuclei of a large body as cells, another one in its pose, and its cells."""
    cohort = in_order(eutely.simulate(2, cells=MANY, seed=1))
    frame = frame_of(cohort)
    first, second = frame.specimens
    means = nuclei_as_cells(first.poses[0], frame.body.spacing)
    posed = (first.poses[0], second.poses[0])
    cells = Cells(posed, posed, (), frame.scores, frame.body)
    nothing = np.zeros((len(means.means), 0))
    model = joint_model(independent_gaussians(means), cells, Estimate(), None, nothing)
    number = {name: at for at, name in enumerate(cohort[0].names or ())}
    places = model.means[[number[name] for name in cohort[1].names or ()]]
    return model, min(second.poses, key=lambda points: apart(points, places, model)), places


def apart(points: Points, places: Points, model: Model) -> float:
    """Return the median distance of nuclei from their cells, in typical distances of neighbours."""
    distances = np.linalg.norm(points - places, axis=1)
    return float(np.median(distances)) / model.body.spacing


def test_a_warp_brings_nuclei_of_a_large_body_to_their_cells(
    large: tuple[Model, Points, Points],
) -> None:
    model, pose, places = large
    assert len(pose) > LARGE
    far = pose + 2.0 * model.body.spacing * np.array([1.0, 0.0, 0.0])
    rough, gentle = soft_warp(model, far, None), soft_warp(model, far, None, warped=far)
    assert apart(rough, places, model) < 0.8 * apart(gentle, places, model), "no rough warp first"
    assert apart(rough, places, model) < 0.6 * apart(far, places, model)
