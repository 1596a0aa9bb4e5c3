"""What an executor can do, whichever it is."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

R = TypeVar("R")

Progress = Callable[[int, int], None]
"""Called with (items done, items in all), in the thread that takes the results."""


class Executor(Protocol):
    """Something that can map a pure function over items."""

    @property
    def workers(self) -> int:
        """Calls that run at the same time."""
        ...

    def map(
        self,
        function: Callable[..., R],
        items: Iterable[Any],
        *,
        shared: tuple[Any, ...] = (),
        chunk: int | None = None,
        progress: Progress | None = None,
    ) -> Iterator[R]:
        """Yield ``function(*shared, item)`` for each item, in the order of ``items``.

        Work starts when the first result is asked for. When a call raises, its exception comes
        up unchanged after the results of the items before it (so it is always that of the first
        failing item) and the rest is cancelled; so it is when the caller stops early.

        Parameters
        ----------
        function
            pure; importable by name, so that a worker elsewhere finds it.
        items
            small, picklable arguments.
        shared
            first arguments of every call: picklable, possibly large, never changed by
            ``function``. A large one reaches each worker once, also over several maps.
        chunk
            items handed to a worker at a time; None chooses.
        progress
            told (done, total) at the start and after each chunk.
        """
        ...
