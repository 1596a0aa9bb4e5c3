"""The paper's matching of a specimen with an atlas: quadratic costs of offsets (section 2.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.align.consensus import fitted
from eutely.align.target import ALL_MATCHED, pose_rules
from eutely.align.warp import rewarp
from eutely.atlas import Atlas
from eutely.config.model import Realign
from eutely.costs.gaussian import Costs, to_atlas
from eutely.fit.match import Fit
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.refit import match_standing
from eutely.frame import Points, Posed
from eutely.kernel import kernel
from eutely.problem import PairProblem
from eutely.solver import solve
from eutely.solver.assignment import assign
from eutely.solver.softassign import MOST_SWEEPS, SLACK, Rules, Shares, balance
from eutely.solver.state import new_state

LINEAR = 3
"""Rounds in which each cell is matched by itself, all assignments allowed: poses are rough."""

ROUNDS = 7
"""Rounds of matching and re-alignment in all, as in the paper."""


def place_by_offsets(atlas: Atlas, specimen: Posed) -> Fit:
    """Choose the pose that fits best, re-align the specimen and match it by quadratic costs.

    Parameters
    ----------
    atlas
        of the model ``offsets``.
    specimen
        in its plausible poses.
    """
    model = model_of_atlas(atlas)
    move = _warped if atlas.warp else _mapped
    posed, frame, radii = move(atlas, model, specimen)
    problem = problem_of(atlas, frame, radii)
    solution = solve(problem, "default")
    matched = int((solution.matching >= 0).sum())
    return Fit(
        posed,
        frame,
        specimen.scores,
        solution.matching,
        # Half a squared distance is minus a log-density, by which costs compare elsewhere.
        0.5 * (solution.objective + matched * atlas.c0),
        model.background.rates(solution.matching, len(specimen)),
        shares=shares_of(problem, solution.matching),
    )


def _warped(atlas: Atlas, model: Model, specimen: Posed) -> tuple[Points, Points, Points]:
    """Warp a specimen smoothly to its matches; return its pose, its warped nuclei and radii."""
    fit = match_standing(model, Posed(specimen.poses, specimen.radii, specimen.scores[:, :0]))
    frame = fit.warped
    for _ in range(ROUNDS - LINEAR):
        nuclei = solve(problem_of(atlas, frame, specimen.radii), "fast").matching
        frame = rewarp(fit.posed, frame, nuclei, model.goal)
    return fit.posed, frame, specimen.radii


def _mapped(atlas: Atlas, model: Model, specimen: Posed) -> tuple[Points, Points, Points]:
    """Fit an affine map to the matches; return the pose, the mapped nuclei and their radii."""
    settings, broad = Realign(), model.broad()
    rules = pose_rules(broad)
    costs = [assign(atlas.means, broad, posed, rules)[1] for posed in specimen.poses]
    posed = frame = specimen.poses[int(np.argmin(costs))]
    radii = specimen.radii
    for turn in range(ROUNDS):
        if turn < LINEAR:
            rules = Rules(model.freedom, ALL_MATCHED)
            nuclei, _ = assign(atlas.means, model.centres, frame, rules)
        else:
            nuclei = solve(problem_of(atlas, frame, radii), "fast").matching
        matrix, shift = fitted(posed, frame, atlas.means, nuclei, settings)
        frame = posed @ matrix.T + shift
        radii = specimen.radii * np.linalg.det(matrix) ** (1 / 3)
    return posed, frame, radii


def problem_of(atlas: Atlas, frame: Points, radii: Points) -> PairProblem:
    """Return the problem of matching the cells of ``atlas`` with nuclei in its frame."""
    cen, rad, off = atlas.weights.tolist()
    costs = Costs(
        c0=atlas.c0,
        weights=(cen, rad, off),
        tau_centroid=atlas.tau_centroid,
        tau_radius=atlas.tau_radius,
        k_min=atlas.k_min,
    )
    return to_atlas(atlas, frame, radii, costs)


def shares_of(problem: PairProblem, nuclei: NDArray[np.int32]) -> Shares:
    """Share nuclei out among cells by the cost of each assignment given all others.

    Parameters
    ----------
    problem, nuclei
        and its matching (m,), -1 for none.
    """
    p = problem.arrays
    state = new_state(p, problem.chosen(nuclei))
    values = _weights(p.starts, state.marginal)
    balance(
        p.starts, p.labels, values, np.full(problem.n_left, SLACK**2), problem.n_right, MOST_SWEEPS
    )
    return Shares(p.starts, p.labels, values)


@kernel
def _weights(starts: Any, costs: Any) -> Any:
    """Return exp(-cost / 2) of all candidates, relative to the cheapest of each cell."""
    values = np.empty(len(costs))
    for i in range(len(starts) - 1):
        lowest = np.inf
        for at in range(starts[i], starts[i + 1]):
            lowest = min(lowest, costs[at])
        for at in range(starts[i], starts[i + 1]):
            values[at] = np.exp(-0.5 * (costs[at] - lowest))
    return values
