import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.arrays import pair_list
from eutely.costs.gaussian import Costs, between
from eutely.costs.grid import neighbour_graph
from eutely.errors import ProblemError
from eutely.specimen import Specimen

CEN, RAD, OFF = np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 1.0])


@st.composite
def clouds(draw):
    """Two clouds of any size, sometimes flat, with some radii unknown."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    stretch = np.array(draw(st.sampled_from([(3.0, 3.0, 3.0), (20.0, 1.0, 1.0), (5.0, 5.0, 0.0)])))

    def cloud(name):
        n = draw(st.integers(0, 25))
        radii = rng.random((n, 3)) * 2
        radii[rng.random(n) < 0.2] = np.nan
        return Specimen.from_arrays(name, rng.normal(size=(n, 3)) * stretch, radii=radii)

    return cloud("left"), cloud("right")


def all_costs(left, right):
    """Squared distances of position and size of all pairs, by definition."""
    cen = ((left.centroids[:, None] - right.centroids) ** 2 / CEN).sum(-1)
    rad = np.nan_to_num(((left.radii[:, None] - right.radii) ** 2 / RAD).sum(-1))
    return cen, rad


@given(clouds(), st.sampled_from([0, 1, 4]), st.sampled_from([0.0, 2.0]))
def test_candidates_are_near_or_among_the_cheapest(two, least, nu):
    left, right = two
    costs = Costs(7.0, (2.0, 0.5, 1.0), 1.5, 0.8, least, neighbours=0, nu_cen=nu)
    problem = between(left, right, CEN, RAD, OFF, costs)
    cen, rad = all_costs(left, right)
    total = 2.0 * (5 * np.log1p(cen / nu) if nu else cen) + 0.5 * rad
    allowed = (cen <= 1.5) & (rad <= 0.8)
    if least and total.size:
        allowed |= total <= np.sort(total, axis=1)[:, [min(least, len(right)) - 1]]
        allowed |= total <= np.sort(total, axis=0)[[min(least, len(left)) - 1]]
    p = problem.arrays
    assert np.array_equal(np.argwhere(allowed), np.stack([p.owners, p.labels], axis=1))
    assert np.allclose(p.linear, total[p.owners, p.labels] - 7.0)


@given(clouds(), st.integers(0, 5))
def test_neighbours_are_the_nearest_and_symmetric(two, k):
    points = two[0].centroids
    starts, ends = neighbour_graph(points, k)
    expected = np.zeros((len(points), len(points)), dtype=bool)
    if len(points) > 1:
        distances = ((points[:, None] - points) ** 2).sum(-1)
        np.fill_diagonal(distances, np.inf)
        np.put_along_axis(expected, np.argsort(distances, axis=1)[:, :k], True, axis=1)
        np.fill_diagonal(expected, False)
    first, second = np.nonzero(expected | expected.T)
    assert np.array_equal(ends, second)
    assert np.array_equal(np.repeat(np.arange(len(points)), np.diff(starts)), first)


@given(clouds(), st.sampled_from([0.0, 2.0]))
def test_offsets_cost_what_equation_4_says(two, nu):
    left, right = two
    costs = Costs(weights=(1.0, 1.0, 0.7), least=3, neighbours=3, nu_off=nu)
    p = between(left, right, CEN, RAD, OFF, costs).arrays
    first, second, values = pair_list(p)
    i, j, s, t = p.owners[first], p.owners[second], p.labels[first], p.labels[second]
    deviation = (left.centroids[i] - left.centroids[j]) - (right.centroids[s] - right.centroids[t])
    square = (deviation**2 / OFF).sum(-1)
    expected = 0.7 * (5 * np.log1p(square / nu) if nu else square)
    assert np.allclose(values, expected, rtol=1e-4, atol=1e-4)
    assert (s != t).all()


def test_bad_variances_are_refused():
    cloud = Specimen.from_arrays("cloud", [[0, 0, 0]])
    with pytest.raises(ProblemError, match="variances 'cen'"):
        between(cloud, cloud, [1, 0, 1], RAD, OFF)
