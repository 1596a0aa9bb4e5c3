"""What users give to public functions: files, folders, tables or nouns become nouns here.

`orient` and `solve` are here too: the rooms that do their work know no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, Union, overload

from numpy.typing import ArrayLike

from eutely.atlas import Atlas
from eutely.config import PRESETS, Config, resolve
from eutely.errors import (
    AtlasError,
    ConfigError,
    EutelyError,
    ProblemError,
    ReadError,
    expect_whole,
)
from eutely.io.config import load_config
from eutely.io.pins import read_pins
from eutely.io.read import survey, usable
from eutely.io.sources import Reading, is_frame, sources
from eutely.specimen import Specimen

if TYPE_CHECKING:
    import pandas as pd

    from eutely.multi import MultiProblem
    from eutely.multi.joint import JointSolution
    from eutely.pose import Pose
    from eutely.problem import PairProblem
    from eutely.quadratic import QuadraticAssignment
    from eutely.solver import Effort, Solution
    from eutely.tasks.build import Built

Given: TypeAlias = Union[Specimen, str, "PathLike[str]", "pd.DataFrame"]
"""A specimen, or what it is read from: a file, a folder, a table."""

Specimens: TypeAlias = Given | Sequence[Given] | Mapping[str, Given]
"""Specimens as a user gives them; a mapping names them."""

GivenAtlas: TypeAlias = Union[Atlas, str, "PathLike[str]", "Built"]
"""An atlas, its file, the folder of a run, the name of a built-in one, or what a build returned."""

GivenConfig: TypeAlias = Union[Config, str, "PathLike[str]", Mapping[str, Any]]
"""Settings, the name of a preset, a TOML file, or settings that differ from the defaults."""

Pins: TypeAlias = Mapping[tuple[str, int], str | int]
"""(specimen, id) -> name or number of the cell, "" for what is no cell."""

GivenPins: TypeAlias = Union[Pins, str, "PathLike[str]"]
"""What is known for sure, or the table that holds it."""


def is_path(given: object) -> TypeGuard[str | PathLike[str]]:
    """Return whether a user gave a path."""
    return isinstance(given, str | PathLike)


def kind(given: object) -> str:
    """Return what a value is, in a word, for errors."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return "None" if given is None else type(given).__name__


def the_specimens(given: Specimens) -> list[Specimen]:
    """Return the specimens that a user gave.

    Parameters
    ----------
    given
        a specimen, a path, a pandas table, or several of them; name -> one of these.
    """
    return [reading.specimen for reading in the_readings(given)]


def the_readings(given: Specimens) -> list[Reading]:
    """Return the specimens that a user gave, with what is known of their files."""
    if isinstance(given, Specimen):
        return [Reading(given, Path(given.name))]
    if isinstance(given, Mapping):
        return [_called(name, one) for name, one in given.items()]
    if is_path(given) or is_frame(given):
        return usable(survey(sources([given])), skip_bad=False)
    if not isinstance(given, Iterable):
        raise _no_specimen(given)
    items: list[Any] = list(given)
    for one in items:
        if not (isinstance(one, Specimen) or is_path(one) or is_frame(one)):
            raise _no_specimen(one if isinstance(given, list | tuple) else given)
    if items and not any(isinstance(one, Specimen) for one in items):
        return usable(survey(sources(items)), skip_bad=False)
    return [reading for one in items for reading in the_readings(one)]


def _called(name: str, given: Given) -> Reading:
    """Return a specimen under another name."""
    if not isinstance(name, str):
        raise EutelyError(f"specimens: {name!r} is no name; give text")
    reading = _only(the_readings(given), f"'{name}'")
    return replace(reading, specimen=replace(reading.specimen, name=name))


def _no_specimen(given: object) -> EutelyError:
    advice = "; Specimen.from_arrays takes arrays" if hasattr(given, "__array__") else ""
    return EutelyError(
        "specimens: expected specimens, files, folders or pandas tables of nuclei, found "
        f"{kind(given)}{advice}"
    )


def one_specimen(given: Given, what: str) -> Specimen:
    """Return the only specimen that a user gave; ``what`` takes one, for errors."""
    return _only(the_readings(given), what).specimen


def _only(readings: list[Reading], what: str) -> Reading:
    """Return the only one of some readings; ``what`` takes one, for errors."""
    if len(readings) != 1:
        raise EutelyError(f"{what} takes one specimen, found {len(readings)}; give one of them")
    return readings[0]


def the_atlas(given: GivenAtlas) -> Atlas:
    """Return the atlas that a user gave."""
    if isinstance(given, Atlas):
        return given
    if isinstance(given, str | PathLike):
        return Atlas.load(fspath(given))
    inside = getattr(given, "atlas", None)
    if isinstance(inside, Atlas):
        return inside
    raise AtlasError(
        "atlas: expected an Atlas, its file, the folder of a run or the name of a built-in one, "
        f"found {kind(given)}"
    )


def the_config(given: GivenConfig | None) -> Config:
    """Return the settings that a user gave; those of the preset ``default`` for None."""
    if given is None:
        return Config()
    if isinstance(given, Config):
        return given
    if isinstance(given, str) and given in PRESETS:
        return resolve(preset=given)
    if isinstance(given, str | PathLike):
        if not Path(given).exists():
            raise ConfigError(
                f"config: '{given}' is neither a preset ({', '.join(PRESETS)}) nor a file"
            )
        return load_config(Path(given))
    if isinstance(given, Mapping):
        values = dict(given)
        return resolve(preset=values.pop("preset", None), overrides=values, source="config")
    raise ConfigError(
        "config: expected a Config, the name of a preset, a TOML file or settings, such as "
        f"{{'seed': 1}}, found {kind(given)}"
    )


def the_pins(given: GivenPins | None) -> Pins | None:
    """Return the pins that a user gave."""
    if isinstance(given, str | PathLike):
        return read_pins(Path(given))
    if given is None or isinstance(given, Mapping):
        for key, cell in (given or {}).items():
            if not (isinstance(key, tuple) and len(key) == 2 and isinstance(cell, str | int)):
                raise EutelyError(
                    f"pins: {key!r}: {cell!r}; expected (specimen, id): name or number of the cell"
                )
        return given
    raise EutelyError(
        f"pins: expected a table or (specimen, id) -> name of the cell, found {kind(given)}"
    )


def check_progress(progress: object) -> None:
    """Raise an error unless progress can be told."""
    if not callable(progress):
        raise EutelyError(
            f"progress is {progress!r}; give a function of (what, done, total, note), or leave it "
            "out"
        )


def check_flag(what: str, flag: object) -> None:
    """Raise an error unless a value is True, False or None."""
    if flag is not None and not isinstance(flag, bool):
        raise EutelyError(f"{what} is {flag!r}; give True or False")


def check_seed(seed: object) -> None:
    """Raise an error unless a seed can be one."""
    expect_whole("seed", seed)
    if isinstance(seed, int) and seed < 0:
        raise EutelyError(f"seed {seed} is negative; give 0 or more")


def orient(specimen: Given, *, mirrored: bool = False) -> list[Pose]:
    """Return the possible poses of a specimen, from the positions of its nuclei alone.

    The body axis is the axis of largest variance, the head is its dense end, and left-right
    symmetry shows the roll; see `eutely.pose.hypotheses.orient`.

    Parameters
    ----------
    specimen
        at least 4 nuclei at different places, not on one line; or what it is read from.
    mirrored
        add the mirror image of each pose, with the same score, after it.

    Returns
    -------
    list of Pose
        best first; ``pose.apply(specimen)`` brings the specimen into it.
    """
    from eutely.pose import orient as poses_of

    return poses_of(one_specimen(specimen, "orient"), mirrored=mirrored)


@overload
def solve(
    problem: PairProblem | QuadraticAssignment,
    effort: str | Effort = "default",
    *,
    time_limit: float | None = None,
    seed: int = 0,
    start: ArrayLike | None = None,
    bound: bool = False,
) -> Solution: ...


@overload
def solve(
    problem: MultiProblem,
    effort: str | Effort = "default",
    *,
    time_limit: float | None = None,
    seed: int = 0,
    start: ArrayLike | None = None,
    bound: bool = False,
) -> JointSolution: ...


@overload
def solve(
    problem: str | PathLike[str],
    effort: str | Effort = "default",
    *,
    time_limit: float | None = None,
    seed: int = 0,
    start: ArrayLike | None = None,
    bound: bool = False,
) -> Solution | JointSolution: ...


def solve(
    problem: PairProblem | QuadraticAssignment | MultiProblem | str | PathLike[str],
    effort: str | Effort = "default",
    *,
    time_limit: float | None = None,
    seed: int = 0,
    start: ArrayLike | None = None,
    bound: bool = False,
) -> Solution | JointSolution:
    """Match left to right nodes at low cost; at the lowest if there are no quadratic costs.

    Parameters
    ----------
    problem
        candidates and costs, see `eutely.problem.PairProblem.from_arrays`; those of all pairs of
        more than two graphs, `eutely.multi.MultiProblem`; a complete problem,
        `eutely.quadratic.QuadraticAssignment`; or a file: ``.dd`` of the first two, ``.qap`` of
        the last.
    effort
        ``fast``, ``default`` or ``thorough``, or an `eutely.solver.Effort` (of two graphs).
    time_limit
        seconds after which no further round starts; the best matching so far is returned.
    seed
        of the perturbations.
    start
        (n_left,) a matching to improve, instead of a search from scratch; it never gets worse. Of
        two graphs only.
    bound
        also compute a lower bound.

    Returns
    -------
    Solution or JointSolution
        of two graphs, or of more.

    Examples
    --------
    >>> from eutely.problem import PairProblem
    >>> candidates = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> problem = PairProblem.from_arrays((2, 2), candidates, [-1.0] * 4, [[0, 3]], [1.5])
    >>> solution = solve(problem, bound=True)
    >>> solution.matching.tolist(), solution.objective, solution.bound
    ([1, 0], -2.0, -2.0)
    """
    from eutely import solver
    from eutely.multi import MultiProblem
    from eutely.quadratic import QuadraticAssignment

    check_seed(seed)
    given, best = _the_problem(problem)
    if isinstance(given, QuadraticAssignment):
        solution = solver.solve_assignment(
            given, effort, time_limit=time_limit, seed=seed, start=start, bound=bound
        )
        return replace(solution, best_known=best)
    if isinstance(given, MultiProblem):
        if start is not None or not isinstance(effort, str):
            raise ProblemError("more than two graphs take no start, and a named effort")
        return _solved_together(given, effort, time_limit, seed, bound)
    return solver.solve(given, effort, time_limit=time_limit, seed=seed, start=start, bound=bound)


def _solved_together(
    joint: MultiProblem, effort: str, time_limit: float | None, seed: int, bound: bool
) -> JointSolution:
    """Solve the problems of all pairs of more than two graphs, consistently."""
    from eutely.multi import solve_direct
    from eutely.multi.joint import JointSolution
    from eutely.solver import EFFORTS
    from eutely.solver.dual import lower_bound

    cliques = solve_direct(joint, effort, time_limit=time_limit, seed=seed)
    keys = [(piece.g, piece.h) for piece in joint.pieces]
    found = cliques.to_matchings(keys)
    objective, forbidden = joint.evaluate(cliques)
    lowest = None
    if bound:  # no pair costs less in a consistent solution than by itself
        problems = [piece.problem.arrays for piece in joint.pieces]
        sweeps = EFFORTS[effort].sweeps
        lowest = float(sum(lower_bound(p, sweeps if len(p.edge_ends) else 0) for p in problems))
    matchings = {key: found.of(number) for number, key in enumerate(keys)}
    return JointSolution(cliques, matchings, objective, forbidden, lowest)


def _the_problem(
    given: PairProblem | QuadraticAssignment | MultiProblem | str | PathLike[str],
) -> tuple[PairProblem | QuadraticAssignment | MultiProblem, float | None]:
    """Return the problem that a user gave, and its best known value if it is of a file with one."""
    from eutely.multi import MultiProblem
    from eutely.problem import PairProblem
    from eutely.quadratic import QuadraticAssignment

    if isinstance(given, PairProblem | QuadraticAssignment | MultiProblem):
        return given, None
    if not isinstance(given, str | PathLike):
        raise ProblemError(
            "solve takes a PairProblem, a QuadraticAssignment, or a .dd or .qap file, found "
            f"{kind(given)}"
        )
    from eutely.io.dd import read_dd
    from eutely.io.qap import is_qap, read_qap

    if not Path(given).is_file():
        raise ReadError(f"{fspath(given)} does not exist")
    if is_qap(given):
        return read_qap(Path(given))
    pairs = read_dd(Path(given))
    several = max(h for _, h, _ in pairs) > 1
    return MultiProblem.from_pairs(pairs) if several else pairs[0][2], None
