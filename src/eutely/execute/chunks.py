"""Items go to workers in chunks, results come back in the order of the items."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from eutely.errors import ExecuteError
from eutely.execute.protocol import Progress

R = TypeVar("R")

CHUNKS_PER_WORKER = 8
"""Enough that a slow chunk at the end leaves little idle time."""

LONGEST = 32
"""Items; bounds what is lost with a worker and what a worker still finishes after an interrupt."""


def split(items: list[Any], workers: int, chunk: int | None) -> list[list[Any]]:
    """Cut ``items`` into consecutive chunks."""
    if chunk is not None and chunk < 1:
        raise ExecuteError(f"chunk is {chunk}, expected at least 1")
    size = chunk or min(max(len(items) // (CHUNKS_PER_WORKER * workers), 1), LONGEST)
    return [items[start : start + size] for start in range(0, len(items), size)]


def in_order(
    chunks: Iterable[Callable[[], list[R]]], total: int, progress: Progress | None
) -> Iterator[R]:
    """Take the results of one chunk after the other and report how far it is."""
    done = 0
    if progress is not None:
        progress(done, total)
    for result in chunks:
        values = result()
        done += len(values)
        if progress is not None:
            progress(done, total)
        yield from values
