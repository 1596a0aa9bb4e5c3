"""A first warp of a specimen, to soft matches: each nucleus is pulled to the cells around it.

A large body is first warped roughly, by some of its nuclei: a warp has few coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.align.warp import fit_warp
from eutely.candidates import PairCosts
from eutely.fit.model import Model
from eutely.frame import Points
from eutely.solver.softassign import Rules, centres_of, mean_places, soft_assign

WARP_COOLING = (4.0, 4.0, 2.0, 2.0, 1.0, 1.0)
"""Temperatures at which the warp is fitted to soft matches."""

FIRST_COOLING = WARP_COOLING[:3]
"""The first of them, after which poses are compared."""

LARGE = 700
"""Cells from which a body is large: nuclei may lie several neighbours off their cells before any
warp. So it is warped roughly at first, by so many nuclei and cells: every k-th."""

ROUGH, STEPS = 2.0, 8
"""Width of a cell in that rough warp, in typical distances of neighbours, and number of fits."""


def soft_warp(
    model: Model,
    posed: Points,
    pins: NDArray[np.int32] | None,
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
