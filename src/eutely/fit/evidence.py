"""How likely a fit makes a specimen: the one evidence by which all hypotheses compare."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.special import digamma, expit

from eutely.align.affine import growth, least_squares
from eutely.candidates import Candidates
from eutely.costs.near import FREE
from eutely.fit.hypothesis import WITNESS, Prior
from eutely.fit.match import Fit, Pins, feature_term
from eutely.fit.model import Model
from eutely.fit.rates import LOWEST_RATE, START, student_constant
from eutely.frame import Points
from eutely.solver.meanfield import predict
from eutely.solver.softassign import Centres, squared_distances

LEFT_OUT, PART = 0.3, 10.0
"""Log-likelihood that it costs to leave a cell out of view, and to show a part of the body at all.
A missing cell costs about ten times as much, but what is out of view lies together."""

PLACED = -0.7
"""Support from which a specimen counts as placed."""

LEAST_SHARE = 1e-4
"""Least probability of a match that counts as ambiguous."""

TRUST = (4.7, 1.33, 3.19, 0.49)
"""Log-odds that a specimen is placed right, and how they rise with the log-density around a nucleus
and that of the whole specimen, relative to the atlas, and with the support. By logistic regression
over specimens of known names: worms whole, cut and with errors, heads, embryos of the atlas's age
and of others, random points."""

FEW = 28.0
"""Log-density per nucleus by which new specimens lie worse than those of an atlas of n specimens,
times n ** 1.5: 3 to 5 by an atlas of three, 0.6 to 1.2 by one of ten (simulated animals)."""

AROUND = 12
"""Nuclei around each one, itself included, by which its place is judged."""


class Weighed(NamedTuple):
    """A fit and what the evidence says about it.

    Attributes
    ----------
    fit
        of one specimen of ``n`` nuclei.
    log
        logarithm of its probability, up to a constant, but for its handedness.
    support
        by how much, per nucleus, the cells explain the specimen better than chance does: how many
        times likelier the nuclei are at their places than as points anywhere in the body, in
        logarithms. Specimens at their right places have 0 to 4, random points and other organisms
        -1.4 or less. NaN where the model of the atlas gives no evidence.
    features
        share of features in ``log``.
    """

    fit: Fit
    log: float
    support: float
    features: float = 0.0


def weigh(model: Model, fit: Fit, points: Points, prior: Prior | None = None) -> Weighed:
    """Weigh a fit by its evidence and by what is known before.

    Parameters
    ----------
    model
        all cells.
    fit
        from `match_jointly`, or before it.
    points
        (n, 3), the nuclei in their own unit, so that poses of different scales compare.
    prior
        of the map from there into the frame of the atlas; None where the pose is known.
    """
    features = feature_likelihood(model, fit)
    likelihood = place_likelihood(model, fit, points) + features
    log = (likelihood - _view_cost(model, fit)) / WITNESS
    if prior is not None:
        log += prior.log(least_squares(points, fit.posed)[0])
    chance = len(points) * (model.background.density + growth(points, fit.warped))
    return Weighed(fit, log, (likelihood - chance) / len(points), features / WITNESS)


def _view_cost(model: Model, fit: Fit) -> float:
    """Return minus the log-prior of what a specimen shows; 0 for the whole body."""
    if fit.view is None:
        return 0.0
    return PART + LEFT_OUT * float(model.background.presence @ (1 - fit.view))


def feature_likelihood(model: Model, fit: Fit) -> float:
    """Return the log-likelihood ratio of the features of matched nuclei."""
    costs = feature_term(model, fit)
    return 0.0 if costs is None else -float(costs.on(Candidates.of_matching(fit.nuclei)).sum())


def log_likelihood(model: Model, fit: Fit, points: Points) -> float:
    """Return the log-likelihood of a specimen by a fit; parameters: see `weigh`."""
    return place_likelihood(model, fit, points) + feature_likelihood(model, fit)


def place_likelihood(model: Model, fit: Fit, points: Points) -> float:
    """Return the log-likelihood of a specimen by a fit but for features; parameters: see `weigh`.

    Places count given their neighbours: cells that move together would be as many witnesses by
    themselves. Where probabilities are known, a nucleus is explained by all cells
    that it may be, not by the one that it is matched with. Rates are the same for all fits.
    """
    wider = model.loosened(fit.error)
    shown = np.ones(len(fit.nuclei)) if fit.view is None else fit.view
    present = np.clip(model.background.presence * shown * (1 - START), LOWEST_RATE, 1 - LOWEST_RATE)
    cells = np.flatnonzero(fit.nuclei >= 0)
    expected = expected_by_matches(model, fit) if fit.expected is None else fit.expected
    costs = place_costs(model, expected, wider.field.centres, fit)
    if fit.shares is not None:
        costs = costs + np.log(_own_shares(fit))
    total = costs.sum() - np.log(present[cells]).sum() - np.log1p(-present[fit.nuclei < 0]).sum()
    total -= (len(points) - len(cells)) * (np.log(START) + model.background.density)
    return float(len(points) * growth(points, fit.warped) - total)


def expected_by_matches(model: Model, fit: Fit) -> Points:
    """Return (m, 3), where each cell is expected given the nuclei that its neighbours have."""
    places, cells = model.means.copy(), np.flatnonzero(fit.nuclei >= 0)
    places[cells] = fit.warped[fit.nuclei[cells]]
    field = model.field
    return np.asarray(predict(field.means, field.neighbours, field.predictors, places))


def _own_shares(fit: Fit) -> NDArray[np.float64]:
    """Return how probable the match of each matched cell is, in the order of the cells."""
    assert fit.shares is not None
    rows = np.repeat(np.arange(len(fit.nuclei)), np.diff(fit.shares.starts))
    own = np.full(len(fit.nuclei), LEAST_SHARE)
    chosen = fit.nuclei[rows] == fit.shares.points
    own[rows[chosen]] = np.clip(fit.shares.values[chosen], LEAST_SHARE, 1.0)
    return np.asarray(own[fit.nuclei >= 0])


def place_costs(model: Model, places: Points, centres: Centres, fit: Fit) -> NDArray[np.float64]:
    """Return minus the log-density of matched nuclei around ``places`` (m, 3) of their cells."""
    cells = np.flatnonzero(fit.nuclei >= 0)
    squared = squared_distances(
        places[cells], centres.whitening[cells], fit.warped[fit.nuclei[cells]]
    )
    costs = 0.5 * (model.freedom + 3) * np.log1p(squared / model.freedom) - centres.heights[cells]
    return np.asarray(costs - student_constant(model.freedom))


def trust(model: Model, weighed: Weighed, pins: Pins = None) -> NDArray[np.float64]:
    """Return (n,), how probable it is that the place of a specimen is right, at each nucleus.

    By how much worse nuclei lie given their neighbours than those of specimens of the atlas do: on
    average over the specimen, and around each nucleus. An atlas that explains half of a specimen
    well and the rest not at all explains none of it.

    Parameters
    ----------
    model
        all cells.
    weighed
        a fit from `match_jointly`.
    pins
        (n,), the cells of nuclei that are known for sure, which need no trust and tell of none.
    """
    fit, support = weighed.fit, weighed.support
    free = np.ones(len(fit.warped), bool) if pins is None else pins == FREE
    trusted = np.ones(len(free))
    if not free.any():
        return trusted
    apart = _unusual(model, fit)[free] + FEW / model.specimens**1.5
    places = fit.warped[free]
    around = min(AROUND, len(apart))
    near = np.asarray(KDTree(places).query(places, around)[1]).reshape(len(apart), -1)
    usual, local, whole, explained = TRUST
    odds = usual + local * apart[near].mean(axis=1) + whole * apart.mean()
    trusted[free] = expit(odds + explained * support)
    return trusted


def _unusual(model: Model, fit: Fit) -> NDArray[np.float64]:
    """Return (n,), log-density of nuclei given their neighbours, less its mean in the atlas.

    The mean follows from the model: that of a Student-t density under itself.
    """
    assert fit.expected is not None
    shown = np.ones(len(fit.nuclei)) if fit.view is None else fit.view
    presence = model.background.presence * (1 - START)
    seen = np.clip(presence * shown, LOWEST_RATE, 1 - LOWEST_RATE)
    present = np.clip(presence, LOWEST_RATE, 1 - LOWEST_RATE)
    free = model.freedom
    spread = 0.5 * (free + 3) * (digamma((free + 3) / 2) - digamma(free / 2))
    usual = model.field.centres.heights + student_constant(free) - spread + np.log(present)
    cells = np.flatnonzero(fit.nuclei >= 0)
    costs = place_costs(model, fit.expected, model.loosened(fit.error).field.centres, fit)
    spurious = np.log(START) + model.background.density - np.median(usual)
    apart = np.full(len(fit.warped), spurious)
    apart[fit.nuclei[cells]] = np.log(seen[cells]) - costs - usual[cells]
    return apart


def is_mirrored(points: Points, places: Points) -> bool:
    """Return whether nuclei (n, 3) are a mirror image of their places (n, 3) in an atlas."""
    return bool(np.linalg.det((points - points.mean(axis=0)).T @ places) < 0)
