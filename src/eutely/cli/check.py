"""``eutely check``: what was read, one row a specimen, and what looks odd."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from eutely.cli.common import Inputs, Quiet, Verbose, VoxelSize, out, speak
from eutely.cli.reading import read_all

if TYPE_CHECKING:
    from eutely.tasks.check import Facts, Oddity
    from eutely.io.read import Reading

COLUMNS = (
    "specimen", "nuclei", "named", "unit", "voxel", "x", "y", "z", "neighbour", "radius", "head",
    "margin",
)  # fmt: skip

AT_MOST = 5
"""Specimens with one oddity that get a line each; more share one."""


def check(
    inputs: Inputs,
    voxel_size: VoxelSize = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="F", help="Write all of it there as well.")
    ] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Show what was read, and warn of what looks odd.

    One row a specimen: nuclei, those with a name, unit, voxel size, extent along x, y, z, median
    distance to the nearest neighbour, median radius, where the head points, and how surely (score
    above the best pose the other way round). Then a line for each oddity; with -v one for each
    specimen that has it.

    Example: eutely check worms/ --json facts.json
    """
    speak(verbose, quiet)
    from eutely.tasks.check import examine, odd_nuclei, odd_specimens, summarised

    found = read_all(inputs, voxel_size, quiet)
    facts = [examine(reading.specimen) for reading in found]
    oddities = [odd for reading in found for odd in odd_nuclei(reading.specimen)]
    oddities += odd_specimens(facts)
    if json_file is not None:
        write_json(json_file, found, facts, oddities)
    if not quiet:
        show([cells(*pair) for pair in zip(found, facts, strict=True)])
    lines = list(summarised(oddities, len(found) if verbose else AT_MOST, len(found)))
    for line in lines:
        say(f"warning: {line}", "yellow")
    if not quiet:
        nuclei = sum(one.nuclei for one in facts)
        count = many(len(facts), "specimen")
        say(f"{count}, {nuclei} nuclei, {many(len(lines), 'warning')}")


def many(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def say(line: str, style: str = "") -> None:
    """Print a line as it is, whatever is in it."""
    out.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def cells(reading: "Reading", one: "Facts") -> list[str]:
    """Return the fields of a specimen's row."""
    size = reading.voxel_size
    return [
        one.name,
        str(one.nuclei),
        str(one.named),
        one.unit,
        "-" if size is None else "x".join(f"{side:.3g}" for side in size),
        *(f"{length:.4g}" for length in one.extent),
        f"{one.neighbour:.3g}",
        "-" if math.isnan(one.radius) else f"{one.radius:.3g}",
        "-" if one.head is None else direction(one.head),
        "-" if math.isnan(one.head_margin) else f"{one.head_margin:.2g}",
    ]


def direction(vector: Sequence[float]) -> str:
    """Return the axis that a unit vector is nearest to, and the angle from it in degrees."""
    axis = max(range(3), key=lambda index: abs(vector[index]))
    angle = math.degrees(math.acos(min(1.0, abs(vector[axis]))))
    return f"{'-' if vector[axis] < 0 else '+'}{'xyz'[axis]} {angle:.0f} deg"


def show(rows: Sequence[Sequence[str]]) -> None:
    """Print a table for people, or fields between tabs where no terminal is."""
    if not out.is_terminal:
        for row in [COLUMNS, *rows]:
            out.file.write("\t".join(row) + "\n")  # rich would make spaces of the tabs
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, column in enumerate(COLUMNS):
        left = column in ("specimen", "unit", "voxel", "head")
        table.add_column(
            column,
            justify="left" if left else "right",
            no_wrap=number > 0,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*row)
    out.print(table, markup=False, highlight=False)


def write_json(
    path: Path,
    found: "Sequence[Reading]",
    facts: "Sequence[Facts]",
    oddities: "Sequence[Oddity]",
) -> None:
    """Write facts and oddities whole or not at all."""
    from eutely.io.whole import whole

    def clean(value: Any) -> Any:
        """Return a value as JSON has it: no NaN, no infinity."""
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    specimens = [
        {
            "specimen": one.name,
            "file": str(reading.path),
            "voxel_size": reading.voxel_size,
            **{key: clean(value) for key, value in asdict(one).items() if key != "name"},
        }
        for reading, one in zip(found, facts, strict=True)
    ]
    told = {"specimens": specimens, "oddities": [asdict(odd) for odd in oddities]}
    with whole(path) as aside:
        aside.write_text(json.dumps(told, indent=1, allow_nan=False) + "\n", encoding="utf-8")
