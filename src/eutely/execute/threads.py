"""Threads of this process."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from eutely.execute.chunks import in_order, split
from eutely.execute.protocol import Progress

R = TypeVar("R")


def cores() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Threads:
    """Threads of this process; kernels run beside each other since they release the GIL."""

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
        progress: Progress | None = None,
    ) -> Iterator[R]:
        """Map as the protocol says."""
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
            yield from in_order(results(), len(todo), progress)
        finally:
            stop.set()
            for future in futures:
                future.cancel()
            wait(futures)
