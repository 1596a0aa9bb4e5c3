"""Pairs that are matched many times: the same candidates and problems as found anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely import Specimen
from eutely.costs import repeated
from eutely.costs.candidates import Limits
from eutely.costs.gaussian import Costs, between
from eutely.costs.repeated import repeated_pair
from eutely.problem import PairProblem

WIDEST = Limits(1.0, 1.0, 0.0, 6.0, 4.0, 9)
CEN, RAD, OFF = (1.0, 0.5, 2.0), (0.3, 0.4, 0.2), (0.5, 0.7, 1.1)


def pair(seed: int, left: int, right: int, *, whole: bool = False) -> tuple[Specimen, Specimen]:
    """Return two specimens; some radii are unknown. Whole coordinates give equal costs."""
    random = np.random.default_rng(seed)
    sides = []
    for number, count in enumerate((left, right)):
        points = random.normal(size=(count, 3)) * [8.0, 2.0, 2.0]
        radii = np.sort(random.uniform(0.5, 2.0, size=(count, 3)))[:, ::-1]
        radii[random.uniform(size=count) < 0.2] = np.nan
        places = points.round() if whole else points
        sides.append(Specimen.from_arrays(str(number), places, radii=radii))
    return sides[0], sides[1]


def same(one: PairProblem, other: PairProblem) -> bool:
    """Return whether all arrays agree, bit by bit."""
    return all(map(np.array_equal, one.arrays, other.arrays))


@given(
    st.integers(0, 99),
    st.integers(1, 40),
    st.integers(1, 40),
    st.booleans(),
    st.floats(0.0, 6.0),
    st.floats(0.0, 4.0),
    st.integers(1, 9),
    st.sampled_from([0, 3]),
)
def test_same_problem_as_anew(
    seed: int,
    left: int,
    right: int,
    whole: bool,
    tau_centroid: float,
    tau_radius: float,
    k_min: int,
    neighbours: int,
) -> None:
    sides = pair(seed, left, right, whole=whole)
    costs = Costs(5.0, (1.0, 1.0, 1.0), tau_centroid, tau_radius, k_min, neighbours)
    known = repeated_pair(*sides, CEN, RAD, WIDEST)
    assert known.ranked is not None
    anew = between(*sides, CEN, RAD, OFF, costs)
    assert same(known.problem(OFF, costs), anew)
    room = np.full(10**6, np.nan, np.float32)
    in_room = known.problem(OFF, costs, room)
    assert same(in_room, anew)
    assert np.shares_memory(in_room.arrays.values, room) or not len(in_room.arrays.values)


def test_limits_beyond_the_widest_are_searched() -> None:
    sides = pair(4, 25, 25)
    known = repeated_pair(*sides, CEN, RAD, WIDEST)
    for costs in (Costs(k_min=14), Costs(tau_centroid=9.0, k_min=5), Costs(nu_cen=3.0, k_min=5)):
        assert same(known.problem(OFF, costs), between(*sides, CEN, RAD, OFF, costs))


def test_memory_that_is_too_short_is_not_used() -> None:
    sides = pair(1, 20, 20)
    known = repeated_pair(*sides, CEN, RAD, WIDEST)
    assert same(
        known.problem(OFF, Costs(), np.zeros(3, np.float32)), between(*sides, CEN, RAD, OFF)
    )


@pytest.mark.parametrize(("name", "value"), [("MOST", 2), ("SMALL", 10)])
def test_too_many_candidates_are_searched_each_time(
    name: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = pair(2, 30, 30)
    monkeypatch.setattr(repeated, name, value)
    known = repeated_pair(*sides, (1.1, 0.5, 2.0), RAD, WIDEST)
    assert known.ranked is None
    costs = Costs(tau_centroid=2.0, tau_radius=1.0, k_min=5)
    assert same(known.problem(OFF, costs), between(*sides, (1.1, 0.5, 2.0), RAD, OFF, costs))


def test_a_side_without_nuclei() -> None:
    for count in ((0, 4), (4, 0)):
        sides = pair(3, *count)
        known = repeated_pair(*sides, CEN, RAD, WIDEST)
        assert same(known.problem(OFF, Costs()), between(*sides, CEN, RAD, OFF))
