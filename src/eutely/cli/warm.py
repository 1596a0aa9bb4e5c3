"""The first run after an installation: part of what a command needs is compiled at the same time.

Kernels are compiled when they are first called, one after the other. Other processes call those
that the command needs last, by small examples, and leave the machine code where the command finds
it. Nothing depends on these processes: what they have not compiled, the command compiles itself.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from eutely.io.dd import Pairs
    from eutely.problem import PairProblem

STRAIGHT, CROSSED = [-2.0, -1.0, -1.0, -2.0], [-1.0, -2.0, -2.0, -1.0]
"""Costs of two nodes by which they keep their order, or change places."""


@contextmanager
def warmed(*shares: Sequence[str]) -> Iterator[Callable[[], None]]:
    """Compile `PARTS` in other processes meanwhile, unless that was done before.

    Parameters
    ----------
    shares
        the parts that each process compiles, in this order.

    Yields
    ------
    callable
        waits until these processes end: a command calls it before it needs what they compile, if
        it would compile the same again.
    """
    from eutely.execute.threads import cores
    from eutely.kernel import CACHE

    if CACHE is None or not sys.executable or cores() < 2:
        yield lambda: None
        return
    marks = [_mark(CACHE, part) for share in shares for part in share]
    processes: list[subprocess.Popen[bytes]] = []
    nothing = subprocess.DEVNULL
    try:
        with suppress(OSError):  # no more processes are allowed
            for share in shares:
                if not all(_mark(CACHE, part).exists() for part in share):
                    # -P: files in the folder of the user's data are not taken for modules.
                    words = [sys.executable, "-P", "-m", "eutely.cli.warm", *share]
                    processes.append(
                        subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing)
                    )

        def wait() -> None:
            for process in processes:
                process.wait()

        yield wait
        with suppress(OSError):  # all that the command needs is compiled now
            for mark in marks:
                mark.touch()
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def _mark(cache: str, part: str) -> Path:
    """Return the file that says that a command with this part has run before."""
    return Path(cache) / f"{part}.compiled"


def tiny_pairs(graphs: int, quadratic: bool) -> "Pairs":
    """Return the problems of all pairs of 2, 3 or 4 graphs with two nodes each.

    The pairs of several graphs contradict each other, so that nothing ends early.
    """
    from eutely.problem import PairProblem

    candidates = [[0, 0], [0, 1], [1, 0], [1, 1]]
    costs = ([[0, 3]], [0.5]) if quadratic else ()
    first = PairProblem.from_arrays((2, 2), candidates, STRAIGHT, *costs)
    last = PairProblem.from_arrays((2, 2), candidates, CROSSED)
    pairs = [(g, h) for g in range(graphs) for h in range(g + 1, graphs)]
    odd = (0, graphs - 1) if graphs > 2 else None
    return [(g, h, last if (g, h) == odd else first) for g, h in pairs]


def tiny_problem() -> "PairProblem":
    """Return the first of `tiny_pairs`, without the kernels that build it from lists."""
    from eutely.arrays import Arrays
    from eutely.problem import PairProblem

    starts, nodes = np.array([0, 2, 4], np.int32), np.array([0, 0, 1, 1], np.int32)
    labels, columns = np.array([0, 1, 0, 1], np.int32), np.array([0, 2, 1, 3], np.int32)
    edges = np.array([0, 1, 2], np.int32), np.array([1, 0], np.int32), np.zeros(2, np.int32)
    values = np.array([0, 0.5, 0, 0, 0, 0, 0.5, 0], np.float32)
    rows, none = np.arange(0, 9, 2, dtype=np.int64), np.empty(0, np.int32)
    lists = starts, labels, nodes, np.array(STRAIGHT), starts.copy(), columns
    return PairProblem(2, 2, Arrays(*lists, *edges, rows, none, values, np.zeros(1)))


def compile_search() -> None:
    """Compile poses, candidates and costs of two specimens: all before their matching is solved."""
    from eutely.costs.gaussian import between
    from eutely.pose import oriented
    from eutely.solver.assignment import assign
    from eutely.solver.softassign import Rules, centres_of
    from eutely.specimen import Specimen

    places = np.random.default_rng(0).normal(size=(24, 3)) * [4.0, 2.0, 1.0]
    tiny = Specimen("tiny", np.arange(24), places, np.full((24, 3), np.nan))
    between(tiny, tiny, *np.ones((3, 3)))
    oriented(tiny)
    assign(places, centres_of(np.broadcast_to(np.eye(3), (24, 3, 3))), places, Rules(1.0, 9.0))


def compile_laps() -> None:
    """Compile linear assignments of candidates."""
    from eutely.candidates import Candidates
    from eutely.solver.assignment import assign_sparse

    p = tiny_problem().arrays
    assign_sparse(Candidates(p.starts, p.labels), p.linear, 2)


def compile_relaxation() -> None:
    """Compile the relaxation of a pair, and the local search after it."""
    from eutely.solver import solve

    solve(tiny_problem(), "fast")


def compile_merges() -> None:
    """Compile what the solver of a pair needs besides: further starts and fusion rounds."""
    from eutely.solver.fusion import first_bids, perturbed
    from eutely.solver.local import buffers_of
    from eutely.solver.merge import take_over
    from eutely.solver.state import State, stream

    problem = tiny_problem()
    p = problem.arrays
    here, there = problem.chosen([0, 1]), problem.chosen([1, 0])
    state = State(here, here.copy(), p.linear + [0.5, 0.0, 0.0, 0.5])
    take_over(p, state, there, here.copy(), buffers_of(p))
    first_bids(p, np.zeros(2))
    perturbed(p, state, 1.0, stream(0, 0))
    problem.objective([0, 1])


def compile_starts() -> None:
    """Compile the improvement of a matching that is given."""
    from eutely.solver.local import buffers_of, search_around
    from eutely.solver.state import new_state

    problem = tiny_problem()
    p, here = problem.arrays, problem.chosen([0, 1])
    search_around(p, new_state(p, here), np.arange(2, dtype=np.int32), 2, buffers_of(p))


def compile_bounds() -> None:
    """Compile the lower bound, by lists and by tables of quadratic costs."""
    from eutely.problem import PairProblem
    from eutely.solver.dual import lower_bound

    lists = tiny_pairs(2, quadratic=True)[0][2]
    nodes = np.stack([lists.arrays.owners, lists.arrays.labels], axis=1)
    pairs, costs = [[0, 2], [0, 3], [1, 2], [1, 3]], [0.5] * 4
    tables = PairProblem.from_arrays((2, 2), nodes, STRAIGHT, pairs, costs)
    for problem in (lists, tables):
        lower_bound(problem.arrays, 1)


def compile_cliques() -> None:
    """Compile synchronisation and losses."""
    from eutely.multi import cycle_loss, synchronise
    from eutely.multi.joint import MultiProblem
    from eutely.multi.losses import agreement

    joint = MultiProblem.from_pairs(tiny_pairs(3, quadratic=True))
    straight, crossed = np.array([0, 1], np.int32), np.array([1, 0], np.int32)
    matchings = joint.matchings([straight, crossed, straight])
    cliques = synchronise(matchings, sparse=True)
    agreement(matchings, cliques)
    cycle_loss(matchings)
    joint.evaluate(cliques)


def compile_estimates() -> None:
    """Compile estimates of cells from their places."""
    from eutely.config import resolve
    from eutely.estimate import joint_gaussians

    places = np.random.default_rng(0).normal(size=(6, 12, 3))
    joint_gaussians(places + 10 * np.arange(12)[:, None], 10.0, resolve().estimate)


def compile_orders() -> None:
    """Compile the choice between orders of cells that are easily confused."""
    from eutely.find.refine.resplit import _best_orders

    places = np.random.default_rng(0).normal(size=(4, 2, 3))
    orders, prior = np.array([[0, 1], [1, 0]]), np.eye(3)
    _best_orders(places, orders, np.array([1]), np.kron(np.eye(2), prior), 1.0, 4.0, prior)


def compile_exchanges() -> None:
    """Compile quadratic assignments."""
    from eutely.quadratic import QuadraticAssignment
    from eutely.solver import solve_assignment

    solve_assignment(QuadraticAssignment.from_arrays(np.eye(2), np.eye(2)), "fast", bound=True)


PARTS: dict[str, Callable[[], None]] = {
    "laps": compile_laps,
    "relaxation": compile_relaxation,
    "merges": compile_merges,
    "starts": compile_starts,
    "bounds": compile_bounds,
    "cliques": compile_cliques,
    "estimates": compile_estimates,
    "orders": compile_orders,
    "exchanges": compile_exchanges,
}
"""What is compiled together."""


if __name__ == "__main__":
    for part in sys.argv[1:]:
        PARTS[part]()
