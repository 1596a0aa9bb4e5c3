"""Specimens of which the place is known: posed again by their own matches, around pins."""

from __future__ import annotations

import numpy as np
import pytest

import eutely
from eutely.align.affine import least_squares
from eutely.costs.near import FREE, NOBODYS
from eutely.fit.evidence import weigh
from eutely.fit.match import Fit, match_jointly, term_costs
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.refit import match_around, place_again, place_standing, refitted
from eutely.fit.warp import warp_part
from eutely.frame import Points
from eutely.specimen import Specimen
from toy_animals import window
from toy_bodies import CELLS, atlas_of_bodies, bodies, posed, turned
from toy_bodies import right as right_share


@pytest.fixture(scope="module")
def cohort() -> list[Specimen]:
    return eutely.simulate(specimens=12, cells=300, variation=0.5, pose="none", seed=2)


@pytest.fixture(scope="module")
def model(cohort: list[Specimen]) -> Model:
    return model_of_atlas(eutely.build(cohort[:10], supervised=True, workers=1).atlas)


@pytest.fixture(scope="module")
def numbers(cohort: list[Specimen]) -> dict[str, int]:
    """Return the number of each cell; those of a named atlas are in the order of their names."""
    names = {name for specimen in cohort[:10] for name in specimen.names or () if name}
    return {name: number for number, name in enumerate(sorted(names))}


def stretched(part: Specimen, model: Model, cells: list[int], factor: float) -> Points:
    """Return a part at its place, but too long by a factor; its front end stays where it is."""
    matrix, shift = least_squares(part.centroids, model.means[cells])
    posed = part.centroids @ matrix.T + shift
    front = posed[:, 0].max()
    posed[:, 0] = front - factor * (front - posed[:, 0])
    return posed


def right(fit: Fit, cells: list[int]) -> float:
    return float((fit.cells == cells).mean())


@pytest.mark.parametrize("number", [10, 11])
def test_a_part_that_is_off_at_one_end_is_posed_again(
    cohort: list[Specimen], model: Model, numbers: dict[str, int], number: int
) -> None:
    part = window(cohort[number], 0.0, 0.8)
    cells = [numbers[name] for name in part.names or ()]
    far = stretched(part, model, cells, 1.1)
    fit = match_jointly(model, warp_part(model, far, np.zeros((len(part), 0)), None))
    assert right(fit, cells) < 0.7
    before = weigh(model, fit, part.centroids)
    after = refitted(model, before, part.centroids)
    assert right(after.fit, cells) > 0.98
    assert after.support > before.support + 1


def test_a_part_at_its_place_stays(
    cohort: list[Specimen], model: Model, numbers: dict[str, int]
) -> None:
    part = window(cohort[10], 0.0, 0.8)
    cells = [numbers[name] for name in part.names or ()]
    there = stretched(part, model, cells, 1.0)
    fit = match_jointly(model, warp_part(model, there, np.zeros((len(part), 0)), None))
    before = weigh(model, fit, part.centroids)
    after = refitted(model, before, part.centroids)
    np.testing.assert_array_equal(after.fit.cells, fit.cells)
    assert after.log >= before.log


@pytest.fixture(scope="module")
def toy() -> Model:
    return model_of_atlas(atlas_of_bodies())


def test_a_pose_far_off_is_corrected_by_its_own_matches(toy: Model) -> None:
    """The warp undoes a roll of 30 degrees, not of 40: there half of the body is matched right."""
    (body,) = bodies(1, seed=3)
    off = place_standing(toy, posed(turned(body, 40.0, back=False)))
    assert right_share(off.fit, np.arange(CELLS)) < 0.9
    again = refitted(toy, off, body)
    assert right_share(again.fit, np.arange(CELLS)) > 0.95
    assert again.log > off.log
    assert refitted(toy, again, body) is again  # it lies well


def test_a_place_that_is_known_stays_by_other_cells(toy: Model) -> None:
    (body,) = bodies(1, seed=3)
    fit = place_standing(toy, posed(body)).fit
    moved = toy._replace(field=toy.field._replace(means=toy.means + [1.0, 0.0, 0.0]))
    again = place_again(moved, fit)
    np.testing.assert_array_equal(again.nuclei, fit.nuclei)
    shift = (again.warped - fit.warped).mean(axis=0)
    np.testing.assert_allclose(shift, [1.0, 0.0, 0.0], atol=0.3)


def test_pins_change_what_is_around_them(toy: Model) -> None:
    (body,) = bodies(1, seed=3)
    fit = place_standing(toy, posed(body)).fit
    pins = np.full(CELLS, FREE, np.int32)
    pins[4], pins[20] = 30, NOBODYS
    around = match_around(toy, fit, pins, term_costs(toy, fit))
    assert around.nuclei[30] == 4
    assert 20 not in around.nuclei
    np.testing.assert_array_equal(around.warped, fit.warped)
    kept = np.setdiff1d(np.arange(CELLS), [4, 20, 30])
    assert (around.cells[kept] == kept).mean() > 0.9
