"""Records come back as they were stored, in the same bytes each time, or not at all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from eutely.errors import ReadError, WriteError
from eutely.record import Record, digest
from eutely.store.files import read_record, write_record

NAMES = st.text("abcdefghij_0123", min_size=1, max_size=8)
DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(),
    hnp.floating_dtypes(sizes=(32, 64)),
    hnp.unicode_string_dtypes(max_len=5),
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, ARRAYS, max_size=3), st.dictionaries(st.text(), PLAIN, max_size=3))
def test_a_record_comes_back(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, Any], metadata: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("record") / "a.npz"
    record = Record(arrays, metadata)
    write_record(path, record)
    back = read_record(path)
    assert back == record
    assert back.metadata == metadata
    assert list(back.arrays) == sorted(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(back.arrays[name], array)
        assert back.arrays[name].shape == array.shape
        assert back.arrays[name].dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
    first = path.read_bytes()
    write_record(path, back)
    assert path.read_bytes() == first


def test_bytes_do_not_depend_on_order_or_layout(tmp_path: Path) -> None:
    table = np.arange(6.0).reshape(2, 3)
    one = Record({"a": table, "b": np.ones(2)}, {"x": 1, "y": 2})
    two = Record({"b": np.ones(2, ">f8"), "a": np.asfortranarray(table)}, {"y": 2, "x": 1})
    write_record(tmp_path / "one.npz", one)
    write_record(tmp_path / "two.npz", two)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_numpy_opens_it_too(tmp_path: Path) -> None:
    write_record(tmp_path / "a.npz", Record({"table": np.arange(3)}))
    with np.load(tmp_path / "a.npz") as stored:
        assert stored["table"].tolist() == [0, 1, 2]


def test_a_damaged_record_never_passes(tmp_path: Path) -> None:
    """Every byte flipped, every length cut: an error, or no difference at all."""
    path = tmp_path / "a.npz"
    record = Record({"table": np.arange(4, dtype=np.int16)}, {"x": [1, "two"]})
    write_record(path, record)
    whole = path.read_bytes()
    noticed = 0
    for position in range(len(whole)):
        for damaged in (
            whole[:position],
            whole[:position] + bytes([whole[position] ^ 0x41]) + whole[position + 1 :],
        ):
            path.write_bytes(damaged)
            try:
                assert read_record(path) == record
            except ReadError:
                noticed += 1
    assert noticed > len(whole)


def test_an_absent_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="No such file"):
        read_record(tmp_path / "a.npz")


def test_python_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="without pickle"):
        Record({"a": np.array([{}])})
    with pytest.raises(TypeError, match="plain data"):
        Record({}, {"a": np.zeros(2)})


def test_digests_tell_values_apart() -> None:
    values: list[object] = [
        np.zeros(2),
        np.zeros(3),
        np.zeros((2, 1)),
        np.zeros(2, np.float32),
        np.zeros(2, np.int64),
        [0.0, 0.0],
        [0, 0],
        {"a": np.zeros(2)},
        {"b": np.zeros(2)},
        "a",
        None,
        True,
    ]
    assert len({digest(value) for value in values}) == len(values)
    assert digest({"a": np.float64(0.5), "b": (1, 2)}) == digest({"b": [1, 2], "a": 0.5})


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WriteError):
        write_record(tmp_path / "file" / "a.npz", Record())
