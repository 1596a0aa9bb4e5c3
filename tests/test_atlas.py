"""The noun Atlas and its file."""

import pickle
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from eutely.atlas import Atlas
from eutely.errors import AtlasError, ReadError
from eutely.fit.model import model_of_atlas
from eutely.io.atlas import SCHEMA, checksum, read_atlas, write_atlas
from eutely.io.exchange import export_atlas, read_exported


def pair() -> Atlas:
    """Two cells that predict each other: A at 0, B at (5, 0, 0)."""
    return Atlas(
        means=np.array([[0.0, 0, 0], [5, 0, 0]]),
        covariances=np.array([np.eye(3)] * 2),
        radii=np.full((2, 3), np.nan),
        radius_covariances=np.full((2, 3, 3), np.nan),
        seen=np.array([3, 2]),
        rare=np.array([False, True]),
        edges=np.array([[0, 1]]),
        offsets=np.array([[-5.0, 0, 0]]),
        offset_covariances=np.eye(3)[None],
        neighbours=np.array([[1], [0]]),
        predictors=np.full((2, 1, 3, 3), 0.5),
        conditionals=np.array([np.eye(3) / 2] * 2),
        size=np.array([2.0, 1.0]),
        specimens=3,
        names=("A", ""),
        unit="um",
        provenance={"inputs": "none"},
    )


def test_a_file_gives_the_atlas_back(tmp_path: Path) -> None:
    first, second = tmp_path / "first.h5", tmp_path / "second.h5"
    write_atlas(pair(), first)
    again = read_atlas(first)
    write_atlas(again, second)
    assert first.read_bytes() == second.read_bytes()
    assert again.names == ("A", "")
    assert again.unit == "um"
    assert again.provenance == {"inputs": "none"}
    np.testing.assert_array_equal(again.predictors, pair().predictors)


def test_a_file_remembers_how_specimens_are_matched(tmp_path: Path) -> None:
    write_atlas(replace(pair(), model="offsets", c0=50.0, k_min=3, tau_radius=2.5), tmp_path / "a")
    again = read_atlas(tmp_path / "a")
    assert (again.model, again.c0, again.k_min) == ("offsets", 50.0, 3)
    assert (again.tau_centroid, again.tau_radius) == (8.0, 2.5)


def imaged() -> Atlas:
    """An atlas of specimens of two origins; on Mondays the second cell is hardly ever listed."""
    return replace(
        pair(),
        origins=("Friday", "Monday"),
        hands=np.array([[2, 0], [0, 1]]),
        features=("red",),
        feature_means=np.array([[0.5], [1.5]]),
        origin_presence=np.array([[1.0, 1.0], [0.9, 0.1]]),
        origin_scores=np.array([[[0.4], [0.6]], [[1.25], [1.75]]]),
    )


def test_a_file_remembers_the_handedness_of_origins(tmp_path: Path) -> None:
    write_atlas(imaged(), tmp_path / "a")
    export_atlas(imaged(), tmp_path / "open")
    travelled = pickle.loads(pickle.dumps(imaged()))
    for again in (read_atlas(tmp_path / "a"), read_exported(tmp_path / "open"), travelled):
        assert again.origins == ("Friday", "Monday")
        assert [again.hands_of(one) for one in ("Friday", "Monday", "")] == [(2, 0), (0, 1), (0, 0)]
        assert checksum(again) == checksum(imaged()) != checksum(pair())
        np.testing.assert_array_equal(again.origin_presence, imaged().origin_presence)
        np.testing.assert_array_equal(again.origin_scores, imaged().origin_scores)


def test_origins_without_features_are_restored(tmp_path: Path) -> None:
    bare = replace(
        imaged(), features=(), feature_means=np.zeros((2, 0)), origin_scores=np.zeros((2, 2, 0))
    )
    write_atlas(bare, tmp_path / "a")
    export_atlas(bare, tmp_path / "open")
    for again in (read_atlas(tmp_path / "a"), read_exported(tmp_path / "open")):
        assert checksum(again) == checksum(bare)
        assert again.of_origin("Monday").origin_presence.ravel().tolist() == [1.0, 0.1]


def test_an_atlas_of_one_origin_has_its_cells_and_features() -> None:
    monday = imaged().of_origin("Monday")
    assert monday.origins == ("Monday",)
    assert monday.hands_of("Monday") == (0, 1)
    assert monday.feature_means.ravel().tolist() == [0.6, 1.75]
    assert model_of_atlas(monday).background.presence.tolist() == [1.0, 0.1]
    of_all = model_of_atlas(imaged()).background.presence
    np.testing.assert_allclose(of_all, [1.0, 2 / (0.95 * 2.5)])
    unknown = imaged().of_origin("Tuesday")
    np.testing.assert_array_equal(unknown.feature_means, imaged().feature_means)
    assert pair().of_origin("Monday").origins == ()


def test_some_cells_of_an_atlas_keep_what_origins_say_of_them() -> None:
    second = imaged().take([1])
    assert second.origin_presence.tolist() == [[0.9, 0.1]]
    assert second.of_origin("Friday").feature_means.tolist() == [[1.25]]


def test_a_file_from_before_that_is_matched_as_then(tmp_path: Path) -> None:
    write_atlas(pair(), tmp_path / "a")
    with h5py.File(tmp_path / "a", "r+") as file:
        for key in ("model", "c0", "least", "tau_centroid", "tau_radius"):
            del file.attrs[key]
    assert read_atlas(tmp_path / "a").model == "joint"


def test_an_atlas_can_travel_to_a_worker() -> None:
    again = pickle.loads(pickle.dumps(pair()))
    assert again.provenance == {"inputs": "none"}
    np.testing.assert_array_equal(again.means, pair().means)


def test_an_atlas_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        pair().means[0, 0] = 1


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("means", np.zeros((2, 2)), "'means' has shape"),
        ("model", "guess", "expected one of joint, offsets"),
        ("c0", 0.0, "'c0' is 0, expected"),
        ("covariances", np.zeros((2, 3, 3)), "positive definite"),
        ("edges", np.array([[0, 2]]), "numbers of its 2 cells"),
        ("names", ("A",), "1 names for 2 cells"),
        ("origins", ("Monday",), "'hands' has shape"),
        ("origin_presence", np.ones((2, 1)), "'origin_presence' has shape"),
    ],
)
def test_errors_name_what_is_wrong(key: str, value: object, message: str) -> None:
    with pytest.raises(AtlasError, match=message):
        replace(pair(), **{key: value})


def test_a_newer_schema_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "atlas.h5"
    write_atlas(pair(), path)
    with h5py.File(path, "a") as file:
        file.attrs["schema"] = SCHEMA + 1
    with pytest.raises(ReadError, match=f"schema {SCHEMA + 1}, expected at most {SCHEMA}"):
        read_atlas(path)


def test_other_files_are_not_atlases(tmp_path: Path) -> None:
    path = tmp_path / "atlas.h5"
    with pytest.raises(ReadError, match="no such file"):
        read_atlas(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ReadError, match="not an atlas"):
        read_atlas(path)
    with h5py.File(path, "w"):
        pass
    with pytest.raises(ReadError, match="no atlas"):
        read_atlas(path)
