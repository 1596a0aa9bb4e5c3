"""The c0 of cells, against likelihoods computed by hand."""

import numpy as np
import pytest
from scipy.stats import multivariate_t

from eutely.fit.rates import LOWEST_RATE, Background, Rates, most_pairs
from eutely.solver.softassign import centres_of, squared_distances, student_costs

FREEDOM = 8.0


def test_a_match_pays_while_it_is_more_likely_than_both_apart() -> None:
    random = np.random.default_rng(0)
    means = 10 * random.random((20, 3))
    background = Background.of(means)
    rates = Rates(0.1, 0.2)
    covariance = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 3.0]])
    centres = centres_of(covariance[None])
    c0 = background.c0(rates, FREEDOM)[0]
    for point in means[0] + 6 * random.normal(size=(30, 3)):
        squares = squared_distances(means[:1], centres.whitening, point[None])
        cost = student_costs(squares, centres.heights, FREEDOM)
        density = multivariate_t(means[0], covariance, df=FREEDOM).pdf(point)
        together = 0.9 * density
        apart = 0.1 * 0.2 * np.exp(background.density)
        assert (cost[0] < c0) == (together > apart)


def test_rare_cells_are_left_out_sooner() -> None:
    background = Background.of(np.eye(3), np.array([100, 100, 5]))
    costs = background.c0(Rates(0.05, 0.05), FREEDOM)
    assert costs[0] == costs[1] > costs[2]


@pytest.mark.parametrize(
    ("matched", "count", "rates"),
    [
        (200, 200, (LOWEST_RATE, LOWEST_RATE)),
        # One pair in a hundred may be a cell that is far off; three where nothing is lacking.
        (194, 200, (LOWEST_RATE, LOWEST_RATE)),
        (188, 190, (0.05, LOWEST_RATE)),
        (180, 200, (0.1, 0.1)),
        (180, 190, (0.1, 0.05)),
        (190, 190, (0.05, LOWEST_RATE)),
        (200, 210, (LOWEST_RATE, 0.05)),
    ],
)
def test_rates_follow_from_a_matching(matched: int, count: int, rates: tuple[float, float]) -> None:
    means = np.random.default_rng(1).random((200, 3))
    nuclei = np.where(np.arange(200) < matched, np.arange(200), -1).astype(np.int32)
    assert Background.of(means).rates(nuclei, count) == pytest.approx(rates)


def test_where_all_have_as_many_nuclei_nothing_is_left_out() -> None:
    assert most_pairs(np.array([558, 558, 558, 552])) == 0
    assert most_pairs(np.array([530, 560, 520, 541])) > 100
    means = np.random.default_rng(1).random((200, 3))
    background = Background.of(means, most=0.0)
    assert background.start(200) == (LOWEST_RATE, LOWEST_RATE)
    assert background.rates(np.full(200, -1, np.int32), 200) == (LOWEST_RATE, LOWEST_RATE)
    # What a specimen lacks by its number of nuclei is missing all the same.
    assert background.start(190).missing == pytest.approx(0.05)
