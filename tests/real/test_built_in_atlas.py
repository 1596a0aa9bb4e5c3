"""The built-in atlas names real worms."""

from pathlib import Path

import numpy as np
import pytest

import eutely
from eutely.evaluation import score
from eutely.io.atlas import open_atlas


def test_worms_of_the_test_set_are_named(data: Path) -> None:
    worms = eutely.read(data / "rapcat" / "test2")[:4]
    assert eutely.evaluate(open_atlas("celegans-l1"), worms).mean > 0.93


@pytest.mark.parametrize(
    "worm", ["ceh-24_XIL0707_20141022_0001_S1", "swsn-7_SD1588_20140428_0002_S1"]
)
def test_features_of_another_channel_do_not_decide_handedness(data: Path, worm: str) -> None:
    [specimen] = eutely.read(data / "rapcat" / "test2" / f"{worm}.ano.ano.txt")
    image = specimen.mapped(np.diag([1.0, 1.0, -1.0]), np.zeros(3))
    atlas = eutely.Atlas.load("celegans-l1")
    [as_is], [mirrored] = (eutely.annotate(atlas, [one], workers=1) for one in (specimen, image))
    assert not as_is.mirrored
    assert mirrored.mirrored
    np.testing.assert_array_equal(as_is.cells, mirrored.cells)


@pytest.fixture(scope="module")
def worm(data: Path) -> eutely.Specimen:
    """Return a worm whose body is twisted."""
    file = "nhr-131_XIL0545_20140616_0002_S1.ano.ano.txt"
    [specimen] = eutely.read(data / "rapcat" / "test2" / file)
    return specimen


def accuracy_of(specimen: eutely.Specimen) -> tuple[float, eutely.Annotation]:
    atlas = eutely.Atlas.load("celegans-l1")
    [annotation] = eutely.annotate(atlas, [specimen.without_names()], workers=1)
    return score(specimen, annotation.names).accuracy, annotation


def test_the_front_of_a_twisted_worm_is_placed(worm: eutely.Specimen) -> None:
    along = worm.centroids[:, 0]
    front = worm.take(np.flatnonzero(along >= along.min() + 0.4 * np.ptp(along)))
    accuracy, annotation = accuracy_of(front.mapped(np.diag([1.0, 1.0, -1.0]), np.zeros(3)))
    assert annotation.mirrored
    assert accuracy > 0.9


def test_a_worm_without_the_end_of_its_tail_is_not_stretched_over_it(data: Path) -> None:
    """Few nuclei are in the tail: stretched over the whole body, the others err with confidence."""
    worm = sorted(eutely.read(data / "rapcat" / "test2"), key=lambda one: one.name)[1]
    along = worm.centroids[:, 0]
    front = worm.take(np.flatnonzero(along >= along.min() + 0.1 * np.ptp(along)))
    assert len(worm) - len(front) < 15
    assert accuracy_of(front)[0] > 0.93


def test_half_of_the_nuclei_missing_are_no_part_of_the_body(worm: eutely.Specimen) -> None:
    kept = np.random.default_rng(1).random(len(worm)) < 0.5
    accuracy, annotation = accuracy_of(worm.take(np.flatnonzero(kept)))
    assert annotation.view is None
    assert accuracy > 0.8


def test_spurious_nuclei_all_over_the_box_do_not_hide_a_worm(worm: eutely.Specimen) -> None:
    random = np.random.default_rng(0)
    low, high = worm.centroids.min(axis=0), worm.centroids.max(axis=0)
    crowded = eutely.Specimen.from_arrays(
        "crowded",
        np.vstack([worm.centroids, random.uniform(low, high, (300, 3))]),
        names=[*(worm.names or ()), *[""] * 300],
        unit=worm.unit,
    )
    accuracy, annotation = accuracy_of(crowded)
    confidence = float(np.nan_to_num(annotation.confidence).mean())
    assert accuracy > 0.8 or confidence <= 0.3
