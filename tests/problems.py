"""Tiny random matching problems as plain lists, and their exact answers by enumeration."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from eutely.problem import PairProblem


@dataclass
class Listed:
    """A problem as a user would list it."""

    shape: tuple[int, int]
    candidates: np.ndarray
    costs: np.ndarray
    pairs: np.ndarray
    pair_costs: np.ndarray
    seed: int

    def problem(self) -> PairProblem:
        return PairProblem.from_arrays(
            self.shape, self.candidates, self.costs, self.pairs, self.pair_costs
        )

    def matchings(self, count: int) -> Iterator[list[int]]:
        """Random valid matchings."""
        rng = np.random.default_rng(self.seed)
        for _ in range(count):
            matching = [-1] * self.shape[0]
            for i, s in rng.permutation(self.candidates):
                if matching[i] < 0 and s not in matching and rng.random() < 0.8:
                    matching[i] = int(s)
            yield matching

    def optimum(self) -> float:
        """The least objective of all valid matchings."""
        choices = [[-1] for _ in range(self.shape[0])]
        for i, s in self.candidates:
            choices[i].append(int(s))
        valid = (
            m for m in product(*choices) if len({s for s in m if s >= 0}) == sum(s >= 0 for s in m)
        )
        return min(naive_objective(self, m) for m in valid)


def naive_objective(listed: Listed, matching) -> float:
    """The objective by definition."""
    on = [matching[i] == s for i, s in listed.candidates]
    quadratic = sum(
        cost
        for (a, b), cost in zip(listed.pairs, listed.pair_costs, strict=True)
        if on[a] and on[b] and listed.candidates[a][0] != listed.candidates[b][0]
    )
    return float(sum(listed.costs[on])) + float(quadratic)


@st.composite
def listed_problems(draw, largest: int = 4) -> Listed:
    """Problems of every density, sparse or full tables, with ties and useless candidates."""
    n, m = draw(st.integers(0, largest)), draw(st.integers(0, largest))
    seed = draw(st.integers(0, 2**32 - 1))
    density, pair_density = (
        draw(st.sampled_from([0.3, 0.7, 1.0])),
        draw(st.sampled_from([0, 0.2, 1])),
    )
    rounded, shift = draw(st.booleans()), draw(st.sampled_from([-3.0, 0.0, 1.0]))
    rng = np.random.default_rng(seed)
    candidates = rng.permutation(np.argwhere(rng.random((n, m)) < density))
    costs = rng.normal(size=len(candidates)) * 2 + shift
    pairs = np.argwhere(np.triu(rng.random((len(costs), len(costs))) < pair_density, 1))
    pair_costs = rng.normal(size=len(pairs))
    if rounded:
        costs, pair_costs = np.round(costs), np.round(pair_costs)
    return Listed((n, m), candidates.reshape(-1, 2), costs, pairs.reshape(-1, 2), pair_costs, seed)
