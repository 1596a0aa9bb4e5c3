import numpy as np
import pytest

import eutely
from eutely.tasks.match import match


@pytest.fixture(scope="module")
def pair():
    """Two individuals that differ little, in any pose."""
    return eutely.simulate(specimens=2, cells=60, variation=0.3, seed=1)


def right(first, second, found):
    names = [second.names[j] if j >= 0 else "" for j in found.partners]
    return np.mean([own == other for own, other in zip(first.names, names, strict=True)])


def test_individuals_in_any_pose_are_matched(pair):
    first, second = pair
    found = match(first, second)
    assert right(first, second, found) > 0.9
    assert np.isfinite(found.distances[found.partners >= 0]).all()


def test_names_and_order_of_rows_do_not_matter(pair):
    first, second = pair
    order = np.random.default_rng(0).permutation(len(second))
    shuffled = second.take(order).without_names()
    expected = match(first, second).partners
    found = match(first.without_names(), shuffled).partners
    assert np.array_equal(np.where(found >= 0, order[found], -1), expected)


def test_a_specimen_matches_itself(pair):
    first, _ = pair
    found = match(first, first)
    assert found.partners.tolist() == list(range(len(first)))
    assert found.distances.max() < 1e-6
