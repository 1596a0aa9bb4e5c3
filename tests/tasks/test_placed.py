"""New specimens as laboratories have them: mirrored, partial, of any scale, with other colours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eutely
from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.errors import EutelyError
from eutely.evaluation import score
from eutely.specimen import UNKNOWN, Specimen
from eutely.tasks.outliers import outliers
from toy_animals import lopsided, mirrored, turned, window


@pytest.fixture(scope="module")
def cohort() -> list[Specimen]:
    cohort = eutely.simulate(specimens=12, cells=160, variation=0.5, pose="none", seed=2)
    return [lopsided(specimen) for specimen in cohort]


@pytest.fixture(scope="module")
def atlas(cohort: list[Specimen]) -> Atlas:
    return eutely.build(cohort[:10], supervised=True, workers=1).atlas


def annotated(atlas: Atlas, specimen: Specimen, handedness: str = "auto") -> Annotation:
    return eutely.annotate(atlas, [specimen.without_names()], handedness=handedness, workers=1)[0]  # type: ignore[arg-type]


def right(specimen: Specimen, annotation: Annotation) -> float:
    return score(specimen, annotation.names).accuracy


@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0])
@pytest.mark.parametrize("mirror", [False, True])
def test_a_mirror_image_at_any_scale_gets_the_same_names(
    atlas: Atlas, cohort: list[Specimen], mirror: bool, factor: float
) -> None:
    whole = cohort[10]
    unit = whole.unit if factor == 1.0 else UNKNOWN
    new = replace(turned(mirrored(whole) if mirror else whole, 3, factor), unit=unit)
    annotation = annotated(atlas, new)
    assert annotation.mirrored == mirror
    assert right(new, annotation) > 0.95
    assert annotation.note(atlas) == ("mirrored" if mirror else "")
    assert outliers([annotation], len(atlas)) == {}


@pytest.mark.parametrize(
    ("low", "high", "part"), [(0.4, 1.0, "front"), (0.0, 0.6, "back"), (0.25, 0.75, "middle")]
)
def test_a_part_is_named_and_its_view_is_said(
    atlas: Atlas, cohort: list[Specimen], low: float, high: float, part: str
) -> None:
    new = turned(mirrored(window(cohort[11], low, high)), 5)
    annotation = annotated(atlas, new)
    assert annotation.mirrored
    assert right(new, annotation) > 0.9
    assert annotation.view is not None
    assert annotation.view.shape == (len(atlas),)
    assert f"{part} " in annotation.note(atlas)
    assert outliers([annotation], len(atlas)) == {}


def test_colours_of_another_gain_and_offset_change_nothing(
    atlas: Atlas, cohort: list[Specimen]
) -> None:
    new = window(cohort[10], 0.4, 1.0)
    other = replace(new, features={key: 40 * values - 3 for key, values in new.features.items()})
    np.testing.assert_array_equal(annotated(atlas, other).cells, annotated(atlas, new).cells)


def test_a_handedness_that_the_user_knows_is_not_tried_otherwise(
    atlas: Atlas, cohort: list[Specimen]
) -> None:
    new, image = cohort[10], mirrored(cohort[10])
    assert not annotated(atlas, image, "as-is").mirrored
    assert right(image, annotated(atlas, image, "as-is")) < 0.7
    assert annotated(atlas, new, "mirrored").mirrored
    known = annotated(atlas, image, "mirrored")
    assert right(image, known) > 0.95
    with pytest.raises(EutelyError, match="handedness 'left'"):
        annotated(atlas, new, "left")


def test_by_a_symmetric_atlas_specimens_are_taken_as_they_are() -> None:
    cohort = eutely.simulate(specimens=8, cells=80, variation=0.5, pose="none")
    atlas = eutely.build(cohort[:6], supervised=True, workers=1).atlas
    for specimen in cohort[6:]:
        annotation = annotated(atlas, turned(specimen, 4))
        assert not annotation.mirrored
        assert right(specimen, annotation) > 0.95


@pytest.mark.parametrize("count", [160, 30])
def test_random_points_are_not_named_with_confidence(
    atlas: Atlas, cohort: list[Specimen], count: int
) -> None:
    extent = np.ptp(cohort[0].centroids, axis=0)
    points = np.random.default_rng(1).uniform(0, 1, (count, 3)) * extent
    cloud = Specimen.from_arrays("cloud", points, unit=cohort[0].unit)
    annotation = annotated(atlas, cloud)
    assert np.nan_to_num(annotation.confidence).mean() <= 0.3
    assert "could not be placed" in outliers([annotation], len(atlas))["cloud"]
    shares = [sum(share for _, share in row) for row in annotation.alternatives]
    assert np.mean(shares) <= 0.3


def test_cells_out_of_view_do_not_lower_the_confidence(
    atlas: Atlas, cohort: list[Specimen]
) -> None:
    new = window(cohort[10], 0.4, 1.0)
    whole, part = annotated(atlas, cohort[10]), annotated(atlas, new)
    assert np.nanmean(part.confidence) > np.nanmean(whole.confidence) - 0.1


@pytest.mark.parametrize("low", [0.0, 0.4])
@pytest.mark.parametrize("mirror", [False, True])
def test_a_specimen_without_declared_unit_gets_the_same_cells(
    atlas: Atlas, cohort: list[Specimen], mirror: bool, low: float
) -> None:
    whole = window(cohort[10], low, 1.0)
    new = turned(mirrored(whole) if mirror else whole, 3)
    assert new.unit == atlas.unit == "um"
    with_unit, without = annotated(atlas, new), annotated(atlas, replace(new, unit=UNKNOWN))
    np.testing.assert_array_equal(without.cells, with_unit.cells)
    assert without.mirrored == with_unit.mirrored == mirror


def test_a_stray_nucleus_costs_nothing_and_is_no_cell(atlas: Atlas, cohort: list[Specimen]) -> None:
    new = turned(cohort[10], 3)
    far = np.concatenate([new.centroids, [[1e12, -1e12, 1e12]]])
    features = {key: np.append(values, values.mean()) for key, values in new.features.items()}
    strayed = Specimen.from_arrays(
        new.name,
        far,
        radii=np.concatenate([new.radii, new.radii[:1]]),
        features=features,
        unit=new.unit,
    )
    before, after = annotated(atlas, new), annotated(atlas, strayed)
    np.testing.assert_array_equal(after.cells[:-1], before.cells)
    np.testing.assert_array_equal(after.confidence[:-1], before.confidence)
    assert after.cells[-1] == -1
    assert np.isnan(after.confidence[-1])
    assert after.alternatives[-1] == ()
    assert after.names[-1] == ""
    assert after.support == before.support


def test_half_of_an_animal_and_random_points_are_not_named_with_confidence(
    atlas: Atlas, cohort: list[Specimen]
) -> None:
    """What fits half of a specimen well and the rest not at all is no placement of it."""
    half = window(cohort[10], 0.5, 1.0)
    rest = window(cohort[10], 0.0, 0.5)
    low, size = rest.centroids.min(axis=0), np.ptp(rest.centroids, axis=0)
    points = low + np.random.default_rng(2).uniform(0, 1, (len(rest), 3)) * size
    glued = Specimen.from_arrays("glued", np.concatenate([half.centroids, points]), unit="um")
    annotation = annotated(atlas, glued)
    confidence = np.nan_to_num(annotation.confidence)
    assert confidence[len(half) :].mean() < 0.2
    assert confidence.mean() < 0.5
    assert annotation.placed is not None
    assert annotation.placed < 0.5


def test_how_sure_a_place_is_is_said(atlas: Atlas, cohort: list[Specimen]) -> None:
    annotation = annotated(atlas, cohort[10])
    assert annotation.placed is not None
    assert 0.8 < annotation.placed <= 1.0


def test_a_part_that_passes_for_the_whole_body_is_named(
    atlas: Atlas, cohort: list[Specimen]
) -> None:
    """Stretched over the body it would leave no nucleus over."""
    new = mirrored(turned(window(cohort[11], 0.3, 0.7), 5))
    annotation = annotated(atlas, new)
    assert annotation.mirrored
    assert right(new, annotation) > 0.9


def test_pins_are_certain_and_decide(atlas: Atlas, cohort: list[Specimen]) -> None:
    new = cohort[10].without_names()
    free = annotated(atlas, new)
    first, second = int(free.cells[3]), int(free.cells[30])
    pins = {(new.name, int(new.ids[3])): second, (new.name, int(new.ids[30])): ""}
    (found,) = eutely.annotate(atlas, [new], pins=pins, workers=1)
    assert (found.cells[3], found.cells[30]) == (second, -1)
    assert found.confidence[3] > 0.999
    others = np.setdiff1d(np.arange(len(new)), [3, 30])
    assert (found.cells[others] == free.cells[others]).mean() > 0.95
    (same,) = eutely.annotate(atlas, [new], pins={(new.name, int(new.ids[3])): first}, workers=1)
    np.testing.assert_array_equal(same.cells, free.cells)
