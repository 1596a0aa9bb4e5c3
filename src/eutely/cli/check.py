"""``eutely check``: what was read, one row per specimen, and what looks odd."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len

from eutely.cli.common import (
    Inputs,
    NameFile,
    Quiet,
    SkipBad,
    Verbose,
    VoxelSize,
    counted,
    expect_input,
    files_read,
    out,
    refusal,
    say,
    start_log,
    survey_inputs,
)

if TYPE_CHECKING:
    from eutely.atlas import Atlas
    from eutely.io.read import Reading
    from eutely.tasks.check import Facts, Oddity
    from eutely.tasks.first_look import FeatureUse

COLUMNS = (
    "specimen", "nuclei", "named", "unit", "voxel", "x", "y", "z", "neighbour", "radius", "head",
    "margin",
)  # fmt: skip

FEATURES = ("feature", "specimens", "from", "to", "used by")
"""Columns of the table of features."""

LEFT = ("specimen", "unit", "voxel", "head", "feature", "used by")
"""Columns of text; numbers are aligned on the right."""

SHARED = ("voxel", "unit", "named")
"""Columns that become words below a table that is too wide, where all rows agree, in this order."""

AT_MOST = 5
"""Specimens with the same oddity up to which each gets a line; more share one line."""


def check(
    inputs: Inputs,
    voxel_size: VoxelSize = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="F", help="File for all facts and oddities.")
    ] = None,
    atlas: Annotated[
        str | None,
        typer.Option(metavar="ATLAS", help="Atlas to compare unit, size and features with."),
    ] = None,
    names: NameFile = None,
    skip_bad: SkipBad = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Show what was read, and warn of what looks odd.

    One row per specimen: nuclei, nuclei with a name, unit, voxel size, extent along x, y, z, median
    distance to the nearest neighbour, median radius, direction of the head, and how clear it is
    (difference of score to the best pose with head and tail exchanged). Then one row per feature:
    its range, and what uses it (a build, or the atlas of --atlas). Then one line per oddity; with
    -v one line for each specimen that has it. All files that cannot be used are listed at the end,
    and the exit code is 2; --skip-bad leaves them out.

    Example: eutely check worms/ --json facts.json
    """
    start_log(verbose, quiet)
    expect_input(*inputs)
    from eutely.io.atlas import open_atlas
    from eutely.io.read import cohort_problems
    from eutely.io.written import refuse_other_kind, refuse_to_replace

    if json_file is not None:
        refuse_to_replace([json_file], files_read(inputs, names))
        refuse_other_kind(json_file, ["specimens", "oddities"])
    known = None if atlas is None else open_atlas(atlas)
    found = survey_inputs(inputs, voxel_size, quiet)
    readings = list(found.readings)
    if not readings:
        raise refusal(found.problems, found, skip_bad)
    if names is not None:
        readings = with_names_of(readings, names)
    from eutely.features import features_told  # after errors: they are slow
    from eutely.tasks.check import examine, summarised
    from eutely.tasks.first_look import feature_uses

    problems = [] if skip_bad else list(found.problems)
    problems += cohort_problems(readings)
    facts = [examine(reading.specimen) for reading in readings]
    oddities = find_oddities(readings, facts, known)
    features = feature_uses([reading.specimen for reading in readings], known)
    if not quiet:
        show([row(*pair) for pair in zip(readings, facts, strict=True)])
        if features:
            if out.is_terminal:
                say("")
            show([feature_row(one) for one in features], FEATURES)
    count = len(readings)
    warnings = list(summarised(oddities, count if verbose else AT_MOST, count))
    if known is not None:
        line, lacking = features_told(known.features, [one.specimen for one in readings])
        warnings += [line] if lacking else []
    warnings += [f"left out: {problem}" for problem in found.problems if skip_bad]
    for line in warnings:
        say(f"warning: {line}", "yellow")
    if not quiet:
        nuclei = counted(sum(specimen.nuclei for specimen in facts), "nucleus", "nuclei")
        say(f"{counted(count, 'specimen')}, {nuclei}, {counted(len(warnings), 'warning')}")
    if problems:
        raise refusal(problems, found, skip_bad)
    if json_file is not None:
        write_json(json_file, readings, facts, oddities, features)


def with_names_of(readings: "Sequence[Reading]", names: Path) -> "list[Reading]":
    """Return what was read with the names of a table."""
    from dataclasses import replace

    from eutely.io.names import with_names

    named = with_names([reading.specimen for reading in readings], names)
    return [
        replace(reading, specimen=specimen)
        for reading, specimen in zip(readings, named, strict=True)
    ]


def find_oddities(
    readings: "Sequence[Reading]", facts: "Sequence[Facts]", atlas: "Atlas | None"
) -> "list[Oddity]":
    """Return all oddities of nuclei, volumes and specimens."""
    from eutely.tasks.check import (
        NO_LABELS,
        odd_handedness,
        odd_nuclei,
        odd_specimens,
        odd_units,
        odd_volume,
    )
    from eutely.tasks.first_look import odd_copies

    oddities = []
    for reading, known in zip(readings, facts, strict=True):
        whole = list(odd_volume(known, reading.voxel_size))
        oddities += whole
        if NO_LABELS not in {odd.kind for odd in whole}:  # each nucleus would be odd
            oddities += odd_nuclei(reading.specimen)
        oddities += odd_units(known, atlas)
    oddities += odd_copies([reading.specimen for reading in readings])
    oddities += odd_specimens(facts)
    return oddities + list(odd_handedness([reading.specimen for reading in readings]))


def row(reading: "Reading", facts: "Facts") -> list[str]:
    """Return the fields of a specimen's row."""
    size = reading.voxel_size
    return [
        facts.name,
        str(facts.nuclei),
        str(facts.named),
        facts.unit,
        "-" if size is None else "x".join(f"{side:.3g}" for side in size),
        *(rounded(length, 4) for length in facts.extent),
        rounded(facts.neighbour, 3),
        rounded(facts.radius, 3),
        "-" if facts.head is None else direction(facts.head),
        rounded(facts.head_margin, 2),
    ]


def rounded(value: float, digits: int) -> str:
    """Return a number with so many digits, a large one as a whole number; "-" where unknown."""
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if 10**digits <= abs(value) < math.inf else f"{value:.{digits}g}"


def direction(vector: Sequence[float]) -> str:
    """Return the axis nearest to a unit vector, and the angle between them in degrees."""
    axis = max(range(3), key=lambda index: abs(vector[index]))
    angle = math.degrees(math.acos(min(1.0, abs(vector[axis]))))
    return f"{'-' if vector[axis] < 0 else '+'}{'xyz'[axis]} {angle:.0f} deg"


def feature_row(feature: "FeatureUse") -> list[str]:
    """Return the fields of a feature's row."""
    ends = (rounded(feature.low, 4), rounded(feature.high, 4))
    return [feature.name, str(feature.specimens), *ends, feature.use or "-"]


def show(rows: Sequence[Sequence[str]], heads: Sequence[str] = COLUMNS) -> None:
    """Print a table for people on a terminal, tab-separated fields elsewhere."""
    if out.is_terminal:
        short = [[field.replace(" deg", "°") for field in row] for row in rows]
        kept, below = narrowed(short, out.width, heads)
        chosen = [heads[column] for column in kept]
        shown = [[row[column] for column in kept] for row in short]
        for number, line in enumerate(table_lines(shown, out.width, chosen)):
            say(line, "bold" if number == 0 else "", out)
        if below:
            say(below, "dim", out)
        return
    for fields in [heads, *rows]:
        out.file.write("\t".join(fields) + "\n")  # rich would turn tabs into spaces


def narrowed(
    rows: Sequence[Sequence[str]], width: int, heads: Sequence[str]
) -> tuple[list[int], str]:
    """Return the columns to show, and a line with what all rows of the others have in common.

    Columns are taken out only as far as the table is too wide without that.
    """
    widths = [max(map(cell_len, column)) + 2 for column in zip(heads, *rows, strict=True)]
    kept, said = list(range(len(heads))), []
    for name in SHARED:
        values = {row[heads.index(name)] for row in rows} if name in heads else set()
        if sum(widths[column] for column in kept) - 2 > width and len(values) == 1:
            kept.remove(heads.index(name))
            value = values.pop()
            said.append(f"no {name} size" if value == "-" else f"{name} {value}")
    return kept, f"all: {', '.join(said)}" if said else ""


def table_lines(
    rows: Sequence[Sequence[str]], width: int, heads: Sequence[str] = COLUMNS
) -> list[str]:
    """Return the lines of a table of at most ``width`` characters, with no field broken.

    Columns stand closer where that makes all of them fit. Otherwise those that do not fit follow in
    further tables below, each with the names of the specimens.
    """
    columns: list[tuple[str, ...]] = list(zip(heads, *rows, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    blank = "  " if sum(widths) + 2 * (len(widths) - 1) <= width else " "
    if sum(widths) + len(widths) - 1 > width:
        blank = "  "
    parts: list[list[int]] = [[0]]
    for column in range(1, len(columns)):
        used = sum(widths[index] + len(blank) for index in parts[-1])
        if len(parts[-1]) > 1 and used + widths[column] > width:
            parts.append([0])
        parts[-1].append(column)

    def padded(column: int, row: int) -> str:
        text = columns[column][row]
        blanks = " " * (widths[column] - cell_len(text))
        return text + blanks if heads[column] in LEFT else blanks + text

    lines: list[str] = []
    for part in parts:
        lines += [""] if lines else []
        lines += [
            blank.join(padded(column, row) for column in part).rstrip()
            for row in range(len(rows) + 1)
        ]
    return lines


def write_json(
    path: Path,
    readings: "Sequence[Reading]",
    facts: "Sequence[Facts]",
    oddities: "Sequence[Oddity]",
    features: "Sequence[FeatureUse]",
) -> None:
    """Write facts and oddities, completely or not at all."""
    from eutely.io.whole import write_text

    def clean(value: Any) -> Any:
        """Return a value that JSON can hold: None instead of NaN and infinity."""
        if isinstance(value, tuple):
            return [clean(one) for one in value]
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
    content = {
        "specimens": specimens,
        "oddities": [asdict(odd) for odd in oddities],
        "features": [
            {key: clean(value) for key, value in one._asdict().items()} for one in features
        ],
    }
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
