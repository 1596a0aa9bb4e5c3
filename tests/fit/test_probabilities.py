"""Confidence and alternatives of a nucleus come from one distribution."""

from __future__ import annotations

import numpy as np
import pytest

import eutely
from eutely.annotation import Annotation
from eutely.solver.softassign import Rules, centres_of, soft_assign


@pytest.fixture(scope="module")
def annotations() -> list[Annotation]:
    cohort = eutely.simulate(specimens=6, cells=60, seed=4, missing=0.05, spurious=0.05, shift=1.0)
    built = eutely.build(cohort, supervised=True, workers=1)
    new = eutely.simulate(3, cells=60, seed=9, missing=0.05, spurious=0.05, shift=1.0)
    return eutely.annotate(built.atlas, new, workers=1)


def test_probabilities_of_a_nucleus_sum_to_at_most_one(annotations: list[Annotation]) -> None:
    for annotation in annotations:
        total = [sum(share for _, share in others) for others in annotation.alternatives]
        assert (np.nan_to_num(annotation.confidence) + total <= 1 + 1e-9).all()
        assert (np.nan_to_num(annotation.confidence) >= 0).all()


def test_the_chosen_cell_is_the_likeliest_unless_another_nucleus_has_it(
    annotations: list[Annotation],
) -> None:
    for annotation in annotations:
        taken = set(annotation.cells[annotation.cells >= 0].tolist())
        for contested, others in zip(annotation.contested, annotation.alternatives, strict=True):
            if contested:
                assert others[0][0] in taken
        assert annotation.contested.mean() < 0.05


def test_converged_shares_are_those_of_all_permutations() -> None:
    """Two cells, two nuclei: the likelier order decides, as softly as balancing has it."""
    places = np.array([[0.0, 0, 0], [1.0, 0, 0]])
    points = np.array([[0.2, 0, 0], [0.9, 0, 0]])
    centres = centres_of(np.repeat(0.25 * np.eye(3)[None], 2, axis=0))
    shares = soft_assign(places, centres, points, Rules(c0=60.0), converged=True)
    table = np.zeros((2, 2))
    table[np.repeat([0, 1], np.diff(shares.starts)), shares.points] = shares.values
    costs = 0.5 * ((places[:, None] - points[None]) ** 2).sum(axis=2) / 0.25
    gain = costs[0, 1] + costs[1, 0] - costs[0, 0] - costs[1, 1]
    expected = 1 / (1 + np.exp(-gain / 2))
    np.testing.assert_allclose(np.diagonal(table), expected, atol=2e-3)
    np.testing.assert_allclose(table.sum(axis=0), 1.0, atol=2e-3)
