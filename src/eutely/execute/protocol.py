"""What every executor can do, and the callbacks by which work reports how far it is."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

R = TypeVar("R")

Done = Callable[[int, int], None]
"""Called with (items done, items in total), in the thread that takes the results."""

PART = "part"
"""Name by which a map reports itself: how many items of the present part of a step are done."""

Progress = Callable[[str, int, int, str], None]
"""Called with (what is being done, steps done, steps in total, a short note on how it goes)."""


def silent(what: str, done: int, total: int, note: str) -> None:
    """Report nothing: the default `Progress`."""


class Executor(Protocol):
    """Something that can map a pure function over items."""

    @property
    def workers(self) -> int:
        """Number of calls that run at the same time."""
        ...

    def map(
        self,
        function: Callable[..., R],
        items: Iterable[Any],
        *,
        shared: tuple[Any, ...] = (),
        chunk: int | None = None,
        on_done: Done | None = None,
    ) -> Iterator[R]:
        """Yield ``function(*shared, item)`` for each item, in the order of ``items``.

        Work starts when the first result is requested. When a call raises, its exception comes
        up unchanged after the results of the items before it (so it is always that of the first
        failing item) and the rest is cancelled. The rest is also cancelled when the caller stops
        early.

        Parameters
        ----------
        function
            pure; importable by name, so that a worker elsewhere finds it.
        items
            small, picklable arguments.
        shared
            first arguments of every call: picklable, possibly large, never changed by
            ``function``. A large value reaches each worker once, also over several maps.
        chunk
            items handed to a worker at a time; chosen automatically if None.
        on_done
            called with (done, total) at the start and after each chunk.
        """
        ...


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
