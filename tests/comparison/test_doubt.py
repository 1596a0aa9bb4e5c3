"""Doubt: exchanged names, uncertain nuclei and uncertain absences are marked."""

import numpy as np

from eutely.comparison.design import Design, contrasts
from eutely.comparison.doubt import (
    exchanged_names,
    resting_on_doubt,
    uncertain_absences,
    uncertain_cells,
)
from eutely.comparison.effects import effects_of
from eutely.comparison.scores import scores_of

(CONTRAST,) = contrasts(["a", "b"], ["a"] * 10 + ["b"] * 10, list(map(str, range(20))), Design())
MEANS = 4.0 * np.stack(np.meshgrid(range(4), range(4), [0.0]), -1).reshape(-1, 3)
WEIGHTS = np.full((20, 16), 0.95)


def places() -> np.ndarray:
    return MEANS + 0.3 * np.random.default_rng(0).normal(size=(20, 16, 3))


def test_names_exchanged_in_one_group_are_no_certain_finding() -> None:
    values = places()
    values[14:, [5, 6]] = values[14:, [6, 5]]  # 6 of the 10 animals of the second group
    values[10:, 12] += np.array([0.0, 1.0, 2.0])  # a cell that really moved, towards nobody
    found = scores_of(values, WEIGHTS, CONTRAST.nuisance)
    q = np.where(np.isin(np.arange(16), [5, 6, 12]), 0.001, 0.9)
    unsure = np.ones(16, dtype=np.bool_)
    effects = effects_of(values, found, CONTRAST)
    doubtful = exchanged_names(effects, MEANS, q, q, unsure)
    assert np.flatnonzero(doubtful).tolist() == [5, 6]
    assert not exchanged_names(effects, MEANS, q, q, ~unsure).any()


def test_a_finding_of_uncertain_nuclei_alone_is_doubtful() -> None:
    values, weights = places(), WEIGHTS.copy()
    for cell in (3, 4):
        values[15:, cell] += 3.0
    weights[15:, 3] = 0.6
    found = scores_of(values, weights, CONTRAST.nuisance, clip=False)
    q = np.where(np.isin(np.arange(16), [3, 4]), 0.001, 0.9)
    doubtful = resting_on_doubt(values, found, weights, CONTRAST, q)
    assert np.flatnonzero(doubtful).tolist() == [3]


def test_cells_with_a_low_confidence_in_a_group_are_doubtful() -> None:
    weights = WEIGHTS.copy()
    weights[10:, 2] = 0.7
    assert np.flatnonzero(uncertain_cells(weights, CONTRAST)).tolist() == [2]
    assert not uncertain_cells(weights, CONTRAST, 0.6).any()


def test_an_absence_among_uncertain_neighbours_is_doubtful() -> None:
    counts, weights = np.ones((20, 16)), WEIGHTS.copy()
    counts[10:, [0, 15]] = 0.0
    weights[10:, [1, 4, 5]] = 0.4
    doubtful = uncertain_absences(counts, weights, MEANS, CONTRAST)
    assert doubtful[0]
    assert not doubtful[15]
