"""The noun Parameters."""

import json

import numpy as np
import pytest

from eutely.errors import ProblemError
from eutely.learned import Parameters

WORMS = Parameters((130, 43, 28), (156, 200, 174), (172, 32, 44), 14, 1.95, 0.15)


def test_survives_json() -> None:
    assert Parameters.from_dict(json.loads(json.dumps(WORMS.as_dict()))) == WORMS


def test_unlearned_are_identities_in_units_of_the_spacing() -> None:
    assert Parameters.unlearned().centroids == (1.0, 1.0, 1.0)
    assert Parameters.unlearned(3.0).offsets == (9.0, 9.0, 9.0)


def test_weights_are_the_norms_of_the_diagonals() -> None:
    weights = WORMS.weights()
    assert np.linalg.norm(weights) == pytest.approx(np.sqrt(3))
    assert weights[1] / weights[0] == pytest.approx(
        np.linalg.norm(WORMS.radii) / np.linalg.norm(WORMS.centroids)
    )


def test_scaling_keeps_ratios_and_what_is_allowed() -> None:
    twice = WORMS.scaled(2.0)
    assert twice.offsets == (344, 64, 88)
    assert twice.tau_centroid * twice.centroids[0] == pytest.approx(1.95 * 130)
    np.testing.assert_allclose(twice.weights(), WORMS.weights())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"centroids": (1, 2)}, "centroids"),
        ({"radii": (1, 0, 1)}, "radii"),
        ({"offsets": (1, 1, float("nan"))}, "offsets"),
        ({"k_min": 0}, "k_min"),
        ({"k_min": 2.5}, "k_min"),
        ({"tau_radius": -1}, "tau_radius"),
        ({"tau_centroid": float("inf")}, "tau_centroid"),
        ({"temperature": 1}, "temperature"),
    ],
)
def test_nonsense_is_refused_by_name(change: dict[str, object], named: str) -> None:
    with pytest.raises(ProblemError, match=named):
        Parameters.from_dict(WORMS.as_dict() | change)
