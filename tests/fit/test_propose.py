"""Where hypotheses look for a specimen: turned, mirrored, in another unit, a part of the body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.fit.hypothesis import Hypothesis, Prior
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.propose import propose
from eutely.fit.scan import landscape
from eutely.frame import Points, Posed
from eutely.pose import anonymous, oriented
from eutely.pose import posed as posed_as
from eutely.specimen import Specimen
from toy_animals import lopsided, mirrored, window
from toy_animals import turned as turned_at_random
from toy_bodies import CELLS, atlas_of_bodies, bodies, posed, turned
from toy_frames import in_canonical_order


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of_atlas(atlas_of_bodies())


def proposed(model: Model, specimen: Posed, prior: Prior) -> list[Hypothesis]:
    return propose(landscape(model), model, specimen, prior)


def off(model: Model, places: Points, cells: Points) -> float:
    """Return the median distance from the right cells, in typical distances of neighbours."""
    return float(np.median(np.linalg.norm(places - cells, axis=1))) / model.body.spacing


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("roll", [0.0, 77.0, 180.0, 250.0])
def test_a_rolled_or_turned_specimen_is_found(model: Model, roll: float, back: bool) -> None:
    """None of the given poses is right; rolls all around are tried as well."""
    (body,) = bodies(1, seed=3)
    first = turned(body, roll, back)
    specimen = posed(first, first * [1.0, -1.0, -1.0])
    found = proposed(model, specimen, Prior.of(1.0, same=1.0, hands=(False,)))
    assert off(model, found[0](first), model.means) < 1.0
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@pytest.mark.parametrize("hands", [(False,), (True,), (False, True)])
def test_only_the_handednesses_to_consider_are_proposed(
    model: Model, hands: tuple[bool, ...]
) -> None:
    (body,) = bodies(1, seed=3)
    found = proposed(model, posed(body), Prior.of(1.0, same=1.0, hands=hands))
    assert {one.mirrored for one in found} == set(hands)


@pytest.mark.parametrize("factor", [0.25, 0.7, 1.4, 4.0])
def test_of_another_unit_the_scale_is_found(model: Model, factor: float) -> None:
    (body,) = bodies(1, seed=3)
    points = factor * body
    found = proposed(model, posed(points), Prior.of(1 / factor, same=0.0, hands=(False,)))
    assert off(model, found[0](points), model.means) < 1.0
    size = np.cbrt(abs(np.linalg.det(found[0].matrix)))
    assert size == pytest.approx(1 / factor, rel=0.1)


def test_what_is_too_far_off_the_known_scale_is_not_considered(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    prior = Prior.of(1.0, same=1.0, hands=(False,))
    (scale,) = prior.scales
    for one in proposed(model, posed(3.0 * body), prior):
        size = np.cbrt(abs(np.linalg.det(one.matrix)))
        assert 0.8 * scale.range[0] < size < 1.25 * scale.range[1]


@pytest.fixture(scope="module")
def animals() -> list[Specimen]:
    cohort = eutely.simulate(specimens=8, cells=160, variation=0.5, pose="none", seed=2)
    return [lopsided(specimen) for specimen in cohort]


@pytest.fixture(scope="module")
def lopsided_model(animals: list[Specimen]) -> tuple[Model, dict[str, int], tuple[str, ...]]:
    atlas = eutely.build(animals[:7], supervised=True, workers=1).atlas
    return model_of_atlas(atlas), {name: at for at, name in enumerate(atlas.names)}, atlas.features


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.4, 1.0), (0.0, 0.6), (0.25, 0.75)])
def test_a_part_is_proposed_where_it_belongs_in_its_handedness(
    animals: list[Specimen],
    lopsided_model: tuple[Model, dict[str, int], tuple[str, ...]],
    low: float,
    high: float,
    mirror: bool,
) -> None:
    model, number, features = lopsided_model
    part = window(animals[7], low, high)
    part = turned_at_random(mirrored(part) if mirror else part, 3)
    kept = [at for at, name in enumerate(part.names or ()) if name in number]
    (part,) = in_canonical_order([part.take(np.array(kept))])
    specimen = posed_as(oriented(anonymous(part, "part")), None, features)
    cells = model.means[[number[name] for name in part.names or ()]]
    found = proposed(model, specimen, Prior.of(1.0, same=1.0))
    right = [one for one in found if one.mirrored == mirror]
    points = specimen.unstretched()
    assert min(off(model, one(points), cells) for one in right) < 1.0


def twisted(specimen: Specimen, degrees: float) -> Specimen:
    """Return a specimen twisted by an angle from end to end."""
    x, y, z = (specimen.centroids - specimen.centroids.mean(axis=0)).T
    angles = np.radians(degrees) * (x - x.min()) / np.ptp(x)
    places = np.stack(
        [x, np.cos(angles) * y - np.sin(angles) * z, np.sin(angles) * y + np.cos(angles) * z]
    )
    return replace(specimen, centroids=places.T)


def test_a_twisted_part_is_proposed_where_it_belongs() -> None:
    """By any map it lies as far off its cells as off others; a warp fits its own cells better."""
    animals = eutely.simulate(specimens=11, cells=300, variation=0.5, pose="none", seed=2)
    atlas = eutely.build(animals[:7], supervised=True, workers=1).atlas
    model, number = model_of_atlas(atlas), {name: at for at, name in enumerate(atlas.names)}
    for seed, animal in enumerate(animals[7:]):
        for low, high, degrees in ((0.0, 0.75, 60.0), (0.25, 1.0, 120.0)):
            part = turned_at_random(twisted(window(animal, low, high), degrees), seed)
            kept = [at for at, name in enumerate(part.names or ()) if name in number]
            (part,) = in_canonical_order([part.take(np.array(kept))])
            specimen = posed_as(oriented(anonymous(part, "part")), None, ())
            cells = model.means[[number[name] for name in part.names or ()]]
            found = proposed(model, specimen, Prior.of(1.0, same=1.0))
            points = specimen.unstretched()
            # No map comes nearer to a body that is twisted by so much.
            assert min(off(model, one(points), cells) for one in found) < 1.5


def test_the_order_of_nuclei_does_not_matter(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    order = np.random.default_rng(0).permutation(CELLS)
    prior = Prior.of(1.0, same=1.0, hands=(False,))
    plain, mixed = proposed(model, posed(body), prior), proposed(model, posed(body[order]), prior)
    assert len(plain) == len(mixed)
    for one, other in zip(plain, mixed, strict=True):
        np.testing.assert_allclose(one(body), other(body), atol=1e-6)


def test_points_far_off_all_cells_leave_a_hypothesis(model: Model) -> None:
    """Whatever the points, there is something to fit."""
    points = np.random.default_rng(0).normal(0, 50, (CELLS, 3))
    found = proposed(model, posed(points), Prior.of(1.0, same=1.0))
    assert found
    assert all(np.isfinite(one.score) for one in found)
    assert all(np.isfinite(one(points)).all() for one in found)


def test_features_are_part_of_the_score(model: Model) -> None:
    """Those of the right cells make a place likelier, those of others less likely."""
    random = np.random.default_rng(0)
    bright = random.normal(size=(CELLS, 2))
    coloured = model._replace(features=bright)
    (body,) = bodies(1, seed=3)
    scores = bright + random.normal(0, 0.2, bright.shape)
    specimen = replace(posed(body), scores=scores)
    prior = Prior.of(1.0, same=1.0, hands=(False,))
    with_features, without = proposed(coloured, specimen, prior), proposed(model, specimen, prior)
    shuffled = replace(specimen, scores=scores[random.permutation(CELLS)])
    assert off(model, with_features[0](body), model.means) < 1.0
    assert with_features[0].score > without[0].score
    assert with_features[0].score > proposed(coloured, shuffled, prior)[0].score
