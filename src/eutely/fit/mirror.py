"""The mirror image of a body: how symmetric it is, and how probably specimens are mirrored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logit, logsumexp

from eutely.fit.hypothesis import CERTAIN, MIRRORED, Prior, Scale
from eutely.fit.match import Fit
from eutely.fit.model import Model
from eutely.fit.propose import propose
from eutely.fit.scan import landscape
from eutely.fit.warp import warp_pose
from eutely.frame import Posed
from eutely.solver.softassign import Shares, squared_distances

MIRROR = np.array([1.0, 1.0, -1.0])
"""Factors that turn a pose into its mirror image: left and right change places."""

LIKE_ITSELF, MOST = 0.05, 3
"""Standard deviation of the logarithm of the scale of a mirror image, and poses of it that are
matched."""

UNPAIRED = 25.0
"""Squared distance that stands for a cell without a mirror image, in variances."""

ASYMMETRIC = 4.0
"""Asymmetry from which an atlas shows handedness. Symmetric simulated animals have 1 to 2.6, heads
8 to 11, whole worms 16 to 110."""

MIXED = 0.1
"""Probability, before anything is known, that specimens of a series differ in handedness."""

UNRELATED = 0.5
"""The same for specimens of no known origin, which may come from one microscope or from several."""

DOUBTFUL = 0.01
"""Probability of the other handedness from which confidences allow for it."""

TYPICAL, SHARED = 2.5, 0.35
"""Log-odds that a specimen shows on average, and the share of their error that specimens of one
series have in common: colours and anatomy of a laboratory differ from the atlas in one way. From
named heads, each by an atlas of other folds: 2.0 to 3.0 and 0.22 to 0.54 in the training heads of
one fold."""


def mirror_images(model: Model) -> NDArray[np.int32]:
    """Return (m,), the cell at the mirror image of each cell, or -1."""
    return _mirrored(model).nuclei


def _mirrored(model: Model) -> Fit:
    """Match the mirror image of the cells with the cells; its "nuclei" are cells."""
    scores = model.features if model.features.size else np.zeros((len(model.means), 0))
    cells = Posed((model.means,), np.full(model.means.shape, np.nan), scores[:, :0])
    prior = Prior((Scale(0.0, LIKE_ITSELF),), (True,))
    found = propose(landscape(model), model, cells, prior)
    # Rolled as well: the frame need not have its axes in the plane of symmetry.
    fits = [warp_pose(model, one(model.means), scores, None) for one in found[:MOST]]
    return min(fits, key=lambda fit: fit.cost)


def asymmetry(model: Model, seen: NDArray[np.int64]) -> float:
    """Return how much farther cells are from mirror images of cells than chance explains.

    The mean squared distance in variances of the cells, each counted as often as it is present,
    relative to that of two symmetric cells whose places were estimated from as many specimens as
    ``seen`` (m,) says. 1 for a symmetric animal: specimens are as likely as their mirror images.
    """
    fit = _mirrored(model)
    cells = np.flatnonzero(fit.nuclei >= 0)
    images = fit.nuclei[cells]
    squared = squared_distances(
        model.means[cells], model.centres.whitening[cells], fit.warped[images]
    )
    noise, presence = 3 / np.maximum(seen, 1), model.background.presence
    weights = np.minimum(presence[cells], presence[images])
    chance = weights @ (noise[cells] + noise[images])
    unpaired = np.flatnonzero(fit.nuclei < 0)
    apart = weights @ squared + UNPAIRED * presence[unpaired].sum()
    return float(apart / (chance + 2 * presence[unpaired] @ noise[unpaired]))


def mirror_probabilities(
    evidence: NDArray[np.float64], known: tuple[int, int] = (0, 0), share: float = MIRRORED
) -> NDArray[np.float64]:
    """Return (n,), the probability that each specimen of a series is mirrored.

    A share q of the series is mirrored. One microscope mirrors all specimens or none, so q is 0
    or 1 but for `MIXED` series, where it may be any share. On average it is ``share``. Specimens
    of a series err together: their evidence has a common error b, and given q and b they are
    independent. Their likelihood is

        prod_i ((1 - q) a_i(b) + q m_i(b))

    with m_i(b) = N(e_i; t + b, (1 - r) 2 t), a_i(b) = N(e_i; b - t, (1 - r) 2 t) and
    b ~ N(0, r 2 t), where t is the `TYPICAL` evidence and r the share of its error that is
    `SHARED`. With the variance 2 t the odds by a specimen alone are exp(e_i), as they should be.

    Parameters
    ----------
    evidence
        (n,), e_i, the log-odds that a specimen is mirrored, by itself. Those of `CERTAIN` and 0
        do not show any error.
    known
        further specimens of the series, as they are and mirrored: those that the atlas is of.
    share
        mean share of mirrored specimens over all series.
    """
    certain = np.repeat([-CERTAIN, CERTAIN], known)
    weights, chances = _mixture(np.append(evidence, certain), share, MIXED)
    return np.asarray(np.einsum("sb,sbn->n", weights, chances)[: len(evidence)])


def _mixture(
    evidence: NDArray[np.float64], share: float, mixed: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mixture over shares and common errors (s, b) of `mirror_probabilities`.

    The probability of each, and by it (s, b, n) that of each specimen being mirrored.
    """
    between = (np.arange(20) + 0.5) / 20
    density = (1 - between) ** (1 / share - 2)  # of a beta distribution with the same mean
    shares = np.array([0.0, *between, 1.0])
    prior = np.array([1 - share, *(mixed / (1 - mixed) * density / density.sum()), share])
    scaled = np.linspace(-4, 4, 41)
    errors = np.sqrt(SHARED * 2 * TYPICAL) * scaled[:, None]
    precision = 1 / ((1 - SHARED) * 2 * TYPICAL)
    # Odds that such errors hardly reach show none.
    erring = (evidence != 0) & (np.abs(evidence) < 4 * TYPICAL)
    if_mirrored = np.where(
        erring, -0.5 * precision * (evidence - TYPICAL - errors) ** 2, log_expit(evidence)
    )
    if_as_is = np.where(
        erring, -0.5 * precision * (evidence + TYPICAL - errors) ** 2, log_expit(-evidence)
    )
    with np.errstate(divide="ignore"):  # a share of 0 or 1
        mirrored = np.log(shares)[:, None, None] + if_mirrored
        as_is = np.log1p(-shares)[:, None, None] + if_as_is
    either = np.logaddexp(mirrored, as_is)
    logs = np.log(prior)[:, None] - 0.5 * scaled**2 + either.sum(axis=2)
    return np.exp(logs - logsumexp(logs)), np.exp(mirrored - either)


def unlike_most(evidence: NDArray[np.float64], mixed: float = MIXED) -> NDArray[np.float64]:
    """Return (n,), the probability that each specimen has not the handedness of most.

    Parameters
    ----------
    evidence
        (n,), the log-odds that a specimen has not the handedness of one of them, whose own are
        -`CERTAIN`. Where most are unlike that one, it is the one that is unlike most.
    mixed
        probability that specimens differ in handedness at all.
    """
    weights, chances = _mixture(evidence, 0.5, mixed)
    most = chances.mean(axis=2, keepdims=True) > 0.5
    unlike = np.where(most, 1 - chances, chances)
    return np.asarray(np.einsum("sb,sbn->n", weights, unlike))


def both_hands(
    fit: Fit, images: NDArray[np.int32] | None, other_hand: float
) -> tuple[list[Fit], list[float]]:
    """Return a fit and the same in the other handedness, with their probabilities.

    In the other handedness each nucleus is the mirror image of the cell that it was: where sides
    are alike, and only there is handedness in doubt, a specimen fits as well in this way.

    Parameters
    ----------
    fit
        with shares.
    images
        (m,), see `mirror_images`; None where no specimen is in doubt.
    other_hand
        probability of the other handedness; up to `DOUBTFUL` it is left out.
    """
    if images is None or other_hand <= DOUBTFUL:
        return [fit], [1.0]
    assert fit.shares is not None
    starts, points, values = fit.shares
    rows = np.repeat(images, np.diff(starts))
    order = np.argsort(rows, kind="stable")
    order = order[rows[order] >= 0]
    counts = np.bincount(rows[order], minlength=len(images))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    other = replace(fit, shares=Shares(starts, points[order], values[order]))
    return [fit, other], [1 - other_hand, other_hand]


def mirror_log_odds(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n,), the log-odds that specimens of one origin are mirrored, in a build.

    Neither handedness is preferred there: that of most specimens becomes the atlas's.
    """
    return np.asarray(logit(mirror_probabilities(evidence, share=0.5)).clip(-CERTAIN, CERTAIN))
