import numpy as np
import pytest

import eutely
from eutely.simulation import body_plan
from eutely.specimen import Specimen
from eutely.tasks.match import match


@pytest.fixture(scope="module")
def pair():
    """Two individuals that differ little, in any pose."""
    return eutely.simulate(specimens=2, cells=60, variation=0.3, seed=1)


def right(first, second, found):
    names = [second.names[j] if j >= 0 else "" for j in found.partners]
    return np.mean([own == other for own, other in zip(first.names, names, strict=True)])


def test_individuals_in_any_pose_are_matched(pair):
    first, second = pair
    found = match(first, second)
    assert right(first, second, found) > 0.9
    assert np.isfinite(found.distances[found.partners >= 0]).all()


def test_names_and_order_of_rows_do_not_matter(pair):
    first, second = pair
    order = np.random.default_rng(0).permutation(len(second))
    shuffled = second.take(order).without_names()
    expected = match(first, second).partners
    found = match(first.without_names(), shuffled).partners
    assert np.array_equal(np.where(found >= 0, order[found], -1), expected)


def test_a_specimen_matches_itself(pair):
    first, _ = pair
    found = match(first, first)
    assert found.partners.tolist() == list(range(len(first)))
    assert found.distances.max() < 1e-6


def round_animal(name: str, random: np.random.Generator, ahead: float) -> Specimen:
    """A body without a dense end or side, so that its form alone does not tell the pose."""
    plan = np.random.default_rng(2)
    places = plan.normal(size=(113, 3))
    places *= plan.random((113, 1)) ** (1 / 3) / np.linalg.norm(places, axis=1, keepdims=True)
    places = places * [60, 25, 22] + random.normal(size=(113, 3))
    order = random.permutation(113)
    return Specimen(
        name,
        np.arange(1, 114),
        (places * [ahead, ahead, 1.0])[order],
        np.full((113, 3), 2.0),
        names=tuple(f"N{cell}" for cell in order),
        unit="um",
    )


@pytest.mark.parametrize("ahead", [1.0, -1.0])
def test_both_ends_and_all_rolls_are_tried(ahead: float) -> None:
    random = np.random.default_rng(0)
    first, second = round_animal("a", random, 1.0), round_animal("b", random, ahead)
    found = match(first, second)
    assert right(first, second, found) > 0.95
    assert not found.doubt
    assert found.agreement.distance < 0.6 < found.chance.distance
    assert found.agreement.kept > 0.7 > found.chance.kept


@pytest.mark.parametrize("ahead", [1.0, -1.0])
def test_a_worm_that_lies_end_for_end(ahead: float) -> None:
    first, second = eutely.simulate(specimens=2, cells=113, variation=0.5, seed=3, pose="none")
    turned = second.moved(np.diag([ahead, ahead, 1.0]), [0.0, 0.0, 0.0])
    found = match(first, turned)
    assert right(first, turned, found) > 0.9
    assert not found.doubt


@pytest.mark.parametrize("handedness", ["auto", "mirrored"])
def test_a_mirror_image_is_recognised(handedness) -> None:
    random = np.random.default_rng(0)
    first, second = round_animal("a", random, 1.0), round_animal("b", random, 1.0)
    image = second.mapped(np.diag([-1.0, 1.0, 1.0]), np.zeros(3))
    found = match(first, image, handedness=handedness)
    assert found.mirrored
    assert right(first, image, found) > 0.85
    as_it_is = match(first, image, handedness="as-is")
    assert not as_it_is.mirrored
    assert right(first, image, as_it_is) < 0.5
    assert not match(first, second).mirrored


def test_an_animal_with_like_sides_stays_as_it_is(pair) -> None:
    found = match(*pair)
    assert not found.mirrored
    assert not found.clear
    assert match(*pair, handedness="as-is").clear


def test_sides_that_differ_show_the_handedness() -> None:
    random = np.random.default_rng(0)
    first, second = round_animal("a", random, 1.0), round_animal("b", random, 1.0)
    assert match(first, second).clear
    assert match(first, second.mapped(np.diag([-1.0, 1.0, 1.0]), np.zeros(3))).clear


def test_loose_agreement_is_not_called_chance() -> None:
    """A tenth of the nuclei missing and a tenth spurious: most matches are right, many are not."""
    first, second = eutely.simulate(2, body_plan(113, seed=1), seed=1, missing=0.1, spurious=0.1)
    found = match(first, second)
    assert 0.5 < right(first, second, found) < 0.85
    assert found.doubt == "loose"


def test_two_organisms_agree_by_chance() -> None:
    (first,) = eutely.simulate(specimens=1, cells=113)
    (other,) = eutely.simulate(1, body_plan(113, seed=6), seed=1)
    found = match(first, other)
    assert right(first, other, found) < 0.2
    assert found.doubt == "chance"
