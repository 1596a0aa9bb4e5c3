"""The poses of a cohort: which specimens are mirror images or parts of the body, and how all lie.

Every specimen is placed in the nuclei of a usual one, then in the mean of those that fit, by the
same hypotheses and evidence as a specimen in an atlas.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from eutely.align.affine import least_squares
from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.errors import EutelyError
from eutely.estimate import independent_gaussians, robust_gaussians
from eutely.features import cell_means
from eutely.find.refine.grow import settled
from eutely.find.refine.rounds import linear_round, nuclei_as_cells
from eutely.fit.evidence import PLACED, Weighed
from eutely.fit.hypothesis import CERTAIN, WITNESS, Hands
from eutely.fit.mirror import (
    ASYMMETRIC,
    MIRROR,
    MIXED,
    UNRELATED,
    asymmetry,
    mirror_log_odds,
    unlike_most,
)
from eutely.fit.model import Model, joint_model, model_of_nuclei
from eutely.fit.posterior import Target, best_of_hands
from eutely.frame import Body, Frame, Posed
from eutely.geometry import spacing
from eutely.steps import Context, step

log = logging.getLogger("eutely")

DECILE, COMPLETE, ODD_SHAPE = 0.9, 0.85, 0.3
"""Share of the nuclei of the most complete specimens (their ninth decile) below which a specimen
may show a part, and logarithm of a ratio of lengths from which it may."""

TELLING, CLEAR = 2.0, 3.0
"""Log-likelihood per root of the number of nuclei, by which chance makes handednesses differ: the
median from which a cohort shows handedness, and that of a specimen that needs no closer look."""

FOUNDERS, FEWEST_FOUNDERS = 16, 3
"""Specimens that make a mean at most, and those from which it shows handedness."""

ROUNDS = 2
"""Rounds in which a mean is found."""

PASSES = 3
"""Means in which specimens are placed, at most."""

SHARE = 0.15
"""Share of the usual support of specimens by which others must do better than `PLACED`: those that
show another part of the body fit nowhere, and by chance a little."""

MATCHING = 0.5
"""Share of the specimens, and more, that must match a common body."""


Placements = dict[bool, Weighed]
"""Handedness (whether it is a mirror image) -> how a specimen lies in a mean."""


def unsettled(frame: Frame) -> list[int]:
    """Return the specimens that fit nowhere in the others: they are left in all their poses."""
    return [at for at, posed in enumerate(frame.specimens) if len(posed.poses) > 1]


def possible_parts(frame: Frame, sizes: NDArray[np.float64], *, known: bool) -> NDArray[np.bool_]:
    """Return (N,), the specimens that may show a part of the body, by counts and extents."""
    counts = np.array([len(posed) for posed in frame.specimens])
    complete = counts >= COMPLETE * np.quantile(counts, DECILE)
    length, width = np.log(sizes / np.median(sizes[complete], axis=0)).T
    apart = np.abs(length - width)
    if known:
        apart = np.maximum(apart, np.maximum(np.abs(length), np.abs(width)))
    parts = ~complete | (apart >= ODD_SHAPE)
    parts[np.argmax(counts)] &= not parts.all()  # the most complete one to start from
    return np.asarray(parts)


@step("refine.common", "refine.rare", "estimate")
def settled_poses(context: Context, frame: Frame, sizes: NDArray[np.float64], known: bool) -> Frame:
    """Place all specimens in a usual one, then those in doubt in the mean of those that fit.

    Parameters
    ----------
    context
        settings and executor.
    frame
        all specimens, brought to the same length and width.
    sizes
        (N, 2), length and width of each specimen as it is.
    known
        whether the unit of all specimens is known, so that they have one scale.
    """
    parts = possible_parts(frame, sizes, known=known)
    whole = np.flatnonzero(~parts).tolist()
    frame = _resized(frame, sizes, whole)
    first = whole[_usual(frame.subset(whole))]
    every = list(range(len(frame)))
    hands: Hands = (False, True)
    freedom = context.settings.estimate.freedom
    usual = frame.specimens[first]
    # Features of one specimen are no means: a loose matching follows them too well.
    model = model_of_nuclei(usual.poses[0], usual.scores[:, :0], frame.body, freedom)
    found = dict(zip(every, _placed_in(context, model, frame, every, known, hands), strict=True))
    evidence = [np.array([_odds(found[at]) for at in every])]
    evidence[0][first] = -CERTAIN
    others = np.abs(np.delete(evidence[0], first))
    count = float(np.median([len(posed) for posed in frame.specimens]))
    chance = min(np.sqrt(count) / WITNESS, CERTAIN / (2 * CLEAR))
    if len(others) and np.median(others) < TELLING * chance:
        log.info("the specimens are too symmetric to show mirror images: taken as they are")
        hands = (False,)
    odds = _settled_odds(frame, evidence, hands)
    # One specimen shows too little to tell which whole ones do not match it.
    fitting = sorted({*whole, *_fitting(found, odds)})
    for _ in range(PASSES):
        well = set(_fitting(found, odds))
        doubtful = [
            at
            for at in every
            if parts[at]
            or at not in well
            or abs(odds[at]) < CLEAR * chance
            or bool(odds[at] > 0) not in found[at]
        ]
        if not doubtful or len(frame) <= FEWEST_FOUNDERS:
            break
        current = _with_placements(frame, found, odds)
        clear = [at for at in fitting if abs(odds[at]) >= CLEAR * chance]
        clear = clear if len(clear) >= FEWEST_FOUNDERS else fitting
        rank = {at: (parts[at], -_chosen(found[at], float(odds[at])).support) for at in clear}
        founders = sorted(clear, key=rank.__getitem__)[:FOUNDERS]
        cells, model = _mean(current.subset(founders), context)
        if len(hands) > 1 and asymmetry(model, cells.seen()) < ASYMMETRIC:
            log.info("the mean of specimens is too symmetric to show mirror images")
            hands = (False,)
        again = _placed_in(context, model, frame, doubtful, known, hands)
        found |= dict(zip(doubtful, again, strict=True))
        latest = evidence[-1].copy()
        latest[doubtful] = [_odds(found[at]) for at in doubtful]
        evidence.append(latest)
        odds = _settled_odds(frame, evidence, hands)
        before, fitting = fitting, _fitting(found, odds)
        log.info("%d of %d specimens match a common body", len(fitting), len(frame))
        if fitting == before:
            break
    _check_matching(len(frame) - len(fitting), len(frame))
    kept = {at: found[at] for at in fitting}
    settled_frame = _as_most(_with_placements(frame, kept, odds))
    doubts = _other_hands(frame, evidence, odds, hands).tolist()
    rows = zip(settled_frame.specimens, doubts, strict=True)
    specimens = tuple(replace(one, other_hand=doubt) for one, doubt in rows)
    return replace(settled_frame, specimens=specimens)


def _other_hands(
    frame: Frame,
    evidence: Sequence[NDArray[np.float64]],
    odds: NDArray[np.float64],
    hands: Hands,
) -> NDArray[np.float64]:
    """Return (N,), the probability that each specimen has another handedness than it was given.

    Where sides are too alike, all are taken as they are, and any one of them may differ: never is
    that less probable than that specimens of one origin differ.
    """
    if len(hands) > 1:
        return np.asarray(expit(-np.abs(odds)))
    one_origin = len({*frame.origins}) == 1 and frame.origins[0] != ""
    shown = np.asarray(np.mean(evidence, axis=0))
    return np.maximum(unlike_most(shown, MIXED if one_origin else UNRELATED), MIXED)


def _settled_odds(
    frame: Frame, evidence: Sequence[NDArray[np.float64]], hands: Hands
) -> NDArray[np.float64]:
    """Return (N,), log-odds that specimens are mirrored, by all means so far and their origins.

    A single mean may prefer either handedness by chance.
    """
    if len(hands) == 1:
        return np.full(len(frame), -CERTAIN)
    odds = np.asarray(np.mean(evidence, axis=0))
    for group in frame.imaged_alike():
        odds[group] = mirror_log_odds(odds[group])
    return odds


def _fitting(found: dict[int, Placements], odds: NDArray[np.float64]) -> list[int]:
    """Return the specimens that lie well."""
    supports = {at: _chosen(one, odds[at]).support for at, one in found.items()}
    usual = float(np.median([*supports.values()]))
    least = PLACED + SHARE * max(usual, 0.0)
    return [at for at, value in supports.items() if value > least]


def _chosen(placements: Placements, odds: float) -> Weighed:
    """Return the placement in the likelier handedness, if there is one."""
    return placements.get(bool(odds > 0)) or next(iter(placements.values()))


def _odds(placements: Placements) -> float:
    """Return the log-odds that a specimen is mirrored."""
    if len(placements) == 1:
        return CERTAIN if True in placements else -CERTAIN
    return float(np.clip(placements[True].log - placements[False].log, -CERTAIN, CERTAIN))


def _check_matching(left: int, total: int) -> None:
    """Raise an error if most specimens match nothing."""
    if left >= (1 - MATCHING) * total:
        raise EutelyError(
            f"the specimens do not match a common body: {left} of {total} do not fit the others; a "
            "cohort of partial specimens needs some that show most of the body"
        )


def most_are(mirrored: NDArray[np.bool_]) -> bool:
    """Return the handedness of most specimens (N,); of the first one with as many either way."""
    twice = 2 * int(mirrored.sum())
    return bool(mirrored[0]) if twice == len(mirrored) else twice > len(mirrored)


def _as_most(frame: Frame) -> Frame:
    """Return the frame, all of it mirrored if most specimens were mirrored."""
    if not most_are(np.array([posed.mirrored for posed in frame.specimens])):
        return frame
    return replace(frame, specimens=tuple(_turned(one) for one in frame.specimens))


def _turned(specimen: Posed) -> Posed:
    """Return the mirror image of a specimen in all its poses."""
    poses = tuple(points * MIRROR for points in specimen.poses)
    return replace(specimen, poses=poses, mirrored=not specimen.mirrored)


def _usual(frame: Frame) -> int:
    """Return the number of a specimen of usual count and size."""
    counts = np.log([len(posed) for posed in frame.specimens])
    sizes = np.log([posed.stretch for posed in frame.specimens])
    values = np.column_stack([counts, sizes])
    return int(np.argmin(np.abs(values - np.median(values, axis=0)).sum(axis=1)))


def _resized(frame: Frame, sizes: NDArray[np.float64], whole: Sequence[int]) -> Frame:
    """Return the frame of the size and spacing of whole specimens."""
    size = np.median(sizes[whole], axis=0)
    factors = (size / frame.body.size)[[0, 1, 1]]
    if all(posed.stretch == (1.0, 1.0) for posed in frame.specimens):  # each has its own size
        factors = np.ones(3)
    specimens = tuple(
        replace(
            posed,
            poses=tuple(points * factors for points in posed.poses),
            radii=posed.radii * float(np.cbrt(factors.prod())),
            stretch=(posed.stretch[0] * float(factors[0]), posed.stretch[1] * float(factors[1])),
        )
        for posed in frame.specimens
    )
    distance = float(np.median([spacing(specimens[at].poses[0]) for at in whole]))
    return replace(frame, specimens=specimens, body=Body(size, distance, frame.body.smooth))


def _mean(frame: Frame, context: Context) -> tuple[Cells, Model]:
    """Return the cells of some specimens, and their model: each cell by itself."""
    settings: Estimate = context.settings.estimate
    posed = tuple(specimen.poses[0] for specimen in frame.specimens)
    most = int(np.argmax([len(points) for points in posed]))
    cells = Cells(posed, posed, (), frame.scores, frame.body, frame.parts)
    means = nuclei_as_cells(posed[most], frame.body.spacing)
    scores = np.nan_to_num(frame.specimens[most].scores)
    for _ in range(ROUNDS):
        cells = linear_round(cells, frame.specimens, (means, scores), settings, context.executor)
        cells = settled(cells, context.settings.refine, settings)
        means, scores = robust_gaussians(cells.places(), settings), cell_means(cells.cell_scores())
    model = joint_model(independent_gaussians(means), cells, settings, cells.often(), scores)
    return cells, model._replace(complete=True)


def _placed_in(
    context: Context,
    model: Model,
    frame: Frame,
    numbers: Sequence[int],
    known: bool,
    hands: Hands,
) -> list[Placements]:
    """Place specimens in a model."""
    shared = (Target.of(model), float(known), hands)
    specimens = [frame.specimens[at] for at in numbers]
    return list(context.executor.map(best_of_hands, specimens, shared=shared))


def _with_placements(
    frame: Frame, found: dict[int, Placements], odds: NDArray[np.float64]
) -> Frame:
    """Return the frame with specimens as they are placed."""
    specimens = list(frame.specimens)
    for at, placements in found.items():
        specimen, fit = specimens[at], _chosen(placements, odds[at]).fit
        points = specimen.unstretched()
        matrix = least_squares(points, fit.posed)[0]
        growth = abs(np.linalg.det(matrix)) / (specimen.stretch[0] * specimen.stretch[1] ** 2)
        specimens[at] = replace(
            specimen,
            poses=(fit.posed,),
            radii=specimen.radii * float(np.cbrt(growth)),
            stretch=(1.0, 1.0),
            mirrored=bool(np.linalg.det(matrix) < 0),
            part=fit.view is not None,
        )
    return replace(frame, specimens=tuple(specimens))
