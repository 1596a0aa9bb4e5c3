import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from eutely import Specimen
from eutely.pose import Pose

TURN = Rotation.from_euler("xyz", [20, 50, -70], degrees=True).as_matrix()
POINTS = np.random.default_rng(0).normal(0, [30, 5, 4], (200, 3)) @ TURN + [3, 4, 5]
CENTRE = POINTS.mean(axis=0)
INSIDE = (POINTS - CENTRE) @ TURN.T
SIZE = (INSIDE[:, 0].std(), np.sqrt(INSIDE[:, 1:].var(axis=0).mean()))


@pytest.fixture
def pose():
    return Pose(TURN, CENTRE, SIZE, 0.0)


def test_apply_brings_into_the_canonical_frame(pose):
    specimen = Specimen.from_arrays("cloud", POINTS, radii=np.full(200, 2.0))
    placed = pose.apply(specimen)
    assert placed.centroids == pytest.approx(INSIDE)
    assert np.array_equal(placed.radii, specimen.radii)


def test_apply_with_a_size_gives_that_size(pose):
    specimen = Specimen.from_arrays("cloud", POINTS, radii=np.full(200, 2.0))
    placed = pose.apply(specimen, size=(1.0, 2.0))
    assert placed.centroids[:, 0].std() == pytest.approx(1)
    assert placed.centroids[:, 1:].var(axis=0).mean() == pytest.approx(4)
    factors = placed.centroids / INSIDE
    assert factors[:, 1] == pytest.approx(factors[0, 2])
    assert placed.radii == pytest.approx(2 * np.cbrt(factors[0].prod()))


def test_affine_is_what_apply_does(pose):
    specimen = Specimen.from_arrays("cloud", POINTS)
    for size in (None, (7.0, 3.0)):
        matrix, shift = pose.affine(size)
        assert pose.apply(specimen, size).centroids == pytest.approx(POINTS @ matrix.T + shift)
