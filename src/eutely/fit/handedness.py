"""The handedness of specimens that were imaged alike, which they settle together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logit, logsumexp

from eutely.fit.evidence import HAND, MIRRORED
from eutely.fit.place import Fit

MIXED = 0.1
"""Probability, before anything is known, that specimens of a series differ in handedness."""

TYPICAL, SHARED = 2.5, 0.35
"""Log-odds that a specimen shows on average, and the share of their error that specimens of one
series have in common: colours and anatomy of a laboratory differ from the atlas in one way. From
named heads, each by an atlas of other folds: 2.0 to 3.0 and 0.22 to 0.54 in the training heads of
one fold."""

CERTAIN = 20.0
"""Log-odds of a handedness that is clear by itself."""


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
    erring = (evidence != 0) & (np.abs(evidence) < CERTAIN)
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


def mirror_odds(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n,), the log-odds that specimens of one origin are mirrored, in a build.

    Neither handedness is preferred there: that of most specimens becomes the atlas's.
    """
    return np.asarray(logit(mirror_probabilities(evidence, share=0.5)).clip(-CERTAIN, CERTAIN))


def hand_evidence(fit: Fit, *, mirrored: bool, placed: bool) -> float:
    """Return the log-odds that a specimen is mirrored, by itself; 0 where it is not placed."""
    if not placed:
        return 0.0
    if fit.mirror is None:
        return CERTAIN if mirrored else -CERTAIN
    return float(np.clip(HAND * fit.mirror, -CERTAIN, CERTAIN))
