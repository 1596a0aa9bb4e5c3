"""Place a specimen: hypotheses are fitted, and what its nuclei are is the mixture over the fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp, softmax

from eutely.annotation import NucleusCells
from eutely.fit.evidence import Weighed, is_mirrored, trust, weigh
from eutely.fit.hypothesis import CERTAIN, MIRRORED, WITNESS, Hands, Prior
from eutely.fit.match import Fit, Pins, match_jointly
from eutely.fit.mirror import mirror_images
from eutely.fit.model import Model
from eutely.fit.propose import propose
from eutely.fit.refit import FEWEST_MATCHES, refitted
from eutely.fit.scan import Landscape, landscape
from eutely.fit.warp import from_matches, warp_whole_or_part
from eutely.frame import Points, Posed
from eutely.geometry import spacing
from eutely.specimen import UNMATCHED

LAG = (400.0, 90.0)
"""Log-likelihood of places by which the best and the second fit of a handedness may be behind the
best of all to be matched jointly: a matching of each cell by itself follows features too well.
Beyond `CERTAIN` nothing is left of a fit, 200 by `WITNESS`; fits that win in the end were up to 60
behind."""

NEGLIGIBLE = 1e-4
"""Probability below which a cell is not listed as an alternative."""


class Target(NamedTuple):
    """A model prepared for placing specimens.

    Attributes
    ----------
    model
        all cells.
    cells
        as hypotheses see them.
    images
        (m,) int32, the cell at the mirror image of each cell, or -1.
    """

    model: Model
    cells: Landscape
    images: NDArray[np.int32]

    @classmethod
    def of(cls, model: Model) -> Target:
        """Prepare a model."""
        return cls(model, landscape(model), mirror_images(model))

    def ratio(self, specimen: Posed) -> float:
        """Return how many times farther cells are apart than the nuclei of a specimen."""
        return spacing(self.model.means) / max(spacing(specimen.unstretched()), 1e-300)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known about one specimen of ``n`` nuclei once they were looked at: a mixture of fits.

    Attributes
    ----------
    points
        (n, 3), its nuclei, straight, in their own unit.
    prior
        what was known before.
    weighed
        fits to the atlas, with probabilities of nuclei being cells.
    trusts
        `eutely.fit.evidence.trust` of each fit.
    mirrored_by
        probability that the specimen is a mirror image of the atlas.
    """

    points: Points
    prior: Prior
    weighed: tuple[Weighed, ...]
    trusts: tuple[NDArray[np.float64], ...]
    mirrored_by: float = 0.5

    @cached_property
    def logs(self) -> NDArray[np.float64]:
        """Logarithm of the probability of each fit, but for its handedness."""
        return np.array([one.log for one in self.weighed])

    @cached_property
    def hands(self) -> NDArray[np.bool_]:
        """Whether the specimen is a mirror image by each fit."""
        return np.array([is_mirrored(self.points, one.fit.warped) for one in self.weighed])

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Probabilities of the fits, which sum to 1."""
        logs = self.logs.copy()
        if not self.one_handed:
            for hand, share in ((True, self.mirrored_by), (False, 1 - self.mirrored_by)):
                own = self.hands == hand
                logs[own] += np.log(max(share, 1e-12)) - logsumexp(logs[own])
        return np.asarray(softmax(logs))

    @property
    def one_handed(self) -> bool:
        """Whether all fits have one handedness."""
        return bool(self.hands.all() or not self.hands.any())

    @property
    def best(self) -> int:
        """Number of the likeliest fit of the likelier handedness."""
        if self.one_handed:
            return int(np.argmax(self.logs))
        return int(np.argmax(np.where(self.hands == (self.mirrored_by > 0.5), self.logs, -np.inf)))

    @property
    def fit(self) -> Fit:
        """The likeliest fit."""
        return self.weighed[self.best].fit

    @property
    def support(self) -> float | None:
        """Support of the likeliest fit; None where not known."""
        support = self.weighed[self.best].support
        return None if np.isnan(support) else support

    @property
    def trust(self) -> NDArray[np.float64]:
        """(n,), trust in the likeliest fit."""
        return self.trusts[self.best]

    @property
    def mirrored(self) -> bool:
        """Whether the specimen is a mirror image of the atlas."""
        return bool(self.hands[self.best])

    @property
    def mirror_odds(self) -> float:
        """Log-odds that the specimen is a mirror image, by its nuclei alone."""
        if self.one_handed:
            return CERTAIN if self.hands[0] else -CERTAIN
        odds = logsumexp(self.logs[self.hands]) - logsumexp(self.logs[~self.hands])
        return float(np.clip(odds, -CERTAIN, CERTAIN))

    def nucleus_cells(self, alternatives: int | None = None) -> NucleusCells:
        """Return what each nucleus is by all fits, see `nucleus_cells`."""
        order = [self.best, *(at for at in range(len(self.weighed)) if at != self.best)]
        fits, weights = [self.weighed[at].fit for at in order], self.weights[order].tolist()
        return nucleus_cells(fits, weights, self.trust, alternatives)

    def with_fit(self, model: Model, fit: Fit, pins: Pins = None) -> Posterior:
        """Return the posterior with another fit of the same specimen and handedness.

        What the fits so far say about the other handedness stays.
        """
        found = posterior_of(
            model, self.points, [weigh(model, fit, self.points, self.prior)], self.prior, pins
        )
        return replace(found.beside(self), mirrored_by=self.mirrored_by)

    def beside(self, other: Posterior) -> Posterior:
        """Return this posterior, and what another one says about the other handedness."""
        others = np.flatnonzero(other.hands != self.mirrored)
        return replace(
            self,
            weighed=(*self.weighed, *(other.weighed[at] for at in others)),
            trusts=(*self.trusts, *(other.trusts[at] for at in others)),
        )


def place(target: Target, specimen: Posed, prior: Prior, pins: Pins = None) -> Posterior:
    """Find how a specimen lies in the frame of an atlas, and match it with the cells.

    Parameters
    ----------
    target
        the cells of an atlas.
    specimen
        in its plausible poses, brought to the size of the atlas.
    prior
        what is known before.
    pins
        (n,), the cell that each nucleus must be.
    """
    model, points = target.model, specimen.unstretched()

    def jointly(fit: Fit) -> Weighed:
        return weigh(model, match_jointly(model, fit, pins=pins, probabilities=True), points, prior)

    found = [jointly(one.fit) for one in warped(target, specimen, prior, pins)]
    hands = [is_mirrored(points, one.fit.warped) for one in found]
    for hand in sorted({*hands}):
        own = [at for at in range(len(found)) if hands[at] == hand]
        best = max(own, key=lambda at: found[at].log)
        found[best] = refitted(model, found[best], points, prior, pins)
    return posterior_of(model, points, found, prior, pins)


def warped(target: Target, specimen: Posed, prior: Prior, pins: Pins = None) -> list[Weighed]:
    """Return the likeliest fits of a specimen, each cell by itself, the likeliest first.

    Parameters: see `place`.
    """
    model, points = target.model, specimen.unstretched()
    fits = [
        fit
        for hypothesis in propose(target.cells, model, specimen, prior)
        for fit in warp_whole_or_part(model, hypothesis(points), specimen.scores, pins)
    ]
    found = _likeliest([weigh(model, fit, points, prior) for fit in fits], points)
    if len(prior.hands) > 1:
        images = _reflections(target, [one.fit for one in found], points, pins)
        found += [weigh(model, fit, points, prior) for fit in images]
        found = _likeliest(found, points)
    return found


def best_of_hands(
    target: Target, same: float, hands: Hands, specimen: Posed
) -> dict[bool, Weighed]:
    """Return the likeliest fit in each handedness that has one, each cell by itself.

    Parameters
    ----------
    target
        the cells of an atlas.
    same
        probability that specimen and atlas have the same unit.
    hands
        handednesses to consider.
    specimen
        in its plausible poses, brought to the size of the atlas.
    """
    prior = Prior.of(target.ratio(specimen), same=same, hands=hands)
    points = specimen.unstretched()
    found: dict[bool, Weighed] = {}
    for one in warped(target, specimen, prior):
        found.setdefault(is_mirrored(points, one.fit.posed), one)
    return found


def posterior_of(
    model: Model, points: Points, weighed: Sequence[Weighed], prior: Prior, pins: Pins = None
) -> Posterior:
    """Return the mixture of fits of a specimen to all cells; handedness by its nuclei alone."""
    trusts = tuple(trust(model, one, pins) for one in weighed)
    found = Posterior(points, prior, tuple(weighed), trusts)
    return replace(found, mirrored_by=float(expit(found.mirror_odds + logit(MIRRORED))))


def _likeliest(found: list[Weighed], points: Points) -> list[Weighed]:
    """Return the likeliest fits of each handedness, the likeliest first."""
    kept: list[Weighed] = []
    counts = {False: 0, True: 0}
    best = max((one.log - one.features for one in found), default=0.0)
    for one in sorted(found, key=lambda one: -one.log):
        hand = is_mirrored(points, one.fit.warped)
        lag = LAG[counts[hand]] if counts[hand] < len(LAG) else -1.0
        if WITNESS * (best - (one.log - one.features)) <= lag:
            kept.append(one)
            counts[hand] += 1
    return kept


def _reflections(target: Target, fits: list[Fit], points: Points, pins: Pins) -> list[Fit]:
    """Return the best fit of each handedness in the other one, fitted again.

    A body is nearly the mirror image of itself. So a fit in one handedness shows where to look in
    the other, and what is compared is equally well fitted.
    """
    reflected, done = [], set()
    for fit in fits:
        hand = is_mirrored(points, fit.warped)
        nuclei = np.where(target.images >= 0, fit.nuclei[target.images], UNMATCHED).astype(np.int32)
        if hand not in done and (nuclei >= 0).sum() >= FEWEST_MATCHES:
            image = replace(fit, nuclei=nuclei)
            reflected.append(from_matches(target.model, image, points, pins))
        done.add(hand)
    return reflected


def nucleus_cells(
    fits: Sequence[Fit],
    weights: Sequence[float] = (1.0,),
    trust: float | NDArray[np.float64] = 1.0,
    alternatives: int | None = None,
) -> NucleusCells:
    """Return the cell, confidence and next best cells of each nucleus.

    All of them come from one distribution: the probabilities of a nucleus being each cell or none,
    by all fits. The chosen cell is that of the first fit.

    Parameters
    ----------
    fits, weights
        of one specimen, and their probabilities.
    trust
        probability that the first fit is right at all, or (n,), that it is at each nucleus.
    alternatives
        next best cells to list; None for all that are not negligible.
    """
    fit, cells = fits[0], fits[0].cells
    count = len(cells)
    rows, nuclei, values = _mixed(fits, weights)
    values = np.broadcast_to(trust, count)[nuclei] * np.minimum(values, 1.0)
    confidence = np.where(cells == UNMATCHED, np.nan, 0.0)
    chosen = cells[nuclei] == rows
    confidence[nuclei[chosen]] = values[chosen]
    kept = ~chosen & (values > NEGLIGIBLE)
    rows, nuclei, values = rows[kept], nuclei[kept], values[kept]
    order = np.lexsort((rows, -values, nuclei))
    rows, nuclei, values = rows[order], nuclei[order], values[order]
    rank = np.arange(len(nuclei)) - np.searchsorted(nuclei, nuclei)
    if alternatives is None:
        alternatives = int(rank.max(initial=-1)) + 1
    kept = rank < alternatives
    other_cells = np.full((count, alternatives), UNMATCHED, np.int32)
    other_shares = np.zeros((count, alternatives))
    other_cells[nuclei[kept], rank[kept]] = rows[kept]
    other_shares[nuclei[kept], rank[kept]] = values[kept]
    return NucleusCells(cells, confidence, other_cells, other_shares, fit.cost, fit.warped)


def _mixed(
    fits: Sequence[Fit], weights: Sequence[float]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return cells, nuclei and probabilities (p,) of all pairs, by all fits."""
    n = len(fits[0].posed)
    keys, values = [], []
    for fit, weight in zip(fits, weights, strict=True):
        if weight > NEGLIGIBLE:
            assert fit.shares is not None
            rows = np.repeat(np.arange(len(fit.nuclei), dtype=np.int64), np.diff(fit.shares.starts))
            keys.append(rows * n + fit.shares.points)
            values.append(weight * fit.shares.values)
    pairs, which = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.bincount(which, np.concatenate(values))
    return pairs // n, pairs % n, total.astype(np.float64)
