"""Facts about point clouds."""

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eutely.geometry import median_places


@given(st.integers(1, 9), st.integers(1, 5), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_the_median_place_is_that_of_numpy_to_the_last_bit(specimens, cells, missing, seed):
    random = np.random.default_rng(seed)
    places = random.normal(scale=50.0, size=(specimens, cells, 3))
    places[random.random((specimens, cells)) < missing] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # cells that no specimen has
        expected = np.nanmedian(places, axis=0)
    np.testing.assert_array_equal(median_places(places), expected)
