"""One contract for all executors; then what only Dask, or only a process, can suffer."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dask import config as dask_config
from hypothesis import given
from hypothesis import strategies as st

from eutely.errors import EutelyError, ExecuteError, SpecimenError
from eutely.execute import Executor, open_executor
from eutely.execute.cluster import SMALL, Dask, Interrupts
from eutely.execute.threads import split
from eutely.specimen import Specimen
from executor_tasks import (
    always_die,
    count,
    die_once,
    early_is_slow,
    fail_from_five,
    mark,
    out_of_time,
    square,
    weighted,
    where,
)

# Of distributed itself: it leaves sockets and clusters to the garbage collector.
pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")


@pytest.fixture(scope="module")
def opened() -> Iterator[dict[str, Executor]]:
    """All executors, opened once for the module."""
    with (
        open_executor(1) as single,
        open_executor(3) as three,
        open_executor("local:2") as dask,
    ):
        yield {"one thread": single, "three threads": three, "dask": dask}


@pytest.fixture(params=["one thread", "three threads", "dask"])
def executor(request: pytest.FixtureRequest, opened: dict[str, Executor]) -> Executor:
    return opened[request.param]


def test_results_come_in_the_order_of_the_items(executor: Executor) -> None:
    assert list(executor.map(square, range(40))) == [item * item for item in range(40)]
    assert list(executor.map(early_is_slow, range(12), chunk=1)) == list(range(12))


def test_no_items_no_results(executor: Executor) -> None:
    assert list(executor.map(square, [])) == []


def test_shared_values_come_first(executor: Executor) -> None:
    table = np.arange(2.0 * SMALL)
    results = list(executor.map(weighted, [5, 7], shared=(table, 0.5)))
    assert results == [2.5, 3.5]


def test_a_changed_shared_value_is_seen(executor: Executor) -> None:
    table = np.zeros(SMALL)
    assert list(executor.map(weighted, [1], shared=(table, 1.0))) == [0.0]
    table[1] = 4.0
    assert list(executor.map(weighted, [1], shared=(table, 1.0))) == [4.0]


def test_specimens_can_be_shared(executor: Executor) -> None:
    specimen = Specimen.from_arrays("a", np.zeros((4, 3)), features={"red": np.ones(4)})
    assert list(executor.map(count, [1, 2], shared=(specimen,))) == [5, 6]


def test_progress_ends_at_the_total(executor: Executor) -> None:
    seen: list[tuple[int, int]] = []
    thread = []

    def on_done(done: int, total: int) -> None:
        seen.append((done, total))
        thread.append(threading.get_ident())

    assert len(list(executor.map(square, range(10), chunk=4, on_done=on_done))) == 10
    assert seen == [(0, 10), (4, 10), (8, 10), (10, 10)]
    assert set(thread) == {threading.get_ident()}


def test_the_first_failing_item_is_the_error(executor: Executor) -> None:
    """Unchanged in type and message, after all results before it, whoever failed first."""
    results = []
    with pytest.raises(SpecimenError, match="item 5 is bad"):
        results.extend(executor.map(fail_from_five, range(20), chunk=1))
    assert list(executor.map(square, range(3))) == [0, 1, 4], "usable afterwards"


def test_results_before_the_error_are_delivered(executor: Executor) -> None:
    results = executor.map(fail_from_five, range(20), chunk=1)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(SpecimenError):
        next(results)


def test_pending_work_is_cancelled(executor: Executor, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stop here"):
        list(executor.map(mark, range(400), shared=(str(tmp_path),), chunk=2))
    assert list(executor.map(square, range(3))) == [0, 1, 4]
    assert len(list(tmp_path.iterdir())) < 200


def test_leaving_early_cancels_the_rest(executor: Executor, tmp_path: Path) -> None:
    results = executor.map(mark, range(1, 400), shared=(str(tmp_path),), chunk=2)
    assert next(results) == 1
    results.close()  # type: ignore[attr-defined]
    assert list(executor.map(square, range(3))) == [0, 1, 4]
    assert len(list(tmp_path.iterdir())) < 200


def test_chunks_are_positive(executor: Executor) -> None:
    with pytest.raises(ExecuteError, match="chunk is 0"):
        list(executor.map(square, [1], chunk=0))


@given(st.integers(0, 300), st.integers(1, 40), st.none() | st.integers(1, 50))
def test_chunks_hold_all_items_in_order(total: int, workers: int, chunk: int | None) -> None:
    parts = split(list(range(total)), workers, chunk)
    assert [item for part in parts for item in part] == list(range(total))
    assert all(parts)


def test_large_shared_values_reach_a_process_once(opened: dict[str, Executor]) -> None:
    """The same object serves all calls in a process, also in the next map."""
    table = np.arange(3.0 * SMALL)
    first = set(opened["dask"].map(where, range(40), shared=(table,), chunk=1))
    again = set(opened["dask"].map(where, range(40), shared=(table.copy(),), chunk=1))
    processes = {process for process, _ in first | again}
    assert os.getpid() not in processes
    assert len(first | again) == len(processes)


def test_a_killed_worker_costs_time_only(opened: dict[str, Executor], tmp_path: Path) -> None:
    table = np.arange(float(SMALL))
    results = list(opened["dask"].map(die_once, range(20), shared=(str(tmp_path), table), chunk=1))
    assert results == [float(item) for item in range(20)]
    assert {path.name for path in tmp_path.iterdir()} == {"3", "11"}


def test_a_result_that_is_lost_with_its_worker_is_not_waited_for_forever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers are looked after while a result that was there already is computed again."""
    import distributed

    class Lost:
        """Done when it is waited for, and not any more when its result is asked for."""

        status, asked = "pending", 0

        def result(self, timeout: float | None = None) -> list[int]:
            assert timeout is not None
            self.asked += 1
            if self.asked < 3:
                raise TimeoutError
            return [7]

    class Client:
        status = "running"

        def nthreads(self) -> dict[str, int]:
            return {}

    revived: list[None] = []
    monkeypatch.setattr(distributed, "wait", lambda *_, **__: None)
    dask = Dask(Client(), "here", Interrupts(), lambda: revived.append(None))
    assert dask._result(Lost()) == [7]
    assert len(revived) == 2


def test_a_function_that_runs_out_of_time_is_an_error(opened: dict[str, Executor]) -> None:
    with pytest.raises(TimeoutError, match="of its own"):
        list(opened["dask"].map(out_of_time, [1]))


def test_a_running_scheduler_is_used_and_left_running(opened: dict[str, Executor]) -> None:
    address = opened["dask"]._client.scheduler.address  # type: ignore[attr-defined]
    with open_executor(address) as executor:
        assert list(executor.map(square, range(9))) == [item * item for item in range(9)]
    assert list(opened["dask"].map(square, [3])) == [9]


def test_workers_with_another_version_are_refused(
    opened: dict[str, Executor], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = opened["dask"]._client.scheduler.address  # type: ignore[attr-defined]
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99.0")
    with pytest.raises(ExecuteError, match=r"expected 99\.0 as on this"), open_executor(address):
        pass


def test_absent_workers_are_reported_and_a_lost_scheduler_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No worker ever joins the scheduler, which is killed when the executor says so."""
    monkeypatch.setattr("eutely.execute.cluster.TICK", 0.2)
    file = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
    options = ["--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file)]
    place = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # the functions are here
    with subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL, env=place) as scheduler:

        def kill(message: str, *words: object) -> None:
            assert "no worker" in message
            scheduler.kill()

        monkeypatch.setattr("eutely.execute.cluster.log.warning", kill)
        while not file.exists():
            time.sleep(0.05)
        with (
            dask_config.set({"distributed.comm.timeouts.connect": "1s"}),
            pytest.raises(ExecuteError, match="was lost"),
            open_executor(str(file)) as executor,
        ):
            list(executor.map(square, [1]))


def test_work_that_kills_every_worker_is_given_up(opened: dict[str, Executor]) -> None:
    with pytest.raises(ExecuteError, match="killed several Dask workers"):
        list(opened["dask"].map(always_die, [0]))


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        (0, "workers is 0"),
        ("local:x", "expected local:N"),
        ("local:0", "expected local:N"),
        ("4", "expected a number of threads"),
        ("somewhere", "for Dask local:N, an address"),
        ("tcp://127.0.0.1:1", "no Dask scheduler answers"),
        ("absent.json", "no Dask scheduler answers"),
    ],
)
def test_bad_places_are_one_line(
    workers: int | str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eutely.execute.cluster.PATIENCE", 0.5)
    with pytest.raises(EutelyError, match=message) as caught, open_executor(workers):
        pass
    assert "\n" not in str(caught.value)


def test_absent_dask_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ExecuteError, match=r"eutely\[dask\]"), open_executor("local:1"):
        pass


def test_a_pickled_specimen_is_the_same() -> None:
    specimen = Specimen.from_arrays(
        "a", np.eye(3), radii=np.ones(3), features={"red": np.ones(3)}, names=["x", "", "y"]
    )
    copy = pickle.loads(pickle.dumps(specimen))
    assert copy == specimen
    assert not copy.centroids.flags.writeable


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Heed Ctrl-C even where tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_lost_in_a_destructor_is_raised_again() -> None:
    class Destroyed:
        def __del__(self) -> None:
            with contextlib.suppress(KeyboardInterrupt):  # as Python does, with a word to stderr
                signal.raise_signal(signal.SIGINT)

    interrupts = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    with interrupts.noted():
        interrupts.check()
        Destroyed()
        with pytest.raises(KeyboardInterrupt), interrupts.delivered():
            interrupts.check()
        interrupts.check()
    assert signal.getsignal(signal.SIGINT) is before


ENDLESS = """
import sys, time
from eutely.execute import open_executor
def slow(item):
    time.sleep(0.05)
if __name__ == "__main__":
    workers = 2 if sys.argv[1] == "threads" else "local:1"
    try:
        with open_executor(workers) as executor:
            on_done = lambda done, total: print(done, flush=True)
            list(executor.map(slow, range(100_000), chunk=4, on_done=on_done))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("place", ["threads", "dask"])
def test_an_interrupt_stops_the_work(place: str, tmp_path: Path) -> None:
    """Undisturbed it would run for more than an hour."""
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    command = [sys.executable, str(script), place]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        assert process.stdout.readline() == "4\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
        process.stdout.read()
        assert process.wait(timeout=60) == 130
