"""``eutely solve``: a graph or multi-graph matching instance from a file."""

import json
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eutely.cli.common import Quiet, Verbose, out, speak

if TYPE_CHECKING:
    from eutely.io.dd import Pairs


class Effort(StrEnum):
    """The named efforts of the solver."""

    fast = "fast"
    default = "default"
    thorough = "thorough"


class Mode(StrEnum):
    """How the matchings of more than two graphs are made consistent."""

    direct = "direct"
    sparse = "sync-sparse"
    dense = "sync-dense"


def solve(
    problem: Annotated[Path, typer.Argument(metavar="PROBLEM", help=".dd or .dd.xz file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="F.json", help="Write the result.")
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            help="More than two graphs: least cost, or pairs solved alone and then synchronised."
        ),
    ] = Mode.direct,
    effort: Annotated[Effort, typer.Option(help="How much work to put in.")] = Effort.default,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="S", min=0, help="Seconds after which to stop improving; not for the bound."
        ),
    ] = None,
    bound: Annotated[bool, typer.Option(help="Also compute a lower bound.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Of all random choices.")] = 0,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Solve a graph or multi-graph matching instance.

    Example: eutely solve worms.dd.xz -o solution.json --mode direct
    """
    speak(verbose, quiet)
    from eutely.io.dd import read_dd
    from eutely.io.whole import whole

    pairs = read_dd(problem)
    many = max(h for _, h, _ in pairs) > 1
    begin = perf_counter()
    if many:
        result = _many(pairs, mode, effort.value, time_limit, bound, seed)
    else:
        result = _one(pairs, effort.value, time_limit, bound, seed)
    result = {**result, "seconds": perf_counter() - begin}
    if output is not None:
        with whole(output) as aside:
            aside.write_text(json.dumps(result) + "\n", encoding="utf-8")
    if not quiet:
        for key, value in result.items():
            if not isinstance(value, list):
                shown = f"{value:.6g}" if isinstance(value, float) else value
                out.print(f"{key}: {shown}", highlight=False)


def _one(
    pairs: "Pairs", effort: str, time_limit: float | None, bound: bool, seed: int
) -> dict[str, Any]:
    """Solve the only pair of a file."""
    from eutely.solver import solve as solve_pair

    ((g, h, problem),) = pairs
    found = solve_pair(problem, effort, time_limit=time_limit, bound=bound, seed=seed)
    return {
        "objective": found.objective,
        "bound": found.bound,
        "matchings": [[g, h, _labels(found.matching)]],
    }


def _many(
    pairs: "Pairs", mode: Mode, effort: str, time_limit: float | None, bound: bool, seed: int
) -> dict[str, Any]:
    """Find consistent matchings of all pairs; their cost, and how far from it the pairs alone."""
    from eutely.multi import MultiProblem, agreement, cycle_loss, synchronise
    from eutely.multi.direct import solve_direct, solve_pairs
    from eutely.solver import EFFORTS
    from eutely.solver.dual import lower_bound

    joint = MultiProblem.from_pairs(pairs)
    begin = perf_counter()
    # Cliques directly from costs need most of the time for themselves.
    share = time_limit if time_limit is None or mode is not Mode.direct else time_limit / 4
    alone = solve_pairs(joint, effort, time_limit=share, seed=seed)
    if mode is Mode.direct:
        left = None if time_limit is None else max(time_limit - (perf_counter() - begin), 0.0)
        cliques = solve_direct(joint, effort, time_limit=left, seed=seed)
    else:
        cliques = synchronise(alone, sparse=mode is Mode.sparse, seed=seed)
    objective, forbidden = joint.evaluate(cliques)
    keys = [(piece.g, piece.h) for piece in joint.pieces]
    matchings = cliques.to_matchings(keys)
    table = cliques.table(minimum=2)
    lowest = (
        sum(lower_bound(piece.problem.arrays, EFFORTS[effort].sweeps) for piece in joint.pieces)
        if bound
        else None
    )
    return {
        "mode": mode.value,
        "objective": objective,
        # Each pair alone costs no more than in any consistent solution.
        "bound": lowest,
        "forbidden": forbidden,
        "consistent": cycle_loss(matchings) == 0,
        "inconsistent triples of the pairs alone": cycle_loss(alone),
        "kept of their matches": agreement(alone, cliques) / max(alone.matched, 1),
        "matchings": [[*key, _labels(matchings.of(pair))] for pair, key in enumerate(keys)],
        "cliques": [[[g, int(i)] for g, i in enumerate(row) if i >= 0] for row in table],
    }


def _labels(matching: Any) -> list[int | None]:
    return [None if label < 0 else label for label in matching.tolist()]
