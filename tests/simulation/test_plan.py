import numpy as np
import pytest

from eutely.geometry import neighbour_distances
from eutely.simulation.plan import body_plan, rotations


@pytest.fixture(scope="module")
def plan():
    return body_plan()


def test_partners_are_mirror_images_and_the_rest_lies_in_the_middle(plan):
    row = {name: number for number, name in enumerate(plan.names)}
    left = [row[name] for name in plan.names if name.endswith("L")]
    right = [row[name[:-1] + "R"] for name in plan.names if name.endswith("L")]
    middle = [row[name] for name in plan.names if name.startswith("m")]
    assert len(left) + len(right) + len(middle) == len(row) == 558
    assert (plan.centroids[left] * [1, 1, -1] == plan.centroids[right]).all()
    assert (plan.centroids[right, 2] > 0).all()
    assert (plan.centroids[middle, 2] == 0).all()
    assert (plan.radii[left] == plan.radii[right]).all()
    assert (plan.looseness[left] == plan.looseness[right]).all()
    assert (plan.axes[left] * [1, 1, -1] == plan.axes[right]).all()


def test_worm_like(plan):
    extent = np.ptp(plan.centroids, axis=0)
    assert extent[0] > 10 * extent[1] > 10 * extent[2]
    front = plan.centroids[:, 0] > plan.length / 2 - plan.length / 3
    assert 0.55 < front.mean() < 0.75  # crowded in the head
    belly = plan.centroids[:, 1] < 0
    assert belly[[name.startswith("m") for name in plan.names]].mean() > 0.6  # the ventral cord


def test_spacing_and_solid_nuclei(plan):
    nearest = neighbour_distances(plan.centroids)
    assert np.median(nearest) == pytest.approx(13)
    assert nearest.min() > 5
    assert (np.diff(plan.radii, axis=1) <= 0).all()
    assert 4 < np.median(plan.radii) < 7


def test_another_seed_is_another_organism(plan):
    assert not np.allclose(body_plan(seed=1).centroids, plan.centroids)
    assert np.array_equal(body_plan().centroids, plan.centroids)


def test_rotations_are_rotations():
    turns = rotations(np.random.default_rng(0), 50)
    assert turns @ np.swapaxes(turns, 1, 2) == pytest.approx(np.tile(np.eye(3), (50, 1, 1)))
    assert np.linalg.det(turns) == pytest.approx(np.ones(50))
