"""Threads of this process; items go to workers in chunks, results come back in item order."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from eutely.errors import ExecuteError
from eutely.execute.protocol import Done

R = TypeVar("R")

CHUNKS_PER_WORKER = 8
"""Chunks per worker: enough that a slow chunk at the end leaves little idle time."""

LONGEST = 32
"""Items per chunk at most: limits what is lost with a worker, and what it finishes after Ctrl-C."""


def cores() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def split(items: list[Any], workers: int, chunk: int | None) -> list[list[Any]]:
    """Cut ``items`` into consecutive chunks of ``chunk`` items; None chooses the size."""
    if chunk is not None and chunk < 1:
        raise ExecuteError(f"chunk is {chunk}, expected at least 1")
    size = chunk or min(max(len(items) // (CHUNKS_PER_WORKER * workers), 1), LONGEST)
    return [items[start : start + size] for start in range(0, len(items), size)]


def in_order(
    chunks: Iterable[Callable[[], list[R]]], total: int, on_done: Done | None
) -> Iterator[R]:
    """Yield the results of one chunk after the other; report how many of ``total`` are done."""
    done = 0
    if on_done is not None:
        on_done(done, total)
    for result in chunks:
        values = result()
        done += len(values)
        if on_done is not None:
            on_done(done, total)
        yield from values


class Threads:
    """Threads of this process; kernels run in parallel since they release the GIL."""

    def __init__(self, pool: ThreadPoolExecutor, workers: int) -> None:
        self._pool = pool
        self.workers = workers

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
        stop = threading.Event()

        def run(part: list[Any]) -> list[R]:
            values: list[R] = []
            for item in part:
                if stop.is_set():
                    break
                values.append(function(*shared, item))
            return values

        futures: deque[Future[list[R]]] = deque(
            self._pool.submit(run, part) for part in split(todo, self.workers, chunk)
        )

        def results() -> Iterator[Callable[[], list[R]]]:
            while futures:
                yield futures[0].result
                futures.popleft()

        try:
            yield from in_order(results(), len(todo), on_done)
        finally:
            stop.set()
            for future in futures:
                future.cancel()
            wait(futures)
