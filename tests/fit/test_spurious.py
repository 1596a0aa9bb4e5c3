"""Signs of spurious nuclei, against patterns of which the answer is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.atlas import BIN_WIDTH, BINS
from eutely.fit.spurious import crowd, oddity
from eutely.solver.meanfield import Crowd

LATTICE = np.stack(np.meshgrid(*[np.arange(8.0)] * 3), axis=-1).reshape(-1, 3)


@given(st.integers(0, 2**32 - 1))
def test_pairs_are_all_that_are_close(seed: int) -> None:
    random = np.random.default_rng(seed)
    points, costs = 4 * random.random((40, 3)), np.linspace(3, 0, BINS)
    close = crowd(points, 2.0, costs)
    taken = random.random(40)
    expected = np.zeros(40)
    middles = 2.0 * BIN_WIDTH * (np.arange(BINS) + 0.5)
    for i in range(40):
        for j in range(40):
            apart = np.linalg.norm(points[i] - points[j])
            if i != j and apart <= 2.0 * BIN_WIDTH * (BINS - 1):
                expected[i] += taken[j] * np.interp(apart, middles, costs)
    np.testing.assert_allclose(close.against(taken), expected, atol=1e-9)


def test_without_costs_nobody_crowds() -> None:
    assert not len(crowd(LATTICE, 1.0, np.zeros(BINS)).pairs)


def looks(count: int, d: int) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(count, d))


EVERYBODY = np.arange(200, dtype=np.int32)
NOT_CROWDED = Crowd(np.zeros((0, 2), np.intp), np.zeros(0))


@pytest.mark.parametrize("d", [1, 2, 4])
def test_what_looks_like_no_other_is_odd(d: int) -> None:
    features = looks(201, d)
    features[200] = 4.0
    found = oddity(features, EVERYBODY, NOT_CROWDED)
    assert found.argmax() == 200
    assert found[200] > 1
    assert np.median(found) < 0


def test_copies_of_a_feature_count_once() -> None:
    features = looks(200, 3)
    copies = features[:, [0, 0, 1, 2, 2]]
    once, twice = (oddity(values, EVERYBODY, NOT_CROWDED) for values in (features, copies))
    np.testing.assert_array_equal(once, twice)


def test_what_is_not_known_says_nothing() -> None:
    features = looks(200, 2)
    features[5, 0] = np.nan
    found = oddity(features, EVERYBODY, NOT_CROWDED)
    assert found[5] == 0
    assert np.isfinite(found).all()
    assert not oddity(np.full((200, 2), np.nan), EVERYBODY, NOT_CROWDED).any()


def test_looks_of_spurious_nuclei_are_learned_from_those_that_crowd_cells() -> None:
    """Nuclei 200 to 209 crowd cells and look alike; 210 looks like them but crowds nobody."""
    features = looks(211, 2)
    features[200:] = [2.0, -2.0] + 0.2 * looks(11, 2)
    pairs = np.stack([np.arange(10), np.arange(200, 210)], axis=1)
    close = Crowd(pairs, np.full(10, 5.0))
    crowded, alone = (oddity(features, EVERYBODY, some)[210] for some in (close, NOT_CROWDED))
    assert crowded > alone + 0.5


def test_hardly_any_nuclei_say_nothing() -> None:
    assert not oddity(np.ones((1, 2)), np.zeros(1, np.int32), NOT_CROWDED).any()
    close = crowd(np.zeros((1, 3)), 1.0, np.ones(BINS))
    assert not close.against(np.ones(1)).any()
