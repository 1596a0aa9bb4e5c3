from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.cliques import Cliques
from eutely.errors import ProblemError
from eutely.multi.joint import Groups, MultiProblem, problem_of
from eutely.multi.trade import trade
from eutely.problem import PairProblem
from toy_joints import exhaustive, joints, partitions


@given(joints(), st.integers(0, 99))
def test_groups_cost_what_their_pairs_cost(joint: MultiProblem, seed: int):
    rng = np.random.default_rng(seed)
    leaving = rng.random(len(joint.sizes)) < 0.5
    count = int(joint.sizes.max(initial=0)) + 1
    sides = []
    for side in (False, True):
        labels = [
            rng.permutation(count)[:size] if leaves == side else np.full(size, -1)
            for size, leaves in zip(joint.sizes, leaving, strict=True)
        ]
        sides.append(Groups([row.astype(np.int32) for row in labels], count))
    left, right = sides
    problem = problem_of(joint, left, right)
    matching = exhaustive(problem)
    to_clique = np.arange(count, 2 * count)
    apart, together = [], []
    for stays, moves, leaves in zip(left.labels, right.labels, leaving, strict=True):
        apart.append(to_clique[moves] if leaves else stays)
    to_clique[matching[matching >= 0]] = np.nonzero(matching >= 0)[0]
    for stays, moves, leaves in zip(left.labels, right.labels, leaving, strict=True):
        together.append(to_clique[moves] if leaves else stays)
    before, forbidden = joint.evaluate(Cliques.from_labels(apart))
    after, still = joint.evaluate(Cliques.from_labels(together))
    assert after - before == pytest.approx(problem.objective(matching), abs=1e-4)
    assert still == forbidden


@given(joints(), st.integers(0, 99))
def test_trades_never_cost(joint: MultiProblem, seed: int):
    allowed = [
        Cliques.from_labels(labels)
        for labels in partitions(joint.sizes.tolist())
        if joint.evaluate(Cliques.from_labels(labels))[1] == 0
    ]
    before = allowed[seed % len(allowed)]
    after = trade(joint, before, least=1e-9)
    assert joint.evaluate(after)[1] == 0
    assert joint.evaluate(after)[0] <= joint.evaluate(before)[0] + 1e-9


def crossed() -> MultiProblem:
    """Four specimens of two nuclei; matching straight is best, crosswise nearly as good.

    0 - 1 and 2 - 3 may only be matched crosswise by moving two specimens at a time.
    """
    straight = [[0, 0], [0, 1], [1, 0], [1, 1]], [-2.0, -1.0, -1.0, -2.0]
    problem = PairProblem.from_arrays((2, 2), *straight)
    return MultiProblem.from_pairs((g, h, problem) for g, h in combinations(range(4), 2))


def test_trade_swaps_two_specimens_at_once():
    halves = Cliques.from_labels([[0, 1], [0, 1], [1, 0], [1, 0]])
    joint = crossed()
    assert joint.evaluate(halves)[0] == -16
    mended = trade(joint, halves, least=1e-9)
    assert joint.evaluate(mended)[0] == -24
    assert mended == Cliques.from_labels([[0, 1]] * 4)


def test_trade_merges_cliques():
    single = Cliques.from_labels([[0, 1], [2, 3], [4, 5], [6, 7]])
    assert joint_cost_after(single) == -24


def joint_cost_after(cliques: Cliques) -> float:
    joint = crossed()
    for _ in range(3):
        cliques = trade(joint, cliques, least=1e-9)
    return joint.evaluate(cliques)[0]


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([(1, 0)], "g < h"),
        ([(0, 1), (0, 1)], "two problems of"),
        ([(0, 1), (1, 2)], "3 nuclei in problem"),
    ],
)
def test_problems_that_do_not_fit_are_refused(pairs: list[tuple[int, int]], words: str):
    shapes = {(1, 2): (3, 2)}
    problems = [
        (g, h, PairProblem.from_arrays(shapes.get((g, h), (2, 2)), [[0, 0]], [-1.0]))
        for g, h in pairs
    ]
    with pytest.raises(ProblemError, match=words):
        MultiProblem.from_pairs(problems)


def test_matchings_carry_what_is_allowed():
    joint = crossed()
    partners = [np.array([0, -1], np.int32)] * 6
    matchings = joint.matchings(partners)
    assert matchings.matched == 6
    assert matchings.allowed is not None
    assert matchings.allowed.tolist() == [3, 3] * 6
