"""All ways, or many random ones, to exchange animals between groups within their batches."""

from __future__ import annotations

from itertools import combinations, product
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.comparison.design import Contrast

Array = NDArray[np.float64]


class Permutations(NamedTuple):
    """Values of a contrast for exchanged animals.

    Attributes
    ----------
    values
        (B, n) float64, the residual values of the contrast, one permutation per row.
    exact
        whether these are all permutations, the observed one among them; otherwise the observed
        one is counted in addition: p = (1 + b) / (1 + B).
    """

    values: Array
    exact: bool

    def p_values(self, exceeding: NDArray[np.int64], times: int = 1) -> Array:
        """Return p-values from how many of the permutations reach the observed statistic.

        ``times`` is the number of statistics that are counted per permutation.
        """
        total = len(self.values) * times
        if self.exact:
            return np.asarray(np.maximum(exceeding, 1) / total)
        return np.asarray((1 + exceeding) / (1 + total))


def permutations(contrast: Contrast, count: int, seed: int) -> Permutations:
    """Return all permutations of a contrast, or ``count`` random ones if there are more.

    Animals are exchanged within batches only. Covariates are respected by the procedure of Freedman
    and Lane: what is exchanged are residuals of the model without the group.
    """
    residual = contrast.residual
    members = [
        np.flatnonzero(contrast.batches == batch)
        for batch in range(int(contrast.batches.max(initial=0)) + 1)
    ]
    levels = np.unique(contrast.values)
    plain = contrast.nuisance.shape[1] == len(members)  # an intercept and batches only
    if len(levels) == 2 and plain:
        high = contrast.values == levels[1]
        ways = 1
        for rows in members:
            ways *= comb(len(rows), int(high[rows].sum()))
        if ways <= count:
            return Permutations(_all(residual, high, members, ways), exact=True)
    random = np.random.default_rng(seed)
    values = np.tile(residual, (count, 1))
    for rows in members:
        values[:, rows] = random.permuted(values[:, rows], axis=1)
    return Permutations(values, exact=False)


def _all(
    residual: Array, high: NDArray[np.bool_], members: list[NDArray[np.int64]], ways: int
) -> Array:
    """Return (ways, n), every division of the batches into the two groups."""
    values = np.empty((ways, len(residual)))
    choices = [combinations(rows.tolist(), int(high[rows].sum())) for rows in members]
    low = residual.copy()
    up = residual.copy()
    for rows in members:  # within a batch each group has one residual value
        low[rows] = residual[rows][~high[rows]][:1] if (~high[rows]).any() else residual[rows]
        up[rows] = residual[rows][high[rows]][:1] if high[rows].any() else residual[rows]
    for row, chosen in enumerate(product(*choices)):
        inside = [animal for batch in chosen for animal in batch]
        values[row] = low
        values[row, inside] = up[inside]
    return values
