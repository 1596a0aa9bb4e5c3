"""All pairs of specimens in one frame, matched one by one, wherever work runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import Matchings
from eutely.costs.dense import dense_costs
from eutely.costs.gaussian import Costs, between
from eutely.execute import Executor, Progress
from eutely.kernel import kernel
from eutely.learned import Parameters
from eutely.problem import PairProblem
from eutely.solver import solve
from eutely.solver.lap_dense import lap_dense
from eutely.solver.solver import Effort
from eutely.specimen import Specimen

Points = NDArray[np.float64]


class PairCosts(NamedTuple):
    """How two specimens are matched.

    Attributes
    ----------
    parameters
        of the costs.
    c0
        cost of leaving a nucleus unmatched.
    dense
        allow every assignment and leave out offsets, a linear problem; otherwise only what
        ``parameters`` allow.
    neighbours
        nearest neighbours of each nucleus whose offsets are compared; 0 for none, which is a
        linear problem again.
    effort
        of the solver, for problems with offsets.
    """

    parameters: Parameters
    c0: float
    dense: bool = False
    neighbours: int = 6
    effort: str | Effort = "fast"

    def problem(self, left: Specimen, right: Specimen) -> PairProblem:
        """Return the sparse problem of two specimens in one frame."""
        p = self.parameters
        costs = Costs(
            c0=self.c0,
            tau_centroid=p.tau_centroid,
            tau_radius=p.tau_radius,
            k_min=p.k_min,
            neighbours=self.neighbours,
        )
        return between(left, right, p.centroids, p.radii, p.offsets, costs)


def match_pairs(
    frames: Sequence[Points],
    radii: Sequence[Points] | None,
    costs: PairCosts,
    executor: Executor,
    *,
    allowed: bool = False,
    pairs: NDArray[np.int32] | None = None,
    progress: Progress | None = None,
) -> Matchings:
    """Match specimens two by two; the result does not depend on the executor.

    Parameters
    ----------
    frames
        for each specimen its centroids (n, 3) in the common frame.
    radii
        for each specimen (n, 3) semi-axes, NaN where not known; or None.
    costs
        how two specimens are matched.
    executor
        where to run.
    allowed
        also return which assignments were allowed; always all when the costs are dense.
    pairs
        (P, 2) specimens g < h; all pairs if None.
    progress
        callback for (pairs done, pairs in all).
    """
    count = len(frames)
    chosen = np.transpose(np.triu_indices(count, 1)) if pairs is None else np.asarray(pairs)
    chosen = chosen.astype(np.int32).reshape(-1, 2)
    specimens = _specimens(frames, radii)
    items = [(int(g), int(h)) for g, h in chosen]
    bits = None
    if costs.dense:
        partners = list(executor.map(_dense, items, shared=(specimens, costs), progress=progress))
    else:
        shared = (specimens, costs, allowed)
        both = list(executor.map(_sparse, items, shared=shared, progress=progress))
        partners = [matching for matching, _ in both]
        if allowed:
            bits = np.concatenate([np.zeros(0, np.uint8), *(table for _, table in both)])
    sizes = np.array([len(frame) for frame in frames], dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(sizes[chosen[:, 0]], dtype=np.int64)])
    joined = np.concatenate([np.zeros(0, np.int32), *partners])
    return Matchings(sizes, chosen, starts.astype(np.int64), joined, bits)


def cost_of_a_match(
    frames: Sequence[Points], radii: Sequence[Points], costs: PairCosts, executor: Executor
) -> float:
    """Return the mean cost of a match over a pair, in the median over all pairs.

    Linear costs and half of the offset costs of a nucleus, as both ends of an offset share them.
    Parameters: see `match_pairs`.
    """
    pairs = np.transpose(np.triu_indices(len(frames), 1)).tolist()
    shared = (_specimens(frames, radii), costs._replace(effort="fast"))
    return float(np.median(list(executor.map(_mean_cost, pairs, shared=shared))))


def _mean_cost(specimens: Sequence[Specimen], costs: PairCosts, pair: tuple[int, int]) -> float:
    solution = solve(costs.problem(*(specimens[g] for g in pair)), costs.effort)
    matched = int((solution.matching >= 0).sum())
    return (solution.objective + matched * costs.c0) / max(matched, 1)


def _specimens(frames: Sequence[Points], radii: Sequence[Points] | None) -> list[Specimen]:
    shapes = [None] * len(frames) if radii is None else radii
    return [
        Specimen.from_arrays(f"{number}", frame, radii=shape)
        for number, (frame, shape) in enumerate(zip(frames, shapes, strict=True))
    ]


def candidates_of_a_pair(matchings: Matchings) -> float:
    """Return the mean number of allowed assignments of a pair, n_lin of section 3.2."""
    if matchings.allowed is None:
        sizes = matchings.sizes.astype(np.int64)
        return float(np.mean(sizes[matchings.pairs[:, 0]] * sizes[matchings.pairs[:, 1]]))
    return float(np.bitwise_count(matchings.allowed).sum(dtype=np.int64) / len(matchings))


def _dense(
    specimens: Sequence[Specimen], costs: PairCosts, pair: tuple[int, int]
) -> NDArray[np.int32]:
    left, right = (specimens[g] for g in pair)
    table = dense_costs(
        left, right, costs.parameters.centroids, costs.parameters.radii, costs.c0
    )
    columns: NDArray[np.int32] = lap_dense(table)[0]
    return columns


def _sparse(
    specimens: Sequence[Specimen], costs: PairCosts, allowed: bool, pair: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.uint8] | None]:
    problem = costs.problem(*(specimens[g] for g in pair))
    # Each pair has its own seed, so that no pair depends on which others are matched.
    seed = pair[0] * len(specimens) + pair[1]
    matching = solve(problem, costs.effort, seed=seed).matching
    return matching, _bits(problem) if allowed else None


def _bits(problem: PairProblem) -> NDArray[np.uint8]:
    """Return the allowed assignments as `Matchings.allowed` keeps them."""
    arrays = problem.arrays
    bits: NDArray[np.uint8] = _pack(arrays.owners, arrays.labels, problem.n_left, problem.n_right)
    return bits


@kernel
def _pack(owners: Any, labels: Any, rows: int, columns: int) -> Any:
    """Set one bit for each assignment, the lowest first; rows are padded to whole bytes."""
    width = (columns + 7) // 8
    bits = np.zeros(rows * width, np.uint8)
    for a in range(len(owners)):
        at = owners[a] * width + labels[a] // 8
        bits[at] |= np.uint8(1 << (labels[a] % 8))
    return bits
