"""Match a warped specimen with cells that predict each other: features, odd nuclei, mean field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eutely import geometry
from eutely.align.warp import rewarp
from eutely.candidates import PairCosts
from eutely.features import feature_costs
from eutely.fit.model import Model
from eutely.fit.rates import LOWEST_RATE, Rates, likeliest_error
from eutely.fit.spurious import BENEFIT, crowd, oddity
from eutely.frame import Points
from eutely.informative import MANY
from eutely.solver.meanfield import COOLING, Crowd, settle
from eutely.solver.softassign import Centres, Rules, Shares, soft_assign
from eutely.specimen import UNMATCHED

Pins = NDArray[np.int32] | None
"""(n,), the cell that each nucleus must be, see `eutely.solver.softassign.Rules`."""

WARM = COOLING[2:]
"""Temperatures of a mean field that starts near its end."""

REFITS = 2
"""Mean fields in turn; after each but the last the warp is fitted to its matches."""

GAP, WHOLE = 0.15, 0.01
"""A cell is out of view with less than so many times the highest probability; up to this share of
the cells may be out of the view of a whole body."""


def out_of_view(view: NDArray[np.float64]) -> float:
    """Return the share of the cells that are out of a view (m,)."""
    return float((view < GAP * view.max()).mean())


@dataclass(frozen=True, eq=False)
class Fit:
    """One specimen of ``n`` nuclei in the frame of ``m`` cells.

    Attributes
    ----------
    posed
        (n, 3), its nuclei in the pose that was taken.
    warped
        (n, 3), after the warp.
    scores
        (n, d), features of its nuclei.
    nuclei
        (m,) int32, the nucleus of each cell, or -1.
    cost
        of the matching; lower fits better.
    rates
        of missing cells and spurious nuclei.
    error
        of the coordinates of its nuclei, beyond what is usual.
    crowd
        nuclei that are hardly both cells; None where none is spurious.
    shares
        probabilities of nuclei being cells, those of a nucleus sum to at most 1; None where they
        were not asked for.
    expected
        (m, 3), where each cell is expected by its neighbours; None before `match_jointly`.
    view
        (m,), how probably the specimen shows each cell; None if it shows the whole body.
    """

    posed: Points
    warped: Points
    scores: Points
    nuclei: NDArray[np.int32]
    cost: float
    rates: Rates
    error: float = 0.0
    crowd: Crowd | None = None
    shares: Shares | None = None
    expected: Points | None = None
    view: NDArray[np.float64] | None = None

    @property
    def part(self) -> NDArray[np.float64] | None:
        """(m,), the view of a specimen that shows a part; None if hardly a cell is out of view."""
        if self.view is None or out_of_view(self.view) < WHOLE:
            return None
        return self.view

    @property
    def cells(self) -> NDArray[np.int32]:
        """(n,), the cell of each nucleus, or -1."""
        cells = np.full(len(self.posed), UNMATCHED, np.int32)
        matched = np.flatnonzero(self.nuclei >= 0)
        cells[self.nuclei[matched]] = matched
        return cells


Term = Callable[[Model, Fit], PairCosts | None]
"""A part of the cost of a nucleus being a cell, besides that of its place.

Given the cells and the fit so far, it returns what it adds to the cost of nuclei being cells (minus
a log-likelihood ratio), a function of candidates, or None where it has nothing to add. Terms count
from the second matching of a specimen on, so that they can learn from the first one.
"""


def feature_term(model: Model, fit: Fit) -> PairCosts | None:
    """Cost of features: scores that do not follow those of the cell."""
    if not fit.scores.size or not model.features.size:
        return None
    # Gradients and cross-talk take many reliable matches, those with cells that are known.
    places = fit.warped if model.complete else None
    return feature_costs(model.features, fit.scores, fit.nuclei, model.freedom, places)


def oddity_term(model: Model, fit: Fit) -> PairCosts | None:
    """Cost of a nucleus whose features are those of spurious ones, whichever cell it is."""
    if fit.crowd is None or not fit.scores.size:
        return None
    kept = model.features.any(axis=0) | (fit.scores.shape[1] <= MANY)
    return PairCosts.of_points(oddity(fit.scores[:, kept], fit.nuclei, fit.crowd) - BENEFIT)


TERMS: list[Term] = [feature_term, oddity_term]
"""All terms. Append a function to add one; docs/extending.md shows how."""


def term_costs(model: Model, fit: Fit) -> PairCosts | None:
    """Return the sum of all terms; None where none has anything to add."""
    total: PairCosts | None = None
    for term in TERMS:
        costs = term(model, fit)
        if costs is not None:
            total = costs if total is None else total + costs
    return total


def match_jointly(
    model: Model,
    fit: Fit,
    *,
    refits: int = REFITS,
    pins: Pins = None,
    probabilities: bool = False,
) -> Fit:
    """Match a warped specimen with cells that predict each other, and refine its warp.

    Parameters
    ----------
    model
        the cells.
    fit
        the specimen, warped; from `eutely.fit.warp`.
    refits
        mean fields in turn; one more where nuclei may be spurious.
    pins
        (n,), the cell that each nucleus must be.
    probabilities
        whether to compute `Fit.shares` as well.
    """
    every_cell = model
    if fit.view is not None:
        model = every_cell.through(fit.view)
    spurious = fit.rates.spurious > LOWEST_RATE and bool(model.crowding.any())
    start = model.means
    cooling: tuple[float, ...] = COOLING
    for left in reversed(range(refits + spurious)):
        if spurious:
            fit = replace(fit, crowd=crowd(fit.warped, model.body.spacing, model.crowding))
        wider = model.loosened(fit.error)
        rules = Rules(model.freedom, model.c0(fit.rates), pins, term_costs(model, fit))
        settled = settle(wider.field, fit.warped, start, rules, cooling=cooling, crowd=fit.crowd)
        nuclei = settled.nuclei
        if fit.view is not None:
            view = in_view(every_cell, nuclei, fit.warped)
            fit, model = replace(fit, view=view), every_cell.through(view)
        fit = replace(
            fit,
            nuclei=nuclei,
            cost=settled.cost,
            rates=model.background.rates(nuclei, len(fit.warped)),
            expected=settled.expected,
        )
        if left:
            error = error_of(model, fit.warped, nuclei, settled.expected)
            warped = rewarp(fit.posed, fit.warped, nuclei, wider.goal)
            fit = replace(fit, error=error, warped=warped)
            start, cooling = model.means.copy(), WARM
            start[nuclei >= 0] = warped[nuclei[nuclei >= 0]]
    if not probabilities:
        return fit
    # By the very costs that the matching minimises, so that the two agree.
    shares = soft_assign(
        settled.expected, wider.field.centres, fit.warped, settled.rules, converged=True
    )
    return replace(fit, shares=shares)


def error_of(
    model: Model, warped: Points, nuclei: NDArray[np.int32], places: Points | None = None
) -> float:
    """Return the error of a specimen's coordinates, estimated from its matched nuclei (m,).

    Cells are expected at ``places`` (m, 3) by their neighbours, or without them each by itself.
    """
    cells = np.flatnonzero(nuclei >= 0)
    if not (model.complete and len(cells)):
        return 0.0
    centres = model.centres if places is None else model.field.centres
    return likeliest_error(
        (model.means if places is None else places)[cells],
        Centres(*(values[cells] for values in centres)),
        warped[nuclei[cells]],
        freedom=model.freedom,
        spacing=model.body.spacing,
    )


def in_view(model: Model, nuclei: NDArray[np.int32], points: Points) -> NDArray[np.float64]:
    """Return (m,), how probably each cell is in view, by how many cells around it are matched.

    While cells are being found, those beyond the ends of a specimen are out of view: else the last
    nuclei at a cut would be taken for them, and all cells before the cut shifted by one.

    Parameters
    ----------
    model
        all cells.
    nuclei
        (m,), the nucleus of each cell, or -1.
    points
        (n, 3), the nuclei of the specimen; about as many cells are in view.
    """
    means, presence = model.means, model.background.presence
    if model.complete:
        return geometry.in_view(means, presence, nuclei, len(points))
    inside = geometry.between_ends(means, points, model.body.spacing)
    return inside * geometry.in_view(means, inside * presence, nuclei, len(points))
