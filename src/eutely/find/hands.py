"""The handedness of a cohort: which specimens are mirror images of most others.

Axis conventions of microscopes and files differ, so some specimens of a cohort may be mirror images
of the others. Each specimen is compared with one of them, as it is and mirrored. Where all agree,
or where the animal is too symmetric to tell, all are taken as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.estimate import Gaussians, independent_gaussians, robust_gaussians
from eutely.execute import Executor
from eutely.find.refine.rounds import linear_round, nuclei_as_cells
from eutely.fit.evidence import ASYMMETRIC, HAND, asymmetry
from eutely.fit.handedness import CERTAIN, mirror_odds
from eutely.fit.model import Model, joint_model
from eutely.fit.place import warp_pose
from eutely.fit.poses import MIRROR, nearest_pose, plausible_poses
from eutely.fit.soft import LARGE, WARP_COOLING, soft_warp
from eutely.frame import Frame, Points, Posed
from eutely.solver.assignment import assign
from eutely.solver.softassign import Rules

log = logging.getLogger("eutely")

TELLING = 2.0
"""Median evidence from which a cohort shows handedness. Worms have 3 to 8, round embryos 0.4 to 7,
symmetric simulated animals 0 to 2."""

TELLING_LARGE, AGREEMENT = 5.0, 0.9
"""The same for large bodies, which have 1 to 3 if symmetric and 10 and more if cells lie a fifth of
the distance of neighbours off their mirror images; and share of the specimens about which two must
agree."""

DOUBTFUL, CLEAR = 1.5, 3.0
"""Evidence from which a specimen gives rise to a closer look, and from which it needs none."""

JUDGES = 16
"""Specimens of clear handedness whose mean decides about the others."""

FEWEST = 2
"""Specimens that can be compared."""

ROUNDS = 2
"""Rounds in which the mean of the judges is found."""


def most_are(mirrored: NDArray[np.bool_]) -> bool:
    """Return the handedness of most specimens (N,); of the first one with as many either way."""
    twice = 2 * int(mirrored.sum())
    return bool(mirrored[0]) if twice == len(mirrored) else twice > len(mirrored)


def turned(specimen: Posed) -> Posed:
    """Return the mirror image of a specimen in all its poses."""
    poses = tuple(points * MIRROR for points in specimen.poses)
    return replace(specimen, poses=poses, mirrored=not specimen.mirrored)


def mirror_images(frame: Frame, settings: Estimate, executor: Executor) -> NDArray[np.bool_]:
    """Return (N,), which specimens are mirror images of a usual one; none if that is unclear."""
    none = np.zeros(len(frame), bool)
    if len(frame) < FEWEST:
        return none
    centre = reference(frame)
    first = frame.specimens[centre]
    model = single_model(frame, first, settings)
    large = np.median([len(posed) for posed in frame.specimens]) > LARGE
    # In large bodies, how well a first warp happens to fit differs by more than what tells the two
    # apart: they are fitted to the end.
    compared = executor.map(_closer if large else _evidence, frame.specimens, shared=(model,))
    evidence = np.array(list(compared))
    others = np.arange(len(frame)) != centre
    if np.median(np.abs(evidence[others])) < (TELLING_LARGE if large else TELLING):
        log.debug("the specimens are too symmetric to show mirror images: taken as they are")
        return none
    if large and not _confirmed(frame, evidence, centre, settings, executor):
        log.debug("two specimens disagree about mirror images: all are taken as they are")
        return none
    evidence[centre] = CLEAR
    signs = evidence[np.abs(evidence) >= DOUBTFUL] < 0
    if signs.all() or not signs.any():
        return none
    clear = np.flatnonzero(np.abs(evidence) >= CLEAR)
    mirrored = _by_origin(frame, evidence, centre)
    judges = clear[np.argsort(clear != centre, kind="stable")][:JUDGES].tolist()
    jury = with_signs(frame.subset(judges), mirrored[judges])
    cells, model = mean_model(jury, 0, settings, executor)
    if asymmetry(model, cells.seen()) < ASYMMETRIC:
        log.debug("the mean of specimens is too symmetric to show mirror images")
        return none
    unclear = np.flatnonzero(np.abs(evidence) < CLEAR).tolist()
    items = [frame.specimens[number] for number in unclear]
    evidence[unclear] = list(executor.map(_closer, items, shared=(model,)))
    return _by_origin(frame, evidence, centre)


def _by_origin(frame: Frame, evidence: NDArray[np.float64], centre: int) -> NDArray[np.bool_]:
    """Return (N,), which specimens are mirrored, by their evidence and by others imaged alike.

    ``centre`` is the specimen that all are compared with, which is not mirrored.
    """
    sizes = np.sqrt([len(posed) for posed in frame.specimens])
    odds = np.clip(-HAND * sizes * evidence, -CERTAIN, CERTAIN)
    odds[centre] = -CERTAIN
    for group in frame.imaged_alike():
        odds[group] = mirror_odds(odds[group])
    return np.asarray(odds > 0)


def _confirmed(
    frame: Frame,
    evidence: NDArray[np.float64],
    centre: int,
    settings: Estimate,
    executor: Executor,
) -> bool:
    """Return whether another specimen shows the same mirror images as the first one, the centre.

    Warps of large bodies may fit by chance, either way; what chance shows differs by specimen.
    """
    clearness = np.abs(evidence)
    clearness[centre] = -np.inf
    second = int(np.argmax(clearness))
    model = single_model(frame, frame.specimens[second], settings)
    others = [number for number in range(len(frame)) if number != second]
    items = [frame.specimens[number] for number in others]
    again = np.array(list(executor.map(_closer, items, shared=(model,))))
    signs = np.sign(np.where(np.arange(len(frame)) == centre, 1.0, evidence))
    return bool(np.mean(signs[others] * signs[second] == np.sign(again)) >= AGREEMENT)


def with_signs(frame: Frame, mirrored: NDArray[np.bool_]) -> Frame:
    """Return the frame with the chosen specimens (N,) mirrored."""
    if not mirrored.any():
        return frame
    rows = zip(frame.specimens, mirrored.tolist(), strict=True)
    return replace(frame, specimens=tuple(turned(one) if hand else one for one, hand in rows))


def reference(frame: Frame) -> int:
    """Return the number of a specimen of usual count and size."""
    counts = np.log([len(posed) for posed in frame.specimens])
    sizes = np.log([posed.stretch for posed in frame.specimens])
    values = np.column_stack([counts, sizes])
    return int(np.argmin(np.abs(values - np.median(values, axis=0)).sum(axis=1)))


def single_model(frame: Frame, specimen: Posed, settings: Estimate) -> Model:
    """Return the nuclei of one specimen as cells, without features."""
    points = specimen.poses[0]
    return _model(frame, nuclei_as_cells(points, frame.body.spacing), settings)


def _model(frame: Frame, means: Gaussians, settings: Estimate) -> Model:
    posed = tuple(specimen.poses[0] for specimen in frame.specimens)
    cells = Cells(posed, posed, (), frame.scores, frame.body)
    joint = independent_gaussians(means)
    return joint_model(joint, cells, settings, None, np.zeros((len(means.means), 0)))


def mean_model(
    frame: Frame, first: int, settings: Estimate, executor: Executor
) -> tuple[Cells, Model]:
    """Return the cells of a few specimens, started from the nuclei of one, and their model."""
    posed = tuple(specimen.poses[0] for specimen in frame.specimens)
    cells = Cells(posed, posed, (), frame.scores, frame.body, frame.parts)
    means = nuclei_as_cells(posed[first], frame.body.spacing)
    bare = tuple(replace(one, scores=one.scores[:, :0]) for one in frame.specimens)
    nothing = np.zeros((len(means.means), 0))
    for _ in range(ROUNDS):
        cells = linear_round(cells, bare, (means, nothing), settings, executor)
        means = robust_gaussians(cells.places(), settings)
    return cells, _model(frame, means, settings)


def _evidence(model: Model, specimen: Posed) -> float:
    """Return how much better a specimen fits as it is than mirrored.

    The difference of log-likelihoods in the nearest pose of each handedness, relative to the root
    of the number of nuclei: chance makes it vary by about that.
    """
    costs = []
    for factors in (np.ones(3), MIRROR):
        poses = [points * factors for points in specimen.poses]
        costs.append(_cost(model, nearest_pose(model, poses)))
    return (costs[1] - costs[0]) / float(np.sqrt(len(specimen)))


def _cost(model: Model, posed: Points) -> float:
    warped = soft_warp(model, posed, None, cooling=WARP_COOLING[:4])
    rules = Rules(model.freedom, model.c0(model.background.start(len(posed))))
    return assign(model.means, model.centres, warped, rules)[1]


def _closer(model: Model, specimen: Posed) -> float:
    """Return the same evidence from all plausible poses, each warped to its matches."""
    costs = []
    for hand in (False, True):
        poses: Sequence[Points] = plausible_poses(model, specimen.poses, (hand,))
        nothing = specimen.scores[:, :0]
        costs.append(min(warp_pose(model, posed, nothing, None).cost for posed in poses))
    return (costs[1] - costs[0]) / float(np.sqrt(len(specimen)))
