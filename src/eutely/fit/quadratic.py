"""The paper's matching of a specimen with an atlas: quadratic costs of offsets (section 2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.config.model import Realign
from eutely.costs.gaussian import Costs, to_atlas
from eutely.kernel import kernel
from eutely.problem import PairProblem
from eutely.align.consensus import fitted
from eutely.fit.model import expectation
from eutely.fit.place import POSE_FREEDOM, UNMATCHED, Placed, warped_match
from eutely.align.warp import rewarp
from eutely.solver import solve
from eutely.solver.meanfield import assign
from eutely.solver.softassign import SLACK, SWEEPS, Shares
from eutely.solver.state import new_state

Points = NDArray[np.float64]

LINEAR = 3
"""Rounds in which each cell is matched by itself, all assignments allowed: poses are rough."""

ROUNDS = 7
"""Rounds of matching and re-alignment in all, as in the paper."""


def place_by_offsets(
    atlas: Atlas, poses: Sequence[Points], radii: Points, spacing: float
) -> Placed:
    """Choose the pose that fits best, re-align the specimen and match it by quadratic costs.

    Parameters
    ----------
    atlas
        of the model ``offsets``.
    poses
        the nuclei (n, 3) in each pose to consider, brought to the size of the atlas.
    radii
        (n, 3) semi-axes at that size, NaN where not known.
    spacing
        typical distance of neighbouring cells.
    """
    expected = expectation(atlas, spacing)
    centres, body = expected.centres, expected.body
    if atlas.warp:
        before = warped_match(expected, poses)
        frame = before.warped
        for _ in range(ROUNDS - LINEAR):
            nuclei = solve(problem_of(atlas, frame, radii), "fast").matching
            frame = rewarp(before.posed, frame, nuclei, atlas.means, centres, body)
        return _matched(atlas, before.posed, frame, radii)
    settings = Realign()
    costs = [
        assign(atlas.means, expected.broad, posed, POSE_FREEDOM, UNMATCHED)[1] for posed in poses
    ]
    posed = frame = poses[int(np.argmin(costs))]
    sizes = radii
    for turn in range(ROUNDS):
        if turn < LINEAR:
            nuclei, _ = assign(atlas.means, expected.centres, frame, expected.freedom, UNMATCHED)
        else:
            nuclei = solve(problem_of(atlas, frame, sizes), "fast").matching
        matrix, shift = fitted(posed, frame, atlas.means, nuclei, settings)
        frame = posed @ matrix.T + shift
        sizes = radii * np.linalg.det(matrix) ** (1 / 3)
    return _matched(atlas, posed, frame, sizes)


def _matched(atlas: Atlas, posed: Points, frame: Points, radii: Points) -> Placed:
    """Match a specimen that lies in the frame of the atlas."""
    problem = problem_of(atlas, frame, radii)
    solution = solve(problem, "default")
    matched = int((solution.matching >= 0).sum())
    # Half a squared distance is minus a log-density, which costs are compared as elsewhere.
    cost = 0.5 * (solution.objective + matched * atlas.c0)
    return Placed(posed, frame, solution.matching, cost, shares_of(problem, solution.matching))


def problem_of(atlas: Atlas, frame: Points, radii: Points) -> PairProblem:
    """Return the problem of matching the cells of ``atlas`` with nuclei in its frame."""
    cen, rad, off = atlas.weights.tolist()
    costs = Costs(
        unassigned=atlas.c0,
        weights=(cen, rad, off),
        tau_cen=atlas.tau_centroid,
        tau_rad=atlas.tau_radius,
        least=atlas.least,
    )
    return to_atlas(atlas, frame, radii, costs)


def shares_of(problem: PairProblem, nuclei: NDArray[np.int32]) -> Shares:
    """Share nuclei out among cells by what each assignment costs next to the others as they are.

    Parameters
    ----------
    problem, nuclei
        and its matching (m,), -1 for none.
    """
    p = problem.arrays
    state = new_state(p, problem.chosen(nuclei))
    values = _balanced(p.starts, p.labels, state.marginal, problem.n_right)
    return Shares(p.starts.astype(np.int64), p.labels, values)


@kernel
def _balanced(starts: Any, labels: Any, costs: Any, count: int) -> Any:
    """Return exp(-cost / 2) of all candidates, scaled until rows and columns sum to at most 1."""
    m = len(starts) - 1
    values = np.empty(len(labels))
    for i in range(m):
        lowest = np.inf
        for at in range(starts[i], starts[i + 1]):
            lowest = min(lowest, costs[at])
        for at in range(starts[i], starts[i + 1]):
            values[at] = np.exp(-0.5 * (costs[at] - lowest))
    left = np.ones(m)
    right = np.ones(count)
    for _ in range(SWEEPS):
        for i in range(m):
            total = SLACK
            for at in range(starts[i], starts[i + 1]):
                total += values[at] * right[labels[at]]
            left[i] = 1 / total
        right[:] = SLACK
        for i in range(m):
            for at in range(starts[i], starts[i + 1]):
                right[labels[at]] += values[at] * left[i]
        for j in range(count):
            right[j] = 1 / right[j]
    for i in range(m):
        for at in range(starts[i], starts[i + 1]):
            values[at] *= left[i] * right[labels[at]]
    return values
