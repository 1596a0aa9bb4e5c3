"""Random numbers in kernels: a counter and a hash (splitmix64), so that a seed says everything."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import kernel


def stream(seed: int, number: int) -> NDArray[np.uint64]:
    """Return the state of the ``number``-th stream of ``seed``: (1,) uint64."""
    state = np.random.SeedSequence((abs(seed), number)).generate_state(1, np.uint64)
    return state.astype(np.uint64)


@kernel
def uniform(state: Any) -> float:
    """Return a number in [0, 1) and advance ``state``."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)
