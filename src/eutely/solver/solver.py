"""The solver: relaxation, local search and fusion rounds, as long as the effort allows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eutely.arrays import Arrays, total_cost
from eutely.errors import ProblemError
from eutely.problem import PairProblem
from eutely.solver.dual import lower_bound
from eutely.solver.fusion import (
    CHAIN,
    STRENGTH,
    Search,
    from_barycentre,
    from_linear,
    fusion_round,
    margin,
    new_search,
)
from eutely.solver.lap_dense import lap_dense
from eutely.solver.lap_sparse import lap_sparse
from eutely.solver.local import search_around
from eutely.solver.merge import take_over
from eutely.solver.state import State, new_state, stream


class Effort(NamedTuple):
    """How much work to spend on a problem.

    Attributes
    ----------
    steps
        Frank-Wolfe steps from each start.
    starts
        1: from the barycentre of the candidates; if nodes stay unmatched, 2: also from a linear
        assignment; 3: also from the barycentre with a bonus for matching.
    rounds
        fusion rounds at most.
    patience
        rounds without improvement after which to stop; more if nodes stay unmatched, which leaves
        more ways to match the others.
    round_steps
        Frank-Wolfe steps in a round.
    sweeps
        of dual ascent, if a lower bound is requested.
    """

    steps: int
    starts: int
    rounds: int
    patience: int
    round_steps: int
    sweeps: int


EFFORTS = {
    "fast": Effort(steps=20, starts=1, rounds=0, patience=0, round_steps=0, sweeps=5),
    "default": Effort(steps=12, starts=3, rounds=30, patience=6, round_steps=3, sweeps=20),
    "thorough": Effort(steps=50, starts=3, rounds=400, patience=100, round_steps=8, sweeps=100),
}
"""The named efforts; a worm of 558 nuclei takes about 0.007, 0.03 and 0.5 s."""

GAIN = 0.05
"""Smallest decrease of the objective that counts as an improvement, in typical margins to a node's
next best candidate."""

UNMATCHED_PATIENCE = 14.0
"""Factor on the share of unmatched nodes by which patience grows."""

SMALL, MORE = 50, 3
"""With fewer than ``SMALL`` left nodes, a named effort makes ``MORE`` times the rounds."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of the solver.

    Attributes
    ----------
    matching
        (n_left,) int32, the right node of each left node, or -1 where unmatched.
    objective
        its cost.
    bound
        lower bound: no matching costs less; None unless requested.
    seconds, bound_seconds
        wall time of solving, and of the lower bound (0 without one); the first call in a process
        also loads or compiles machine code.
    best_known
        objective of the best solution known, where the file of the problem says so; the solver
        does not know it.
    """

    matching: NDArray[np.int32]
    objective: float
    bound: float | None
    seconds: float
    bound_seconds: float = 0.0
    best_known: float | None = None

    def __repr__(self) -> str:
        matched = int((self.matching >= 0).sum())
        bound = "" if self.bound is None else f", at least {self.bound:.6g}"
        count = len(self.matching)
        return f"<Solution: {matched} of {count} matched, objective {self.objective:.6g}{bound}>"

    @property
    def gap(self) -> float | None:
        """Return the largest possible distance to the optimum; None without a bound."""
        return None if self.bound is None else self.objective - self.bound

    @property
    def above_best_known(self) -> float | None:
        """Return the distance to the best solution known, as a share of it; None if unknown."""
        if self.best_known is None:
            return None
        above = self.objective - self.best_known
        return above / abs(self.best_known) if above and self.best_known else above


def solve(
    problem: PairProblem,
    effort: str | Effort = "default",
    *,
    time_limit: float | None = None,
    seed: int = 0,
    start: ArrayLike | None = None,
    bound: bool = False,
) -> Solution:
    """Match left to right nodes at low cost; at the lowest if there are no quadratic costs.

    Safe to call from several threads at once, which then run in parallel. The result depends only
    on the problem, the effort, the seed and the start, unless the time limit cuts it short.

    Parameters
    ----------
    problem
        candidates and costs.
    effort
        ``fast``, ``default`` or ``thorough``, or an `Effort`.
    time_limit
        seconds after which no further round starts; the best matching so far is returned.
    seed
        of the perturbations.
    start
        (n_left,) a matching to improve, instead of a search from scratch; it never gets worse.
    bound
        also compute a lower bound.

    Examples
    --------
    >>> from eutely.problem import PairProblem
    >>> candidates = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> problem = PairProblem.from_arrays((2, 2), candidates, [-1.0] * 4, [[0, 3]], [1.5])
    >>> solution = solve(problem, bound=True)
    >>> solution.matching.tolist(), solution.objective, solution.bound
    ([1, 0], -2.0, -2.0)
    """
    begin = time.perf_counter()
    work = _effort(effort, problem.n_left)
    p = problem.arrays
    if len(p.edge_ends) == 0:
        v = np.zeros(problem.n_right)
        chosen, _ = lap_sparse(
            p.starts, p.labels, p.owners, p.column_starts, p.column_items, p.linear, v
        )
        sweeps = 0
    else:
        deadline = np.inf if time_limit is None else begin + time_limit
        first = None if start is None else problem.chosen(start)
        chosen = _search(p, work, first, seed, deadline)
        sweeps = work.sweeps
    matching = np.full(problem.n_left, -1, dtype=np.int32)
    matching[chosen >= 0] = p.labels[chosen[chosen >= 0]]
    objective = float(total_cost(p, chosen))
    solved = time.perf_counter()
    # Rounding may lift a tight bound above the objective; the optimum is below both.
    lowest = min(float(lower_bound(p, sweeps)), objective) if bound else None
    bounding = time.perf_counter() - solved if bound else 0.0
    return Solution(matching, objective, lowest, solved - begin, bounding)


def solve_dense(costs: ArrayLike) -> Solution:
    """Return the cheapest matching if any two nodes may be matched and all costs are linear.

    Parameters
    ----------
    costs
        (n_left, n_right), minus the cost of leaving a node unmatched, so that only negative costs
        attract; inf forbids. For two specimens see `eutely.costs.dense.dense_costs`.

    Examples
    --------
    >>> solve_dense([[-1.0, -3.0], [-2.0, -3.5]]).matching.tolist()
    [1, 0]
    """
    begin = time.perf_counter()
    matrix = np.ascontiguousarray(costs, dtype=np.float64)
    if matrix.ndim != 2:
        raise ProblemError(f"costs have shape {matrix.shape}, expected (n_left, n_right)")
    if np.isnan(matrix).any() or (matrix.size and matrix.min() == -np.inf):
        raise ProblemError("costs hold NaN or -inf; forbid an assignment by +inf")
    matching, _, _ = lap_dense(matrix)
    rows = np.flatnonzero(matching >= 0)
    objective = float(matrix[rows, matching[rows]].sum())
    return Solution(matching, objective, objective, time.perf_counter() - begin)


def _effort(effort: str | Effort, nodes: int) -> Effort:
    if isinstance(effort, Effort):
        return effort
    if effort not in EFFORTS:
        raise ProblemError(f"effort is '{effort}', expected one of {', '.join(EFFORTS)}")
    work = EFFORTS[effort]
    more = MORE if nodes < SMALL else 1
    return work._replace(rounds=more * work.rounds, patience=more * work.patience)


def _search(
    p: Arrays,
    work: Effort,
    first: NDArray[np.int32] | None,
    seed: int,
    deadline: float,
) -> NDArray[np.int32]:
    """Return the best matching, as the candidate of each left node: (n_left,) int32."""
    search: Search = new_search(p)
    if first is None:
        state: State = from_barycentre(p, search, work.steps, 0.0)
        some_left = bool((state.chosen < 0).any())
        if work.starts > 1 and some_left and time.perf_counter() < deadline:
            _merge(p, state, search, from_linear(p, search, work.steps))
        if work.starts > 2 and some_left and time.perf_counter() < deadline:
            bonus = STRENGTH * margin(p, state)
            _merge(p, state, search, from_barycentre(p, search, work.steps, bonus))
    else:
        state = new_state(p, first)
        nodes = np.arange(len(first), dtype=np.int32)
        search_around(p, state, nodes, len(first), search.buffers)
    scale = margin(p, state)
    proposal = state
    best, since = np.inf, 0
    for number in range(work.rounds):
        unmatched = np.count_nonzero(state.chosen < 0) / len(state.chosen)
        patience = work.patience * (1.0 + UNMATCHED_PATIENCE * unmatched)
        if since > patience or time.perf_counter() >= deadline:
            break
        origin = state if number % CHAIN == 0 else proposal
        cost, proposal = fusion_round(
            p,
            state,
            origin,
            search,
            (scale * STRENGTH, work.round_steps),
            stream(seed, number),
            number,
        )
        since = 0 if cost < best - GAIN * scale else since + 1
        best = min(best, cost)
    return state.chosen


def _merge(p: Arrays, state: State, search: Search, other: State) -> None:
    """Improve ``state`` by what is better in ``other``."""
    take_over(p, state, other.chosen, search.changed, search.buffers)
