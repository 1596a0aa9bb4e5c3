"""Cohorts as laboratories have them: mirrored, partial, in any pose and scale, of other colours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.errors import EutelyError
from eutely.evaluation import pre_atlas, score
from eutely.specimen import UNKNOWN, Specimen
from eutely.tasks.build import Built
from eutely.tasks.check import odd_handedness
from toy_animals import QUICK, lopsided, mirrored, turned, window
from toy_frames import in_canonical_order

HANDS = [number in (1, 4, 5) for number in range(8)]
"""Which specimens of a cohort are mirrored."""

VIEWS = [
    (0.0, 1.0),
    (0.0, 0.7),
    (0.0, 1.0),
    (0.3, 1.0),
    (0.1, 0.8),
    (0.0, 1.0),
    (0.0, 0.6),
    (0.35, 1.0),
]
"""Shares of the length that partial specimens show, from the tail."""


@pytest.fixture(scope="module")
def cohort() -> list[Specimen]:
    animals = eutely.simulate(specimens=10, cells=120, variation=0.5, pose="none", seed=2)
    return [lopsided(animal) for animal in animals]


def built(specimens: list[Specimen]) -> Built:
    return eutely.build([one.without_names() for one in specimens], config=QUICK, workers=1)


def agreement(specimens: list[Specimen], result: Built) -> float:
    """Return the share of nuclei whose cell has their name in most specimens."""
    return pre_atlas(tuple(in_canonical_order(specimens)), result.cells).mean


def recoloured(specimen: Specimen, seed: int) -> Specimen:
    """Return a specimen whose colours have other gains and offsets."""
    random = np.random.default_rng(seed)
    features = {
        name: random.uniform(0.5, 2) * values + random.normal()
        for name, values in specimen.features.items()
    }
    return replace(specimen, features=features)


@pytest.fixture(scope="module")
def mixed(cohort: list[Specimen]) -> list[Specimen]:
    """Mirrored and turned animals, in sizes from 0.5 to 2 and of other colours."""
    factors = np.exp(np.linspace(-np.log(2), np.log(2), len(HANDS)))
    return [
        replace(
            recoloured(turned(mirrored(one) if hand else one, number, factors[number]), number),
            unit=UNKNOWN,
        )
        for number, (one, hand) in enumerate(zip(cohort, HANDS, strict=False))
    ]


@pytest.fixture(scope="module")
def undone(mixed: list[Specimen]) -> Built:
    return built(mixed)


def test_a_build_undoes_mirror_images_and_says_which(mixed: list[Specimen], undone: Built) -> None:
    assert [fit.mirrored for fit in undone.fits] == HANDS
    assert agreement(mixed, undone) > 0.97
    inside = {tuple(row) for row in mixed[1].centroids.tolist()}
    assert {tuple(row) for row in undone.specimens[1].centroids.tolist()} == inside


def test_names_come_out_as_in_the_real_animal(
    cohort: list[Specimen], mixed: list[Specimen], undone: Built
) -> None:
    atlas = eutely.name(undone.atlas, mixed, workers=1)
    new = [replace(one, unit=UNKNOWN) for one in (cohort[8], mirrored(cohort[9]))]
    annotations = eutely.annotate(atlas, [one.without_names() for one in new], workers=1)
    assert [annotation.mirrored for annotation in annotations] == [False, True]
    for one, annotation in zip(new, annotations, strict=True):
        assert score(one, annotation.names).accuracy > 0.97


def test_parts_of_symmetric_animals_are_taken_as_they_are() -> None:
    animals = eutely.simulate(8, 80, seed=3, missing=0.05, spurious=0.05)
    views = [(0.0, 0.7), (0.25, 1.0), *[(0.0, 1.0)] * 6]
    parts = [window(one, *view) for one, view in zip(animals, views, strict=True)]
    assert not any(fit.mirrored for fit in built(parts).fits)


def test_check_warns_of_both_handednesses(cohort: list[Specimen], mixed: list[Specimen]) -> None:
    assert not list(odd_handedness(cohort[:8]))
    odd = [oddity.specimen for oddity in odd_handedness(mixed)]
    assert odd == [one.name for one, hand in zip(mixed, HANDS, strict=True) if hand]


def test_partial_specimens_cover_the_animal_together(cohort: list[Specimen]) -> None:
    rows = zip(cohort, VIEWS, HANDS, strict=False)
    parts = [
        turned(mirrored(window(one, *view)) if hand else window(one, *view), number)
        for number, (one, view, hand) in enumerate(rows)
    ]
    result = built(parts)
    assert [fit.mirrored for fit in result.fits] == HANDS
    assert agreement(parts, result) > 0.95
    assert not result.outliers
    atlas = eutely.name(result.atlas, parts, workers=1)
    [annotation] = eutely.annotate(atlas, [cohort[8].without_names()], workers=1)
    assert score(cohort[8], annotation.names).accuracy > 0.95
    # Cells out of view are not missing: those of the ends are as usual as the others.
    assert (result.atlas.often > 0.6 * result.atlas.specimens).mean() > 0.9


def test_parts_that_do_not_hang_together_are_refused(cohort: list[Specimen]) -> None:
    random = np.random.default_rng(0)
    clouds = [
        Specimen.from_arrays(f"cloud{number}", random.uniform(0, 300, (40, 3)), unit=cohort[0].unit)
        for number in range(4)
    ]
    with pytest.raises(EutelyError, match="do not match a common body"):
        built([*cohort[:1], *(replace(one, features={}) for one in clouds)])


def test_halves_that_share_no_cell_are_refused(cohort: list[Specimen]) -> None:
    views = [(0.5, 1.0), (0.0, 0.5)] * 2
    halves = [window(one, *view) for one, view in zip(cohort, views, strict=False)]
    with pytest.raises(EutelyError, match="do not match a common body: 2 of 4"):
        built(halves)


def test_one_whole_specimen_holds_halves_together(cohort: list[Specimen]) -> None:
    views = [(0.0, 1.0), (0.5, 1.0), (0.0, 0.5), (0.5, 1.0), (0.0, 0.5)]
    parts = [window(one, *view) for one, view in zip(cohort, views, strict=False)]
    result = built(parts)
    assert [fit.view is not None for fit in result.fits] == [False, True, True, True, True]
    assert agreement(parts, result) > 0.97
    assert not result.outliers
