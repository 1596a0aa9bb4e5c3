"""Reading inputs for a command, with a progress bar where somebody watches."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from eutely.cli.common import err
from eutely.errors import ReadError

if TYPE_CHECKING:
    from eutely.io.read import Reading


def _advance(bar: Progress, task: TaskID, done: int, share: float) -> None:
    bar.update(task, completed=done + share)


def parse_voxel_size(text: str | None) -> list[float] | None:
    """Return the numbers of ``X,Y,Z``, or of one for all three."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.replace("x", ",").split(",")]
    except ValueError:
        raise ReadError(
            f"--voxel-size {text}: expected X,Y,Z (or one number) in micrometres, like 0.1,0.1,0.5"
        ) from None


def read_all(inputs: Sequence[Path], voxel_size: str | None, quiet: bool) -> "list[Reading]":
    """Read the specimens of all inputs and check that they can stand together."""
    from eutely.io.read import check_cohort, readings, sources

    size = parse_voxel_size(voxel_size)
    files = sources(inputs)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=err, transient=True, disable=quiet or not err.is_terminal
    ) as bar:
        task = bar.add_task("reading", total=len(files))
        found: list[Reading] = []
        for done, file in enumerate(files):
            bar.update(task, description=file.name, completed=done)
            found += readings([file], size, partial(_advance, bar, task, done))
    check_cohort(found)
    return found
