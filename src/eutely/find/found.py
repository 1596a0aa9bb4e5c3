"""What a method to find cells returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.cells import Cells
from eutely.learned import Learned

Labels = tuple[tuple[str, ...], ...]
"""For each specimen the names of its nuclei, "" where not known; () for methods without names."""


class Found(NamedTuple):
    """Cells, and what was learned on the way.

    Attributes
    ----------
    cells
        the cells.
    names
        of the cells; () where the method does not see names.
    weights
        (3,) of the costs of an atlas of the model ``offsets``; None for the model ``joint``.
    learned
        the parameters of the costs and how they were learned, by the method ``learn``.
    """

    cells: Cells
    names: tuple[str, ...] = ()
    weights: NDArray[np.float64] | None = None
    learned: Learned | None = None
