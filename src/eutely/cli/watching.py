"""Progress for whoever watches: a bar on a terminal, nothing more than the log elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from eutely.cli.common import err

if TYPE_CHECKING:
    from eutely.progress import Watch


@contextmanager
def watching(quiet: bool) -> "Iterator[Watch]":
    """Yield a function that shows how far the work is."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(
        *columns, console=err, transient=True, disable=quiet or not err.is_terminal
    ) as bar:
        tasks: dict[str, object] = {}

        def watch(what: str, done: int, total: int, note: str) -> None:
            if what not in tasks:
                for before in list(tasks.values()):
                    bar.update(before, visible=False)  # type: ignore[arg-type]
                tasks[what] = bar.add_task(what, total=total, note="")
            bar.update(tasks[what], completed=done, total=total, note=note)  # type: ignore[arg-type]

        yield watch


def steps(watch: "Watch", what: str) -> "Callable[[int, int], None]":
    """Return a function that is told (done, in all) and passes it on to ``watch``."""

    def progress(done: int, total: int) -> None:
        watch(what, done, total, "")

    return progress
