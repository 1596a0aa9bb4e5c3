import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eutely.arrays import pair_cost, pair_list
from eutely.atlas import Atlas
from eutely.costs.dense import dense_costs
from eutely.costs.gaussian import Costs, between, to_atlas
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
def test_candidates_are_near_or_among_the_cheapest(two, k_min, nu):
    left, right = two
    costs = Costs(7.0, (2.0, 0.5, 1.0), 1.5, 0.8, k_min, neighbours=0, nu_cen=nu)
    problem = between(left, right, CEN, RAD, OFF, costs)
    cen, rad = all_costs(left, right)
    total = 2.0 * (5 * np.log1p(cen / nu) if nu else cen) + 0.5 * rad
    allowed = (cen <= 1.5) & (rad <= 0.8)
    if k_min and total.size:
        allowed |= total <= np.sort(total, axis=1)[:, [min(k_min, len(right)) - 1]]
        allowed |= total <= np.sort(total, axis=0)[[min(k_min, len(left)) - 1]]
    p = problem.arrays
    assert np.array_equal(np.argwhere(allowed), np.stack([p.owners, p.labels], axis=1))
    assert np.allclose(p.linear, total[p.owners, p.labels] - 7.0)


@given(clouds())
def test_dense_costs_are_those_of_all_pairs(two):
    left, right = two
    cen, rad = all_costs(left, right)
    assert np.allclose(dense_costs(left, right, CEN, RAD, 7.0), cen + rad - 7.0)
    assert np.allclose(dense_costs(left, right, CEN, c0=7.0), cen - 7.0)


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
    costs = Costs(weights=(1.0, 1.0, 0.7), k_min=3, neighbours=3, nu_off=nu)
    p = between(left, right, CEN, RAD, OFF, costs).arrays
    first, second, values = pair_list(p)
    i, j, s, t = p.owners[first], p.owners[second], p.labels[first], p.labels[second]
    deviation = (left.centroids[i] - left.centroids[j]) - (right.centroids[s] - right.centroids[t])
    square = (deviation**2 / OFF).sum(-1)
    expected = 0.7 * (5 * np.log1p(square / nu) if nu else square)
    assert np.allclose(values, expected, rtol=1e-4, atol=1e-4)
    assert (s != t).all()


def test_a_weight_may_be_zero():
    left = Specimen.from_arrays("left", [[0, 0, 0]], radii=[[3, 3, 3]])
    right = Specimen.from_arrays("right", [[0, 0, 0], [90, 0, 0]], radii=[[1, 1, 1], [3, 3, 3]])
    p = between(left, right, CEN, RAD, OFF, Costs(weights=(0.0, 1.0, 1.0), k_min=1)).arrays
    assert p.labels.tolist() == [0, 1]
    assert p.linear[1] == -10000


def test_bad_variances_are_refused():
    cloud = Specimen.from_arrays("cloud", [[0, 0, 0]])
    with pytest.raises(ProblemError, match="variances 'cen'"):
        between(cloud, cloud, [1, 0, 1], RAD, OFF)


@pytest.mark.parametrize(
    "bad",
    [
        {"weights": (1.0, -1.0, 1.0)},
        {"tau_centroid": np.nan},
        {"k_min": -1},
        {"weights": (1.0, 1.0)},
    ],
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(ProblemError, match="expected three weights"):
        Costs(**bad)


def covariances(rng, count):
    roots = rng.normal(size=(count, 3, 3))
    return roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(3)


@st.composite
def atlases(draw):
    """Cells with covariances of their own, a random graph, some sizes unknown; and a specimen."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n = draw(st.integers(1, 10)), draw(st.integers(0, 12))
    first, second = np.triu_indices(m, 1)
    kept = rng.random(len(first)) < 0.5
    edges = np.stack([first[kept], second[kept]], axis=1)
    means = rng.normal(size=(m, 3)) * 2
    sizes = rng.random((m, 3))
    sizes[rng.random(m) < 0.3] = np.nan
    atlas = Atlas(
        means=means,
        covariances=covariances(rng, m),
        radii=sizes,
        radius_covariances=covariances(rng, m),
        seen=np.full(m, 3),
        rare=np.zeros(m, bool),
        edges=edges,
        offsets=means[edges[:, 0]] - means[edges[:, 1]] + rng.normal(size=(len(edges), 3)),
        offset_covariances=covariances(rng, len(edges)),
        neighbours=np.empty((m, 0)),
        predictors=np.empty((m, 0, 3, 3)),
        conditionals=covariances(rng, m),
        size=np.ones(2),
        specimens=3,
        weights=rng.random(3),
    )
    radii = rng.random((n, 3))
    radii[rng.random(n) < 0.2] = np.nan
    return atlas, rng.normal(size=(n, 3)) * 2, radii


def square(deviation, covariance):
    return float(deviation @ np.linalg.solve(covariance, deviation))


@given(atlases(), st.sampled_from([0, 2, 20]), st.sampled_from([0.0, 4.0]))
def test_an_atlas_costs_what_its_gaussians_say(given_, k_min, nu):
    atlas, points, radii = given_
    w = atlas.weights.tolist()
    costs = Costs(5.0, (w[0], w[1], w[2]), 1.5, 0.8, k_min, nu_cen=nu, nu_off=nu)
    problem = to_atlas(atlas, points, radii, costs)

    def robust(value):
        return (nu + 3) * np.log1p(value / nu) if nu else value

    total = np.empty((len(atlas), len(points)))
    allowed = np.zeros(total.shape, bool)
    for i in range(len(atlas)):
        for s in range(len(points)):
            cen = square(points[s] - atlas.means[i], atlas.covariances[i])
            rad = square(radii[s] - atlas.radii[i], atlas.radius_covariances[i])
            rad = 0.0 if np.isnan(rad) else rad
            total[i, s] = w[0] * robust(cen) + w[1] * rad
            allowed[i, s] = cen <= 1.5 and rad <= 0.8
    if k_min and total.size:
        allowed |= total <= np.sort(total, axis=1)[:, [min(k_min, len(points)) - 1]]
        allowed |= total <= np.sort(total, axis=0)[[min(k_min, len(atlas)) - 1]]
    p = problem.arrays
    assert np.array_equal(np.argwhere(allowed), np.stack([p.owners, p.labels], axis=1))
    assert np.allclose(p.linear, total[p.owners, p.labels] - 5.0)

    expected = {}
    for e, (i, j) in enumerate(atlas.edges.tolist()):
        for s, t in np.argwhere(np.ones((len(points), len(points)))).tolist():
            deviation = atlas.offsets[e] - (points[s] - points[t])
            expected[i, s, j, t] = w[2] * robust(square(deviation, atlas.offset_covariances[e]))
    for a in range(len(p.labels)):
        for b in range(len(p.labels)):
            i, s, j, t = p.owners[a], p.labels[a], p.owners[b], p.labels[b]
            if i < j and s != t:
                cost = pair_cost(p, a, b)
                assert cost == pytest.approx(expected.get((i, s, j, t), 0), rel=1e-4, abs=1e-4)
                assert cost == pair_cost(p, b, a)


@given(atlases())
def test_without_sizes_or_offsets_only_positions_count(given_):
    atlas, points, _ = given_
    p = to_atlas(atlas, points, costs=Costs(0.0, k_min=20, neighbours=0)).arrays
    assert len(p.edge_ends) == 0
    for a in range(len(p.labels)):
        i = p.owners[a]
        deviation = points[p.labels[a]] - atlas.means[i]
        assert p.linear[a] == pytest.approx(square(deviation, atlas.covariances[i]))


@given(atlases())
def test_points_that_are_none_are_refused(given_):
    atlas, points, _ = given_
    with pytest.raises(ProblemError, match="centroids"):
        to_atlas(atlas, points[:, :2])
    with pytest.raises(ProblemError, match="centroids"):
        to_atlas(atlas, [[0.0, 0.0, np.nan]])
    with pytest.raises(ProblemError, match="radii"):
        to_atlas(atlas, np.zeros((2, 3)), radii=np.zeros((1, 3)))
