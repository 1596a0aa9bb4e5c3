"""Exchanged names: what they explain is no finding, what really moved is."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import KDTree

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.comparison.answer import RELATIVE, Outcome, answer
from eutely.comparison.design import Design, contrasts
from eutely.comparison.exchange import GIVEN
from eutely.comparison.measured import measured
from eutely.comparison.permutations import permutations
from eutely.specimen import Specimen
from eutely.tasks.annotate import annotate
from toy_groups import MOVED, toy_groups, true_annotations

SIZE = 12


@pytest.fixture(scope="module")
def toy() -> tuple[Atlas, list[Specimen], list[Annotation], int]:
    """Return two groups with true names, one cell moved in the second, and its nearest cell."""
    atlas, groups = toy_groups(size=SIZE, shift=2.0)
    given = true_annotations(atlas, groups)
    near = KDTree(atlas.means).query(atlas.means[MOVED], 2)[1][1]
    animals = [one for group in groups.values() for one in group]
    return atlas, animals, [one for group in given.values() for one in group], int(near)


def exchanged(annotation: Annotation, first: int, second: int, confidence: float) -> Annotation:
    """Return an annotation in which two cells have each other's nuclei."""
    cells, sure = annotation.cells.copy(), annotation.confidence.copy()
    one, other = annotation.cells == first, annotation.cells == second
    cells[one], cells[other] = second, first
    sure[one | other] = confidence
    return replace(annotation, cells=cells, confidence=sure)


def outcome_of(atlas: Atlas, animals: list[Specimen], named: list[Annotation]) -> Outcome:
    labels = ["a"] * SIZE + ["b"] * SIZE
    (contrast,) = contrasts(["a", "b"], labels, [one.name for one in animals], Design())
    cells = replace(measured(atlas, animals, named), values={})
    outcomes = answer(atlas, cells, contrast, permutations(contrast, 2000, 0)).cells
    return next(one for one in outcomes if one.test == RELATIVE)


def test_a_cell_that_moved_is_found(
    toy: tuple[Atlas, list[Specimen], list[Annotation], int],
) -> None:
    atlas, animals, named, _ = toy
    assert np.flatnonzero(outcome_of(atlas, animals, named).q <= 0.05).tolist() == [MOVED]


@pytest.mark.parametrize("confidence", [0.6, 0.99])
def test_a_cell_that_took_the_name_of_a_moved_one_is_not_found(
    toy: tuple[Atlas, list[Specimen], list[Annotation], int], confidence: float
) -> None:
    atlas, animals, named, near = toy
    wrong = [exchanged(one, MOVED, near, confidence) for one in named[SIZE:]]
    outcome = outcome_of(atlas, animals, named[:SIZE] + wrong)
    assert outcome.q[MOVED] <= 0.05
    assert outcome.q[near] > 0.05


def test_names_that_a_person_gave_are_certain_enough() -> None:
    atlas, groups = toy_groups(size=2)
    animals = groups["control"]
    pins = {(one.name, int(id_)): name for one in animals
            for id_, name in zip(one.ids, one.names or (), strict=True)}  # fmt: skip
    for annotation in annotate(atlas, animals, adapt=False, pins=pins, workers=1):
        assert (annotation.confidence >= GIVEN).all()


def test_names_that_a_person_gave_are_not_exchanged(
    toy: tuple[Atlas, list[Specimen], list[Annotation], int],
) -> None:
    atlas, animals, named, near = toy
    given = [exchanged(one, MOVED, near, 1.0) for one in named[SIZE:]]
    outcome = outcome_of(atlas, animals, named[:SIZE] + given)
    assert set(np.flatnonzero(outcome.q <= 0.05)) >= {MOVED, near}


def test_p_values_of_what_is_no_finding_stay(
    toy: tuple[Atlas, list[Specimen], list[Annotation], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    atlas, animals, named, near = toy
    wrong = named[:SIZE] + [exchanged(one, MOVED, near, 0.6) for one in named[SIZE:]]
    outcome = outcome_of(atlas, animals, wrong)
    monkeypatch.setattr("eutely.comparison.answer._Asked.surviving", lambda _, one, __: one)
    before = outcome_of(atlas, animals, wrong)
    kept = before.q > 0.05
    assert not kept[near]
    np.testing.assert_array_equal(outcome.p[kept], before.p[kept])
    assert (outcome.p >= before.p).all()
    assert (outcome.q >= before.q - 1e-12).all()
