"""Small multi-matching problems, and the cliques of least cost found by trying all."""

from itertools import combinations, product

import numpy as np
from hypothesis import strategies as st

from eutely.cliques import Cliques
from eutely.multi.joint import MultiProblem
from eutely.problem import PairProblem


def random_joint(seed: int, count: int, largest: int, missing: float = 0.15) -> MultiProblem:
    """Small specimens with random costs; some pairs and candidates are missing."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, largest + 1, count)
    problems = []
    for g, h in combinations(range(count), 2):
        if rng.random() < missing:
            continue
        candidates = np.argwhere(rng.random((sizes[g], sizes[h])) < 0.8)
        pairs = np.array(list(combinations(range(len(candidates)), 2)), int).reshape(-1, 2)
        problems.append(
            (
                g,
                h,
                PairProblem.from_arrays(
                    (sizes[g], sizes[h]),
                    candidates,
                    rng.normal(-1, 2, len(candidates)),
                    pairs,
                    rng.normal(0, 1, len(pairs)),
                ),
            )
        )
    return MultiProblem.from_pairs(problems)


@st.composite
def joints(draw: st.DrawFn) -> MultiProblem:
    count = draw(st.integers(2, 4))
    return random_joint(draw(st.integers(0, 2**32 - 1)), count, 3 if count < 4 else 2)


def exhaustive(problem: PairProblem) -> np.ndarray:
    """Try all matchings."""
    arrays = problem.arrays
    choices = [
        [-1, *arrays.labels[arrays.starts[i] : arrays.starts[i + 1]].tolist()]
        for i in range(problem.n_left)
    ]
    valid = (
        m for m in product(*choices) if len({s for s in m if s >= 0}) == sum(s >= 0 for s in m)
    )
    return np.array(min(valid, key=problem.objective), np.int32)


def partitions(sizes: list[int]) -> list[list[np.ndarray]]:
    """Return the labels of all cliques that a cohort can have."""
    partitions: list[list[np.ndarray]] = [[]]
    for size in sizes:
        longer = []
        for labels in partitions:
            count = 1 + max((int(row.max()) for row in labels if len(row)), default=-1)
            for choice in product(range(-1, count), repeat=size):
                joined = [c for c in choice if c >= 0]
                if len(set(joined)) == len(joined):
                    fresh = iter(range(count, count + size))
                    row = np.array([c if c >= 0 else next(fresh) for c in choice], np.int32)
                    longer.append([*labels, row])
        partitions = longer
    return partitions


def least_cost(joint: MultiProblem) -> float:
    costs = [joint.evaluate(Cliques.from_labels(p)) for p in partitions(joint.sizes.tolist())]
    return min(cost for cost, forbidden in costs if forbidden == 0)
