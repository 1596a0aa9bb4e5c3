"""``eutely check``: what was read, one row per specimen, and what looks odd."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from eutely.cli.common import (
    Inputs,
    Quiet,
    Verbose,
    VoxelSize,
    out,
    read_inputs,
    say,
    start_log,
)

if TYPE_CHECKING:
    from eutely.io.read import Reading
    from eutely.tasks.check import Facts, Oddity

COLUMNS = (
    "specimen", "nuclei", "named", "unit", "voxel", "x", "y", "z", "neighbour", "radius", "head",
    "margin",
)  # fmt: skip

AT_MOST = 5
"""Specimens with the same oddity up to which each gets a line; more share one line."""


def check(
    inputs: Inputs,
    voxel_size: VoxelSize = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="F", help="File for all facts and oddities.")
    ] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Show what was read, and warn of what looks odd.

    One row per specimen: nuclei, nuclei with a name, unit, voxel size, extent along x, y, z, median
    distance to the nearest neighbour, median radius, direction of the head, and how clear it is
    (difference of score to the best pose with head and tail exchanged). Then one line per oddity;
    with -v one line for each specimen that has it.

    Example: eutely check worms/ --json facts.json
    """
    start_log(verbose, quiet)
    from eutely.tasks.check import examine, odd_nuclei, odd_specimens, summarised

    readings = read_inputs(inputs, voxel_size, quiet)
    facts = [examine(reading.specimen) for reading in readings]
    oddities = [odd for reading in readings for odd in odd_nuclei(reading.specimen)]
    oddities += odd_specimens(facts)
    if json_file is not None:
        write_json(json_file, readings, facts, oddities)
    if not quiet:
        show([row(*pair) for pair in zip(readings, facts, strict=True)])
    count = len(readings)
    warnings = list(summarised(oddities, count if verbose else AT_MOST, count))
    for line in warnings:
        say(f"warning: {line}", "yellow")
    if not quiet:
        nuclei = sum(specimen.nuclei for specimen in facts)
        say(f"{many(count, 'specimen')}, {nuclei} nuclei, {many(len(warnings), 'warning')}")


def many(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def row(reading: "Reading", facts: "Facts") -> list[str]:
    """Return the fields of a specimen's row."""
    size = reading.voxel_size
    return [
        facts.name,
        str(facts.nuclei),
        str(facts.named),
        facts.unit,
        "-" if size is None else "x".join(f"{side:.3g}" for side in size),
        *(f"{length:.4g}" for length in facts.extent),
        f"{facts.neighbour:.3g}",
        "-" if math.isnan(facts.radius) else f"{facts.radius:.3g}",
        "-" if facts.head is None else direction(facts.head),
        "-" if math.isnan(facts.head_margin) else f"{facts.head_margin:.2g}",
    ]


def direction(vector: Sequence[float]) -> str:
    """Return the axis nearest to a unit vector, and the angle between them in degrees."""
    axis = max(range(3), key=lambda index: abs(vector[index]))
    angle = math.degrees(math.acos(min(1.0, abs(vector[axis]))))
    return f"{'-' if vector[axis] < 0 else '+'}{'xyz'[axis]} {angle:.0f} deg"


def show(rows: Sequence[Sequence[str]]) -> None:
    """Print a table for people on a terminal, tab-separated fields elsewhere."""
    if not out.is_terminal:
        for fields in [COLUMNS, *rows]:
            out.file.write("\t".join(fields) + "\n")  # rich would turn tabs into spaces
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
    for fields in rows:
        table.add_row(*fields)
    out.print(table, markup=False, highlight=False)


def write_json(
    path: Path,
    readings: "Sequence[Reading]",
    facts: "Sequence[Facts]",
    oddities: "Sequence[Oddity]",
) -> None:
    """Write facts and oddities, completely or not at all."""
    from eutely.io.whole import write_text

    def clean(value: Any) -> Any:
        """Return a value that JSON can hold: None instead of NaN and infinity."""
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    specimens = [
        {
            "specimen": known.name,
            "file": str(reading.path),
            "voxel_size": reading.voxel_size,
            **{key: clean(value) for key, value in asdict(known).items() if key != "name"},
        }
        for reading, known in zip(readings, facts, strict=True)
    ]
    content = {"specimens": specimens, "oddities": [asdict(odd) for odd in oddities]}
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
