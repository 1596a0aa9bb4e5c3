"""A cohort whose cells are moved in the same way: the atlas follows, a specimen never itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.atlas import Atlas
from eutely.config import resolve
from eutely.evaluation import evaluation, score
from eutely.fit.model import model_of_atlas
from eutely.frame import Posed
from eutely.pose import anonymous, oriented, posed
from eutely.tasks.annotate import PRIOR, Result, fit_specimen, series_handedness, shifted


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    settings = resolve(overrides={"refine.folds": 2})
    cohort = eutely.simulate(specimens=6, cells=60, variation=0.5)
    return eutely.build(cohort, config=settings, supervised=True, workers=1).atlas


def test_cells_move_by_their_share(atlas: Atlas) -> None:
    moved = np.array([4.0, -2.0, 1.0])
    places = np.repeat((atlas.means + moved)[None], 5, axis=0)
    places[:, 3] = np.nan  # nobody has this cell
    places[1:, 7] = np.nan
    scored = np.full((5, len(atlas), 3), 0.6)
    scored[:, 3] = np.nan
    result = shifted(atlas, places, scored)
    before = atlas.feature_means
    np.testing.assert_allclose(result.feature_means[0], (3.0 + PRIOR * before[0]) / (5 + PRIOR))
    np.testing.assert_allclose(result.feature_means[3], before[3], rtol=1e-12)
    np.testing.assert_allclose(result.means[0], atlas.means[0] + moved * 5 / (5 + PRIOR))
    np.testing.assert_allclose(result.means[7], atlas.means[7] + moved / (1 + PRIOR))
    np.testing.assert_array_equal(result.means[3], atlas.means[3])
    first, second = atlas.edges.T
    change = (result.means - atlas.means)[first] - (result.means - atlas.means)[second]
    np.testing.assert_allclose(result.offsets - atlas.offsets, change, atol=1e-12)


def test_nobody_there_moves_nothing(atlas: Atlas) -> None:
    for nobody in (np.full((2, len(atlas), 3), np.nan), np.empty((0, len(atlas), 3))):
        assert shifted(atlas, nobody, nobody) is atlas


def test_adapted_annotations_are_as_good_and_the_same_at_any_number_of_workers(
    atlas: Atlas,
) -> None:
    cohort = eutely.simulate(specimens=6, cells=60, variation=0.5, seed=4)
    one, two = (eutely.annotate(atlas, cohort, adapt=True, workers=n) for n in (1, 2))
    for mine, other in zip(one, two, strict=True):
        np.testing.assert_array_equal(mine.cells, other.cells)
        np.testing.assert_array_equal(mine.confidence, other.confidence)
    right = evaluation(score(a, b.names) for a, b in zip(cohort, one, strict=True))
    assert right.mean >= eutely.evaluate(atlas, cohort, workers=1).mean - 0.01
    assert eutely.evaluate(atlas, cohort, adapt=True, workers=1) == right


def test_a_single_specimen_gets_the_atlas_as_it_is(atlas: Atlas) -> None:
    alone = eutely.simulate(specimens=1, cells=60, variation=0.5, seed=9)
    (plain,) = eutely.annotate(atlas, alone, workers=1)
    (adapted,) = eutely.annotate(atlas, alone, adapt=True, workers=1)
    np.testing.assert_array_equal(plain.cells, adapted.cells)


def test_ten_specimens_are_one_series_unless_the_caller_says_no(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort = eutely.simulate(specimens=3, cells=60, variation=0.5, seed=4)
    monkeypatch.setattr("eutely.tasks.annotate.SERIES", 3)

    def confidences(count: int, adapt: bool | None) -> list[np.ndarray]:
        found = eutely.annotate(atlas, cohort[:count], adapt=adapt, workers=1)
        return [one.confidence for one in found]

    np.testing.assert_equal(confidences(3, None), confidences(3, True))
    np.testing.assert_equal(confidences(2, None), confidences(2, False))
    assert not np.array_equal(confidences(3, True)[0], confidences(3, False)[0])


def test_of_a_specimen_whose_place_is_known_no_other_pose_is_tried(atlas: Atlas) -> None:
    (one,) = eutely.simulate(specimens=1, cells=60, variation=0.5, seed=4)
    specimen = posed(oriented(anonymous(one, "new")), atlas.size, atlas.features)
    model = model_of_atlas(atlas)
    fit = fit_specimen(atlas, model, specimen)

    def fitted_again(places: np.ndarray) -> np.ndarray:
        placed = Posed((places,), specimen.radii, specimen.scores)
        return fit_specimen(atlas, model, placed).nuclei

    np.testing.assert_array_equal(fitted_again(fit.warped), fit.nuclei)
    turned = fitted_again(fit.warped * [-1.0, -1.0, 1.0])
    assert (turned == fit.nuclei).mean() < 0.5


@pytest.mark.parametrize(("adapt", "total"), [(False, 4), (True, 8)])
def test_progress_counts_specimens_and_those_of_a_series_twice(
    atlas: Atlas, adapt: bool, total: int
) -> None:
    cohort = eutely.simulate(specimens=4, cells=60, variation=0.5, seed=4)
    reported: list[tuple[str, int, int, str]] = []
    eutely.annotate(
        atlas, cohort, adapt=adapt, workers=1, progress=lambda *row: reported.append(row)
    )
    assert {row[2] for row in reported} == {total}
    done = [row[1] for row in reported]
    assert done == sorted(done)
    assert done[-1] == total


def test_no_specimens_no_annotations(atlas: Atlas) -> None:
    assert eutely.annotate(atlas, [], workers=1) == []


def results(atlas: Atlas, evidence: list[tuple[float | None, bool]]) -> list[Result]:
    """Return specimens of given evidence for the mirror image, mirrored or not."""
    (one,) = eutely.simulate(specimens=1, cells=60, variation=0.5, seed=4)
    specimen = posed(oriented(anonymous(one, "new")), atlas.size, atlas.features)
    fit = fit_specimen(atlas, model_of_atlas(atlas), specimen)
    return [
        Result(
            specimen,
            fit.warped * [1.0, 1.0, -1.0 if mirrored else 1.0],
            replace(fit, mirror=mirror),
            3.0,
        )
        for mirror, mirrored in evidence
    ]


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ([(None, True), (-3.0, False)], True),  # one is certain
        ([(20.0, True), (15.0, True), (-10.0, False)], True),
        ([(6.0, True), (-20.0, False)], False),
        ([(3.0, False)], False),  # as they are unless there is evidence
        ([(None, True), (None, False), (9.0, True)], None),  # certain, and not one series
        ([(60.0, True), (-60.0, False), (9.0, True)], None),
        ([(None, True), (None, True)], None),  # no doubt
        ([], None),
    ],
)
def test_a_series_settles_its_handedness_together(
    atlas: Atlas, evidence: list[tuple[float | None, bool]], expected: bool | None
) -> None:
    assert series_handedness(results(atlas, evidence)) == expected
