"""Cliques of lowest cost, directly from the problems of all pairs.

The first start is the synchronised solution of all pairs. Further starts add one specimen at a
time: it is matched with the cliques so far, a matching problem like that of two specimens, in which
the cost of a clique is the sum of the costs of its members. Then specimens are taken out and
matched with the cliques of the others again, one by one and in random groups, and cliques exchange
members, until nothing lowers the cost.
"""

from __future__ import annotations

import logging
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import chosen_items
from eutely.cliques import UNMATCHED, Cliques, Matchings
from eutely.errors import ProblemError
from eutely.multi.joint import UNPLACED, Groups, MultiProblem, problem_of
from eutely.multi.synchronise import synchronise
from eutely.multi.trade import trade
from eutely.solver import EFFORTS as SOLVER
from eutely.solver import Effort as SolverEffort
from eutely.solver import solve

log = logging.getLogger("eutely")

TOLERANCE = 1e-6
"""Smallest saving for which a change is made, relative to the total cost."""

SMALL = 200
"""Total number of nuclei up to which there are twice as many starts. With more nuclei, the solver
has half the patience: what one matching misses, the next repairs."""


class Effort(NamedTuple):
    """How much work to spend on cliques.

    Attributes
    ----------
    solver
        named effort for each matching problem, see `eutely.solver.EFFORTS`.
    starts
        number of starts at most, twice as many with few nuclei; the best result is kept, and
        finding it three times is enough.
    splits
        random groups of specimens that are matched again without gain before a start ends.
    """

    solver: str
    starts: int
    splits: int


EFFORTS = {
    "fast": Effort("fast", starts=1, splits=0),
    "default": Effort("default", starts=1, splits=4),
    "thorough": Effort("thorough", starts=4, splits=12),
}
"""The named efforts."""


class _Search(NamedTuple):
    """Values that all steps of a search share."""

    joint: MultiProblem
    effort: Effort
    solver: SolverEffort
    random: np.random.Generator
    deadline: float


def solve_direct(
    joint: MultiProblem,
    effort: str | Effort = "default",
    *,
    time_limit: float | None = None,
    seed: int = 0,
) -> Cliques:
    """Return cliques of low cost.

    Parameters
    ----------
    joint
        the problems of all pairs.
    effort
        ``fast``, ``default`` or ``thorough``, or an `Effort`.
    time_limit
        seconds after which no further step starts; a first result is always completed.
    seed
        of the orders, the groups and the solver.
    """
    if isinstance(effort, str):
        if effort not in EFFORTS:
            raise ProblemError(f"effort is '{effort}', expected one of {', '.join(EFFORTS)}")
        effort = EFFORTS[effort]
    deadline = np.inf if time_limit is None else time.perf_counter() + time_limit
    small = joint.sizes.sum() <= SMALL
    solver = SOLVER[effort.solver]
    if not small:
        solver = solver._replace(patience=solver.patience // 2)
    search = _Search(joint, effort, solver, np.random.default_rng(seed), deadline)
    best, lowest = Cliques.from_labels([np.arange(size) for size in joint.sizes]), np.inf
    times = 0
    starts = effort.starts * (2 if small else 1)
    for start in range(starts):
        order = search.random.permutation(len(joint.sizes)).tolist()
        cliques = _improved(search, _built(search, order) if start else _agreed(search), order)
        cost, _ = joint.evaluate(cliques)
        log.debug("start %d of %d: cost %.6g", start + 1, starts, cost)
        if abs(cost - lowest) <= TOLERANCE * abs(cost):
            times += 1
        elif cost < lowest:
            best, lowest, times = cliques, cost, 1
        if times == 3 or _late(search):
            break
    return best


def solve_pairs(
    joint: MultiProblem,
    effort: str | SolverEffort = "default",
    *,
    time_limit: float | None = None,
    seed: int = 0,
) -> Matchings:
    """Solve the problems of all pairs independently; usually the matchings are inconsistent.

    Parameters
    ----------
    joint
        the problems of all pairs.
    effort
        for each problem, see `eutely.solver.solve`.
    time_limit
        seconds for all of them, in equal shares.
    seed
        of the solver.
    """
    share = None if time_limit is None else time_limit / max(len(joint.pieces), 1)
    return joint.matchings(
        [
            solve(piece.problem, effort, time_limit=share, seed=seed).matching
            for piece in joint.pieces
        ]
    )


def _agreed(search: _Search) -> Cliques:
    """Solve all pairs and synchronise the matchings."""
    matchings = solve_pairs(search.joint, search.solver, seed=_seed(search))
    return synchronise(matchings, sparse=True, seed=_seed(search))


def _built(search: _Search, order: list[int]) -> Cliques:
    """Match one specimen after the other with the cliques so far."""
    labels = [np.full(size, UNPLACED, np.int32) for size in search.joint.sizes]
    count = 0
    for specimen in order:
        right = [np.full(len(row), UNPLACED, np.int32) for row in labels]
        right[specimen] = np.arange(len(right[specimen]), dtype=np.int32)
        problem = problem_of(
            search.joint, Groups(labels, count), Groups(right, len(right[specimen]))
        )
        solution = solve(problem, search.solver, seed=_seed(search))
        labels[specimen] = _joined(solution.matching, problem.n_right)
        count = max(count, int(labels[specimen].max(initial=-1)) + 1)
    return Cliques.from_labels(labels)


def _improved(search: _Search, cliques: Cliques, order: list[int]) -> Cliques:
    """Match specimens again and let cliques exchange members until nothing lowers the cost."""
    cost, _ = search.joint.evaluate(cliques)
    idle = 0
    while True:
        least = TOLERANCE * abs(cost)
        cliques = _rematched_each(search, cliques, order, least)
        cost, _ = search.joint.evaluate(cliques)
        if len(order) < 4:  # then each exchange and each group is that of one specimen
            return cliques
        cliques = trade(search.joint, cliques, least)
        after, _ = search.joint.evaluate(cliques)
        while after >= cost - least:
            if idle >= search.effort.splits or _late(search):
                return cliques
            size = search.random.integers(2, len(order) // 2 + 1)
            group = search.random.permutation(len(order))[:size].tolist()
            cliques, better = _rematched(search, cliques, group, least)
            after = -np.inf if better else after
            idle = 0 if better else idle + 1


def _rematched_each(search: _Search, cliques: Cliques, order: list[int], least: float) -> Cliques:
    """Match one specimen after the other again, until none improves."""
    idle, turn = 0, 0
    while idle < len(order) and not _late(search):
        cliques, better = _rematched(search, cliques, [order[turn % len(order)]], least)
        turn += 1
        idle = 0 if better else idle + 1
    return cliques


def _rematched(
    search: _Search, cliques: Cliques, leaving: list[int], least: float
) -> tuple[Cliques, bool]:
    """Match specimens with the other cliques again; return whether that lowered the cost."""
    left, right, now = _parted(cliques, leaving)
    problem = problem_of(search.joint, left, right)
    # Parts of a clique without a common problem cost nothing together and may be separated.
    now[chosen_items(problem.arrays, now) < 0] = UNMATCHED
    enough = problem.objective(now) - least
    solution = solve(problem, search.solver, seed=_seed(search), start=now)
    if solution.objective >= enough:  # stuck; a search from scratch may not be
        solution = solve(problem, search.solver, seed=_seed(search))
    if solution.objective >= enough:
        return cliques, False
    joined = _joined(solution.matching, problem.n_right)
    labels = list(left.labels)
    for specimen in leaving:
        labels[specimen] = joined[right.labels[specimen]]
    return Cliques.from_labels(labels), True


def _parted(cliques: Cliques, leaving: list[int]) -> tuple[Groups, Groups, NDArray[np.int32]]:
    """Split every clique in two.

    Returns
    -------
    left, right
        the parts of the specimens that stay and of those that leave.
    matching
        (left.size,) int32, the right part of the same clique, or -1.
    """
    sides = []
    for side in (False, True):
        present = [row for g, row in enumerate(cliques) if (g in leaving) == side]
        used = np.unique(np.concatenate([np.zeros(0, np.int32), *present]))
        number = np.full(cliques.count, UNPLACED, np.int32)
        number[used] = np.arange(len(used), dtype=np.int32)
        labels = [
            number[row] if (g in leaving) == side else np.full(len(row), UNPLACED, np.int32)
            for g, row in enumerate(cliques)
        ]
        sides.append((Groups(labels, len(used)), used, number))
    (left, used, _), (right, _, number) = sides
    return left, right, number[used]


def _joined(matching: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Return the clique of each of ``count`` right groups, a new clique without a partner."""
    labels = np.full(count, UNPLACED, np.int32)
    (cliques,) = np.nonzero(matching != UNMATCHED)
    labels[matching[cliques]] = cliques
    (unmatched,) = np.nonzero(labels == UNPLACED)
    labels[unmatched] = len(matching) + np.arange(len(unmatched))
    return labels


def _late(search: _Search) -> bool:
    return time.perf_counter() > search.deadline


def _seed(search: _Search) -> int:
    return int(search.random.integers(2**31))
