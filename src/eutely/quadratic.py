"""One quadratic assignment problem: as many objects as places, each object gets one place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eutely.errors import ProblemError

LARGEST = 1e300
"""Largest number that the sum of all costs may reach."""


@dataclass(frozen=True, eq=False)
class QuadraticAssignment:
    """Give each of n objects a place of its own, at the lowest cost.

    A matching p is a permutation: the place of each object. Its objective is the sum of
    ``flows[i, j] * distances[p[i], p[j]]`` over all i and j, plus that of ``linear[i, p[i]]``.
    Unlike in a `PairProblem`, any object may have any place, every object interacts with every
    other one, and nothing stays unmatched.

    Attributes
    ----------
    flows
        (n, n) float64, between objects; need not be symmetric.
    distances
        (n, n) float64, between places; need not be symmetric.
    linear
        (n, n) float64, cost of object i at place k.

    Examples
    --------
    Three objects on a line: the middle place is for the one with the most flow.

    >>> flows = [[0, 5, 1], [5, 0, 0], [1, 0, 0]]
    >>> line = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    >>> problem = QuadraticAssignment.from_arrays(flows, line)
    >>> problem.objective([0, 1, 2]), problem.objective([1, 0, 2])
    (14.0, 12.0)
    """

    flows: NDArray[np.float64]
    distances: NDArray[np.float64]
    linear: NDArray[np.float64]

    @classmethod
    def from_arrays(
        cls, flows: ArrayLike, distances: ArrayLike, linear: ArrayLike | None = None
    ) -> QuadraticAssignment:
        """Build a problem from two or three square matrices of one size.

        Parameters
        ----------
        flows, distances, linear
            see the attributes; without linear costs, these are 0.
        """
        first = _square(flows, "flows")
        n = len(first)
        second = _square(distances, "distances", n)
        third = np.zeros((n, n)) if linear is None else _square(linear, "linear", n)
        most = float(n * n) * _largest(first) * _largest(second) + n * _largest(third)
        if not most < LARGEST:
            raise ProblemError(
                f"costs may add up to {most:.3g}, too large for a number; divide the matrices"
            )
        for matrix in (first, second, third):
            matrix.setflags(write=False)
        return cls(first, second, third)

    def __len__(self) -> int:
        return len(self.flows)

    def __repr__(self) -> str:
        return f"<QuadraticAssignment: {len(self)} objects and places>"

    @property
    def whole(self) -> bool:
        """Whether all costs are whole numbers, so that every objective is one."""
        return all(
            bool((matrix == np.rint(matrix)).all())
            for matrix in (self.flows, self.distances, self.linear)
        )

    def objective(self, matching: ArrayLike) -> float:
        """Return the cost of ``matching``, (n,) int, a permutation, after checking it."""
        places = self.checked(matching)
        crossed = self.distances[np.ix_(places, places)]
        own = self.linear[np.arange(len(places)), places]
        return float((self.flows * crossed).sum() + own.sum())

    def checked(self, matching: ArrayLike) -> NDArray[np.int32]:
        """Return ``matching`` as (n,) int32; raise unless it is a permutation."""
        given = np.asarray(matching)
        places = np.arange(len(self))
        if given.shape != places.shape or (
            len(self) and (given.dtype.kind not in "iu" or (np.sort(given) != places).any())
        ):
            raise ProblemError(
                f"matching has shape {given.shape}, expected a permutation: each of the numbers 0 "
                f".. {len(self) - 1} once"
            )
        return given.astype(np.int32)


def _square(values: ArrayLike, what: str, size: int | None = None) -> NDArray[np.float64]:
    """Return a copy of ``values``, (n, n) float64; raise if they are anything else."""
    try:
        given = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{what} are no matrix of numbers: {error}") from error
    wanted = "(n, n)" if size is None else f"({size}, {size})"
    if given.size == 0 and size in (None, 0):
        return np.zeros((0, 0))
    if given.ndim != 2 or given.shape[0] != given.shape[1] or size not in (None, len(given)):
        raise ProblemError(f"{what} have shape {given.shape}, expected {wanted}: a square matrix")
    bad = ~np.isfinite(given)
    if bad.any():
        i, j = (int(at) for at in np.argwhere(bad)[0])
        raise ProblemError(f"{what}[{i}, {j}] is {given[i, j]}; every cost must be a finite number")
    return given


def _largest(matrix: NDArray[np.float64]) -> float:
    """Return the largest absolute entry."""
    return float(np.abs(matrix).max(initial=0.0))
