"""A population of good matchings, each the start of others: children and disturbed copies.

A round starts from what two matchings share, with the rest from either, or from a good matching in
which some objects exchange places in a circle; the tabu search goes on from there. Short searches
from many starts suit structured problems, where good matchings are alike; the tabu search itself
suits random ones. When nothing new has come for long, the population begins again.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.kernel import bare, kernel
from eutely.solver.qap_swaps import TOLERANCE, copy, tabu_search
from eutely.solver.state import random_bits, uniform

MEMBERS = 15
"""Matchings in a population."""

DISTURBED = 0.5
"""Share of the rounds that start from one matching; the others start from two."""

CIRCLE = 0.5
"""Largest share of the objects that change places in a disturbed matching."""

PATIENCE = 5
"""Rounds without a new member, in members, after which the population begins again."""


class Population(NamedTuple):
    """Matchings and what is needed to make others.

    Attributes
    ----------
    members, values
        (MEMBERS, n) int64, (MEMBERS,) float64, matchings and their objectives; inf where there is
        none.
    best, value
        (n,) int64, (1,) float64, the best matching ever, and its objective.
    idle
        (1,) int64, rounds without a new member.
    places, found, order
        (n,) int64, memory of a round.
    random
        (1,) uint64, state of the random numbers.
    """

    members: NDArray[np.int64]
    values: NDArray[np.float64]
    best: NDArray[np.int64]
    value: NDArray[np.float64]
    idle: NDArray[np.int64]
    places: NDArray[np.int64]
    found: NDArray[np.int64]
    order: NDArray[np.int64]
    random: NDArray[np.uint64]


def population_of(start: NDArray[np.int64], random: NDArray[np.uint64]) -> Population:
    """Return an empty population whose first round begins with the matching ``start``."""
    n = len(start)
    return Population(
        np.zeros((MEMBERS, n), np.int64),
        np.full(MEMBERS, np.inf),
        start.copy(),
        np.full(1, np.inf),
        np.zeros(1, np.int64),
        start.copy(),
        start.copy(),
        np.arange(n),
        random,
    )


@kernel
def evolve(m: Any, t: Any, p: Any, rounds: int, steps: int) -> None:
    """Run ``rounds`` rounds, each of ``steps`` exchanges.

    Parameters
    ----------
    m, t
        problem and memory, see `eutely.solver.qap_swaps`.
    p
        population, changed in place.
    rounds, steps
        numbers.
    """
    for _ in range(rounds):
        if p.value[0] < np.inf:  # otherwise the first start is given
            _next_start(p)
        value = tabu_search(m, t, p.places, p.found, steps, p.random)
        if value < p.value[0]:
            p.value[0] = value
            copy(p.found, p.best)
        if _settle(p, value):
            p.idle[0] = 0
            continue
        p.idle[0] += 1
        if p.idle[0] > PATIENCE * MEMBERS:
            p.idle[0] = 0
            for member in range(MEMBERS):
                p.values[member] = np.inf


@bare
def _below(state: Any, count: Any) -> Any:
    """Return a random whole number from 0 to ``count`` - 1."""
    return np.int64(uniform(state) * count)


@bare
def _shuffle(values: Any, count: Any, random: Any) -> None:
    """Put ``count`` random entries first, in random order."""
    for k in range(count):
        other = k + _below(random, len(values) - k)
        values[k], values[other] = values[other], values[k]


@bare
def _next_start(p: Any) -> None:
    """Write the start of the next round into ``places``."""
    n = len(p.places)
    _shuffle(p.order, n, p.random)
    for member in range(MEMBERS):
        if p.values[member] == np.inf:  # not full yet: anywhere
            copy(p.order, p.places)
            return
    first = _below(p.random, MEMBERS)
    second = (first + 1 + _below(p.random, MEMBERS - 1)) % MEMBERS
    if uniform(p.random) >= DISTURBED:
        _child(p, p.members[first], p.members[second])
        return
    copy(p.members[first if p.values[first] < p.values[second] else second], p.places)
    length = min(2 + _below(p.random, max(1, int(CIRCLE * n) - 1)), n)
    kept = p.places[p.order[0]]
    for k in range(length - 1):
        p.places[p.order[k]] = p.places[p.order[k + 1]]
    p.places[p.order[length - 1]] = kept


@bare
def _child(p: Any, one: Any, other: Any) -> None:
    """Write a child of two matchings into ``places``, object by object in random order.

    Each object gets the place that it has in both, or a free one of the two, or any free one.
    """
    n = len(one)
    free = p.found  # of no use between the rounds: whether a place is free
    for u in range(n):
        free[u] = 1
        p.places[u] = -1
    for u in range(n):
        if one[u] == other[u]:
            p.places[u] = one[u]
            free[one[u]] = 0
    for k in range(n):
        u = p.order[k]
        if p.places[u] >= 0:
            continue
        place, second = one[u], other[u]
        if free[second] and (not free[place] or random_bits(p.random) & np.uint64(1)):
            place = second
        if free[place]:
            p.places[u] = place
            free[place] = 0
    left = 0
    for k in range(n):
        u = p.order[k]
        if p.places[u] < 0:  # in random order, so that each gets any of the places
            while not free[left]:
                left += 1
            p.places[u] = left
            free[left] = 0


@bare
def _settle(p: Any, value: float) -> bool:
    """Take ``found`` in unless it is known, or worse than all; return whether it came in."""
    worst = 0
    for member in range(MEMBERS):
        if p.values[member] > p.values[worst]:
            worst = member
        if abs(p.values[member] - value) <= TOLERANCE * abs(value):
            same = True
            for u in range(len(p.found)):
                same = same and p.members[member, u] == p.found[u]
            if same:
                return False
    if value >= p.values[worst]:
        return False
    p.values[worst] = value
    copy(p.found, p.members[worst])
    return True
