"""Quadratic assignments: a relaxed start, then rounds of a population, as the effort allows."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from eutely.errors import ProblemError
from eutely.quadratic import QuadraticAssignment
from eutely.solver.qap_bound import assignment_bound
from eutely.solver.qap_population import MEMBERS, evolve, population_of
from eutely.solver.qap_relaxation import relaxed_start
from eutely.solver.qap_swaps import matrices_of, tables_of
from eutely.solver.solver import Effort, Solution
from eutely.solver.state import stream

ROUNDS = {"fast": MEMBERS, "default": 500, "thorough": 5000}
"""Rounds of the named efforts; 100 objects take about 0.05, 0.8 and 8 s."""

LENGTH = 3
"""Exchanges of a round, in objects."""

SMALL = 100
"""With fewer objects, there are as many more rounds: as many exchanges as with so many."""

PIECE = 10_000
"""Exchanges between two looks at the clock."""


def solve_assignment(
    problem: QuadraticAssignment,
    effort: str | Effort = "default",
    *,
    time_limit: float | None = None,
    seed: int = 0,
    start: ArrayLike | None = None,
    bound: bool = False,
) -> Solution:
    """Give each object a place at low cost; parameters: see `eutely.solver.solve`.

    The work is counted in exchanges, not in seconds: the same problem, effort, seed and start give
    the same matching, unless the time limit cuts the search short.

    Examples
    --------
    >>> flows = [[0, 5, 1], [5, 0, 0], [1, 0, 0]]
    >>> line = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    >>> solution = solve_assignment(QuadraticAssignment.from_arrays(flows, line), bound=True)
    >>> solution.matching[0], solution.objective, solution.bound
    (np.int32(1), 12.0, 12.0)
    """
    if not isinstance(effort, str) or effort not in ROUNDS:
        raise ProblemError(
            f"effort is '{effort}', expected one of {', '.join(ROUNDS)} for quadratic assignments"
        )
    begin = time.perf_counter()
    deadline = np.inf if time_limit is None else begin + time_limit
    n = len(problem)
    places = np.arange(n)
    if start is not None:
        places = problem.checked(start).astype(np.int64)
    if n > 1:
        m = matrices_of(problem)
        if start is None:
            places = relaxed_start(m)
        tables, population = tables_of(n), population_of(places, stream(seed, 0))
        rounds = ROUNDS[effort] * max(SMALL, n) // n
        piece = max(1, PIECE // (LENGTH * n))
        evolve(m, tables, population, 1, LENGTH * n)
        for done in range(1, rounds, piece):
            if time.perf_counter() >= deadline:
                break
            evolve(m, tables, population, min(piece, rounds - done), LENGTH * n)
        places = population.best
    objective = problem.objective(places)
    solved = time.perf_counter()
    # Rounding may lift a tight bound above the objective; the optimum is below both.
    lowest = min(assignment_bound(problem), objective) if bound else None
    bounding = time.perf_counter() - solved if bound else 0.0
    return Solution(places.astype(np.int32), objective, lowest, solved - begin, bounding)
