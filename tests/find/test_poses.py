"""Which specimens of a cohort are mirror images or parts, and how all lie in one frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.config import Config
from eutely.errors import EutelyError
from eutely.execute import open_executor
from eutely.find.poses import most_are, possible_parts, settled_poses
from eutely.fit.mirror import MIXED
from eutely.frame import Frame
from eutely.pose import anonymous, framed, oriented
from eutely.simulation.plan import body_plan
from eutely.specimen import Specimen
from toy_animals import lopsided, mirrored, turned, window
from toy_frames import in_canonical_order, run_in_memory

LARGE = 740
"""Cells of a large body."""

MIRRORED = np.array([False, True, False, True, False])


def settled(specimens: Sequence[Specimen], *, known: bool = True, workers: int = 1) -> Frame:
    """Settle the poses of a cohort, without features."""
    straight = [oriented(anonymous(one, one.name)) for one in specimens]
    frame = framed(straight, (), scale=True, smooth=True)
    sizes = np.array([one.poses[0].size for one in straight])
    with open_executor(workers) as executor:
        return run_in_memory(Config(), executor)(settled_poses, frame, sizes, known)


def hands(frame: Frame) -> list[bool]:
    return [one.mirrored for one in frame.specimens]


def apart(frame: Frame, specimens: Sequence[Specimen]) -> float:
    """Return how far nuclei of one name are from each other, in distances of neighbours."""
    places: dict[str, list[np.ndarray]] = {}
    for posed, one in zip(frame.specimens, in_canonical_order(specimens), strict=True):
        for name, place in zip(one.names or (), posed.poses[0], strict=True):
            places.setdefault(name, []).append(place)
    spread = [np.array(each).std(axis=0).max() for each in places.values() if len(each) > 2]
    return float(np.median(spread)) / frame.body.spacing


@pytest.fixture(scope="module")
def cohort() -> list[Specimen]:
    animals = eutely.simulate(specimens=8, cells=120, variation=0.5, pose="none", seed=2)
    return [lopsided(animal) for animal in animals]


def test_specimens_lie_in_one_frame_afterwards(cohort: list[Specimen]) -> None:
    flipped = [number in (1, 4, 5) for number in range(len(cohort))]
    mixed = [
        turned(mirrored(one) if flip else one, number)
        for number, (one, flip) in enumerate(zip(cohort, flipped, strict=True))
    ]
    frame = settled(mixed)
    assert hands(frame) == flipped
    assert max(one.other_hand for one in frame.specimens) < 0.01
    assert apart(frame, mixed) < 0.7
    assert all(len(one.poses) == 1 for one in frame.specimens)
    assert not any(frame.parts)


def test_most_decide_which_handedness_is_usual(cohort: list[Specimen]) -> None:
    images = [one if number < 2 else mirrored(one) for number, one in enumerate(cohort[:6])]
    assert hands(settled(images)) == [True, True, False, False, False, False]


def test_of_as_many_either_way_the_first_one_is_usual() -> None:
    assert not most_are(np.array([False, True]))
    assert most_are(np.array([True, False]))
    assert most_are(np.array([False, True, True]))
    assert not most_are(np.array([True, False, False]))


@pytest.mark.parametrize("seed", [3, 4])
def test_symmetric_animals_are_taken_as_they_are(seed: int) -> None:
    animals = eutely.simulate(specimens=6, cells=120, pose="none", seed=seed)
    images = [mirrored(one) if number % 2 else one for number, one in enumerate(animals)]
    frame = settled(images)
    assert not any(hands(frame))
    assert all(one.other_hand >= MIXED for one in frame.specimens)


def test_parts_are_put_where_they_belong(cohort: list[Specimen]) -> None:
    views = [(0.0, 1.0), (0.0, 0.7), (0.0, 1.0), (0.3, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 0.6)]
    parts = [
        turned(window(one, *view), number)
        for number, (one, view) in enumerate(zip(cohort, views, strict=False))
    ]
    frame = settled(parts)
    assert [one.part for one in frame.specimens] == [view != (0.0, 1.0) for view in views]
    assert not any(hands(frame))
    assert apart(frame, parts) < 0.7


def test_sizes_and_counts_show_which_may_be_parts(cohort: list[Specimen]) -> None:
    parts = [*cohort[:5], window(cohort[5], 0.4, 1.0)]
    straight = [oriented(anonymous(one, one.name)) for one in parts]
    frame = framed(straight, (), scale=True, smooth=True)
    sizes = np.array([one.poses[0].size for one in straight])
    assert possible_parts(frame, sizes, known=True).tolist() == [False] * 5 + [True]
    # Without a common unit the size says nothing, the shape does.
    larger = sizes * np.array([1.0, 1.0, 1.0, 1.0, 2.0, 1.0])[:, None]
    assert possible_parts(frame, larger, known=True)[4]
    assert not possible_parts(frame, larger, known=False)[4]


def test_what_fits_nowhere_is_refused_if_it_is_most(cohort: list[Specimen]) -> None:
    random = np.random.default_rng(0)
    clouds = [
        Specimen.from_arrays(f"cloud{number}", random.uniform(0, 300, (40, 3)), unit=cohort[0].unit)
        for number in range(4)
    ]
    with pytest.raises(EutelyError, match="do not match a common body: 4 of 5"):
        settled([replace(cohort[0], features={}), *clouds])


def test_the_same_with_any_number_of_workers(cohort: list[Specimen]) -> None:
    one, two = (settled(cohort[:4], workers=workers) for workers in (1, 2))
    for first, second in zip(one.specimens, two.specimens, strict=True):
        np.testing.assert_array_equal(first.poses[0], second.poses[0])


def large_cohort(asymmetry: float, flipped: np.ndarray) -> list[Specimen]:
    """Return specimens whose cells lie so many spacings off their mirror images, some mirrored."""
    plan = body_plan(LARGE)
    shift = np.random.default_rng(9).standard_normal(plan.centroids.shape)
    plan = replace(plan, centroids=plan.centroids + asymmetry * plan.spacing * shift)
    return [
        replace(one, centroids=one.centroids * [1.0, 1.0, -1.0]) if flip else one
        for one, flip in zip(
            eutely.simulate(len(flipped), cells=plan, seed=2), flipped, strict=True
        )
    ]


@pytest.mark.parametrize(
    ("asymmetry", "flipped"), [(0.3, MIRRORED), (0.3, MIRRORED & False), (0.0, MIRRORED & False)]
)
def test_mirror_images_of_large_bodies_are_found_and_no_others(
    asymmetry: float, flipped: np.ndarray
) -> None:
    found = np.array(hands(settled(large_cohort(asymmetry, flipped), workers=2)))
    # Relative to the handedness of most: which specimen is the first does not matter.
    assert (found ^ most_are(found) == flipped).all()
