"""Fit a specimen at a place that is known, or again from its own matches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.align.affine import least_squares
from eutely.candidates import PairCosts
from eutely.fit.evidence import PLACED, support, surprise
from eutely.fit.model import Model
from eutely.fit.place import Fit, feature_term, match_jointly, warp_pose
from eutely.fit.view import MANY, in_view
from eutely.frame import Points, Posed
from eutely.solver.assignment import assign
from eutely.solver.meanfield import settle
from eutely.solver.softassign import Rules, soft_assign

PART_ROUNDS = 2
"""Times that a part is warped by what is in view."""

WELL = 1.0
"""Support from which a specimen lies well enough; with less it is posed again. Parts of worms have
2 and more at their place, embryos 1.4."""

MOST_TIMES, FEWEST_MATCHES = 3, 12
"""Times that a specimen is posed again at most, and matches that this takes."""

MOST_TIMES_AS_PART, GAIN = 6, 10.0
"""The same for a part of many nuclei, however well it lies: one end of it may be off. It is posed
again as long as that makes it likelier by so many units of log-likelihood."""

Pins = NDArray[np.int32] | None


def warp_part(
    model: Model,
    posed: Points,
    scores: Points,
    pins: Pins,
    nuclei: NDArray[np.int32] | None = None,
) -> Fit:
    """Warp a specimen that shows a part of the body: cells out of view are not missing.

    ``nuclei`` (m,) is a matching to start from; by default that of the pose as it is.
    """
    rates = model.background.start(len(posed))
    if nuclei is None:
        rules = Rules(model.freedom, model.c0(rates), pins)
        nuclei, _ = assign(model.means, model.broad(), posed, rules)
    warped = posed
    for _ in range(PART_ROUNDS):
        seen = model.through(in_view(model, nuclei, warped))
        extra = feature_term(model, Fit(posed, posed, scores, nuclei, np.inf, rates))
        fit = warp_pose(seen, posed, scores, pins, extra)
        nuclei, warped = fit.nuclei, fit.warped
    return replace(fit, view=in_view(model, nuclei, warped))


def place_standing(model: Model, specimen: Posed) -> Fit:
    """Fit a specimen whose first pose is right, whichever part of the body it shows."""
    return match_jointly(model, match_part(model, specimen), probabilities=True)


def match_part(model: Model, specimen: Posed) -> Fit:
    """Warp a part of the body whose pose is right and match it, each cell by itself."""
    return warp_part(model, specimen.poses[0], specimen.scores, None)


def place_again(model: Model, fit: Fit, pins: Pins = None) -> Fit:
    """Fit a specimen whose place is known to other cells, those of a shifted atlas for instance."""
    if fit.view is None:
        again = warp_pose(model, fit.warped, fit.scores, pins)
    else:
        again = warp_part(model, fit.warped, fit.scores, pins, fit.nuclei)
    again = match_jointly(model, again, pins=pins, probabilities=True)
    return replace(again, mirror=fit.mirror, rivals=fit.rivals)


def posed_again(model: Model, fit: Fit, points: Points, pins: Pins = None) -> tuple[Fit, float]:
    """Pose a specimen that lies badly again by its own matches, while that makes it likelier.

    The warp cannot undo a pose that is far off, but even then many matches are right. ``points``
    (n, 3) are the nuclei in their own unit. Returns the support of the fit as well.
    """
    part = fit.view is not None and len(points) >= MANY
    well, gain = (np.inf, GAIN) if part else (WELL, 0.0)
    placed = support(model, fit, points)
    for _ in range(MOST_TIMES_AS_PART if part else MOST_TIMES):
        cells = np.flatnonzero(fit.nuclei >= 0)
        if len(cells) < FEWEST_MATCHES or not PLACED < placed < well:
            break
        matrix, shift = least_squares(points[fit.nuclei[cells]], model.means[cells])
        again = place_again(model, replace(fit, warped=points @ matrix.T + shift), pins)
        gained = surprise(model, fit, points) - surprise(model, again, points)
        if gained <= 0:
            break
        fit, placed = again, support(model, again, points)
        if gained < gain:
            break
    return fit, placed


def match_around(model: Model, fit: Fit, pins: Pins, terms: PairCosts | None) -> Fit:
    """Match a placed specimen again around pins, at its place and by its warp.

    Parameters
    ----------
    model
        all cells.
    fit
        from `match_jointly`.
    pins
        (n,), the cell that each nucleus must be.
    terms
        from `term_costs` of the same fit, which stay the same whatever is pinned.
    """
    seen = model if fit.view is None else model.through(fit.view)
    wider = seen.loosened(fit.error)
    rules = Rules(seen.freedom, seen.c0(fit.rates), pins, terms)
    settled = settle(wider.field, fit.warped, seen.means, rules, crowd=fit.crowd)
    shares = soft_assign(
        settled.expected, wider.field.centres, fit.warped, settled.rules, converged=True
    )
    return replace(
        fit, nuclei=settled.nuclei, cost=settled.cost, expected=settled.expected, shares=shares
    )
