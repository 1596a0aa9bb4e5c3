"""New specimens as laboratories have them: mirrored, partial, of any scale, with other colours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import eutely
from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.errors import EutelyError
from eutely.evaluation import score
from eutely.fit import choose
from eutely.fit.again import Pins
from eutely.fit.evidence import is_mirrored
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.place import Fit
from eutely.fit.poses import MIRROR, plausible_poses
from eutely.fit.view import MANY, Unposed
from eutely.frame import Points
from eutely.pose import anonymous
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


@pytest.fixture(scope="module")
def large() -> tuple[Atlas, Specimen]:
    """Return an atlas, and a specimen of so many nuclei that its view is not always searched."""
    cohort = [
        lopsided(specimen)
        for specimen in eutely.simulate(5, cells=300, variation=0.5, pose="none", seed=2)
    ]
    assert len(cohort[4]) > 1.1 * MANY
    return eutely.build(cohort[:4], supervised=True, workers=1).atlas, cohort[4]


def test_features_do_not_settle_the_handedness_that_places_leave_open(
    large: tuple[Atlas, Specimen], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loose matching follows misleading features too well; both are then compared jointly."""
    atlas, new = large
    points = anonymous(new, new.name).centroids

    def both(*given: Any) -> list[Points]:
        """Return the nearest pose and its mirror image, as if they were equally near."""
        first = plausible_poses(*given)[0]
        return [first, first * MIRROR]

    def misled(model: Model, fit: Fit, pins: object) -> float:
        """By places both are alike; by features the mirror image is far better."""
        return 0.0 if not fit.scores.size or is_mirrored(points, fit.posed) else 10 * choose.CLEAR

    monkeypatch.setattr(choose, "cost_at_usual_rates", misled)
    monkeypatch.setattr(choose, "plausible_poses", both)
    monkeypatch.setattr(choose, "_likely", lambda model, poses, pins: [(p, None) for p in poses])
    monkeypatch.setattr(choose, "_shows_all", lambda model, fit: True)
    annotation = annotated(atlas, new)
    assert not annotation.mirrored
    assert right(new, annotation) > 0.95


def test_a_part_that_passes_for_the_whole_body_is_searched_for(
    atlas: Atlas, cohort: list[Specimen], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stretched over the body it may leave no nucleus over; its support shows that it is none."""
    supports = []

    def stretched(model: Model, rivals: list[Fit], unposed: Unposed, pins: Pins) -> Any:
        """Return a fit of the whole body, and a support with which nothing is placed."""
        supports.append(choose.PLACED - 1)
        return rivals[0], supports[-1]

    monkeypatch.setattr(choose, "_shows_all", lambda model, fit: True)
    monkeypatch.setattr(choose, "_as_whole", stretched)
    new = mirrored(turned(window(cohort[11], 0.3, 0.7), 5))
    annotation = annotated(atlas, new)
    assert supports
    assert annotation.mirrored
    assert right(new, annotation) > 0.9


def test_a_body_of_another_shape_is_the_whole_one_only_by_its_support(
    atlas: Atlas, cohort: list[Specimen]
) -> None:
    model, points = model_of_atlas(atlas), window(cohort[11], 0.3, 0.7).centroids
    fit = choose.warp_pose(model, points - points.mean(axis=0), np.zeros((len(points), 0)), None)
    _, usual = choose._as_whole(model, [fit], Unposed(points, 1.0, True), None)
    _, other = choose._as_whole(model, [fit], Unposed(points, 1.0, False), None)
    assert usual == np.inf
    assert other < 10
