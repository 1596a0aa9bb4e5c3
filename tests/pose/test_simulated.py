import numpy as np
import pytest

from eutely.pose import orient
from eutely.simulation import simulate
from poses import best_rolls, errors, positions, rotation_to


@pytest.mark.parametrize(
    "flaws", [{}, {"missing": 0.09, "spurious": 0.05, "split": 0.02, "shift": 1.5}]
)
def test_simulated_worms_are_brought_into_one_pose(flaws):
    plan = simulate(1, pose="none", variation=0.0)[0]
    worms = simulate(20, seed=3, **flaws)
    truths = [rotation_to(worm, positions(plan)) for worm in worms]
    heads, rolls, _ = errors([orient(worm.without_names()) for worm in worms], truths)
    assert heads[:, 0].all()
    two = best_rolls(heads, rolls, first=2)
    assert (two <= 15).all()
    assert np.median(two) <= 5
