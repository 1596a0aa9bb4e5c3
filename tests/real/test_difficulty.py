"""Simulated worms are as hard as the real ones that they are made after."""

import numpy as np
import pytest

from eutely import read, simulate
from eutely.simulation import difficulty


def test_simulated_worms_are_as_hard_as_real_ones(data):
    real = difficulty(read(data / "rapcat" / "train100")[::4])
    made = difficulty(simulate(25))
    assert made.spacing == pytest.approx(real.spacing, rel=0.1)
    assert made.sd == pytest.approx(real.sd, rel=0.2)
    assert made.shared == pytest.approx(real.shared, abs=0.12)
    assert made.plain == pytest.approx(real.plain, abs=0.04)
    assert made.weighted == pytest.approx(real.weighted, abs=0.03)
    assert np.ptp(made.mean[:, 0]) == pytest.approx(np.ptp(real.mean[:, 0]), rel=0.2)
