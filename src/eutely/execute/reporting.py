"""An executor that reports how far each of its maps is."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from eutely.execute.protocol import Done, Executor, Progress

R = TypeVar("R")

PART = "part"
"""Name by which a map reports itself: how many items of the present part of a step are done."""


class Reporting:
    """Another executor, whose maps report themselves as `PART`."""

    def __init__(self, executor: Executor, progress: Progress) -> None:
        self._executor = executor
        self._progress = progress

    @property
    def workers(self) -> int:
        """Number of calls that run at the same time."""
        return self._executor.workers

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

        def report(done: int, total: int) -> None:
            self._progress(PART, done, total, "")
            if on_done is not None:
                on_done(done, total)

        return self._executor.map(function, items, shared=shared, chunk=chunk, on_done=report)
