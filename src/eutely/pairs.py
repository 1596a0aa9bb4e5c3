"""All pairs of specimens in one frame, matched one by one, wherever work runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import Matchings
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


def match_pairs(
    frames: Sequence[Points],
    radii: Sequence[Points] | None,
    parameters: Parameters,
    c0: float,
    executor: Executor,
    *,
    dense: bool = False,
    neighbours: int = 6,
    effort: str | Effort = "default",
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
    parameters
        of the costs.
    c0
        cost of leaving a nucleus unmatched.
    executor
        where to run.
    dense
        allow every assignment and leave out offsets, a linear problem; otherwise only what
        ``parameters`` allow.
    neighbours
        nearest neighbours of each nucleus whose offsets are compared; 0 for none, which is a
        linear problem again.
    effort
        of the solver, for problems with offsets.
    allowed
        also return which assignments were allowed; always all when ``dense``.
    pairs
        (P, 2) specimens g < h; all pairs if None.
    progress
        told (pairs done, pairs in all).
    """
    count = len(frames)
    chosen = np.transpose(np.triu_indices(count, 1)) if pairs is None else np.asarray(pairs)
    chosen = chosen.astype(np.int32).reshape(-1, 2)
    shapes: list[Points] = (
        [np.full(np.shape(frame), np.nan) for frame in frames] if radii is None else list(radii)
    )
    items = [(int(g), int(h)) for g, h in chosen]
    if dense:
        points = [np.hstack([frame, shape]) for frame, shape in zip(frames, shapes, strict=True)]
        scale = 1 / np.array([*parameters.centroids, *parameters.radii])
        found = list(executor.map(_dense, items, shared=(points, scale, c0), progress=progress))
        partners, bits = found, None
    else:
        costs = _costs(parameters, c0, neighbours)
        specimens = _specimens(frames, shapes)
        shared = (specimens, parameters, costs, effort, allowed)
        both = list(executor.map(_sparse, items, shared=shared, progress=progress))
        partners = [one for one, _ in both]
        bits = np.concatenate([np.zeros(0, np.uint8), *(b for _, b in both)]) if allowed else None
    sizes = np.array([len(frame) for frame in frames], dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(sizes[chosen[:, 0]], dtype=np.int64)])
    joined = np.concatenate([np.zeros(0, np.int32), *partners])
    return Matchings(sizes, chosen, starts.astype(np.int64), joined, bits)


def cost_of_a_match(
    frames: Sequence[Points],
    radii: Sequence[Points],
    parameters: Parameters,
    c0: float,
    executor: Executor,
    *,
    neighbours: int = 6,
) -> float:
    """Return what a match costs in the mean over a pair, in the median over all pairs.

    Linear costs and half of the offset costs of a nucleus, as both ends of an offset share them.
    Arguments as of `match_pairs`.
    """
    pairs = np.transpose(np.triu_indices(len(frames), 1)).tolist()
    shared = (_specimens(frames, radii), parameters, _costs(parameters, c0, neighbours))
    return float(np.median(list(executor.map(_mean_cost, pairs, shared=shared))))


def _mean_cost(
    specimens: Sequence[Specimen], parameters: Parameters, costs: Costs, pair: tuple[int, int]
) -> float:
    solution = solve(_problem(specimens, parameters, costs, pair), "fast")
    matched = int((solution.matching >= 0).sum())
    return (solution.objective + matched * costs.c0) / max(matched, 1)


def _costs(parameters: Parameters, c0: float, neighbours: int) -> Costs:
    return Costs(
        c0=c0,
        tau_centroid=parameters.tau_centroid,
        tau_radius=parameters.tau_radius,
        k_min=parameters.k_min,
        neighbours=neighbours,
    )


def _specimens(frames: Sequence[Points], radii: Sequence[Points]) -> list[Specimen]:
    return [
        Specimen.from_arrays(f"{number}", frame, radii=own)
        for number, (frame, own) in enumerate(zip(frames, radii, strict=True))
    ]


def candidates_of_a_pair(matchings: Matchings) -> float:
    """Return the mean number of allowed assignments of a pair, n_lin of section 3.2."""
    if matchings.allowed is None:
        sizes = matchings.sizes.astype(np.int64)
        return float(np.mean(sizes[matchings.pairs[:, 0]] * sizes[matchings.pairs[:, 1]]))
    return float(np.bitwise_count(matchings.allowed).sum(dtype=np.int64) / len(matchings))


def _dense(
    points: Sequence[Points], scale: Points, c0: float, pair: tuple[int, int]
) -> NDArray[np.int32]:
    columns: NDArray[np.int32] = _assign(points[pair[0]], points[pair[1]], scale, c0)
    return columns


def _sparse(
    specimens: Sequence[Specimen],
    parameters: Parameters,
    costs: Costs,
    effort: str | Effort,
    allowed: bool,
    pair: tuple[int, int],
) -> tuple[NDArray[np.int32], NDArray[np.uint8] | None]:
    problem = _problem(specimens, parameters, costs, pair)
    # A seed of its own for each pair, so that no pair depends on which others are matched.
    seed = pair[0] * len(specimens) + pair[1]
    matching = solve(problem, effort, seed=seed).matching
    return matching, _bits(problem) if allowed else None


def _problem(
    specimens: Sequence[Specimen], parameters: Parameters, costs: Costs, pair: tuple[int, int]
) -> PairProblem:
    return between(
        specimens[pair[0]],
        specimens[pair[1]],
        parameters.centroids,
        parameters.radii,
        parameters.offsets,
        costs,
    )


def _bits(problem: PairProblem) -> NDArray[np.uint8]:
    """Return the allowed assignments as `Matchings.allowed` keeps them."""
    arrays = problem.arrays
    bits: NDArray[np.uint8] = _pack(arrays.owners, arrays.labels, problem.n_left, problem.n_right)
    return bits


@kernel
def _assign(left: Any, right: Any, scale: Any, c0: float) -> Any:
    """Return the cheapest assignment of points (n, 6); unknown sizes cost nothing."""
    table = np.empty((len(left), len(right)))
    for i in range(len(left)):
        for s in range(len(right)):
            place = 0.0
            for k in range(3):
                place += (left[i, k] - right[s, k]) ** 2 * scale[k]
            size = 0.0
            for k in range(3, 6):
                size += (left[i, k] - right[s, k]) ** 2 * scale[k]
            table[i, s] = place - c0 + (size if size == size else 0.0)
    return lap_dense(table)[0]


@kernel
def _pack(owners: Any, labels: Any, rows: int, columns: int) -> Any:
    """Set one bit an assignment, the lowest first, rows padded to whole bytes."""
    width = (columns + 7) // 8
    bits = np.zeros(rows * width, np.uint8)
    for a in range(len(owners)):
        at = owners[a] * width + labels[a] // 8
        bits[at] |= np.uint8(1 << (labels[a] % 8))
    return bits
