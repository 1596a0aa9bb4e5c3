"""Bring a specimen that lies near its cells onto them: warps to soft, then to hard matches.

A large body is first warped roughly, by some of its nuclei: a warp has few coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.align.affine import least_squares
from eutely.align.warp import fit_warp, rewarp
from eutely.candidates import PairCosts
from eutely.fit.match import REFITS, Fit, Pins, error_of, feature_term, in_view, term_costs
from eutely.fit.model import Model
from eutely.frame import Points
from eutely.geometry import between_ends
from eutely.solver.assignment import assign
from eutely.solver.softassign import Rules, centres_of, mean_places, soft_assign

WARP_COOLING = (4.0, 4.0, 2.0, 2.0, 1.0, 1.0)
"""Temperatures at which the warp is fitted to soft matches."""

LARGE = 700
"""Cells from which a body is large: nuclei may lie several neighbours off their cells before any
warp. So it is warped roughly at first, by so many nuclei and cells: every k-th."""

ROUGH, STEPS = 2.0, 8
"""Width of a cell in that rough warp, in typical distances of neighbours, and number of fits."""

OUTSIDE = (4.0, 40.0)
"""Cells beyond the ends of a specimen from which it may show a part of the body, and up to which
it may be the whole body."""

PART_ROUNDS = 2
"""Times that a part is warped by what is in view."""


def soft_warp(
    model: Model,
    posed: Points,
    pins: Pins,
    extra: PairCosts | None = None,
    cooling: Sequence[float] = WARP_COOLING,
    warped: Points | None = None,
) -> Points:
    """Warp one pose (n, 3) to soft matches; ``extra`` adds to the costs of places.

    ``warped`` is where the nuclei are at first; by default as posed.
    """
    background, means = model.background, model.means
    rules = Rules(c0=background.c0(background.start(len(posed)), np.inf), pins=pins, extra=extra)
    warped = _roughly(model, posed) if warped is None else warped
    for temperature in cooling:
        shares = soft_assign(means, model.centres, warped, rules, temperature=temperature)
        targets, weights = mean_places(shares, means, len(posed))
        warped = fit_warp(posed, targets, weights, model.goal.span)(posed)
    return warped


def _roughly(model: Model, posed: Points) -> Points:
    """Warp a large body by some of its nuclei and cells, so that nuclei far off reach their cells.

    Where cells are that wide it is the density of nuclei that matters, which some of them show.
    """
    if len(model.means) <= LARGE or not len(posed):
        return posed
    means, points = _some(model.means), _some(posed)
    variance = (ROUGH * model.body.spacing) ** 2
    wide = centres_of(np.broadcast_to(variance * np.eye(3), (len(means), 3, 3)))
    start = model.background.start(len(posed))
    rules = Rules(c0=float(model.background.c0(start, np.inf).max()))
    warped = points
    for _ in range(STEPS):
        targets, weights = mean_places(soft_assign(means, wide, warped, rules), means, len(points))
        warp = fit_warp(points, targets, weights, model.goal.span)
        warped = warp(points)
    return warp(posed)


def _some(points: Points) -> Points:
    """Return every k-th of the points (n, 3), `LARGE` or less."""
    return points[:: -(-len(points) // LARGE)]


def warp_pose(
    model: Model,
    posed: Points,
    scores: Points,
    pins: Pins,
    extra: PairCosts | None = None,
) -> Fit:
    """Warp one pose to soft matches, then to hard ones, and match it.

    ``extra`` adds to the costs of places until features are known from matches.
    """
    background, means = model.background, model.means
    rates = background.start(len(posed))
    warped = soft_warp(model, posed, pins, extra)
    fit = Fit(posed, warped, scores, np.full(len(means), -1, np.int32), np.inf, rates)
    for _ in range(REFITS):
        wider = model.loosened(fit.error)
        rules = Rules(model.freedom, model.c0(fit.rates), pins, extra)
        nuclei, _ = assign(means, wider.centres, fit.warped, rules)
        fit = replace(
            fit,
            nuclei=nuclei,
            rates=background.rates(nuclei, len(posed)),
            error=error_of(model, fit.warped, nuclei),
            warped=rewarp(posed, fit.warped, nuclei, wider.goal),
        )
        extra = term_costs(model, fit)
    wider = model.loosened(fit.error)
    rules = Rules(model.freedom, model.c0(fit.rates), pins, extra)
    nuclei, cost = assign(means, wider.centres, fit.warped, rules)
    return replace(fit, nuclei=nuclei, cost=cost)


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


def warp_whole_or_part(model: Model, posed: Points, scores: Points, pins: Pins) -> list[Fit]:
    """Warp one pose as that of the whole body, of a part of it, or both."""
    presence = model.background.presence
    outside = float(presence @ (1 - between_ends(model.means, posed, model.body.spacing)))
    fits = []
    if outside < OUTSIDE[1]:
        fits.append(warp_pose(model, posed, scores, pins))
    if outside > OUTSIDE[0]:
        fits.append(warp_part(model, posed, scores, pins))
    return fits


def from_matches(model: Model, fit: Fit, points: Points, pins: Pins) -> Fit:
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
    view = None if fit.view is None else in_view(model, fit.nuclei, fit.warped)
    return replace(
        fit,
        rates=seen.background.rates(fit.nuclei, len(posed)),
        error=error_of(model, fit.warped, fit.nuclei),
        view=view,
    )
