import numpy as np
import pytest

from eutely import Specimen
from eutely.errors import SpecimenError

#   o---o
#   |   |     four nuclei in a unit square, z = 0
#   o---o
SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=float)


def test_arrays_are_locked_copies():
    points = SQUARE.copy()
    square = Specimen.from_arrays("square", points)
    points[0] = 9
    assert square.centroids[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        square.centroids[0, 0] = 9


def test_radii_are_sorted_and_broadcast():
    radii = np.array([[1, 3, 2]] * 4)
    square = Specimen.from_arrays("square", SQUARE, radii=radii)
    assert square.radii.tolist() == [[3, 2, 1]] * 4
    assert Specimen.from_arrays("square", SQUARE, radii=[1, 2, 3, 4]).radii[2].tolist() == [3] * 3
    assert np.isnan(Specimen.from_arrays("square", SQUARE).radii).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"centroids": SQUARE * [np.nan, 1, 1]}, "NaN or infinite"),
        ({"centroids": SQUARE + [np.inf, 0, 0]}, "NaN or infinite"),
        ({"centroids": SQUARE[:, :2]}, r"shape \(4, 2\)"),
        ({"ids": [1, 2, 2, 3]}, "id 2 occurs 2 times"),
        ({"ids": [0.5, 1, 2, 3]}, "whole numbers"),
        ({"names": ["a"]}, "1 names for 4 nuclei"),
        ({"radii": [-1, 1, 1, 1]}, "negative radii"),
        ({"features": {"red": [1.0]}}, "feature 'red'"),
        ({"name": ""}, "give it a name"),
    ],
)
def test_bad_values_are_refused(change, words):
    good = {"name": "square", "centroids": SQUARE}
    with pytest.raises(SpecimenError, match=words):
        Specimen.from_arrays(**{**good, **change})


def test_take_reorders_everything():
    square = Specimen.from_arrays(
        "square", SQUARE, ids=[5, 6, 7, 8], names=list("abcd"), features={"red": [1.0, 2, 3, 4]}
    )
    part = square.take([2, 0])
    assert part.ids.tolist() == [7, 5]
    assert part.names == ("c", "a")
    assert part.features["red"].tolist() == [3, 1]
    assert part.centroids.tolist() == [[1, 1, 0], [0, 0, 0]]
    assert square.take(square.ids > 6).names == ("c", "d")


def test_equality_is_by_value_and_nan_is_equal_to_nan():
    assert Specimen.from_arrays("square", SQUARE) == Specimen.from_arrays("square", SQUARE)
    assert Specimen.from_arrays("square", SQUARE) != Specimen.from_arrays("other", SQUARE)
    assert Specimen.from_arrays("square", SQUARE) != Specimen.from_arrays("square", SQUARE + 1)
    assert Specimen.from_arrays("square", SQUARE).take([0]) != Specimen.from_arrays(
        "square", SQUARE
    )


def test_moved_turns_axes_along():
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    square = Specimen.from_arrays("square", SQUARE, axes=np.tile(np.eye(3), (4, 1, 1)))
    after = square.moved(turn, [1, 0, 0])
    assert after.centroids[1].tolist() == [1, 1, 0]
    assert after.axes is not None
    assert after.axes[0, 0].tolist() == [0, 1, 0]


def test_mapped_makes_of_ellipsoids_what_the_map_makes_of_them():
    rng = np.random.default_rng(0)
    matrix, axes = rng.normal(size=(3, 3)), np.linalg.qr(rng.normal(size=(4, 3, 3)))[0]
    axes[3] = np.nan
    before = Specimen.from_arrays("square", SQUARE, radii=[[3.0, 2, 1]] * 4, axes=axes)
    after = before.mapped(matrix, [1, 2, 3])
    assert after.axes is not None
    assert np.allclose(after.centroids, SQUARE @ matrix.T + [1, 2, 3])
    # A point on the surface, a^T diag(r) u for a unit vector u, lands on the new surface.
    unit = rng.normal(size=3)
    unit /= np.linalg.norm(unit)
    for index in range(3):
        point = matrix @ (axes[index].T @ (before.radii[index] * unit))
        inside = after.axes[index] @ point / after.radii[index]
        assert np.isclose(np.linalg.norm(inside), 1)
    assert (np.diff(after.radii, axis=1) <= 0).all()
    assert np.isnan(after.axes[3]).all()
    assert np.allclose(after.radii.prod(axis=1), 6 * abs(np.linalg.det(matrix)))
