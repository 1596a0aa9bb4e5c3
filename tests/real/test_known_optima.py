import pytest

from eutely.io.dd import read_dd
from eutely.solver import solve


@pytest.mark.parametrize(("name", "optimum"), [("motor1", -94.18), ("opengm1", -170.64)])
def test_known_optima_are_reached(data, name, optimum):
    [(_, _, problem)] = read_dd(data / "dd" / f"{name}.dd.xz")
    solution = solve(problem, bound=True)
    assert solution.objective == pytest.approx(optimum, abs=0.005)
    assert solution.bound <= solution.objective


def test_worms_are_matched_better_than_by_the_peer(data):
    peer = {(0, 1): -70832, (0, 2): -72104, (1, 2): -74232}
    for g, h, problem in read_dd(data / "dd" / "worms_3_small.dd.xz"):
        assert solve(problem).objective <= peer[g, h]
