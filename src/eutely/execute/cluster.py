"""Dask, for several machines or several processes on this machine."""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import signal
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, TypeVar, cast
from uuid import uuid4

from threadpoolctl import threadpool_limits

from eutely.errors import ExecuteError, install
from eutely.execute.protocol import Done
from eutely.execute.threads import cores, in_order, split

log = logging.getLogger("eutely")

R = TypeVar("R")

SMALL = 1 << 16
"""Bytes below which a shared value travels with each chunk; a larger one once to each worker."""

KEPT = 8
"""Number of large shared values, the last used, that stay on the cluster between maps."""

AHEAD = 512
"""Chunks submitted ahead at most: a Dask scheduler is slow to cancel thousands of them."""

PATIENCE = 15.0
"""Seconds within which a running scheduler must answer."""

TICK = 5.0
"""Seconds between two checks of the workers while waiting for a chunk."""


class Interrupts:
    """Records Ctrl-C beside the usual KeyboardInterrupt, so that it can be raised again.

    Python drops a KeyboardInterrupt that is raised in a destructor.
    """

    def __init__(self) -> None:
        self._seen = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Record Ctrl-C within the block; only the main thread receives it."""
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            yield
            return

        def note(number: int, frame: FrameType | None) -> None:
            self._seen = True
            before(number, frame)

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def delivered(self) -> Iterator[None]:
        """Forget the record when a KeyboardInterrupt leaves the block: it was not lost."""
        try:
            yield
        except KeyboardInterrupt:
            self._seen = False
            raise

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was recorded and lost."""
        if self._seen:
            raise KeyboardInterrupt


@contextmanager
def open_dask(where: str) -> Iterator[Dask]:
    """Start a local cluster, or connect to a running scheduler; see `open_executor`."""
    try:
        import dask
        import distributed
    except ImportError as error:
        raise ExecuteError(f"Dask is not installed; {install('dask')}") from error
    interrupts = Interrupts()
    if where == "local" or where.startswith("local:"):
        count = where.removeprefix("local").removeprefix(":") or str(cores())
        if not count.isdecimal() or int(count) < 1:
            raise ExecuteError(f"workers is '{where}', expected local:N with N >= 1 processes")
        # No memory limit: threads have none either, and a nanny that kills a worker at a guessed
        # share of the memory only makes the run slower. No memory manager: between two maps it
        # would drop the copies of shared values that each worker has.
        with (
            dask.config.set({"distributed.scheduler.active-memory-manager.start": False}),
            distributed.LocalCluster(
                n_workers=int(count),
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # any free port: two runs may share a machine
                memory_limit=0,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            client.register_plugin(_ignore_interrupts())
            # Dask restarts a killed worker, but not a worker that died while it was starting.
            with interrupts.noted():
                yield Dask(client, where, interrupts, lambda: cluster.scale(int(count)))
    elif "://" in where or where.endswith(".json"):
        by_file = where.endswith(".json")
        try:
            if by_file and not os.path.isfile(where):  # Dask would wait for it forever
                raise FileNotFoundError(where)
            client = distributed.Client(
                **{"scheduler_file" if by_file else "address": where}, timeout=PATIENCE
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise ExecuteError(
                f"no Dask scheduler answers at '{where}'; is it running, and reachable from here?"
            ) from error
        with client, interrupts.noted():
            executor = Dask(client, where, interrupts)
            executor.check_versions()
            yield executor
    else:
        raise ExecuteError(
            f"workers is '{where}', expected a number of threads, or for Dask local:N, an address "
            "such as tcp://host:8786, or the path of a scheduler file (.json)"
        )


def _ignore_interrupts() -> Any:
    """Return a plugin for local workers, which receive Ctrl-C too: only the caller may stop."""
    from distributed import WorkerPlugin

    class IgnoreInterrupts(WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:  # noqa: ARG002
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return IgnoreInterrupts()


class Dask:
    """Workers of a Dask cluster; the work of a lost worker is repeated elsewhere."""

    def __init__(
        self,
        client: Any,
        where: str,
        interrupts: Interrupts,
        revive: Callable[[], object] | None = None,
    ) -> None:
        self._client = client
        self._where = where
        self._revive = revive
        self._interrupts = interrupts
        self._waiting = False
        self._sent: OrderedDict[str, Any] = OrderedDict()

    @property
    def workers(self) -> int:
        """Number of threads of all current workers, at least 1."""
        return max(sum(map(int, self._client.nthreads().values())), 1)

    def check_versions(self) -> None:
        """Refuse a cluster without eutely or with another version, whose results could differ."""
        from importlib.metadata import version

        mine = version("eutely")
        ask = _version_by_value()
        versions = {"scheduler": self._client.run_on_scheduler(ask), **self._client.run(ask)}
        for place, theirs in versions.items():
            if theirs != mine:
                has = f"eutely {theirs}" if theirs else "no eutely"
                raise ExecuteError(
                    f"the Dask cluster has {has} at {place}, expected {mine} as on this machine; "
                    "install the same version everywhere"
                )

    def map(
        self,
        function: Callable[..., R],
        items: Iterable[Any],
        *,
        shared: tuple[Any, ...] = (),
        chunk: int | None = None,
        on_done: Done | None = None,
    ) -> Iterator[R]:
        """Map ``function`` over ``items``; see `Executor.map`."""
        todo = list(items)
        parts = split(todo, self.workers, chunk)
        name = f"eutely-{uuid4().hex}"
        sent = {f"shared{number}": self._send(value) for number, value in enumerate(shared)}
        futures: deque[Any] = deque()

        def results() -> Iterator[Callable[[], list[R]]]:
            given = 0
            while given < len(parts) or futures:
                if len(futures) <= AHEAD // 2 and given < len(parts):
                    until = min(given + AHEAD // 2, len(parts))
                    # Keys of one group: the scheduler then keeps the queue and feeds idle workers
                    # from it, instead of sending all to the workers that hold the shared values.
                    futures.extend(
                        self._client.map(
                            _run_chunk,
                            parts[given:until],
                            key=[(name, number) for number in range(given, until)],
                            function=function,
                            count=len(shared),
                            **sent,
                        )
                    )
                    given = until
                yield lambda: self._result(futures[0])
                futures.popleft()

        try:
            with self._interrupts.delivered():
                yield from in_order(results(), len(todo), on_done)
        finally:
            if futures and self._client.status == "running":
                self._client.cancel(list(futures))

    def _result(self, future: Any) -> list[Any]:
        """Wait for the results of a chunk."""
        from distributed import KilledWorker, wait
        from distributed.client import FutureCancelledError, FuturesCancelledError

        try:
            while True:
                self._interrupts.check()
                try:
                    wait(future, timeout=TICK)
                    return cast(list[Any], future.result(timeout=TICK))
                except TimeoutError:
                    if future.status == "error":  # of the function itself
                        raise
                    self._look_after_workers()  # also where a result was lost with its worker
        except KilledWorker as error:
            raise ExecuteError(
                "the same work killed several Dask workers one after the other (out of memory?); "
                "give the workers more memory and run again to continue"
            ) from error
        except (FutureCancelledError, FuturesCancelledError, OSError) as error:
            if self._client.status == "running" and isinstance(error, OSError):
                raise  # an error of the function itself
            raise ExecuteError(
                f"the Dask scheduler at {self._where} was lost; start it and run again to continue"
            ) from error

    def _look_after_workers(self) -> None:
        """Restart local workers that Dask does not; warn when there is no worker at all."""
        if self._revive is not None:
            self._revive()
        if not self._client.nthreads():
            if not self._waiting:
                log.warning("no worker at the Dask cluster %s; waiting for workers", self._where)
            self._waiting = True
        else:
            self._waiting = False

    def _send(self, value: Any) -> Any:
        """Return ``value``, or when it is large a handle to it on the cluster.

        It becomes the result of a task rather than scattered data, so that the scheduler can
        restore it when the only workers that held it are lost; its key is a hash of its content,
        so that the next map finds it there.
        """
        import cloudpickle
        import dask

        raw = cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        if len(raw) < SMALL:
            return value
        key = f"eutely-shared-{hashlib.sha256(raw).hexdigest()}"
        if key not in self._sent:
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "10GB"}):
                self._sent[key] = self._client.submit(pickle.loads, raw, key=key)
        self._sent.move_to_end(key)
        while len(self._sent) > KEPT:
            self._sent.popitem(last=False)
        return self._sent[key]


def _run_chunk(
    part: list[Any], function: Callable[..., R], count: int, **shared: object
) -> list[R]:
    """Run one chunk on a Dask worker."""
    _one_blas_thread()
    values = [shared[f"shared{number}"] for number in range(count)]
    return [function(*values, item) for item in part]


@cache
def _one_blas_thread() -> None:
    """Set BLAS on this worker to one thread, permanently."""
    threadpool_limits(limits=1, user_api="blas")


def _version_by_value() -> Callable[[], str | None]:
    """Return a function that needs no eutely to run: nested functions are pickled by value."""

    def installed() -> str | None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("eutely")
        except PackageNotFoundError:
            return None

    return installed
