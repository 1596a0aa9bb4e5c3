"""All pairs of specimens in a common frame, matched one by one on any executor."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.cliques import Matchings
from eutely.costs.candidates import Limits
from eutely.costs.dense import coordinates, linear_costs
from eutely.costs.gaussian import Costs, between
from eutely.costs.repeated import REMEMBERED, RepeatedPair, repeated_pair
from eutely.execute import Done, Executor
from eutely.kernel import kernel
from eutely.learned import Parameters, Triple
from eutely.problem import PairProblem
from eutely.solver import solve
from eutely.solver.lap_short import lap_short
from eutely.solver.lap_sparse import lap_sparse
from eutely.solver.solver import Effort
from eutely.specimen import Specimen

Points = NDArray[np.float64]


class PairRules(NamedTuple):
    """How two specimens are matched.

    Attributes
    ----------
    parameters
        of the costs.
    c0
        cost of leaving a nucleus unmatched.
    neighbours
        nearest neighbours of each nucleus whose offsets are compared; 0 for none, a linear problem.
    dense
        allow every assignment and leave out offsets, also a linear problem; otherwise only the
        assignments that ``parameters`` allow.
    effort
        of the solver, for problems with offsets.
    widest
        limits of all trials, if the same pairs are matched many times by the same centroids and
        radii: what does not change is then kept; None otherwise.
    """

    parameters: Parameters
    c0: float
    neighbours: int = 6
    dense: bool = False
    effort: str | Effort = "default"
    widest: Limits | None = None


def match_pairs(
    frames: Sequence[Points],
    radii: Sequence[Points] | None,
    rules: PairRules,
    executor: Executor,
    *,
    allowed: bool = False,
    pairs: NDArray[np.int32] | None = None,
    on_done: Done | None = None,
) -> Matchings:
    """Match specimens pair by pair; the result does not depend on the executor.

    Parameters
    ----------
    frames
        for each specimen its centroids (n, 3) in the common frame.
    radii
        for each specimen (n, 3) semi-axes, NaN where unknown; or None.
    rules
        how two specimens are matched.
    executor
        where to run.
    allowed
        also return which assignments were allowed; never for dense rules, which allow all.
    pairs
        (P, 2) specimens g < h; all pairs if None.
    on_done
        called with (pairs done, pairs in total).
    """
    count = len(frames)
    chosen = np.transpose(np.triu_indices(count, 1)) if pairs is None else np.asarray(pairs)
    chosen = chosen.astype(np.int32).reshape(-1, 2)
    sizes: list[Points] = (
        [np.full(np.shape(frame), np.nan) for frame in frames] if radii is None else list(radii)
    )
    items = [(int(g), int(h)) for g, h in chosen]
    bits = None
    if rules.dense:
        nuclei = [coordinates(frame, size) for frame, size in zip(frames, sizes, strict=True)]
        precisions = 1 / np.array([*rules.parameters.centroids, *rules.parameters.radii])
        shared = (nuclei, precisions, float(rules.c0))
        partners = list(executor.map(_match_dense, items, shared=shared, on_done=on_done))
    else:
        specimens = _specimens(frames, sizes)
        results = list(
            executor.map(_match, items, shared=(specimens, rules, allowed), on_done=on_done)
        )
        partners = [matching for matching, _ in results]
        if allowed:
            bits = np.concatenate([np.zeros(0, np.uint8), *(packed for _, packed in results)])
    counts = np.array([len(frame) for frame in frames], dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(counts[chosen[:, 0]], dtype=np.int64)])
    joined = np.concatenate([np.zeros(0, np.int32), *partners])
    return Matchings(counts, chosen, starts.astype(np.int64), joined, bits)


def partner_pairs(count: int, partners: int, seed: int) -> NDArray[np.int32] | None:
    """Return the pairs (P, 2) in which each of ``count`` specimens has about as many partners.

    Specimens stand in a circle in random order, and each is joined to those at a few random
    distances, 1 among them: all are connected, and by few steps. None, for all pairs, where
    ``partners`` is 0 or all others.
    """
    if not 0 < partners < count - 1:
        return None
    random = np.random.default_rng(seed)
    circle = random.permutation(count)
    further = 2 + random.permutation(max(count // 2 - 1, 0))
    steps = np.concatenate([[1], further])[: -(-partners // 2)]
    places = np.arange(count)
    ends = [(circle, circle[(places + step) % count]) for step in steps.tolist()]
    joined = np.sort(np.concatenate([np.stack(two, axis=1) for two in ends]), axis=1)
    return np.unique(joined, axis=0).astype(np.int32)


def cost_of_a_match(
    frames: Sequence[Points], radii: Sequence[Points], rules: PairRules, executor: Executor
) -> float:
    """Return the mean cost of a match within a pair, in the median over all pairs.

    It includes linear costs and half of the offset costs of a nucleus, since the two ends of an
    offset share them. The solver's effort is always ``fast``; parameters: see `match_pairs`.
    """
    pairs = np.transpose(np.triu_indices(len(frames), 1)).tolist()
    shared = (_specimens(frames, radii), rules)
    return float(np.median(list(executor.map(_mean_cost, pairs, shared=shared))))


def candidates_of_a_pair(matchings: Matchings) -> float:
    """Return the mean number of allowed assignments of a pair, n_lin of section 3.2."""
    if matchings.allowed is None:
        sizes = matchings.sizes.astype(np.int64)
        return float(np.mean(sizes[matchings.pairs[:, 0]] * sizes[matchings.pairs[:, 1]]))
    return float(np.bitwise_count(matchings.allowed).sum(dtype=np.int64) / len(matchings))


def _specimens(frames: Sequence[Points], radii: Sequence[Points]) -> list[Specimen]:
    return [
        Specimen.from_arrays(f"{number}", frame, radii=size)
        for number, (frame, size) in enumerate(zip(frames, radii, strict=True))
    ]


def _match_dense(
    nuclei: Sequence[Points], precisions: Points, c0: float, pair: tuple[int, int]
) -> NDArray[np.int32]:
    costs = linear_costs(nuclei[pair[0]], nuclei[pair[1]], precisions, c0)
    return lap_short(costs)


def _match(
    specimens: Sequence[Specimen], rules: PairRules, allowed: bool, pair: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.uint8] | None]:
    if rules.widest is not None:
        return _match_again(specimens, rules, allowed, pair)
    problem = between(*_pair(specimens, pair), *_variances(rules), _costs(rules))
    # Each pair has its own seed, so that no pair depends on which others are matched.
    seed = pair[0] * len(specimens) + pair[1]
    matching = solve(problem, rules.effort, seed=seed).matching
    return matching, _bits(problem) if allowed else None


def _match_again(
    specimens: Sequence[Specimen], rules: PairRules, allowed: bool, pair: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.uint8] | None]:
    """Match a pair that other trials match as well, with the same result as `_match`."""
    assert rules.widest is not None
    centroids, radii, offsets = _variances(rules)
    known = repeated_pair(*_pair(specimens, pair), centroids, radii, rules.widest)
    problem = known.problem(offsets, _costs(rules), _room.values)
    if len(problem.arrays.values) > len(_room.values):
        _room.values = np.empty(len(problem.arrays.values) * 5 // 4, np.float32)
    if rules.neighbours:
        seed = pair[0] * len(specimens) + pair[1]
        matching = solve(problem, rules.effort, seed=seed).matching
    else:
        matching = _assigned(problem, _prices(known, rules.widest, rules.c0).copy())
    return matching, _bits(problem) if allowed else None


class _Room(threading.local):
    """Memory of each thread for the tables of one problem: new memory costs more than to fill it.

    Attributes
    ----------
    values
        (q,) float32.
    """

    def __init__(self) -> None:
        self.values = np.empty(0, np.float32)


_room = _Room()


@lru_cache(maxsize=REMEMBERED)
def _prices(pair: RepeatedPair, widest: Limits, c0: float) -> NDArray[np.float64]:
    """Return the prices of right nuclei in the cheapest assignment of all candidates.

    Most candidates of that assignment are allowed in any trial, so that its prices are nearly those
    of the trial. The cheapest assignment does not depend on the prices that the search starts from.
    """
    prices = np.zeros(len(pair.points))
    costs = Costs(c0, (1.0, 1.0, 1.0), widest.tau_centroid, widest.tau_radius, widest.k_min, 0)
    _assigned(pair.problem(np.ones(3), costs), prices)
    return prices


def _assigned(problem: PairProblem, prices: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the cheapest assignment by linear costs; prices are a start, and changed."""
    p = problem.arrays
    lists = p.starts, p.labels, p.owners, p.column_starts, p.column_items
    chosen, _ = lap_sparse(*lists, p.linear, prices)
    return np.where(chosen >= 0, p.labels[chosen], -1).astype(np.int32)


def _mean_cost(specimens: Sequence[Specimen], rules: PairRules, pair: tuple[int, int]) -> float:
    problem = between(*_pair(specimens, pair), *_variances(rules), _costs(rules))
    solution = solve(problem, "fast")
    matched = int((solution.matching >= 0).sum())
    return (solution.objective + matched * rules.c0) / max(matched, 1)


def _pair(specimens: Sequence[Specimen], pair: tuple[int, int]) -> tuple[Specimen, Specimen]:
    return specimens[pair[0]], specimens[pair[1]]


def _variances(rules: PairRules) -> tuple[Triple, Triple, Triple]:
    learned = rules.parameters
    return learned.centroids, learned.radii, learned.offsets


def _costs(rules: PairRules) -> Costs:
    learned = rules.parameters
    return Costs(
        c0=rules.c0,
        tau_centroid=learned.tau_centroid,
        tau_radius=learned.tau_radius,
        k_min=learned.k_min,
        neighbours=rules.neighbours,
    )


def _bits(problem: PairProblem) -> NDArray[np.uint8]:
    """Return the allowed assignments in the format of `Matchings.allowed`."""
    arrays = problem.arrays
    bits: NDArray[np.uint8] = _pack(arrays.owners, arrays.labels, problem.n_left, problem.n_right)
    return bits


@kernel
def _pack(owners: Any, labels: Any, rows: int, columns: int) -> Any:
    """Return one bit per assignment, the lowest first, rows padded to whole bytes."""
    width = (columns + 7) // 8
    bits = np.zeros(rows * width, np.uint8)
    for a in range(len(owners)):
        at = owners[a] * width + labels[a] // 8
        bits[at] |= np.uint8(1 << (labels[a] % 8))
    return bits
