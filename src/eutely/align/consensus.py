"""Re-alignment (section 3.4): poses by consensus, a target by consistency, then affine fits."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eutely.config.model import Realign
from eutely.execute import Executor
from eutely.multi import specimen_agreement, synchronise
from eutely.pairs import match_pairs
from eutely.learned import Parameters
from eutely.align.affine import fit_affine
from eutely.fit.place import POSE_FREEDOM, UNMATCHED
from eutely.solver.meanfield import assign
from eutely.solver.softassign import centres_of

log = logging.getLogger("eutely")

Points = NDArray[np.float64]

JURY = 8
"""Specimens by which the poses of each one are judged."""

WITNESSES = 200
"""Nuclei of a judge, spread over its body, that look for their counterparts."""

TURNS = 5
"""Times that all specimens choose their poses; most cohorts settle in two."""

FEWEST = 8
"""Matches below which nothing is fitted."""


@dataclass(frozen=True, eq=False)
class Aligned:
    """A cohort in one frame.

    Attributes
    ----------
    frames
        for each specimen its nuclei (n, 3).
    radii
        for each specimen (n, 3) semi-axes, NaN where not known.
    poses
        (N,) int64, the number of the pose that each specimen took.
    target
        number of the specimen that the others were fitted to.
    consistency
        (N,) float64, share of each specimen's matches that are consistent with all others.
    distance
        (N,) float64, median distance of each specimen's nuclei from their matches in the target;
        one of another kind stands out.
    """

    frames: tuple[Points, ...]
    radii: tuple[Points, ...]
    poses: NDArray[np.int64]
    target: int
    consistency: NDArray[np.float64]
    distance: NDArray[np.float64]


def align(
    poses: Sequence[Sequence[Points]],
    radii: Sequence[Points],
    *,
    spacing: float,
    settings: Realign,
    executor: Executor,
    seed: int = 0,
) -> Aligned:
    """Bring all specimens into the frame of the one that is most consistent with the others.

    Poses are settled by a jury of specimens; then all pairs are matched by unlearned dense
    linear costs and synchronised; the specimen that keeps the most matches is the target, to
    which all others are fitted by affine maps, matched anew after each fit.

    Parameters
    ----------
    poses
        for each specimen its nuclei (n, 3) in each plausible pose, all brought to one size.
    radii
        for each specimen (n, 3) semi-axes at that size, NaN where not known.
    spacing
        typical distance of neighbouring nuclei.
    settings
        the section ``realign`` of the configuration.
    executor, seed
        where to run, and which jury.
    """
    chosen = settle_poses(poses, spacing=spacing, executor=executor, seed=seed)
    frames = [np.ascontiguousarray(own[pose]) for own, pose in zip(poses, chosen, strict=True)]
    unlearned = Parameters.unlearned(spacing)
    matchings = match_pairs(frames, radii, unlearned, UNMATCHED, executor, dense=True)
    consistency = specimen_agreement(matchings, synchronise(matchings, seed=seed))
    target = int(np.argmax(np.nan_to_num(consistency, nan=-1.0)))
    log.info(
        "target: specimen %d, %.1f%% of its matches are consistent (median %.1f%%)",
        target,
        100 * consistency[target],
        100 * float(np.nanmedian(consistency)),
    )
    nowhere = np.zeros(len(frames))
    start = Aligned(tuple(frames), tuple(radii), chosen, target, consistency, nowhere)
    return realign(start, unlearned, settings=settings, executor=executor, dense=True)


def realign(
    before: Aligned,
    parameters: Parameters,
    *,
    settings: Realign,
    executor: Executor,
    dense: bool = False,
    neighbours: int = 6,
    c0: float = UNMATCHED,
    effort: str = "fast",
) -> Aligned:
    """Fit all specimens to the target again, by what ``parameters`` match.

    Parameters
    ----------
    before
        the cohort so far.
    parameters
        of the costs.
    settings
        the section ``realign`` of the configuration.
    executor
        where to run.
    dense, neighbours, c0, effort
        how specimens are matched with the target, as of `match_pairs`.
    """
    others = [number for number in range(len(before.frames)) if number != before.target]
    goal = before.frames[before.target]
    frames = [before.frames[number] for number in others]
    radii = [before.radii[number] for number in others]
    pairs = np.array([(0, number + 1) for number in range(len(others))], dtype=np.int32)
    distance = np.zeros(len(before.frames))
    for turn in range(settings.iterations + 1):
        matchings = match_pairs(
            [goal, *frames],
            [before.radii[before.target], *radii],
            parameters,
            c0,
            executor,
            dense=dense,
            neighbours=neighbours,
            effort=effort,
            pairs=pairs,
        )
        for number, other in enumerate(others):
            distance[other] = _median_distance(goal, frames[number], matchings.of(number))
        if turn == settings.iterations:
            break
        last, frames = frames, []
        for number, (other, now) in enumerate(zip(others, last, strict=True)):
            matrix, shift = fitted(before.frames[other], now, goal, matchings.of(number), settings)
            frames.append(before.frames[other] @ matrix.T + shift)
            radii[number] = before.radii[other] * np.linalg.det(matrix) ** (1 / 3)
        if all(map(np.array_equal, last, frames)):
            break
    found, sizes = list(before.frames), list(before.radii)
    for number, other in enumerate(others):
        found[other], sizes[other] = frames[number], radii[number]
    return replace(before, frames=tuple(found), radii=tuple(sizes), distance=distance)


def fitted(
    points: Points,
    now: Points,
    goal: Points,
    partners: NDArray[np.int32],
    settings: Realign,
) -> tuple[Points, NDArray[np.float64]]:
    """Fit the map of ``points`` (n, 3) to the nuclei or cells of ``goal`` (m, 3) they match.

    Parameters
    ----------
    points, now
        nuclei before any fit, and where they are now.
    goal
        where they should be.
    partners
        (m,) int32, the nucleus of each place of ``goal``, or -1.
    settings
        share of the worst matches to leave out, and bounds of the map.
    """
    there = np.flatnonzero(partners >= 0)
    if len(there) < FEWEST:
        return np.eye(3), np.zeros(3)
    here = partners[there]
    apart = np.linalg.norm(goal[there] - now[here], axis=1)
    near = apart <= np.quantile(apart, 1 - settings.trim)
    return fit_affine(points[here[near]], goal[there[near]], stretch=settings.stretch)


def _median_distance(goal: Points, frame: Points, partners: NDArray[np.int32]) -> float:
    matched = partners >= 0
    if not matched.any():
        return np.inf
    return float(np.median(np.linalg.norm(goal[matched] - frame[partners[matched]], axis=1)))


def settle_poses(
    poses: Sequence[Sequence[Points]], *, spacing: float, executor: Executor, seed: int = 0
) -> NDArray[np.int64]:
    """Return the pose of each specimen in which it fits most others: (N,).

    A jury agrees first: its members start in their first poses, and one after the other takes
    the pose that costs least with all other members in theirs, nucleus matched to nucleus, until
    nobody moves. Then everybody else takes the pose that costs the jury least.

    Parameters
    ----------
    poses, spacing, executor, seed
        as of `align`.
    """
    counts = np.array([len(own[0]) for own in poses])
    usual = np.flatnonzero(np.abs(counts - np.median(counts)) <= 0.1 * np.median(counts))
    jury = np.random.default_rng(seed).permutation(usual)[:JURY].tolist()
    seats = {judge: _witnesses(poses[judge][0]) for judge in jury}
    chosen = np.zeros(len(poses), np.int64)
    for _ in range(TURNS):
        before = chosen.copy()
        for judge in jury:
            others = [seat for other, seat in seats.items() if other != judge]
            costs = list(executor.map(_cost, poses[judge], shared=(others, spacing)))
            chosen[judge] = int(np.argmin(costs))
            seats[judge] = _witnesses(poses[judge][chosen[judge]])
        if np.array_equal(before, chosen):
            break
    rest = [(number, own) for number, own in enumerate(poses) if number not in seats]
    items = [points for _, own in rest for points in own]
    found = executor.map(_cost, items, shared=(list(seats.values()), spacing))
    for number, own in rest:
        chosen[number] = int(np.argmin([next(found) for _ in own]))
    return chosen


def _witnesses(points: Points) -> Points:
    """Return every k-th nucleus in the order of x."""
    order = np.argsort(points[:, 0], kind="stable")
    return np.ascontiguousarray(points[order[:: max(len(points) // WITNESSES, 1)]])


def _cost(seats: Sequence[Points], spacing: float, points: Points) -> float:
    """Return the cost of matching the witnesses of a jury with one specimen."""
    total = 0.0
    for seat in seats:
        centres = centres_of(np.broadcast_to(spacing**2 * np.eye(3), (len(seat), 3, 3)))
        total += assign(seat, centres, points, POSE_FREEDOM, UNMATCHED)[1]
    return total
