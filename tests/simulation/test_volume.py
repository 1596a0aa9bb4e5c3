import logging
from dataclasses import replace

import numpy as np
import pytest

from eutely import EutelyError, Specimen, simulate
from eutely.nuclei import measure
from eutely.simulation import body_plan
from eutely.simulation.volume import draw


def moments(labels, origin, size):
    """Return label -> centroid and semi-axes of its voxels."""
    by_label = {}
    voxels = np.argwhere(labels)[:, ::-1] * size + origin
    values = labels[labels > 0]
    for label in np.unique(values):
        points = voxels[values == label]
        spread = np.linalg.eigvalsh(np.cov(points.T))[::-1]
        by_label[int(label)] = points.mean(axis=0), np.sqrt(5 * spread)
    return by_label


@pytest.mark.parametrize("size", [(1.0, 1.0, 1.0), (0.7, 1.0, 1.3)])
def test_drawn_nuclei_have_their_centroids_and_radii(size):
    worm = simulate(1, body_plan(30, spacing=30), variation=0.2, pose="axis")[0]
    labels, origin = draw(worm, size)
    by_label = moments(labels, origin, size)
    assert sorted(by_label) == sorted(worm.ids)
    gaps = np.linalg.norm(worm.centroids[:, None] - worm.centroids, axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert (gaps.min(axis=1) > 36).sum() > 5
    for row, label in enumerate(worm.ids):
        centroid, radii = by_label[int(label)]
        assert centroid == pytest.approx(worm.centroids[row], abs=2.0)
        if gaps[row].min() > 36:
            assert centroid == pytest.approx(worm.centroids[row], abs=0.1)
            assert radii == pytest.approx(worm.radii[row], rel=0.03)


def test_worms_survive_the_way_through_a_volume():
    """Most nuclei touch a neighbour, and yet extraction finds them where and as they are."""
    worm = simulate(1, pose="axis")[0]
    labels, origin = draw(worm)
    beside = (labels[..., 1:] != labels[..., :-1]) & (labels[..., 1:] > 0) & (labels[..., :-1] > 0)
    assert len(np.unique(labels[..., 1:][beside])) > len(worm) / 10  # along x alone
    measured = measure([(labels, (0, 0, 0))], labels.shape, (1.0, 1.0, 1.0), worm.name)
    true = worm.take(np.argsort(worm.ids))
    assert measured.ids.tolist() == true.ids.tolist()
    assert np.linalg.norm(measured.centroids + origin - true.centroids, axis=1).max() < 1
    assert np.abs(measured.radii / true.radii - 1).max() < 0.15
    assert np.median(np.abs(measured.radii / true.radii - 1)) < 0.02


def test_touching_nuclei_share_the_space_in_between():
    """Two balls of radius 5, 6 apart: each keeps its side of the plane in the middle."""
    balls = Specimen.from_arrays("two", [[0.0, 0, 0], [6, 0, 0]], ids=[70000, 3], radii=[5.0, 5.0])
    labels, origin = draw(balls, 0.5)
    assert labels.dtype == np.uint32
    x = np.arange(labels.shape[2]) * 0.5 + origin[0]
    assert x[(labels == 70000).any(axis=(0, 1))].max() <= 3
    assert x[(labels == 3).any(axis=(0, 1))].min() >= 3
    assert set(np.unique(labels)) == {0, 3, 70000}
    assert labels[[0, 1, -1, -2]].max() == 0
    assert labels[..., [0, 1, -1]].max() == 0


def test_order_of_nuclei_does_not_matter():
    worm = simulate(1, 40, variation=2)[0]
    first, _ = draw(worm, 2)
    second, _ = draw(worm.take(np.arange(len(worm))[::-1]), 2)
    assert first.dtype == np.uint16
    assert (first == second).all()


def test_small_ids_are_not_taken_for_row_numbers():
    worm = replace(*simulate(1, 40), ids=np.arange(40, 0, -1))
    labels, _ = draw(worm, 2)
    shifted, _ = draw(replace(worm, ids=worm.ids + 100), 2)
    assert (np.where(shifted > 0, shifted - 100, 0) == labels).all()


def test_lost_nuclei_are_reported(caplog):
    worm = simulate(1, 40)[0]
    with caplog.at_level(logging.WARNING, "eutely"):
        draw(worm, 30)
    assert "left no voxel" in caplog.text


@pytest.mark.parametrize(
    ("change", "size", "words"),
    [
        ({}, 0.0, "voxel size 0.0"),
        ({}, (1, 1, np.nan), "voxel size"),
        ({}, 1e-3, "too large to draw"),
        ({"radii": None}, 1.0, "without radii"),
        ({"ids": [0, 1, 2, 3]}, 1.0, "ids must be 1"),
        ({"ids": [1, 2, 3, 2**32]}, 1.0, "ids must be 1"),
    ],
)
def test_what_cannot_be_drawn(change, size, words):
    good = {"ids": [1, 2, 3, 4], "radii": [1.0] * 4, "centroids": np.eye(4, 3) * 10}
    with pytest.raises(EutelyError, match=words):
        draw(Specimen.from_arrays("four", **{**good, **change}), size)
