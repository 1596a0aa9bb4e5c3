"""Candidates: which points each centre may have, and what such pairs cost besides their places.

Centres are cells or nuclei of one specimen, points are nuclei of another. A nucleus is never the
cell at the other end of the body, so that all work is done on sparse rows of near pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Candidates(NamedTuple):
    """Pairs of a centre and a point: sparse rows, one per centre.

    Attributes
    ----------
    starts
        (m + 1,) int32, where the pairs of each centre start.
    points
        (c,) int32, the point of each pair.
    """

    starts: NDArray[np.int32]
    points: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"<Candidates: {len(self.points)} pairs of {len(self.starts) - 1} centres>"

    @classmethod
    def every(cls, m: int, n: int) -> Candidates:
        """Return all pairs of m centres and n points, row by row."""
        starts = n * np.arange(m + 1, dtype=np.int32)
        return cls(starts, np.tile(np.arange(n, dtype=np.int32), m))

    @classmethod
    def of_matching(cls, partners: NDArray[np.int32]) -> Candidates:
        """Return the pairs of a matching: (m,), the point of each centre, or -1."""
        matched = partners >= 0
        starts = np.zeros(len(partners) + 1, np.int32)
        np.cumsum(matched, out=starts[1:])
        return cls(starts, partners[matched].astype(np.int32))

    @property
    def centres(self) -> NDArray[np.int32]:
        """(c,) int32, the centre of each pair."""
        counts = np.diff(self.starts)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


@dataclass(frozen=True, eq=False)
class PairCosts:
    """What pairs of a centre and a point cost, computed for candidates alone.

    Attributes
    ----------
    on
        function of candidates that returns their costs: (c,) float64.
    least
        no pair costs less, whether it is a candidate or not: one value, or (n,) for each point.
    """

    on: Callable[[Candidates], NDArray[np.float64]]
    least: float | NDArray[np.float64]

    def __repr__(self) -> str:
        return f"<PairCosts: {np.min(self.least):.4g} or more>"

    def __add__(self, other: PairCosts) -> PairCosts:
        """Return the sum of two costs."""
        return PairCosts(lambda pairs: self.on(pairs) + other.on(pairs), self.least + other.least)

    @classmethod
    def of_points(cls, costs: NDArray[np.float64]) -> PairCosts:
        """Return costs (n,) of points, whichever centre has them."""
        return cls(lambda pairs: np.asarray(costs[pairs.points]), costs)

    @classmethod
    def of_table(cls, costs: NDArray[np.float64]) -> PairCosts:
        """Return costs given for all pairs: (m, n). Memory and time grow with their number."""
        least = costs.min(axis=0) if len(costs) else 0.0
        return cls(lambda pairs: np.asarray(costs[pairs.centres, pairs.points]), least)
