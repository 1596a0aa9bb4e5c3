"""Parts that lie badly are posed again by their own matches."""

from __future__ import annotations

import numpy as np
import pytest

import eutely
from eutely.align.affine import least_squares
from eutely.fit.again import WELL, posed_again, warp_part
from eutely.fit.evidence import support, surprise
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.place import Fit, match_jointly
from eutely.fit.view import MANY
from eutely.frame import Points
from eutely.specimen import Specimen
from toy_animals import window


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
    assert len(part) >= MANY
    cells = [numbers[name] for name in part.names or ()]
    posed = stretched(part, model, cells, 1.1)
    before = match_jointly(model, warp_part(model, posed, np.zeros((len(part), 0)), None))
    assert right(before, cells) < 0.7
    was = support(model, before, part.centroids)
    after, _ = posed_again(model, before, part.centroids)
    assert right(after, cells) > 0.98
    assert support(model, after, part.centroids) > max(was, WELL) + 1


def test_a_part_at_its_place_stays(
    cohort: list[Specimen], model: Model, numbers: dict[str, int]
) -> None:
    part = window(cohort[10], 0.0, 0.8)
    cells = [numbers[name] for name in part.names or ()]
    posed = stretched(part, model, cells, 1.0)
    fit = match_jointly(model, warp_part(model, posed, np.zeros((len(part), 0)), None))
    after, _ = posed_again(model, fit, part.centroids)
    np.testing.assert_array_equal(after.cells, fit.cells)
    assert surprise(model, after, part.centroids) <= surprise(model, fit, part.centroids)
