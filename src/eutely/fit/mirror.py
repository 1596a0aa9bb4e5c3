"""The mirror image of a body: how symmetric it is, and how probably specimens are mirrored."""

from __future__ import annotations

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
from eutely.solver.softassign import squared_distances

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
    count, certain = len(evidence), np.repeat([-CERTAIN, CERTAIN], known)
    evidence = np.append(evidence, certain)
    between = (np.arange(20) + 0.5) / 20
    density = (1 - between) ** (1 / share - 2)  # of a beta distribution with the same mean
    shares = np.array([0.0, *between, 1.0])
    prior = np.array([1 - share, *(MIXED / (1 - MIXED) * density / density.sum()), share])
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
    weights = np.exp(logs - logsumexp(logs))
    chances = np.einsum("sb,sbn->n", weights, np.exp(mirrored - either))
    return np.asarray(chances[:count])


def mirror_log_odds(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n,), the log-odds that specimens of one origin are mirrored, in a build.

    Neither handedness is preferred there: that of most specimens becomes the atlas's.
    """
    return np.asarray(logit(mirror_probabilities(evidence, share=0.5)).clip(-CERTAIN, CERTAIN))
