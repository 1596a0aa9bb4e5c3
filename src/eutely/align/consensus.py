"""Re-alignment (section 3.4): poses by consensus, a target by consistency, then affine fits."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eutely.align.affine import Map, fit_affine
from eutely.align.target import ALL_MATCHED, pose_rules, usual_specimens
from eutely.config.model import Realign
from eutely.execute import Executor
from eutely.frame import Frame, Points
from eutely.learned import Parameters
from eutely.multi import specimen_agreement, synchronise
from eutely.pairs import PairRules, match_pairs
from eutely.solver.assignment import assign
from eutely.solver.softassign import centres_of

log = logging.getLogger("eutely")

JURY = 8
"""Specimens by which the poses of each one are judged."""

SAMPLE = 200
"""Nuclei of a member of the jury, spread over its body, that are matched with other specimens."""

TURNS = 5
"""Times that all members of the jury choose their poses; most cohorts settle in two."""

FEWEST_MATCHES = 8
"""Matches below which no map is fitted."""


@dataclass(frozen=True, eq=False)
class Aligned:
    """N specimens fitted to one of them by affine maps.

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
        a specimen of another kind stands out.
    """

    frames: tuple[Points, ...]
    radii: tuple[Points, ...]
    poses: NDArray[np.int64]
    target: int
    consistency: NDArray[np.float64]
    distance: NDArray[np.float64]


def align(
    frame: Frame,
    settings: Realign,
    executor: Executor,
    *,
    seed: int = 0,
    pairs: NDArray[np.int32] | None = None,
) -> Aligned:
    """Bring all specimens into the frame of the one that is most consistent with the others.

    Poses are settled by a jury of specimens; then all pairs are matched by unlearned dense
    linear costs and synchronised; the specimen that keeps the most matches is the target, to
    which all others are fitted by affine maps and matched again after each fit.

    Parameters
    ----------
    frame
        specimens in their plausible poses.
    settings
        the section ``realign`` of the configuration.
    executor, seed
        where to run, and which jury.
    pairs
        (P, 2) specimens that are matched; all pairs if None.
    """
    spacing, radii = frame.body.spacing, frame.radii
    chosen = settle_poses(frame, executor, seed=seed)
    points = [
        np.ascontiguousarray(poses[pose]) for poses, pose in zip(frame.poses, chosen, strict=True)
    ]
    rules = PairRules(Parameters.unlearned(spacing), ALL_MATCHED, dense=True)
    matchings = match_pairs(points, radii, rules, executor, pairs=pairs)
    consistency = specimen_agreement(matchings, synchronise(matchings, seed=seed))
    target = int(np.argmax(np.nan_to_num(consistency, nan=-1.0)))
    log.info(
        "target: specimen %d, %.1f%% of its matches are consistent (median %.1f%%)",
        target,
        100 * consistency[target],
        100 * float(np.nanmedian(consistency)),
    )
    start = Aligned(tuple(points), radii, chosen, target, consistency, np.zeros(len(points)))
    return realign(start, rules, settings, executor)


def realign(before: Aligned, rules: PairRules, settings: Realign, executor: Executor) -> Aligned:
    """Fit all specimens to the target again, by their matches with it.

    Parameters
    ----------
    before
        the specimens so far.
    rules
        how each specimen is matched with the target.
    settings
        the section ``realign`` of the configuration.
    executor
        where to run.
    """
    others = [number for number in range(len(before.frames)) if number != before.target]
    goal = before.frames[before.target]
    frames = [before.frames[number] for number in others]
    radii = [before.radii[number] for number in others]
    pairs = np.array([(0, number + 1) for number in range(len(others))], dtype=np.int32)
    distance = np.zeros(len(before.frames))
    for turn in range(settings.iterations + 1):
        matchings = match_pairs(
            [goal, *frames], [before.radii[before.target], *radii], rules, executor, pairs=pairs
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
    all_frames, all_radii = list(before.frames), list(before.radii)
    for number, other in enumerate(others):
        all_frames[other], all_radii[other] = frames[number], radii[number]
    return replace(before, frames=tuple(all_frames), radii=tuple(all_radii), distance=distance)


def fitted(
    points: Points, now: Points, goal: Points, partners: NDArray[np.int32], settings: Realign
) -> Map:
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
    places = np.flatnonzero(partners >= 0)
    if len(places) < FEWEST_MATCHES:
        return np.eye(3), np.zeros(3)
    nuclei = partners[places]
    apart = np.linalg.norm(goal[places] - now[nuclei], axis=1)
    near = apart <= np.quantile(apart, 1 - settings.trim)
    return fit_affine(points[nuclei[near]], goal[places[near]], stretch=settings.stretch)


def _median_distance(goal: Points, frame: Points, partners: NDArray[np.int32]) -> float:
    matched = partners >= 0
    if not matched.any():
        return np.inf
    return float(np.median(np.linalg.norm(goal[matched] - frame[partners[matched]], axis=1)))


def settle_poses(frame: Frame, executor: Executor, *, seed: int = 0) -> NDArray[np.int64]:
    """Return the pose of each specimen in which it fits most others: (N,).

    A jury agrees first: its members start in their first poses, and one after the other takes
    the pose that costs least with all other members in theirs, nucleus matched to nucleus, until
    no member changes. Then every other specimen takes the pose that costs the jury least.

    Parameters
    ----------
    frame, executor, seed
        see `align`.
    """
    poses, spacing = frame.poses, frame.body.spacing
    usual = usual_specimens(frame)
    jury = np.random.default_rng(seed).permutation(usual)[:JURY].tolist()
    samples = {member: _sample(poses[member][0]) for member in jury}
    chosen = np.zeros(len(poses), np.int64)
    for _ in range(TURNS):
        before = chosen.copy()
        for member in jury:
            others = [sample for other, sample in samples.items() if other != member]
            costs = list(executor.map(_cost, poses[member], shared=(others, spacing)))
            chosen[member] = int(np.argmin(costs))
            samples[member] = _sample(poses[member][chosen[member]])
        if np.array_equal(before, chosen):
            break
    rest = [number for number in range(len(poses)) if number not in samples]
    items = [points for number in rest for points in poses[number]]
    costs_of_rest = executor.map(_cost, items, shared=(list(samples.values()), spacing))
    for number in rest:
        chosen[number] = int(np.argmin([next(costs_of_rest) for _ in poses[number]]))
    return chosen


def _sample(points: Points) -> Points:
    """Return every k-th nucleus in the order of x."""
    order = np.argsort(points[:, 0], kind="stable")
    return np.ascontiguousarray(points[order[:: max(len(points) // SAMPLE, 1)]])


def _cost(samples: Sequence[Points], spacing: float, points: Points) -> float:
    """Return the cost of matching the samples of a jury with one specimen."""
    total = 0.0
    for sample in samples:
        centres = centres_of(np.broadcast_to(spacing**2 * np.eye(3), (len(sample), 3, 3)))
        total += assign(sample, centres, points, pose_rules(centres))[1]
    return total
