"""Fit a specimen whose place is known again: to other cells, from its own matches, around pins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eutely.align.affine import least_squares
from eutely.candidates import PairCosts
from eutely.fit.evidence import Weighed, weigh
from eutely.fit.hypothesis import Prior
from eutely.fit.match import Fit, Pins, match_jointly
from eutely.fit.model import Model
from eutely.fit.warp import warp_part, warp_pose, warp_whole_or_part
from eutely.frame import Points, Posed
from eutely.solver.meanfield import settle
from eutely.solver.softassign import Rules, soft_assign

FEWEST_MATCHES = 12
"""Matches from which a specimen is posed again by them."""

MOVED, MOST_TIMES = 0.5, 4
"""Typical distances of neighbours by which a pose by its own matches must move some nucleus, or
else the warp has done it already; and such poses at most."""


def place_standing(model: Model, specimen: Posed) -> Weighed:
    """Fit a specimen whose pose is right; where not known, find whether it shows a part."""
    if specimen.part is None:
        found = warp_whole_or_part(model, specimen.poses[0], specimen.scores, None)
    else:
        found = [match_standing(model, specimen)]
    fits = [match_jointly(model, fit, probabilities=True) for fit in found]
    points = specimen.unstretched()
    return max((weigh(model, fit, points) for fit in fits), key=lambda one: one.log)


def match_standing(model: Model, specimen: Posed) -> Fit:
    """Warp a specimen whose pose is right and match it, each cell by itself.

    Of several poses the one that fits best is taken.
    """
    warp = warp_part if specimen.part else warp_pose
    fits = [warp(model, posed, specimen.scores, None) for posed in specimen.poses]
    return min(fits, key=lambda fit: fit.cost)


def place_again(model: Model, fit: Fit, pins: Pins = None) -> Fit:
    """Fit a specimen whose place is known to other cells, those of a shifted atlas for instance."""
    if fit.view is None:
        again = warp_pose(model, fit.warped, fit.scores, pins)
    else:
        again = warp_part(model, fit.warped, fit.scores, pins, fit.nuclei)
    return match_jointly(model, again, pins=pins, probabilities=True)


def refitted(
    model: Model, weighed: Weighed, points: Points, prior: Prior | None = None, pins: Pins = None
) -> Weighed:
    """Pose a specimen again by its own matches, as long as that makes it likelier.

    The warp cannot undo a pose that is far off, but even then many matches are right. ``points``
    (n, 3) are the nuclei in their own unit.
    """
    for _ in range(MOST_TIMES):
        fit = weighed.fit
        cells = np.flatnonzero(fit.nuclei >= 0)
        if len(cells) < FEWEST_MATCHES:
            break
        matrix, shift = least_squares(points[fit.nuclei[cells]], model.means[cells])
        posed = points @ matrix.T + shift
        moved = np.linalg.norm(posed - fit.posed, axis=1).max()
        if moved < MOVED * model.body.spacing:
            break
        again = place_again(model, replace(fit, warped=posed), pins)
        other = weigh(model, again, points, prior)
        if other.log <= weighed.log:
            break
        weighed = other
    return weighed


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
