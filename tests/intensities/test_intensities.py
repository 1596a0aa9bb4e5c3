"""Statistics of images in regions against NumPy, whatever the blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eutely import Specimen
from eutely.intensities import ImageBlock, RunCollector, inside, intensities, shells
from eutely.intensities import measure as module
from eutely.intensities.measure import statistics
from eutely.nuclei import measure

SHAPE = (9, 14, 23)
SIZE = (1.0, 1.0, 1.0)


def blobs(seed=0, dtype=np.uint16):
    """Three boxes, one of them across most blocks, and strays."""
    labels = np.zeros(SHAPE, dtype)
    labels[1:4, 2:6, 3:9] = 5
    labels[2:9, 5:12, 10:20] = 2
    labels[6:8, 0:3, 0:4] = 9
    labels[8, 13, 22] = 9
    return labels


def regions_of(labels, parts=(4, 5, 7)):
    runs = RunCollector(labels.shape)
    for z, y, x in np.ndindex(*(-(-n // p) for n, p in zip(labels.shape, parts, strict=True))):
        start = z * parts[0], y * parts[1], x * parts[2]
        block = labels[tuple(slice(a, a + p) for a, p in zip(start, parts, strict=True))]
        runs.add(block, start)
    return runs.regions(np.unique(labels[labels > 0]).astype(np.int64))


def blocks_of(image, order, parts):
    """Yield blocks of an image (c, z, y, x) stored with its axes in another order."""
    stored = np.ascontiguousarray(image.transpose(order))
    grid = [range(0, n, p) for n, p in zip(stored.shape, parts, strict=True)]
    back = np.argsort(order)
    for start in np.array(np.meshgrid(*grid, indexing="ij")).reshape(4, -1).T.tolist():
        at = tuple(slice(a, a + p) for a, p in zip(start, parts, strict=True))
        array = np.ascontiguousarray(stored[at])
        steps = [stride // array.itemsize for stride in array.strides]
        yield ImageBlock(
            array,
            tuple(start[i] for i in back),
            tuple(array.shape[i] for i in back),
            tuple(steps[i] for i in back),
        )


def expected(image, labels):
    ids = np.unique(labels[labels > 0])
    values = [[channel[labels == label].astype(float) for label in ids] for channel in image]
    return np.array(
        [[(v.mean(), np.median(v), v.sum(), v.std()) for v in channel] for channel in values]
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, ">u2", np.int32, np.float32])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 2, 3), (3, 2, 1, 0), (1, 2, 3, 0)])
def test_statistics_agree_with_numpy_for_any_type_and_order_of_axes(dtype, order):
    random = np.random.default_rng(1)
    image = random.integers(-120 if np.dtype(dtype).kind in "if" else 0, 250, (3, *SHAPE))
    image = image.astype(dtype)
    labels = blobs()
    found = intensities(blocks_of(image, order, (2, 5, 6, 4)), regions_of(labels), 3)
    np.testing.assert_allclose(found, expected(image, labels), rtol=1e-12)


@settings(max_examples=25)
@given(st.tuples(*[st.integers(1, 9)] * 4), st.permutations(range(4)))
def test_the_same_bytes_whatever_the_blocks(parts, order):
    image = np.random.default_rng(2).normal(size=(2, *SHAPE)).astype(np.float32)
    regions = regions_of(blobs())
    whole = intensities(blocks_of(image, (0, 1, 2, 3), (2, *SHAPE)), regions, 2)
    found = intensities(blocks_of(image, tuple(order), parts), regions, 2)
    assert found.tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16])
def test_large_regions_are_counted_instead_of_kept(monkeypatch, dtype):
    image = np.random.default_rng(3).integers(0, 100, (1, *SHAPE)).astype(dtype)
    labels = blobs()
    blocks = list(blocks_of(image, (0, 1, 2, 3), (1, 2, 14, 23)))
    kept = intensities(blocks, regions_of(labels), 1)
    monkeypatch.setattr(module, "FEW", 20)
    counted = intensities(blocks, regions_of(labels), 1)
    assert counted.tobytes() == kept.tobytes()


def test_what_is_not_stored_is_zero_and_nan_is_left_out():
    image = np.full((1, *SHAPE), 4.0, np.float32)
    labels = blobs()
    half = [block for block in blocks_of(image, (0, 1, 2, 3), (1, 1, 14, 23)) if block.start[1] < 3]
    found = intensities(half, regions_of(labels), 1)
    image[:, 3:] = 0
    np.testing.assert_allclose(found, expected(image, labels))
    image[:, :, :, :] = np.nan
    image[0, 2, 3, 4] = 7.0
    found = intensities(blocks_of(image, (0, 1, 2, 3), (1, *SHAPE)), regions_of(labels), 1)
    assert found[0, 1].tolist() == [7.0, 7.0, 7.0, 0.0]
    assert np.isnan(found[0, 0]).all()
    assert np.isnan(statistics(np.array([], np.float32))).all()


def test_ellipsoids_and_shells_are_the_voxels_that_they_say():
    random = np.random.default_rng(4)
    turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
    size = (0.5, 0.5, 1.0)
    specimen = Specimen(
        "worm",
        np.array([1, 2, 3]),
        np.array([[5.2, 3.1, 4.0], [8.0, 3.0, 3.0], [0.6, 0.4, 0.9]]),
        np.array([[2.5, 1.5, 1.0], [1.2, 1.2, 1.2], [0.1, 0.1, 0.1]]),
        axes=np.array([turn, np.full((3, 3), np.nan), np.eye(3)]),
    )
    z, y, x = np.meshgrid(*map(np.arange, SHAPE), indexing="ij")
    points = np.stack([x, y, z], axis=-1) * size

    def distance(number, axes):
        apart = (points - specimen.centroids[number]) @ axes.T / specimen.radii[number]
        return np.sqrt((apart**2).sum(axis=-1))

    far = [distance(0, turn), distance(1, np.eye(3))]
    found = inside(specimen, SHAPE, size)
    image = np.arange(np.prod(SHAPE), dtype=np.uint16).reshape(1, *SHAPE)
    totals = intensities(blocks_of(image, (0, 1, 2, 3), (1, 4, 5, 6)), found, 1)[0, :, 2]
    for number in (0, 1):
        assert found.counts[number] == (far[number] <= 1).sum()
        assert totals[number] == image[0][far[number] <= 1].sum()
    assert found.counts[2] == 1  # smaller than a voxel: the nearest one
    assert totals[2] == image[0][1, 1, 1]

    around = shells(specimen, found, size)
    taken = (far[0] <= 1) | (far[1] <= 1)
    taken[1, 1, 1] = True
    totals = intensities(blocks_of(image, (0, 1, 2, 3), (1, 4, 5, 6)), around, 1)[0, :, 2]
    for number in (0, 1):
        ring = (far[number] > 1.25) & (far[number] <= 2) & ~taken
        assert around.counts[number] == ring.sum()
        assert totals[number] == image[0][ring].sum()
    both = found.joined(around)
    assert both.counts.tolist() == [*found.counts, *around.counts]


def test_nuclei_outside_and_without_radii_have_no_voxels():
    specimen = Specimen.from_arrays(
        "worm", [[5.0, 5, 5], [900, 5, 5], [3, 3, 3]], radii=[[2.0] * 3, [2.0] * 3, [np.nan] * 3]
    )
    assert (inside(specimen, SHAPE, SIZE).counts > 0).tolist() == [True, False, False]


def test_regions_of_labels_are_those_of_the_nuclei():
    labels = blobs()
    nuclei = measure([(labels, (0, 0, 0))], labels.shape, SIZE, "worm")
    assert regions_of(labels).counts.tolist() == nuclei.features["voxels"].tolist()
