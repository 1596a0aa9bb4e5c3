"""Steps: the key of a result holds all that it depends on, and nothing else."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from eutely.config import Config, resolve
from eutely.errors import EutelyError
from eutely.execute import Executor, open_executor
from eutely.record import Record, pack
from eutely.steps import Context, Journal, Part, Run, Store, step
from eutely.store import Memory
from eutely.store.folder import open_run


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with open_executor(1) as opened:
        yield opened


class Pair(NamedTuple):
    """A noun for steps to return."""

    values: NDArray[np.float64]
    note: str | None = None


class Counted(Memory):
    """A store that lists what was computed, and how long that took by a clock of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[tuple[str, str]] = []

    def put(self, name: str, key: str, record: Record, seconds: float) -> None:
        assert seconds >= 0
        self.keys.append((name, key))
        super().put(name, key, record, float(len(self.keys)))


@step("seed", "estimate.prior")
def shifted(context: Context, values: NDArray[np.float64], by: float = 0.0) -> Pair:
    """State one setting at the top and one of a section."""
    return Pair(values + context.settings.seed + context.settings.estimate.prior + by)


@step("refine")
def whole_section(context: Context) -> int:
    return context.settings.refine.folds + context.settings.refine.targets


def reading(setting: str, *stated: str) -> Callable[[Context], float]:
    """Return a step that reads one setting and states others."""

    @step(*stated)
    def careless(context: Context) -> float:
        value: Any = context.settings
        for name in setting.split("."):
            value = getattr(value, name)
        return float(value)

    return careless


VALUES = np.arange(3.0)


@pytest.mark.parametrize(
    ("setting", "stated", "named"),
    [
        ("seed", (), "seed"),
        ("seed", ("method", "estimate"), "seed"),
        ("estimate.prior", ("seed",), "estimate"),
        ("estimate.prior", ("estimate.freedom", "refine.folds"), "estimate.prior"),
        ("refine.folds", ("estimate",), "refine"),
    ],
)
def test_reading_a_setting_that_is_not_stated_is_an_error(
    executor: Executor, setting: str, stated: tuple[str, ...], named: str
) -> None:
    run = Run(Config(), executor, Memory())
    with pytest.raises(EutelyError, match=rf"the setting {named} and does not state it"):
        run(reading(setting, *stated))
    assert run(reading(setting, setting)) == Config().value(setting)
    section = setting.split(".")[0]
    assert run(reading(setting, section)) == Config().value(setting)


def key_of(executor: Executor, *inputs: Any, marks: tuple[str, ...] = (), **changes: Any) -> str:
    """Return the key of `shifted` for settings (``__`` for dots) and inputs."""
    store = Counted()
    config = resolve(overrides={key.replace("__", "."): value for key, value in changes.items()})
    Run(config, executor, store, marks=marks)(shifted, *inputs)
    ((name, key),) = store.keys
    assert name == "shifted"
    return key


def test_keys_change_with_inputs_and_stated_settings_only(executor: Executor) -> None:
    same = key_of(executor, VALUES)
    assert key_of(executor, VALUES.copy()) == same
    assert key_of(executor, VALUES, estimate__freedom=3.0, refine__folds=2, method="learn") == same
    others = [
        key_of(executor, VALUES + 1e-12),
        key_of(executor, VALUES.astype(np.float32)),
        key_of(executor, VALUES[None]),
        key_of(executor, VALUES, 1.0),
        key_of(executor, VALUES, seed=1),
        key_of(executor, VALUES, estimate__prior=11.0),
        key_of(executor, VALUES, marks=("another term",)),
    ]
    assert len({same, *others}) == 1 + len(others)


def test_a_stated_section_counts_as_a_whole(executor: Executor) -> None:
    store = Counted()
    for key, value in (("targets", 5), ("common", 0.4), ("targets", 6), ("targets", 5)):
        Run(resolve(overrides={f"refine.{key}": value}), executor, store)(whole_section)
    assert len(store.keys) == len(set(store.keys)) == 3


def test_the_name_of_a_step_is_part_of_its_key(executor: Executor) -> None:
    def renamed(context: Context, values: NDArray[np.float64]) -> Pair:
        return Pair(values)

    store = Counted()
    run = Run(Config(), executor, store)
    run(step("seed", "estimate.prior")(renamed), VALUES)
    run(shifted, VALUES)
    assert [name for name, _ in store.keys] == ["renamed", "shifted"]
    assert store.keys[0][1] != store.keys[1][1]


def test_a_result_is_computed_once_and_the_same_fresh_or_stored(executor: Executor) -> None:
    store = Counted()
    fresh, stored = (Run(Config(), executor, store)(shifted, VALUES, by=0.1) for _ in range(2))
    assert len(store.keys) == 1
    assert isinstance(stored, Pair)
    assert stored.note is None
    np.testing.assert_array_equal(fresh.values, stored.values)


def test_repeated_steps_are_numbered_and_their_seconds_add_up(executor: Executor) -> None:
    store = Counted()
    run = Run(Config(), executor, store)
    for by in (0.0, 1.0, 2.0):
        run(shifted, VALUES, by)
        if by == 1.0:
            run(whole_section)
    expected = [("shifted", 1.0), ("shifted 2", 2.0), ("whole-section", 3.0), ("shifted 3", 4.0)]
    assert run.timings == expected
    # In a run that finds everything done, times are those of the computation.
    again = Run(Config(), executor, store)
    for by in (0.0, 1.0, 2.0):
        again(shifted, VALUES, by)
    assert sum(seconds for _, seconds in again.timings) == 1.0 + 2.0 + 4.0
    assert len(store.keys) == 4


def test_times_of_other_settings_are_left_out(executor: Executor) -> None:
    store = Counted()
    Run(Config(), executor, store)(shifted, VALUES)
    other = Run(resolve(overrides={"seed": 3}), executor, store)
    other(shifted, VALUES)
    assert other.timings == [("shifted", 2.0)]


@pytest.mark.parametrize(
    "record",
    [
        Record(),
        Record({}, {"value": None}),
        Record({}, {"value": {"values": "not there", "note": None}}),
        Record({}, {"value": {"values": "value.values", "unknown": 1}}),
        pack((1, 2)),
        pack("text"),
        pack({"note": "no values"}),
    ],
)
def test_unusable_results_are_computed_again_with_a_warning(
    executor: Executor, caplog: pytest.LogCaptureFixture, record: Record
) -> None:
    class Spoilt(Counted):
        def get(self, name: str, key: str) -> Record | None:
            return super().get(name, key) or record

    store = Spoilt()
    run = Run(Config(), executor, store)
    result = run(shifted, VALUES)
    np.testing.assert_array_equal(result.values, VALUES + 10.0)
    assert len(store.keys) == 1
    warnings = [row for row in caplog.records if row.levelno == logging.WARNING]
    assert ["step shifted: its stored result is unusable" in row.message for row in warnings] == [
        True
    ]
    run(shifted, VALUES)
    assert len(store.keys) == 1, "the good result has taken the place of the bad one"


def test_the_log_says_what_was_done_and_what_was_done_before(
    executor: Executor, caplog: pytest.LogCaptureFixture
) -> None:
    store = Memory()
    with caplog.at_level(logging.INFO, "eutely"):
        for _ in range(2):
            Run(Config(), executor, store)(whole_section)
    first, second = caplog.messages
    assert first.startswith("step whole-section: ")
    assert first.endswith(" s")
    assert second == "step whole-section: done before"


@step()
def counting(context: Context, end: int) -> tuple[int, ...]:
    """Count on from where the journal ends."""
    for number in range(len(list(context.journal)), end):
        context.journal.append(number)
        context.progress("counting", number + 1, end, "")
    return tuple(context.journal)


def test_an_interrupted_step_goes_on_from_its_journal(executor: Executor, tmp_path: Path) -> None:
    counted: list[int] = []

    def stop(what: str, done: int, total: int, note: str) -> None:
        if total > 1:  # the run itself tells where a step begins and ends
            counted.append(done)
            if done == 3:
                raise KeyboardInterrupt

    with open_run(tmp_path / "run") as folder:
        run = Run(Config(), executor, folder, stop)
        with pytest.raises(KeyboardInterrupt):
            run(counting, 5)
        assert run.timings == []
    with open_run(tmp_path / "run") as folder:
        assert Run(Config(), executor, folder, stop)(counting, 5) == (0, 1, 2, 3, 4)
        assert Run(Config(), executor, folder, stop)(counting, 2) == (0, 1)
    assert counted == [1, 2, 3, 4, 5, 1, 2], "each journal belongs to one key"


def test_a_failing_step_keeps_the_earlier_ones(executor: Executor, tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as folder:
        run = Run(Config(), executor, folder)
        run(shifted, VALUES)
        with pytest.raises(EutelyError):
            run(reading("seed"))
        assert [file.name[:8] for file in (tmp_path / "run" / "stages").iterdir()] == ["shifted-"]


def test_stores_and_journals_follow_their_protocols(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as folder:
        stores: list[Store] = [Memory(), folder]
        for store in stores:
            assert store.get("one", "1") is None
            assert np.isnan(store.seconds("one", "1"))
            store.put("one", "1", pack(VALUES), 2.0)
            assert store.get("one", "1") == pack(VALUES)
            assert store.get("one", "2") is None
            assert store.seconds("one", "1") == 2.0
            journal: Journal = store.journal("one", "1")
            journal.append({"a": 1})
            assert list(journal) == [{"a": 1}]


def test_a_part_of_the_settings_can_be_sent_to_workers() -> None:
    part = Part(Config(), ("refine.folds", "seed"))
    assert not hasattr(part, "__dask_tokenize__")
    sent = pickle.loads(pickle.dumps(part))
    assert (sent.seed, sent.refine.folds) == (part.seed, part.refine.folds)
    with pytest.raises(EutelyError, match="does not state it"):
        _ = sent.refine.targets
