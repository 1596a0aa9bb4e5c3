"""How rarely cells are close to each other, against patterns of which the answer is known."""

import numpy as np

from eutely.atlas import BINS
from eutely.estimate.atlas import CLUSTERED, crowding

LATTICE = np.stack(np.meshgrid(*[np.arange(8.0)] * 3), axis=-1).reshape(-1, 3)


def test_cells_that_keep_apart_make_close_pairs_costly() -> None:
    random = np.random.default_rng(0)
    places = LATTICE + random.normal(0, 0.1, (5, len(LATTICE), 3))
    places[:, ::7] = np.nan
    costs = crowding(places, 1.0)
    assert len(costs) == BINS
    assert (np.diff(costs) <= 0).all()
    assert costs[3] > 3
    assert costs[-1] == 0


def test_cells_anywhere_may_be_close() -> None:
    places = 6 * np.random.default_rng(1).random((60, 300, 3))
    assert crowding(places, 1.0).max() < 0.2 * CLUSTERED


def test_one_specimen_cannot_tell_how_rare_a_pair_is() -> None:
    many = crowding(np.stack([LATTICE] * 20), 1.0)
    one = crowding(LATTICE[None], 1.0)
    assert one[0] < many[0]


def test_without_any_nucleus_nothing_is_crowded() -> None:
    assert not crowding(np.full((2, 5, 3), np.nan), 1.0).any()
