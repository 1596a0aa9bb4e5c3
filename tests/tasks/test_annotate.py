"""A cohort whose cells are moved in the same way: the atlas follows, a specimen never itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.atlas import Atlas
from eutely.config import resolve
from eutely.errors import EutelyError
from eutely.evaluation import evaluation, score
from eutely.fit.model import model_of_atlas
from eutely.frame import Posed
from eutely.pose import anonymous, oriented, posed
from eutely.specimen import Specimen
from eutely.tasks.annotate import fit_specimen

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
    fit = fit_specimen(atlas, model, specimen).fit

    def fitted_again(places: np.ndarray) -> np.ndarray:
        placed = Posed((places,), specimen.radii, specimen.scores)
        return fit_specimen(atlas, model, placed).fit.nuclei

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


def test_nuclei_in_one_plane_are_refused_in_one_line(atlas: Atlas) -> None:
    """A table of an image without depth: handedness and roll would be made up."""
    [specimen] = eutely.simulate(1, cells=40, seed=7)
    flat = replace(specimen, centroids=specimen.centroids * [1.0, 1.0, 0.0])
    with pytest.raises(EutelyError, match=r"lie in one plane.*three are needed"):
        eutely.annotate(atlas, [flat])
