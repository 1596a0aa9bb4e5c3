"""Place a new specimen: whole or partial, as it is or mirrored, by what makes it likeliest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eutely.align.affine import least_squares
from eutely.align.target import pose_rules
from eutely.align.warp import rewarp
from eutely.fit.again import FEWEST_MATCHES, Pins, posed_again, warp_part
from eutely.fit.evidence import (
    HAND,
    MIRRORED,
    PLACED,
    is_mirrored,
    mirror_fit,
    support,
    surprise,
)
from eutely.fit.model import Model
from eutely.fit.place import (
    REFITS,
    Fit,
    Rival,
    cost_at_usual_rates,
    error_of,
    feature_term,
    match_jointly,
    out_of_view,
    warp_pose,
)
from eutely.fit.poses import LACKING, RIVAL, plausible_poses, without_an_end
from eutely.fit.soft import FIRST_COOLING, soft_warp
from eutely.fit.view import MANY, Unposed, in_view, search
from eutely.frame import Points, Posed
from eutely.solver.assignment import assign
from eutely.solver.softassign import Rules
from eutely.specimen import UNMATCHED

MOST_POSES, FEW_POSES = 16, 2
"""Poses of the whole body that are matched at most, and where a specimen hardly shows all of it."""

SURE = 1.15
"""Poses whose soft warp costs up to so many times the least are warped to hard matches."""

CLEAR = 120.0
"""Log-likelihood by which a pose must beat its mirror image to be taken without a closer look. In
worms it is 240 and more, in heads less than 100, either way."""

AS_IS = float(np.log(1 / MIRRORED - 1) / HAND)
"""Log-likelihood by which a mirror image must fit better to be taken."""

LOOSE, SPARSE = 0.3, 0.1
"""Error in typical distances of neighbours, and rate of spurious nuclei, from which a fit of the
whole body is in doubt: the specimen may show a part. Half that rate of cells may be out of view."""

AT_PLACE = 2.0
"""Support of a specimen of many nuclei from which no other view is searched for; with less, the
search is repeated with more poses. Parts of worms have 2 and more at their place, and up to 1.5 at
others."""

MOST_FITS = 3
"""Fits of a specimen of many nuclei that are matched jointly, besides mirror images."""


def place_in_view(
    model: Model, specimen: Posed, unposed: Unposed, pins: Pins = None
) -> tuple[Fit, float]:
    """Find the view and handedness that fit best, warp the specimen and match it.

    Returns its support as well, see `eutely.fit.evidence.support`.

    Parameters
    ----------
    model
        all cells of an atlas.
    specimen
        in its plausible poses, brought to the size of the atlas.
    unposed
        the same specimen in its own size.
    pins
        (n,), the cell that each nucleus must be, see `eutely.solver.softassign.Rules`.
    """
    fit = _whole_or_part(model, specimen, unposed, pins)
    fit = match_jointly(model, fit, pins=pins, probabilities=True)
    return posed_again(model, fit, unposed.points, pins)


def settle_view(model: Model, specimen: Posed, unposed: Unposed) -> Fit:
    """Find the view and handedness that fit best, each cell by itself; see `place_in_view`.

    Views are searched in any case: the mean of few specimens is so wide that a part which is
    stretched over the whole body leaves hardly any nucleus over.
    """
    return _whole_or_part(model, specimen, unposed, None, doubt=True)


def _whole_or_part(
    model: Model, specimen: Posed, unposed: Unposed, pins: Pins, *, doubt: bool = False
) -> Fit:
    """Return the best fit, each cell by itself.

    Views are searched unless the whole body and its handedness are clear; with ``doubt`` always.
    """
    most = MOST_POSES if unposed.whole else FEW_POSES
    poses = plausible_poses(model, specimen.poses, unposed.hands, most)
    likely = _likely(model, poses, pins) if len(poses) > 1 else [(poses[0], None)]
    fits = [warp_pose(model, posed, specimen.scores, pins, begun=begun) for posed, begun in likely]
    many = len(unposed.points) >= MANY
    if many:
        fits = _by_places(model, fits, pins)
    costs = [cost_at_usual_rates(model, fit, pins) for fit in fits] if len(fits) > 1 else [0.0]
    best = fits[int(np.argmin(costs))]
    # Many nuclei show their handedness by their places: where these leave it open, costs that
    # include features do not settle it, however far apart they are.
    ranked = [fits[number] for number in np.argsort(costs, kind="stable")]
    close = ranked if many else ranked[: int((np.array(costs) < min(costs) + CLEAR).sum())]
    rivals = [best, *_other_hand(best, close)]
    if len(specimen.poses) == 1:
        return best
    if not doubt and all(_shows_all(model, fit) for fit in rivals):
        best, placed = _as_whole(model, rivals, unposed, pins)
        # A part that is stretched over the body may leave no nucleus over, but lies nowhere well.
        if placed > PLACED:
            return best
    if many and not doubt and (ends := _ends(model, rivals, pins)):
        best, placed = _likeliest_hand(model, [*rivals, *ends], unposed, pins)
        if placed >= AT_PLACE:
            return best
        rivals.append(best)
    best, placed = _searched(model, rivals, unposed, pins)
    if placed < (AT_PLACE if many else PLACED):
        best, _ = _searched(model, [best], unposed, pins, thorough=True)
    return best


def _as_whole(model: Model, rivals: list[Fit], unposed: Unposed, pins: Pins) -> tuple[Fit, float]:
    """Return the best fit of a body that seems to show all cells, and its support.

    The support of a body of the usual shape that has no rival is not computed: inf.
    """
    if len(rivals) > 1:
        return _least_surprising(model, rivals, unposed.points, pins)
    best = _unless_cut(model, rivals[0], unposed.points, pins)
    if unposed.whole:
        return best, np.inf
    return best, support(model, match_jointly(model, best, refits=1, pins=pins), unposed.points)


def _unless_cut(model: Model, whole: Fit, points: Points, pins: Pins) -> Fit:
    """Return the fit of a whole body, or a likelier one of a part of it."""
    if len(points) > (1 - LACKING) * model.background.presence.sum():
        return whole
    # Compared by what each shows: a cell is missing from a whole body as well.
    shown = replace(whole, view=in_view(model, whole.nuclei, whole.warped))
    parts = [warp_part(model, whole.posed, whole.scores, pins), *_ends(model, [whole], pins)]
    best = _likeliest(model, [shown, *parts], points)[0]
    if best is shown:
        return whole
    best = _least_surprising(model, [shown, best], points, pins)[0]
    if best.warped is whole.warped:
        return replace(whole, rivals=best.rivals)
    return best


def _ends(model: Model, fits: list[Fit], pins: Pins) -> list[Fit]:
    """Return fits of all but one end of the body, by fits of the whole of it."""
    return [
        warp_part(model, posed, fit.scores, pins)
        for fit in fits
        for posed in without_an_end(model, fit.posed)
    ]


def _likeliest_hand(
    model: Model, fits: list[Fit], unposed: Unposed, pins: Pins
) -> tuple[Fit, float]:
    """Return the likeliest of some fits, or its mirror image, and its support."""
    likely = _likeliest(model, fits, unposed.points)[:1]
    if len(unposed.hands) > 1:
        likely += _mirror_images(model, likely, unposed.points, pins)
    return _least_surprising(model, likely, unposed.points, pins)


def _searched(
    model: Model, rivals: list[Fit], unposed: Unposed, pins: Pins, *, thorough: bool = False
) -> tuple[Fit, float]:
    """Search views, fit them and their mirror images; return the likeliest of all and its support.

    ``rivals`` are fits to compare them with.
    """
    points, scores = unposed.points, rivals[0].scores
    views = search(model, unposed, scores, thorough=thorough)
    fits = [*rivals, *(warp_part(model, view(points), scores, pins) for view in views)]
    if len(points) >= MANY:
        fits = _likeliest(model, fits, points)[:MOST_FITS]
    if len(unposed.hands) > 1:
        likely = _likeliest(model, fits, points)
        many = len(points) >= MANY
        fits += _mirror_images(model, likely[:1] if many else likely, points, pins)
    return _least_surprising(model, fits, points, pins)


def _likeliest(model: Model, fits: list[Fit], points: Points) -> list[Fit]:
    """Return fits in the order of how likely they make a specimen, the likeliest first."""
    return sorted(fits, key=lambda fit: surprise(model, fit, points))


def _likely(model: Model, poses: list[Points], pins: Pins) -> list[tuple[Points, Points | None]]:
    """Return the poses that match best after a first soft warp, at least one of each handedness.

    Returns the warped nuclei of each as well.
    """
    broad = model.broad()
    rules = pose_rules(broad, pins)
    base = broad.heights[0] * min(len(model.means), len(poses[0]))
    warped = [soft_warp(model, posed, pins, cooling=FIRST_COOLING) for posed in poses]
    costs = [base + assign(model.means, broad, points, rules)[1] for points in warped]
    first = poses[int(np.argmin(costs))]
    # Features may decide between a pose and its mirror image.
    hands = [bool(np.linalg.det(posed.T @ first) < 0) for posed in poses]
    least = {hand: min(c for c, h in zip(costs, hands, strict=True) if h == hand) for hand in hands}
    return [
        (posed, points)
        for posed, points, cost, hand in zip(poses, warped, costs, hands, strict=True)
        if cost <= SURE * min(costs) or (cost == least[hand] and cost <= RIVAL * min(costs))
    ]


def _by_places(model: Model, fits: list[Fit], pins: Pins) -> list[Fit]:
    """Return the fits without those of the other handedness, where places alone make it clear.

    Features cannot: a matching that is loose in its places can follow them too well.
    """
    if not any(np.linalg.det(fit.posed.T @ fits[0].posed) < 0 for fit in fits):
        return fits
    bare = [replace(fit, scores=fit.scores[:, :0]) for fit in fits]
    costs = [cost_at_usual_rates(model, fit, pins) for fit in bare]
    best = fits[int(np.argmin(costs))]
    return [
        fit
        for fit, cost in zip(fits, costs, strict=True)
        if cost < min(costs) + CLEAR or np.linalg.det(fit.posed.T @ best.posed) > 0
    ]


def _other_hand(best: Fit, fits: Sequence[Fit]) -> list[Fit]:
    """Return the first fit that is a mirror image of the best, if any."""
    return [fit for fit in fits if np.linalg.det(fit.posed.T @ best.posed) < 0][:1]


def _shows_all(model: Model, fit: Fit) -> bool:
    """Return whether a fit leaves no doubt that the specimen shows the whole body.

    Nearly all nuclei are cells, and cells are missing all over the body, if at all: a part that is
    stretched over the body leaves nuclei over. Few nuclei always leave some doubt: about the part
    that they show, and about their handedness.
    """
    if len(fit.posed) < MANY or fit.error >= LOOSE * model.body.spacing:
        return False
    if fit.rates.spurious >= SPARSE:
        return False
    return out_of_view(in_view(model, fit.nuclei, fit.warped)) < SPARSE / 2


def _mirror_images(model: Model, fits: list[Fit], points: Points, pins: Pins) -> list[Fit]:
    """Return the same fits with the mirror image of each cell, fitted again.

    A body is nearly the mirror image of itself. So a fit in one handedness shows where to look in
    the other, and what is compared is equally well fitted.
    """
    image = mirror_fit(model).nuclei
    matches = [np.where(image >= 0, fit.nuclei[image], UNMATCHED).astype(np.int32) for fit in fits]
    return [
        _from_matches(model, replace(fit, nuclei=nuclei), points, pins)
        for fit, nuclei in zip(fits, matches, strict=True)
        if (nuclei >= 0).sum() >= FEWEST_MATCHES
    ]


def _from_matches(model: Model, fit: Fit, points: Points, pins: Pins) -> Fit:
    """Warp a specimen by the matches of ``fit``, then by those that follow."""
    cells = np.flatnonzero(fit.nuclei >= 0)
    matrix, shift = least_squares(points[fit.nuclei[cells]], model.means[cells])
    posed = points @ matrix.T + shift
    seen = model.through(in_view(model, fit.nuclei, posed))
    fit = replace(fit, posed=posed, warped=posed, error=0.0)
    for _ in range(REFITS + 1):
        fit = replace(fit, warped=rewarp(posed, fit.warped, fit.nuclei, model.goal))
        c0 = seen.c0(seen.background.start(len(posed)))
        rules = Rules(seen.freedom, c0, pins, feature_term(model, fit))
        nuclei, cost = assign(model.means, seen.centres, fit.warped, rules)
        fit = replace(fit, nuclei=nuclei, cost=cost)
    return replace(
        fit,
        rates=seen.background.rates(fit.nuclei, len(posed)),
        error=error_of(model, fit.warped, fit.nuclei),
        view=in_view(model, fit.nuclei, fit.warped),
    )


def _least_surprising(
    model: Model, fits: list[Fit], points: Points, pins: Pins
) -> tuple[Fit, float]:
    """Return the fit under which the nuclei are likeliest once they are matched jointly.

    The specimen is taken as it is unless its mirror image is clearly likelier. Returns the support
    of that fit as well.
    """
    matched = [match_jointly(model, fit, refits=1, pins=pins) for fit in fits]
    costs = np.array([surprise(model, fit, points) for fit in matched])
    mirrored = np.array([is_mirrored(points, fit.warped) for fit in matched])
    closest = [int(np.argmin(np.where(hand, costs, np.inf))) for hand in (mirrored, ~mirrored)]
    if mirrored.any() and not mirrored.all() and abs(costs[closest[0]] - costs[closest[1]]) < CLEAR:
        # The best of each handedness are fitted to the end before they are compared.
        for at in closest:
            matched[at] = match_jointly(model, fits[at], pins=pins)
            costs[at] = surprise(model, matched[at], points)
    at = int(np.argmin(costs + AS_IS * mirrored))
    rivals = [
        Rival(fit.cells, bool(hand), float(cost))
        for fit, hand, cost in zip(matched, mirrored, costs, strict=True)
    ]
    best = replace(fits[at], rivals=(rivals.pop(at), *rivals))
    placed = support(model, matched[at], points)
    if mirrored.all() or not mirrored.any():
        return best, placed
    evidence = float(costs[~mirrored].min() - costs[mirrored].min())
    return replace(best, mirror=evidence), placed
