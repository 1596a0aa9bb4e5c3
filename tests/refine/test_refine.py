"""The unsupervised build on a small simulated body whose truth is known."""

import numpy as np
import pytest

from eutely.annotation import annotate, canonical_order, posed, spacing_of
from eutely.atlas import Atlas
from eutely.config.model import Estimate, Refine
from eutely.errors import AtlasError, EutelyError
from eutely.estimate import estimate
from eutely.evaluation import majority_names, name, pre_atlas, score
from eutely.execute import open_executor
from eutely.orient import orient
from eutely.refine import Cohort, choose_targets, refine
from eutely.specimen import Specimen

SETTINGS = Refine(linear_rounds=2, joint_rounds=2, targets=2, target_rounds=1)


def worms(count: int, seed: int = 0) -> list[Specimen]:
    """Long bodies of 60 cells, denser at one end, each bent a little and in its own order."""
    random = np.random.default_rng(seed)
    plan = np.random.default_rng(99)
    along = 300 * (1 - plan.random(60) ** 2)
    cells = np.stack([along, *plan.normal(size=(2, 60)) * [[12], [7]]], axis=1)
    cells[:, 1] += 0.06 * np.abs(cells[:, 2]) ** 1.5
    names = np.array([f"C{i}" for i in range(60)])
    found = []
    for number in range(count):
        points = cells + random.normal(size=cells.shape) * [1.5, 0.7, 0.7]
        points[:, 0] *= random.uniform(0.9, 1.1)
        points[:, 1] += 3 * np.sin(points[:, 0] / 100 + random.uniform(0, 6))
        order = random.permutation(60)
        found.append(Specimen.from_arrays(f"worm{number}", points[order], names=list(names[order])))
    return found


def build(specimens: list[Specimen], workers: int = 1) -> tuple[Cohort, Atlas, list[Specimen]]:
    ordered = [one.take(canonical_order(one)) for one in specimens]
    size = np.median([orient(one)[0].size for one in ordered], axis=0)
    poses = [posed(one, size) for one in ordered]
    spacing = float(np.median([spacing_of(one[0]) for one in poses]))
    with open_executor(workers) as executor:
        targets = choose_targets(poses, SETTINGS.targets, spacing=spacing, executor=executor)
        cohort = refine(
            poses,
            targets,
            size=size,
            spacing=spacing,
            settings=SETTINGS,
            estimate=Estimate(),
            executor=executor,
        )
    atlas = estimate(cohort.places(), size=size, spacing=spacing, settings=Estimate())
    return cohort, atlas, ordered


@pytest.fixture(scope="module")
def built() -> tuple[Cohort, Atlas, list[Specimen]]:
    return build(worms(12))


def test_cells_are_found_without_names(built: tuple[Cohort, Atlas, list[Specimen]]) -> None:
    cohort, _, ordered = built
    assert pre_atlas(ordered, cohort.labels()).mean > 0.95


def test_new_specimens_are_annotated(built: tuple[Cohort, Atlas, list[Specimen]]) -> None:
    cohort, atlas, ordered = built
    labels = [one.names or () for one in ordered]
    named = atlas.named(majority_names(cohort.labels(), labels, len(atlas)))
    fresh = worms(3, seed=5)
    found = [annotate(one.without_names(), named) for one in fresh]
    right = [score(one, got.names).accuracy for one, got in zip(fresh, found, strict=True)]
    assert np.mean(right) > 0.95
    sure = found[0].confidence
    assert np.nanmin(sure) >= 0
    assert np.nanmax(sure) <= 1
    assert all(len(others) <= 3 for others in found[0].alternatives)


def test_order_ids_and_names_do_not_matter(built: tuple[Cohort, Atlas, list[Specimen]]) -> None:
    _, atlas, _ = built
    random = np.random.default_rng(3)
    other = [
        Specimen.from_arrays(one.name, one.centroids[order], ids=1000 + order)
        for one in worms(12)
        for order in [random.permutation(len(one))]
    ]
    _, again, _ = build(other, workers=2)
    np.testing.assert_array_equal(again.means, atlas.means)
    np.testing.assert_array_equal(again.predictors, atlas.predictors)


def test_annotation_follows_the_rows(built: tuple[Cohort, Atlas, list[Specimen]]) -> None:
    _, atlas, _ = built
    one = worms(1, seed=8)[0]
    order = np.random.default_rng(1).permutation(len(one))
    first, second = annotate(one, atlas), annotate(one.take(order), atlas)
    np.testing.assert_array_equal(first.cells[order], second.cells)
    assert first.alternatives[order[0]] == second.alternatives[0]


def test_missing_and_spurious_nuclei_are_survived(
    built: tuple[Cohort, Atlas, list[Specimen]],
) -> None:
    cohort, atlas, ordered = built
    labels = [one.names or () for one in ordered]
    named = atlas.named(majority_names(cohort.labels(), labels, len(atlas)))
    one = worms(1, seed=8)[0]
    assert (
        score(one.take(np.arange(54)), annotate(one.take(np.arange(54)), named).names).accuracy
        > 0.85
    )


def test_units_must_agree(built: tuple[Cohort, Atlas, list[Specimen]]) -> None:
    one = worms(1)[0]
    other = Specimen.from_arrays("other", one.centroids, unit="um")
    with pytest.raises(AtlasError, match="convert one of them"):
        annotate(other, built[1])


def test_places_follow_nuclei() -> None:
    points = np.arange(12.0).reshape(4, 3)
    own = np.array([2, -1, 0], np.int32)
    cohort = Cohort((points,), (points + 1,), (own,), np.array([1.0, 1.0]), 1.0)
    np.testing.assert_array_equal(cohort.places()[0, 0], points[2] + 1)
    assert np.isnan(cohort.places(posed=True)[0, 1]).all()
    np.testing.assert_array_equal(cohort.labels()[0], [2, -1, 0, -1])


def test_an_atlas_is_named(built: tuple[Cohort, Atlas, list[Specimen]]) -> None:
    _, atlas, ordered = built
    with open_executor(1) as executor:
        named = name(atlas, ordered[:4], executor)
        assert sum(map(bool, named.names)) == len(atlas)
        with pytest.raises(EutelyError, match="naming needs"):
            name(atlas, [ordered[0].without_names()], executor)
