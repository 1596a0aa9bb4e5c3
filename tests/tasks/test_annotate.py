"""A cohort whose cells are moved in the same way: the atlas follows, a specimen never itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.atlas import Atlas
from eutely.config import resolve
from eutely.evaluation import evaluation, score
from eutely.fit.choose import CLEAR
from eutely.fit.evidence import EXCHANGED, HAND, MIRRORED
from eutely.fit.handedness import CERTAIN, hand_evidence, mirror_probabilities
from eutely.fit.model import model_of_atlas
from eutely.fit.place import Fit
from eutely.fit.rates import Rates
from eutely.frame import Posed
from eutely.pose import anonymous, oriented, posed
from eutely.specimen import Specimen
from eutely.tasks.annotate import fit_specimen
from eutely.tasks.series import PRIOR, SERIES, Result, completed, settle_hands, shifted

NAMES = {
    name
    for specimen in eutely.simulate(specimens=1, cells=60, pose="none")
    for name in specimen.names or ()
}


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


def without_the_front(atlas: Atlas) -> tuple[Atlas, list[Fit]]:
    """An atlas without its outermost cell, as parts of the body show it; fits of whole bodies."""
    order = np.argsort(atlas.means[:, 0])
    kept = np.sort(order[:-1])
    shown = np.full(len(atlas), float(atlas.specimens))
    shown[order[-12:]] = 1.0
    random = np.random.default_rng(0)
    fits = []
    for _ in range(SERIES):
        places = atlas.means + random.normal(0, 0.3, atlas.means.shape)
        scores = np.zeros(atlas.feature_means.shape)
        fits.append(Fit(places, places, scores, kept.astype(np.int32), 0.0, Rates(0.0, 0.0)))
    return replace(atlas, shown=shown).take(kept), fits


def test_whole_specimens_show_the_end_cells_that_an_atlas_of_parts_lacks(atlas: Atlas) -> None:
    parts, fits = without_the_front(atlas)
    more = completed(parts, fits)
    assert len(more) == len(parts) + 1
    assert more.names[-1] == ""
    tip = atlas.means[np.argmax(atlas.means[:, 0])]
    np.testing.assert_allclose(more.means[-1], tip, atol=0.5)
    assert more.often[-1] == atlas.specimens
    # Not where all specimens show the whole body or that place, nor by few specimens or parts.
    everywhere = np.full(len(parts), float(parts.specimens))
    for shown in (np.zeros(0), everywhere):
        whole = replace(parts, shown=shown)
        assert completed(whole, fits) is whole
    assert completed(parts, fits[1:]) is parts
    assert completed(parts, [replace(fit, view=np.ones(len(parts))) for fit in fits]) is parts


def test_cells_that_a_series_adds_have_no_number_in_the_atlas(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, fits = without_the_front(atlas)
    more = completed(parts, fits)
    monkeypatch.setattr("eutely.tasks.annotate.completed", lambda *_: more)
    series = eutely.simulate(specimens=SERIES, cells=60, variation=0.5, seed=4, pose="none")
    annotations = eutely.annotate(parts, series, workers=1)
    tip = next(name for name in atlas.names if name not in parts.names)
    for specimen, annotation in zip(series, annotations, strict=True):
        assert annotation.cells.max() < len(parts)
        assert all(cell < len(parts) for row in annotation.alternatives for cell, _ in row)
        assert annotation.cells[(specimen.names or ()).index(tip)] == -1


def pushed(specimen: Specimen, seed: int, series: str = "", sign: float = 1.0) -> Specimen:
    """Return a specimen each of whose cells is pushed somewhere, by its name and the seed."""
    random = np.random.default_rng(seed)
    push = {f"{name}": random.normal(0, 3.0, 3) for name in sorted(NAMES)}
    moves = sign * np.array([push[name] for name in specimen.names or ()])
    return replace(specimen, centroids=specimen.centroids + moves, series=series)


def test_the_atlas_is_shifted_where_that_makes_the_others_likelier(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort = eutely.simulate(specimens=6, cells=60, variation=0.5, seed=4, pose="none")
    monkeypatch.setattr("eutely.tasks.annotate.SERIES", 6)

    def confidences(specimens: list[Specimen], adapt: bool | None) -> list[np.ndarray]:
        annotations = eutely.annotate(atlas, specimens, adapt=adapt, workers=1)
        return [annotation.confidence for annotation in annotations]

    alike = [pushed(specimen, 1) for specimen in cohort]
    np.testing.assert_equal(confidences(alike, None), confidences(alike, True))
    assert not np.array_equal(confidences(alike, True)[0], confidences(alike, False)[0])
    few = alike[:5]
    np.testing.assert_equal(confidences(few, None), confidences(few, False))
    stranger = [*alike[:5], pushed(cohort[5], 1, sign=-1.0)]
    np.testing.assert_equal(confidences(stranger, None)[0], confidences(stranger, True)[0])
    np.testing.assert_equal(confidences(stranger, None)[5], confidences(stranger, False)[5])


def test_a_column_says_which_specimens_are_a_series(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort = eutely.simulate(specimens=8, cells=60, variation=0.5, seed=4, pose="none")
    monkeypatch.setattr("eutely.tasks.annotate.SERIES", 4)
    first = [pushed(specimen, 1, "first") for specimen in cohort[:5]]
    second = [pushed(specimen, 2, "second") for specimen in cohort[5:]]
    together = eutely.annotate(atlas, [*first, *second], workers=1)
    alone = eutely.annotate(atlas, first, workers=1) + eutely.annotate(atlas, second, workers=1)
    for mine, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(mine.confidence, other.confidence)


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


def test_specimens_of_a_series_settle_their_handedness_together() -> None:
    def mirrored(*evidence: float) -> list[bool]:
        return (mirror_probabilities(np.array(evidence)) > 0.5).tolist()

    assert mirrored(CERTAIN, -0.3) == [True, True]
    assert mirrored(2.0, 1.5, -1.0) == [True, True, True]
    assert mirrored(0.5, -2.0) == [False, False]
    assert mirrored(0.3) == [False]  # as it is unless there is evidence
    assert mirrored(0.8) == [True]
    assert mirrored(CERTAIN, -CERTAIN, 1.0) == [True, False, True]  # not one series
    assert mirrored(*[3.0] * 9, -9.0) == [True] * 9 + [False]  # all but one
    assert mirrored() == []


def test_many_specimens_of_a_series_share_an_error_and_do_not_make_it_certain() -> None:
    few, many = (mirror_probabilities(np.full(count, 1.0)) for count in (2, 40))
    assert 0.5 < few[0] < many[0] < 0.9  # independent ones: 1 - 1e-17
    settled = mirror_probabilities(np.append(np.full(40, CERTAIN), 0.3))
    assert settled[-1] > 0.95  # what is certain has no error to share


def test_a_specimen_by_itself_has_its_odds_and_the_prior() -> None:
    odds = np.exp(1.3) * MIRRORED / (1 - MIRRORED)
    np.testing.assert_allclose(mirror_probabilities(np.array([1.3])), odds / (1 + odds), rtol=1e-3)


def test_specimens_of_the_atlas_witness_the_handedness_of_their_origin() -> None:
    doubtful = np.array([-0.5])
    alone, known, mixed = (
        mirror_probabilities(doubtful, counts)[0] for counts in ((0, 0), (0, 9), (5, 4))
    )
    assert alone < 0.5 < known
    assert alone - 0.1 < mixed < known  # a microscope of both handednesses tells little
    assert mirror_probabilities(np.array([-15.0]), (0, 9))[0] < 0.5  # evidence can be stronger


def test_what_is_not_placed_does_not_witness_the_handedness() -> None:
    fit = Fit(np.zeros((1, 3)), np.zeros((1, 3)), np.zeros((1, 0)), np.zeros(1, np.int32), 0.0,
              Rates(0.1, 0.1), mirror=50.0)  # fmt: skip
    assert hand_evidence(fit, mirrored=True, placed=False) == 0.0
    assert hand_evidence(fit, mirrored=True, placed=True) == 50.0 * HAND
    assert hand_evidence(replace(fit, mirror=None), mirrored=False, placed=True) == -CERTAIN


def test_names_may_contradict_a_handedness_unless_it_is_clear() -> None:
    def doubt(mirror: float) -> float | None:
        fit = Fit(np.eye(3), np.eye(3), np.zeros((3, 0)), np.zeros(1, np.int32), 0.0,
                  Rates(0.1, 0.1), mirror=mirror)  # fmt: skip
        results = [Result(Posed((np.eye(3),), np.eye(3), np.zeros((3, 0))), np.eye(3), fit, 2.0)]
        assert settle_hands(results, [0], (0, 0), every=False) == {}  # it is as it seems
        return results[0].mirrored_by

    assert doubt(-60.0) == EXCHANGED
    clear = doubt(-1.2 * CLEAR)
    assert clear is not None
    assert clear < 1e-3
