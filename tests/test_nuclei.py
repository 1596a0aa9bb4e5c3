import hypothesis.extra.numpy as npst
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import ndimage

from eutely.errors import SpecimenError
from eutely.nuclei import CROWD, STRAY, measure


def whole(labels, voxel_size=(1.0, 1.0, 1.0)):
    return measure([(labels, (0, 0, 0))], labels.shape, voxel_size, "worm")


def grid(labels, step):
    """Blocks of ``step`` voxels a side, in the order z, y, x."""
    depth, height, width = labels.shape
    for z in range(0, depth, step):
        for y in range(0, height, step):
            for x in range(0, width, step):
                yield labels[z : z + step, y : y + step, x : x + step], (z, y, x)


def draw(shape, centre, radii, axes, voxel_size):
    """Draw a solid ellipsoid: voxels whose centre (x, y, z in micrometres) lies inside."""
    z, y, x = np.meshgrid(*map(np.arange, shape), indexing="ij")
    points = np.stack([x, y, z], axis=-1) * voxel_size - centre
    return (((points @ axes.T) / radii) ** 2).sum(axis=-1) <= 1


@pytest.mark.parametrize("voxel_size", [(1.0, 1.0, 1.0), (0.1, 0.1, 0.3), (0.25, 0.5, 0.4)])
@pytest.mark.parametrize("seed", range(8))
def test_drawn_ellipsoids_are_recovered(seed, voxel_size):
    random = np.random.default_rng(seed)
    size = np.array(voxel_size)
    axes = np.linalg.qr(random.normal(size=(3, 3)))[0]
    # At least 5 voxels along every axis, and lengths that tell the directions apart.
    radii = 5 * size.max() * np.array([1.7, 1.3, 1.0]) * random.uniform(1, 1.1)
    shape = tuple((2 * radii[0] / size + 4).astype(int)[::-1])
    centre = (np.array(shape[::-1]) / 2 + random.uniform(-0.5, 0.5, 3)) * size
    worm = whole(draw(shape, centre, radii, axes, size).astype(np.uint8) * 3, voxel_size)
    assert worm.ids.tolist() == [3]
    assert worm.unit == "um"
    np.testing.assert_allclose(worm.centroids[0], centre, atol=0.1 * size.max())
    np.testing.assert_allclose(worm.radii[0], radii, rtol=0.03)
    cosines = np.abs((worm.axes[0] * axes).sum(axis=1))
    assert np.degrees(np.arccos(np.minimum(cosines, 1))).max() < 3
    assert np.linalg.det(worm.axes[0]) == pytest.approx(1)


labelled = npst.arrays(
    st.sampled_from([np.uint8, np.int16, np.uint32, np.int64, np.uint64]),
    st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 9)),
    elements=st.integers(0, 3),
)


@settings(max_examples=60)
@given(labels=labelled, step=st.integers(1, 5))
def test_blocks_give_what_the_whole_gives_and_pieces_are_those_of_scipy(labels, step):
    if not labels.any():
        with pytest.raises(SpecimenError, match="all voxels are 0"):
            whole(labels)
        return
    worm = whole(labels, (0.5, 1.0, 2.0))
    assert worm == measure(grid(labels, step), labels.shape, (0.5, 1.0, 2.0), "worm")
    for row, label in enumerate(worm.ids):
        pieces, count = ndimage.label(labels == label)
        sizes = ndimage.sum_labels(labels == label, pieces, range(1, count + 1))
        assert worm.features["voxels"][row] == sizes.sum()
        assert worm.features["detached"][row] == sizes.sum() - sizes.max()
        kept = np.flatnonzero((sizes >= STRAY * sizes.sum()) | (sizes.max() < STRAY * sizes.sum()))
        z, y, x = np.nonzero(np.isin(pieces, kept + 1))
        points = np.stack([x, y, z], axis=1) * [0.5, 1.0, 2.0]
        np.testing.assert_allclose(worm.centroids[row], points.mean(axis=0), atol=1e-12)
        lengths = np.sqrt(5 * np.maximum(0, np.linalg.eigvalsh(np.cov(points.T, bias=True))))
        np.testing.assert_allclose(worm.radii[row], np.maximum(lengths[::-1], 0.25), atol=1e-6)
        sides = [(x, 2), (y, 1), (z, 0)]
        edge = any((at == 0).any() or (at == labels.shape[k] - 1).any() for at, k in sides)
        assert worm.features["border"][row] == edge


def test_labels_survive_however_large_sparse_and_many():
    labels = np.zeros((3, 300, 500), dtype=np.uint64)
    many = np.arange(1, 70_001, dtype=np.uint64) * np.uint64(2**46)
    labels[1].flat[:140_000:2] = many
    worm = whole(labels)
    assert len(worm) == 70_000
    np.testing.assert_array_equal(worm.ids, many.astype(np.int64))
    assert whole(labels.astype(">u8")) == worm


def test_a_label_of_one_voxel_has_a_place_and_a_size_but_no_direction():
    labels = np.zeros((5, 5, 5), dtype=np.int32)
    labels[1, 2, 3] = 9
    worm = whole(labels, (0.1, 0.2, 0.4))
    np.testing.assert_allclose(worm.centroids, [[0.3, 0.4, 0.4]])
    assert worm.radii.tolist() == [[0.05] * 3]
    assert np.isnan(worm.axes).all()


def test_a_stray_voxel_is_reported_and_does_not_stretch_the_nucleus():
    labels = np.zeros((9, 9, 200), dtype=np.uint16)
    labels[2:7, 2:7, 2:7] = 1
    clean = whole(labels)
    labels[4, 4, 199] = 1
    worm = whole(labels)
    assert worm.features["detached"].tolist() == [1]
    assert worm.features["voxels"].tolist() == [126]
    np.testing.assert_array_equal(worm.radii, clean.radii)
    np.testing.assert_array_equal(worm.centroids, clean.centroids)


def test_far_from_the_origin_nothing_is_lost():
    labels = np.ones((3, 3, 3), dtype=np.uint8)
    origin = (40_000, 50_000, 60_000)
    shape = (100_000, 100_000, 100_000)
    far = measure([(labels, origin)], shape, (1.0, 1.0, 1.0), "worm")
    near = measure([(labels, (5, 5, 5))], shape, (1.0, 1.0, 1.0), "worm")
    np.testing.assert_array_equal(far.radii, near.radii)
    assert far.centroids.tolist() == [[60_001, 50_001, 40_001]]


@pytest.mark.parametrize(("label", "dtype"), [(-1, np.int8), (-5, np.int64), (2**63, np.uint64)])
def test_labels_that_cannot_be_are_refused(label, dtype):
    labels = np.ones((2, 2, 2), dtype=dtype)
    labels[1, 1, 1] = label
    with pytest.raises(SpecimenError, match="labels below 0 or above"):
        whole(labels)


def test_an_intensity_image_is_recognised():
    noise = np.random.default_rng(0).integers(1, 4000, (2, 1000, CROWD // 1000), dtype=np.uint16)
    with pytest.raises(SpecimenError, match="like an intensity image"):
        whole(noise)
