"""Bring one specimen into the frame of an atlas and match it: pose, warp, mean field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.align.warp import rewarp
from eutely.candidates import PairCosts
from eutely.features import feature_costs
from eutely.fit.model import Model
from eutely.fit.noise import likeliest_error
from eutely.fit.poses import plausible_poses
from eutely.fit.rates import LOWEST_RATE, Rates
from eutely.fit.soft import FIRST_COOLING, WARP_COOLING, soft_warp
from eutely.fit.spurious import BENEFIT, crowd, oddity
from eutely.fit.view import in_view
from eutely.frame import Points, Posed
from eutely.informative import MANY
from eutely.solver.assignment import assign
from eutely.solver.meanfield import COOLING, Crowd, settle
from eutely.solver.softassign import Centres, Rules, Shares, soft_assign
from eutely.specimen import UNMATCHED

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


class Rival(NamedTuple):
    """Another fit of the same specimen, by another view, pose or handedness.

    Attributes
    ----------
    cells
        (n,) int32, the cell of each nucleus, or -1.
    mirrored
        whether the specimen is a mirror image by it.
    cost
        minus its log-likelihood, see `eutely.fit.evidence.surprise`.
    """

    cells: NDArray[np.int32]
    mirrored: bool
    cost: float


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
    mirror
        log-likelihood by which the mirror image of the specimen fits better than the specimen as it
        is; None where that is clear, or was not asked for.
    rivals
        other fits that it was compared with, and first this one as it was then.
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
    mirror: float | None = None
    rivals: tuple[Rival, ...] = ()

    def __repr__(self) -> str:
        matched = int((self.nuclei >= 0).sum())
        return f"<Fit: {matched} of {len(self.nuclei)} cells, {len(self.posed)} nuclei>"

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

    def among(self, count: int) -> Fit:
        """Return the fit to the first ``count`` cells; further ones have no nucleus yet."""
        further = max(count - len(self.nuclei), 0)
        nuclei = np.pad(self.nuclei[:count], (0, further), constant_values=UNMATCHED)
        view = None if self.view is None else np.pad(self.view[:count], (0, further))
        if further:  # neither expected nor likely anywhere, before it is matched
            return replace(self, nuclei=nuclei, view=view, expected=None, shares=None)
        expected = None if self.expected is None else self.expected[:count]
        shares = self.shares
        if shares is not None:
            end = shares.starts[count]
            shares = Shares(shares.starts[: count + 1], shares.points[:end], shares.values[:end])
        return replace(self, nuclei=nuclei, view=view, expected=expected, shares=shares)


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


def place(model: Model, specimen: Posed, pins: NDArray[np.int32] | None = None) -> Fit:
    """Choose the pose that fits best, warp the specimen and match it with the mean field.

    Parameters
    ----------
    model
        the cells.
    specimen
        in its plausible poses.
    pins
        (n,), the cell that each nucleus must be, see `eutely.solver.softassign.Rules`.
    """
    fit = match_singly(model, specimen, pins)
    return match_jointly(model, fit, pins=pins, probabilities=True)


def match_singly(model: Model, specimen: Posed, pins: NDArray[np.int32] | None = None) -> Fit:
    """Choose a pose, warp to soft, then to hard matches; each cell counts by itself."""
    poses = plausible_poses(model, specimen.poses)
    fits = [warp_pose(model, posed, specimen.scores, pins) for posed in poses]
    if len(fits) == 1 or not model.complete:
        return min(fits, key=lambda fit: fit.cost)
    return min(fits, key=lambda fit: cost_at_usual_rates(model, fit, pins))


def cost_at_usual_rates(model: Model, fit: Fit, pins: NDArray[np.int32] | None) -> float:
    """Return the cost by which poses compare: with the rates of a specimen not known yet.

    In a wrong pose much seems to be missing and spurious, which would be cheap by its own rates.
    """
    wider = model.loosened(fit.error)
    c0 = model.c0(model.background.start(len(fit.posed)))
    rules = Rules(model.freedom, c0, pins, term_costs(model, fit))
    return assign(model.means, wider.centres, fit.warped, rules)[1]


def warp_pose(
    model: Model,
    posed: Points,
    scores: Points,
    pins: NDArray[np.int32] | None,
    extra: PairCosts | None = None,
    begun: Points | None = None,
) -> Fit:
    """Warp one pose to soft matches, then to hard ones, and match it.

    ``extra`` adds to the costs of places until features are known from matches. ``begun`` is the
    pose after the temperatures `FIRST_COOLING`, if these have been gone through already.
    """
    background, means = model.background, model.means
    rates = background.start(len(posed))
    cooling = WARP_COOLING if begun is None else WARP_COOLING[len(FIRST_COOLING) :]
    warped = soft_warp(model, posed, pins, extra, cooling, begun)
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


def match_jointly(
    model: Model,
    fit: Fit,
    *,
    refits: int = REFITS,
    pins: NDArray[np.int32] | None = None,
    probabilities: bool = False,
) -> Fit:
    """Match a warped specimen with cells that predict each other, and refine its warp.

    Parameters
    ----------
    model
        the cells.
    fit
        the specimen, warped; from `match_singly`.
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
