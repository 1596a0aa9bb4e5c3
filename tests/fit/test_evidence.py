"""How likely a fit makes a specimen, and how far it is to be trusted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eutely.fit.evidence import PLACED, is_mirrored, log_likelihood, trust, weigh
from eutely.fit.hypothesis import WITNESS, Prior
from eutely.fit.match import Fit, match_jointly
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.posterior import Posterior, Target, place
from eutely.fit.refit import place_standing
from eutely.fit.warp import warp_part
from eutely.frame import Points
from toy_bodies import CELLS, atlas_of_bodies, bodies, posed, turned


@pytest.fixture(scope="module")
def target() -> Target:
    return Target.of(model_of_atlas(atlas_of_bodies()))


@pytest.fixture(scope="module")
def model(target: Target) -> Model:
    return target.model


def placed(target: Target, points: Points) -> Posterior:
    return place(target, posed(points), Prior.of(1.0, same=1.0))


def evidence(model: Model, fit: Fit, points: Points) -> float:
    """Return the log-likelihood of a fit in a pose that is known."""
    return WITNESS * weigh(model, fit, points).log


def cloud(count: int, seed: int) -> Points:
    """Return random points in the box of a body."""
    (body,) = bodies(1, seed=seed)
    box = np.random.default_rng(seed).random((count, 3))
    return body.min(axis=0) + box * np.ptp(body, axis=0)


def glued(seed: int) -> tuple[Points, np.ndarray]:
    """Return half of a body, glued to random points where the other half was, and which are its."""
    (body,) = bodies(1, seed=seed)
    body = body[np.argsort(body[:, 0])]
    random = cloud(4 * CELLS, seed)
    ends = body[CELLS // 2 :, 0].min(), body[:, 0].max()
    random = random[(random[:, 0] > ends[0]) & (random[:, 0] < ends[1])]
    points = np.concatenate([body[: CELLS // 2], random[: CELLS // 2]])
    return points, np.arange(len(points)) < CELLS // 2


def test_the_right_place_has_more_evidence_than_any_other(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    right = evidence(model, place_standing(model, posed(body)).fit, body)
    for roll, back in ((180.0, False), (0.0, True), (90.0, False)):
        points = turned(body, roll, back)
        assert evidence(model, place_standing(model, posed(points)).fit, points) < right - 50


def test_cells_that_move_together_are_few_witnesses_before_the_joint_matching_too(
    model: Model,
) -> None:
    """A bend that the neighbours explain costs less than the same steps in any direction."""
    (body,) = bodies(1, seed=3)
    along = (body[:, 0] - body[:, 0].mean()) / body[:, 0].std()
    bend = np.column_stack([np.zeros(CELLS), along**2 - 1, np.zeros(CELLS)])
    mixed = np.random.default_rng(0).permutation(bend)
    fit = place_standing(model, posed(body)).fit
    bare = replace(fit, shares=None, expected=None, error=0.0)

    def moved(steps: Points) -> float:
        return log_likelihood(model, replace(bare, warped=bare.warped + 2 * steps), body)

    assert moved(bend) > moved(mixed) + 10


def test_the_unit_of_nuclei_does_not_change_what_compares(model: Model) -> None:
    """Densities are those of nuclei as they are, so that fits of different scales compare."""
    (body,) = bodies(1, seed=3)
    rolled = [posed(turned(body, roll, back=False)) for roll in (0.0, 120.0)]
    fits = [place_standing(model, one).fit for one in rolled]
    plain = [evidence(model, fit, body) for fit in fits]
    scaled = [evidence(model, fit, 10.0 * body) for fit in fits]
    np.testing.assert_allclose(np.subtract(*plain), np.subtract(*scaled), rtol=1e-6)
    np.testing.assert_allclose(np.subtract(plain, scaled), 3 * CELLS * np.log(10.0), rtol=1e-6)


def test_a_whole_body_is_no_part_and_a_part_is_no_whole_body(model: Model) -> None:
    """What is left out of view costs; what is missing costs more."""
    (body,) = bodies(1, seed=3)
    scores = np.zeros((CELLS, 0))
    whole = place_standing(model, posed(body)).fit
    seen = match_jointly(model, warp_part(model, body, scores, None), probabilities=True)
    assert evidence(model, whole, body) > evidence(model, seen, body)
    part = body[body[:, 0] > np.quantile(body[:, 0], 0.5)]
    as_part = match_jointly(
        model, warp_part(model, part, scores[: len(part)], None), probabilities=True
    )
    as_whole = replace(as_part, view=None)
    assert evidence(model, as_part, part) > evidence(model, as_whole, part)


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_bodies_are_trusted(target: Target, seed: int) -> None:
    (body,) = bodies(1, seed=seed)
    found = placed(target, body)
    assert found.support is not None
    assert found.support > PLACED
    assert found.trust.mean() > 0.9
    assert found.trust.shape == (CELLS,)


@pytest.mark.parametrize("count", [CELLS, CELLS // 2])
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_random_points_are_not_trusted(target: Target, seed: int, count: int) -> None:
    found = placed(target, cloud(count, seed))
    assert found.trust.mean() < 0.2


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_half_of_a_body_and_random_points_are_not_trusted(target: Target, seed: int) -> None:
    """An atlas that explains half of a specimen well and the rest not at all explains none."""
    points, its = glued(seed)
    found = placed(target, points)
    assert found.trust[~its].mean() < 0.2
    assert found.trust.mean() < 0.5


def test_trust_is_less_where_nuclei_lie_badly(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    order = np.argsort(body[:, 0])
    odd = body.copy()
    odd[order[:15]] += np.random.default_rng(0).normal(0, 6.0, (15, 3))
    doubtful, sure = (place_standing(model, posed(points)) for points in (odd, body))
    trusted = trust(model, doubtful)
    assert trusted[order[:8]].mean() < trusted[order[-30:]].mean()
    assert trusted.mean() < trust(model, sure).mean()
    assert doubtful.support < sure.support


def test_a_matching_to_wrong_cells_is_less_likely(model: Model) -> None:
    (body,) = bodies(1, seed=3)
    fit = place_standing(model, posed(body)).fit
    nuclei = fit.nuclei.copy()
    nuclei[[10, 40]] = nuclei[[40, 10]]
    swapped = replace(fit, nuclei=nuclei, shares=None)
    assert evidence(model, swapped, body) < evidence(model, replace(fit, shares=None), body) - 10


def test_mirror_images_are_told_whatever_the_turn() -> None:
    (body,) = bodies(1, seed=3)
    image = body * [1.0, 1.0, -1.0]
    for roll, back in ((0.0, False), (123.0, True)):
        assert not is_mirrored(turned(body, roll, back), body)
        assert is_mirrored(turned(image, roll, back), body)
