"""``eutely match``: one pair of specimens."""

import csv
import sys
from pathlib import Path
from typing import Annotated

import typer

from eutely.cli.common import Quiet, Verbose, VoxelSize, err, speak
from eutely.cli.solve import Effort


def match(
    first: Annotated[Path, typer.Argument(metavar="A", help="A specimen: table or label volume.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="F.csv", help="Table to write, not printed then."),
    ] = None,
    voxel_size: VoxelSize = None,
    effort: Annotated[Effort, typer.Option(help="How much work to put in.")] = Effort.default,
    seed: Annotated[int, typer.Option(min=0, help="Of all random choices.")] = 0,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Match the nuclei of one specimen with those of another.

    Both are brought into a common pose and size first. The table has a row for every nucleus of
    A: id_a, id_b (empty where unmatched) and the distance of the two in the common frame.

    Example: eutely match worm1.csv worm2.csv -o pairs.csv
    """
    speak(verbose, quiet)
    from eutely.cli.reading import read_all
    from eutely.errors import ReadError
    from eutely.io.whole import whole
    from eutely.tasks.match import match as match_pair

    found = [reading.specimen for reading in read_all([first, second], voxel_size, quiet)]
    if len(found) != 2:
        raise ReadError(f"{len(found)} specimens in {first} and {second}; match takes one of each")
    a, b = found
    result = match_pair(a, b, effort=effort.value, seed=seed)
    rows = [("id_a", "id_b", "distance")] + [
        (str(own), "" if j < 0 else str(b.ids[j]), "" if j < 0 else f"{distance:.6g}")
        for own, j, distance in zip(a.ids, result.partners, result.distances, strict=True)
    ]
    if output is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
    else:
        with whole(output) as aside, aside.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    if not quiet:
        matched = int((result.partners >= 0).sum())
        err.print(f"{matched} of {len(a)} nuclei of {a.name} matched with {b.name} ({len(b)})")
