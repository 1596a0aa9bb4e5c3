"""The method ``refine`` on small simulated bodies whose truth is known."""

import numpy as np
import pytest

import eutely
from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.cells import Cells
from eutely.config import Config
from eutely.config.model import Refine
from eutely.estimate import atlas_of
from eutely.evaluation import majority_names, pre_atlas, score
from eutely.execute import open_executor
from eutely.find.refine import find
from eutely.frame import Body
from eutely.specimen import Specimen
from toy_frames import frame_of, in_canonical_order, run_in_memory

CONFIG = Config(refine=Refine(linear_rounds=2, joint_rounds=2, targets=2, target_rounds=1))

Built = tuple[Cells, Atlas, list[Specimen]]


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


def build(specimens: list[Specimen], workers: int = 1) -> Built:
    ordered = in_canonical_order(specimens)
    frame = frame_of(ordered)
    with open_executor(workers) as executor:
        cells = find(run_in_memory(CONFIG, executor), frame).cells
    return cells, atlas_of(cells, frame, CONFIG), ordered


def annotate(specimen: Specimen, atlas: Atlas, pins: dict[int, int] | None = None) -> Annotation:
    """Annotate one specimen; pins are by row."""
    given: dict[tuple[str, int], str | int] = {
        (specimen.name, int(specimen.ids[row])): cell for row, cell in (pins or {}).items()
    }
    return eutely.annotate(atlas, [specimen], pins=given, workers=1)[0]


@pytest.fixture(scope="module")
def built() -> Built:
    return build(worms(12))


def test_cells_are_found_without_names(built: Built) -> None:
    cells, _, ordered = built
    assert pre_atlas(ordered, cells.labels()).mean > 0.95


def test_new_specimens_are_annotated(built: Built) -> None:
    cells, atlas, ordered = built
    labels = [one.names or () for one in ordered]
    named = atlas.named(majority_names(cells.labels(), labels, len(atlas)))
    fresh = worms(3, seed=5)
    found = [annotate(one.without_names(), named) for one in fresh]
    right = [score(one, got.names).accuracy for one, got in zip(fresh, found, strict=True)]
    assert np.mean(right) > 0.95
    sure = found[0].confidence
    assert np.nanmin(sure) >= 0
    assert np.nanmax(sure) <= 1
    assert all(len(others) <= 3 for others in found[0].alternatives)


def test_order_ids_and_names_do_not_matter(built: Built) -> None:
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


def test_annotation_follows_the_rows(built: Built) -> None:
    _, atlas, _ = built
    one = worms(1, seed=8)[0]
    order = np.random.default_rng(1).permutation(len(one))
    first, second = annotate(one, atlas), annotate(one.take(order), atlas)
    np.testing.assert_array_equal(first.cells[order], second.cells)
    assert first.alternatives[order[0]] == second.alternatives[0]


def spoilt(specimens: list[Specimen], seed: int) -> list[Specimen]:
    """Every tenth nucleus or so is lost, and six are added that are no cell."""
    found = []
    for number, one in enumerate(specimens):
        random = np.random.default_rng((seed, number))
        kept = np.flatnonzero(random.random(len(one)) > 0.1)
        low, high = one.centroids.min(axis=0), one.centroids.max(axis=0)
        added = random.uniform(low, high, size=(6, 3))
        names = [one.names[i] for i in kept] if one.names else []
        points = np.concatenate([one.centroids[kept], added])
        found.append(Specimen.from_arrays(one.name, points, names=[*names, *[""] * 6]))
    return found


def test_spurious_nuclei_stay_unmatched(built: Built) -> None:
    cells, atlas, ordered = built
    labels = [one.names or () for one in ordered]
    named = atlas.named(majority_names(cells.labels(), labels, len(atlas)))
    for one in spoilt(worms(3, seed=8), 1):
        found = annotate(one.without_names(), named)
        assert score(one, found.names).accuracy > 0.85
        assert (found.cells[-6:] < 0).sum() >= 3
        assert (found.cells[:-6] < 0).mean() < 0.1


def test_nothing_is_left_out_of_complete_specimens(
    built: Built,
) -> None:
    cells, atlas, _ = built
    assert all((labels >= 0).all() for labels in cells.labels())
    assert (annotate(worms(1, seed=4)[0], atlas).cells >= 0).all()


def test_cells_that_the_targets_lack_are_found() -> None:
    cells, atlas, ordered = build(spoilt(worms(14), 2))
    assert 57 <= len(atlas) <= 62
    assert pre_atlas(ordered, cells.labels()).mean > 0.85


def test_pins_are_honoured(built: Built) -> None:
    _, atlas, _ = built
    one = worms(1, seed=8)[0]
    free = annotate(one, atlas)
    first, second = int(free.cells[3]), int(free.cells[30])
    found = annotate(one, atlas, pins={3: second, 30: -1})
    assert (found.cells[3], found.cells[30]) == (second, -1)
    assert found.confidence[3] > 0.999
    assert len(np.unique(found.cells[found.cells >= 0])) == (found.cells >= 0).sum()
    same = annotate(one, atlas, pins={3: first})
    np.testing.assert_array_equal(same.cells, free.cells)


def test_units_do_not_matter(built: Built) -> None:
    one = worms(1)[0]
    other = Specimen.from_arrays("other", 0.125 * one.centroids, unit="um")
    np.testing.assert_array_equal(annotate(other, built[1]).cells, annotate(one, built[1]).cells)


def test_places_follow_nuclei() -> None:
    points = np.arange(12.0).reshape(4, 3)
    nuclei = np.array([2, -1, 0], np.int32)
    body = Body(np.array([1.0, 1.0]), 1.0)
    cells = Cells((points,), (points + 1,), (nuclei,), (points[:, :0],), body)
    np.testing.assert_array_equal(cells.places()[0, 0], points[2] + 1)
    assert np.isnan(cells.places(posed=True)[0, 1]).all()
    np.testing.assert_array_equal(cells.labels()[0], [2, -1, 0, -1])
