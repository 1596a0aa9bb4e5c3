"""``eutely solve``: matching problems from files; ``eutely match``: two specimens."""

import csv
import io
import json
import logging
import sys
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from eutely.cli.common import (
    Handedness,
    Quiet,
    Seed,
    Verbose,
    VoxelSize,
    counted,
    err,
    expect_input,
    files_read,
    read_specimens,
    say,
    start_log,
)
from eutely.errors import ReadError

if TYPE_CHECKING:
    from eutely.io.dd import Pairs
    from eutely.problem import PairProblem

log = logging.getLogger("eutely")


class Effort(StrEnum):
    """The named efforts of the solver."""

    fast = "fast"
    default = "default"
    thorough = "thorough"


class Mode(StrEnum):
    """How the matchings of more than two graphs become consistent."""

    direct = "direct"
    sparse = "sync-sparse"
    dense = "sync-dense"


class Options(NamedTuple):
    """What the command line says about solving."""

    mode: Mode
    effort: str
    time_limit: float | None
    bound: bool
    seed: int


DOUBTS = {
    "loose": "%s and %s agree loosely: a quarter to a half of these matches are likely wrong; "
    "matching each with an atlas (eutely annotate) is safer",
    "chance": "%s and %s agree hardly better than by chance: half of these matches or more are "
    "likely wrong, and all of them unless the two are of one organism and in one unit",
}
"""Warnings about matches that cannot be trusted."""

UNCLEAR = (
    "handedness: not clear, the mirror image fits about as well; if one of the two files is "
    "mirrored, match again with --handedness mirrored"
)
"""Said where two specimens were matched as they are, without clear evidence."""

EffortOption = Annotated[Effort, typer.Option(help="How much work to spend.")]


def solve(
    problem: Annotated[
        Path, typer.Argument(metavar="PROBLEM", help=".dd or .qap file, or .xz of it.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="F.json", help="File for the result.")
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            help="More than two graphs: minimise the cost directly, or solve pairs independently "
            "and synchronise them."
        ),
    ] = Mode.direct,
    effort: EffortOption = Effort.default,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="S", min=0, help="Seconds after which to stop; the lower bound is extra."
        ),
    ] = None,
    bound: Annotated[bool, typer.Option(help="Also compute a lower bound.")] = True,
    seed: Seed = 0,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Solve a graph matching, multi-graph matching or quadratic assignment problem.

    Prints objective, lower bound, and the seconds that each of them took; reading the file and
    loading machine code do not count. Of a .qap file with a best known value also how far above it
    the objective is, as a share.

    Example: eutely solve worms.dd.xz -o solution.json --mode direct
    """
    start_log(verbose, quiet)
    try:
        problem.stat()
    except (OSError, ValueError) as error:
        raise ReadError(f"cannot read {problem}: {getattr(error, 'strerror', error)}") from error
    from eutely.io.dd_begin import check_begin
    from eutely.io.limits import check_regular
    from eutely.io.qap import is_qap
    from eutely.io.whole import write_text
    from eutely.io.written import refuse_other_kind, refuse_to_replace

    if output is not None:
        refuse_to_replace([output], [problem])
        refuse_other_kind(output, ["objective", "matchings"])
    check_regular(problem)
    options = Options(mode, effort.value, time_limit, bound, seed)
    if is_qap(problem):
        result = _solve_assignment(problem, options)
    else:
        check_begin(problem)
        result = _solve_graphs(problem, options)
    if output is not None:
        write_text(output, json.dumps(result) + "\n")
    if not quiet:
        for key, value in result.items():
            if not isinstance(value, list):
                say(f"{key}: {value:.6g}" if isinstance(value, float) else f"{key}: {value}")


def _solve_assignment(path: Path, options: Options) -> dict[str, Any]:
    """Solve the quadratic assignment of a file."""
    from eutely.io.qap import read_qap

    problem, best = read_qap(path)
    from eutely.cli.warm import compile_exchanges
    from eutely.solver import solve_assignment  # after errors: importing Numba is slow

    log.debug("loading machine code")
    compile_exchanges()
    log.debug("solving")
    _, effort, limit, bound, seed = options
    solution = solve_assignment(problem, effort, time_limit=limit, seed=seed, bound=bound)
    solution = replace(solution, best_known=best)

    def exact(value: float | None) -> float | int | None:
        return int(value) if value is not None and problem.whole and value % 1 == 0 else value

    return {
        "objective": exact(solution.objective),
        "bound": exact(solution.bound),
        "best_known": exact(best),
        "above_best_known": solution.above_best_known,
        "matchings": [[0, 1, solution.matching.tolist()]],
        "seconds": solution.seconds,
        "bound_seconds": solution.bound_seconds if bound else None,
    }


def _solve_graphs(path: Path, options: Options) -> dict[str, Any]:
    """Solve the problems of two or more graphs in a file."""
    from eutely.cli.warm import compile_relaxation, tiny_pairs, warmed
    from eutely.io.dd import read_dd

    with warmed(["merges", "starts", "bounds"], ["cliques"]) as others_ready:
        pairs = read_dd(path)
        graphs = min(max(h for _, h, _ in pairs) + 1, 4)
        solve_pairs = _solve_many if graphs > 2 else _solve_single
        quadratic = any(len(pair.arrays.edge_ends) for _, _, pair in pairs)
        log.debug("loading machine code")
        if quadratic:
            compile_relaxation()
            others_ready()
        solve_pairs(tiny_pairs(graphs, quadratic), options._replace(time_limit=None))
    log.debug("solving")
    return solve_pairs(pairs, options)


def _solve_single(pairs: "Pairs", options: Options) -> dict[str, Any]:
    """Solve the only problem of a file."""
    from eutely.solver import solve as solve_problem

    ((g, h, problem),) = pairs
    begin = perf_counter()
    solution = solve_problem(
        problem, options.effort, time_limit=options.time_limit, seed=options.seed
    )
    seconds = perf_counter() - begin
    bound, bound_seconds = _bound([problem], options)
    if bound is not None:
        # Rounding may lift a tight bound above the objective; the optimum is below both.
        bound = min(bound, solution.objective)
    return {
        "objective": solution.objective,
        "bound": bound,
        "matchings": [[g, h, _labels(solution.matching)]],
        "seconds": seconds,
        "bound_seconds": bound_seconds,
    }


def _solve_many(pairs: "Pairs", options: Options) -> dict[str, Any]:
    """Find consistent matchings of all pairs, and compare them with independent ones."""
    from eutely.multi import MultiProblem, agreement, cycle_loss, synchronise
    from eutely.multi.direct import solve_direct, solve_pairs

    mode, effort, limit, _, seed = options
    joint = MultiProblem.from_pairs(pairs)
    begin = perf_counter()
    # Most of the time is for the cliques, which `solve_direct` finds independently.
    share = limit if limit is None or mode is not Mode.direct else limit / 4
    independent = solve_pairs(joint, effort, time_limit=share, seed=seed)
    if mode is Mode.direct:
        left = None if limit is None else max(limit - (perf_counter() - begin), 0.0)
        cliques = solve_direct(joint, effort, time_limit=left, seed=seed)
    else:
        cliques = synchronise(independent, sparse=mode is Mode.sparse, seed=seed)
    seconds = perf_counter() - begin
    # No pair costs less in a consistent solution than independently.
    bound, bound_seconds = _bound([piece.problem for piece in joint.pieces], options)
    objective, forbidden = joint.evaluate(cliques)
    keys = [(piece.g, piece.h) for piece in joint.pieces]
    matchings = cliques.to_matchings(keys)
    table = cliques.table(minimum=2)
    return {
        "mode": mode.value,
        "objective": objective,
        "bound": bound,
        "forbidden": forbidden,
        "consistent": cycle_loss(matchings) == 0,
        "inconsistent triples of the pairs alone": cycle_loss(independent),
        "kept of their matches": agreement(independent, cliques) / max(independent.matched, 1),
        "matchings": [[*key, _labels(matchings.of(pair))] for pair, key in enumerate(keys)],
        "cliques": [[[g, int(i)] for g, i in enumerate(row) if i >= 0] for row in table],
        "seconds": seconds,
        "bound_seconds": bound_seconds,
    }


def _bound(
    problems: "Iterable[PairProblem]", options: Options
) -> tuple[float | None, float | None]:
    """Return the sum of the lower bounds of all problems, and the seconds they took."""
    from eutely.solver import EFFORTS
    from eutely.solver.dual import lower_bound

    if not options.bound:
        return None, None
    sweeps = EFFORTS[options.effort].sweeps
    begin = perf_counter()
    bounds = [
        lower_bound(problem.arrays, sweeps if len(problem.arrays.edge_ends) else 0)
        for problem in problems
    ]
    return float(sum(bounds)), perf_counter() - begin


def _labels(matching: Any) -> list[int | None]:
    return [None if label < 0 else label for label in matching.tolist()]


def match(
    first: Annotated[Path, typer.Argument(metavar="A", help="A specimen: table or label volume.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another specimen.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="F.csv", help="Table to write.", show_default="printed"
        ),
    ] = None,
    voxel_size: VoxelSize = None,
    effort: EffortOption = Effort.default,
    handedness: Annotated[
        Handedness, typer.Option("--handedness", help="Whether B is a mirror image of A.")
    ] = Handedness.AUTO,
    seed: Seed = 0,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Match the nuclei of one specimen with those of another.

    Both are brought into a common pose and size first: all rolls, both ends and mirror images are
    tried. The table has one row per nucleus of A: id_a, id_b (empty where unmatched) and the
    distance of the two in the common frame. Their agreement is printed beside that of chance, with
    a warning where it is loose, or hardly better.

    Example: eutely match worm1.csv worm2.csv -o pairs.csv
    """
    start_log(verbose, quiet)
    expect_input(first)
    from eutely.io.whole import new_bytes
    from eutely.io.written import refuse_to_replace, table_at

    if output is not None:
        refuse_to_replace([output], files_read([first, second]))
    specimens = read_specimens([first, second], voxel_size, quiet)
    if len(specimens) != 2:
        raise ReadError(
            f"{len(specimens)} specimens in {first} and {second}; match takes one of each"
        )
    a, b = specimens
    from eutely.cli.warm import compile_search, warmed
    from eutely.tasks.match import match as match_specimens  # after errors: it takes a second

    with warmed(["laps", "relaxation", "merges"]) as others_ready:
        compile_search()
        others_ready()
        result = match_specimens(a, b, effort=effort.value, handedness=handedness.value, seed=seed)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("id_a", "id_b", "distance"))
    for id_a, j, distance in zip(a.ids, result.partners, result.distances, strict=True):
        writer.writerow((id_a, "", "") if j < 0 else (id_a, b.ids[j], f"{distance:.6g}"))
    if output is None:
        sys.stdout.write(table.getvalue())
    else:
        with table_at(output) as aside:
            new_bytes(aside, table.getvalue().encode(errors="backslashreplace"))
    if not quiet:
        matched = int((result.partners >= 0).sum())
        hand = ", a mirror image" if result.mirrored else ""
        words = f"matched with {b.name} ({counted(len(b), 'nucleus', 'nuclei')}{hand})"
        say(f"{matched} of {counted(len(a), 'nucleus', 'nuclei')} of {a.name} {words}", "", err)
        here, chance = result.agreement, result.chance
        say(
            f"agreement: median distance {here.distance:.2f} spacings (by chance "
            f"{chance.distance:.2f}), {here.kept:.0%} of neighbours kept (by chance "
            f"{chance.kept:.0%})", "", err,
        )  # fmt: skip
        if not result.clear:
            say(UNCLEAR, "", err)
    if result.doubt:
        log.warning(DOUBTS[result.doubt], a.name, b.name)
