"""Records come back as they were stored, in the same bytes each time, or not at all."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from eutely.cells import Cells
from eutely.errors import ReadError, WriteError
from eutely.evaluation import Evaluation, Score
from eutely.frame import Body, Frame, Posed
from eutely.learned import Learned, Parameters, Trial
from eutely.record import Record, digest, pack, unpack
from eutely.results import Report, Shown
from eutely.specimen import Specimen
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


FLOATS = st.floats(allow_nan=True, width=64)
COUNTS = st.integers(0, 4)
WORDS = st.text(max_size=4)


def table(rows: int, *shape: int) -> st.SearchStrategy[Any]:
    """Draw an array (rows, *shape) of any floats, NaN too."""
    return hnp.arrays(np.float64, (rows, *shape), elements=FLOATS)


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    return Body(draw(table(2)), draw(FLOATS), draw(st.booleans()))


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """Draw specimens of different, perhaps no nuclei in one to three poses; perhaps none."""
    features = draw(st.lists(WORDS, max_size=2).map(tuple))
    specimens = []
    for count in draw(st.lists(COUNTS, max_size=3)):
        poses = tuple(draw(table(count, 3)) for _ in range(draw(st.integers(1, 3))))
        specimens.append(Posed(poses, draw(table(count, 3)), draw(table(count, len(features)))))
    return Frame(tuple(specimens), draw(bodies()), features)


@st.composite
def all_cells(draw: st.DrawFn) -> Cells:
    counts = draw(st.lists(COUNTS, min_size=1, max_size=3))
    cells = draw(COUNTS)
    numbers = hnp.arrays(np.int32, cells, elements=st.integers(-1, 3))
    return Cells(
        tuple(draw(table(count, 3)) for count in counts),
        tuple(draw(table(count, 3)) for count in counts),
        tuple(draw(numbers) for _ in counts),
        tuple(draw(table(count, 2)) for count in counts),
        draw(bodies()),
    )


@st.composite
def specimens(draw: st.DrawFn) -> Specimen:
    """Draw nuclei with or without axes, features and names."""
    count = draw(st.integers(1, 4))
    places = hnp.arrays(np.float64, (count, 3), elements=st.floats(-9, 9))
    directions = np.tile(np.eye(3), (count, 1, 1))
    return Specimen(
        draw(st.text("abc", min_size=1, max_size=3)),
        np.arange(count) + draw(st.integers(0, 9)),
        draw(places),
        np.full((count, 3), np.nan),
        draw(st.none() | st.just(directions)),
        draw(st.dictionaries(st.text("abc.", min_size=1, max_size=4), table(count), max_size=3)),
        draw(st.none() | st.just(tuple("ABCD"[:count]))),
    )


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    values = st.dictionaries(WORDS, st.integers() | st.floats(allow_nan=False), max_size=3)
    losses = st.lists(st.floats(allow_nan=False), min_size=1, max_size=2).map(tuple)
    return Trial(draw(WORDS), draw(COUNTS), draw(values), draw(losses))


@st.composite
def lessons(draw: st.DrawFn) -> Learned:
    variances = st.tuples(*[st.floats(1e-3, 1e3)] * 3)
    parameters = Parameters(draw(variances), draw(variances), draw(variances), 3, 0.5)
    chosen = st.dictionaries(WORDS, COUNTS, max_size=2)
    several = st.lists(trials(), max_size=3).map(tuple)
    numbers = st.lists(COUNTS, max_size=3).map(tuple)
    return Learned(parameters, draw(numbers), draw(several), draw(chosen))


@st.composite
def shown(draw: st.DrawFn) -> Shown:
    count = draw(COUNTS)
    others = st.lists(st.tuples(COUNTS, st.floats(0, 1)), max_size=2).map(tuple)
    return Shown(
        draw(WORDS),
        draw(table(count, 3)),
        np.full(count, -1, np.int32),
        draw(table(count)),
        np.arange(count),
        draw(st.just(()) | st.just(("x",) * count)),
        draw(st.just(()) | st.tuples(*[others] * count)),
        draw(FLOATS),
        draw(WORDS),
    )


@st.composite
def reports(draw: st.DrawFn) -> Report:
    scores = st.lists(st.builds(Score, WORDS, COUNTS, COUNTS), max_size=2).map(tuple)
    return Report(
        draw(st.sampled_from(["build", "annotate", "atlas"])),
        draw(st.lists(shown(), max_size=3).map(tuple)),
        draw(st.lists(trials(), max_size=2).map(tuple)),
        draw(st.dictionaries(WORDS, COUNTS, max_size=2)),
        draw(st.dictionaries(WORDS, PLAIN, max_size=2)),
        draw(st.lists(st.tuples(WORDS, st.floats(0, 9)), max_size=2).map(tuple)),
        evaluation=draw(st.none() | st.builds(Evaluation, scores)),
    )


NOUNS: dict[Any, st.SearchStrategy[Any]] = {
    Body: bodies(),
    Frame: frames(),
    Cells: all_cells(),
    Specimen: specimens(),
    Learned: lessons(),
    Report: reports(),
}


def same(first: Any, second: Any) -> bool:
    """Tell whether two values are equal in type and content; NaN equals NaN."""
    if isinstance(first, np.ndarray):
        alike = isinstance(second, np.ndarray) and first.dtype == second.dtype
        return alike and first.shape == second.shape and first.tobytes() == second.tobytes()
    if isinstance(first, float):
        return type(second) is float and repr(first) == repr(second)
    if is_dataclass(first):
        pairs = [(getattr(first, one.name), getattr(second, one.name)) for one in fields(first)]
        return type(first) is type(second) and all(same(*pair) for pair in pairs)
    if isinstance(first, Mapping):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, tuple | list):
        alike = type(first) is type(second) and len(first) == len(second)
        return alike and all(same(*pair) for pair in zip(first, second, strict=True))
    return type(first) is type(second) and bool(first == second)


@pytest.mark.parametrize("kind", list(NOUNS), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_nouns_come_back_from_records(
    tmp_path_factory: pytest.TempPathFactory, kind: Any, data: st.DataObject
) -> None:
    noun = data.draw(NOUNS[kind])
    record = pack(noun)
    back = unpack(record, kind)
    assert same(noun, back)
    assert pack(back) == record
    path = tmp_path_factory.mktemp("noun") / "a.npz"
    write_record(path, record)
    assert same(noun, unpack(read_record(path), kind))


class Loose(NamedTuple):
    """All that hints may say."""

    maybe: NDArray[np.float64] | None
    ragged: tuple[NDArray[np.int32], ...]
    mixed: tuple[int, str, float]
    several: list[tuple[str, ...]]
    by_name: dict[str, NDArray[np.bool_]]
    number: Optional[int]  # noqa: UP045


@pytest.mark.parametrize(
    "value",
    [
        Loose(None, (), (1, "a", 2.0), [], {}, None),
        Loose(np.zeros(0), (np.zeros(0, np.int32),), (0, "", 0.5), [()], {}, 0),
        Loose(
            np.array(np.nan),
            (np.arange(3, dtype=np.int32), np.zeros(0, np.int32), np.arange(2, dtype=np.int32)),
            (-1, "b", np.inf),
            [("x",), (), ("y", "z")],
            {"a": np.ones(2, bool), "b.c": np.zeros((2, 2), bool)},
            3,
        ),
        Loose(None, (np.zeros((2, 3), np.int32),) * 2, (1, "", 1.0), [("",)], {}, None),
    ],
)
def test_optional_ragged_and_empty_fields_come_back(value: Loose) -> None:
    back = unpack(pack(value), Loose)
    assert same(tuple(value), tuple(back))
    assert isinstance(back, Loose)


def test_numbers_of_numpy_become_plain_ones() -> None:
    value = Loose(None, (), (np.int64(1), np.str_("a"), np.float32(0.5)), [], {}, np.int32(2))
    assert same(tuple(unpack(pack(value), Loose)), (None, (), (1, "a", 0.5), [], {}, 2))


@given(st.data(), st.sampled_from(list(NOUNS)))
def test_other_nouns_have_other_digests(data: st.DataObject, kind: Any) -> None:
    first, second = data.draw(NOUNS[kind]), data.draw(NOUNS[kind])
    assert (pack(first) == pack(second)) == same(first, second)
