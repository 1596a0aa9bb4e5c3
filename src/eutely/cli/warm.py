"""The first run after an installation: part of what a command needs is compiled at the same time.

Kernels are compiled when they are first called, one after the other. A second process calls those
that the command needs last, by small examples, and leaves the machine code where the command finds
it. Nothing depends on that process: what it has not compiled in time, the command compiles itself.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from eutely.io.dd import Pairs

STRAIGHT, CROSSED = [-2.0, -1.0, -1.0, -2.0], [-1.0, -2.0, -2.0, -1.0]
"""Costs of two nodes by which they keep their order, or change places."""


@contextmanager
def warmed(part: str) -> Iterator[None]:
    """Compile one of `PARTS` in another process meanwhile, unless that was done before."""
    from eutely.execute.threads import cores
    from eutely.kernel import CACHE

    if CACHE is None or not sys.executable or cores() < 2 or _mark(CACHE, part).exists():
        yield
        return
    # -P: files in the folder of the user's data are not taken for modules.
    words = [sys.executable, "-P", "-m", "eutely.cli.warm", part]
    nothing = subprocess.DEVNULL
    try:
        process = subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing)
    except OSError:  # no more processes are allowed
        yield
        return
    try:
        yield
        with suppress(OSError):  # all that the command needs is compiled now
            _mark(CACHE, part).touch()
    finally:
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


def compile_solver() -> None:
    """Compile the solver of a pair."""
    from eutely.solver import solve

    solve(tiny_pairs(2, quadratic=True)[0][2])


def compile_cliques() -> None:
    """Compile synchronisation, losses and the lower bound."""
    from eutely.multi import cycle_loss, synchronise
    from eutely.multi.joint import MultiProblem
    from eutely.multi.losses import agreement
    from eutely.solver.dual import lower_bound

    pairs = tiny_pairs(3, quadratic=True)
    joint = MultiProblem.from_pairs(pairs)
    straight, crossed = np.array([0, 1], np.int32), np.array([1, 0], np.int32)
    matchings = joint.matchings([straight, crossed, straight])
    agreement(matchings, synchronise(matchings, sparse=True))
    cycle_loss(matchings)
    lower_bound(pairs[0][2].arrays, 1)


def compile_estimates() -> None:
    """Compile estimates of cells from their places."""
    from eutely.config import resolve
    from eutely.estimate import joint_gaussians

    places = np.random.default_rng(0).normal(size=(6, 12, 3))
    joint_gaussians(places + 10 * np.arange(12)[:, None], 10.0, resolve().estimate)


PARTS: dict[str, Callable[[], None]] = {
    "solver": compile_solver,
    "cliques": compile_cliques,
    "estimates": compile_estimates,
}
"""What is compiled together."""


if __name__ == "__main__":
    PARTS[sys.argv[1]]()
