"""Hypotheses about how a specimen lies in the frame of an atlas, and what is known before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from eutely.frame import Points

MIRRORED = 0.4
"""Probability that a specimen is a mirror image of the atlas: of seven laboratories that imaged
heads two mirror them, which are nearly half of the heads."""

CERTAIN = 20.0
"""Log-odds of a handedness whose other one has no fit."""

STRETCH = 0.15
"""Standard deviation of the logarithms of a specimen's lengths along three axes about their mean:
how much longer or wider it is than usual."""

SAME_UNIT = 0.15
"""Standard deviation of the logarithm of the size of a specimen whose unit is that of the atlas."""

ANY_UNIT = 0.4
"""The same where the unit is not known, and the scale is taken from distances of neighbours, which
are longer where nuclei are missing."""


WITNESS = 10.0
"""Nuclei that are as one witness, since neighbours move together: log-likelihoods count for so much
less beside what is known before. By logistic regression of handedness over named heads, each by an
atlas of other folds: 8 to 12."""

FARTHEST = 2.0
"""Standard deviations up to which scales are considered."""


Hands = tuple[bool, ...]
"""Handednesses to consider: False as a specimen is, True for its mirror image."""

HANDS: dict[str, Hands] = {"auto": (False, True), "as-is": (False,), "mirrored": (True,)}
"""What the option ``handedness`` may be."""


class Scale(NamedTuple):
    """One possibility for the scale of a specimen.

    Attributes
    ----------
    centre, spread
        mean and standard deviation of the logarithm of the scale.
    weight
        probability of this possibility.
    """

    centre: float
    spread: float
    weight: float = 1.0

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest scale that are considered."""
        reach = FARTHEST * self.spread
        return float(np.exp(self.centre - reach)), float(np.exp(self.centre + reach))

    def log(self, matrices: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (k,), the log-probability density of maps (k, 3, 3), but for their handedness."""
        lengths = np.log(np.linalg.svd(matrices, compute_uv=False))
        size = lengths.mean(axis=1)
        stretch = ((lengths - size[:, None]) ** 2).sum(axis=1) / STRETCH**2
        apart = (size - self.centre) / self.spread
        return np.asarray(np.log(self.weight / self.spread) - 0.5 * (stretch + apart**2))


class Prior(NamedTuple):
    """What is known about a specimen before its nuclei are looked at.

    Attributes
    ----------
    scales
        possible scales of its unit in the frame of the atlas.
    hands
        handednesses to consider.
    """

    scales: tuple[Scale, ...]
    hands: Hands = (False, True)

    def log(self, matrix: NDArray[np.float64]) -> float:
        """Return the log-probability density of a map (3, 3), but for its handedness."""
        return float(logsumexp([scale.log(matrix[None])[0] for scale in self.scales]))

    @classmethod
    def of(cls, ratio: float, *, same: float, hands: Hands = (False, True)) -> Prior:
        """Return what is known of a specimen whose unit may be that of the atlas.

        Parameters
        ----------
        ratio
            of the distances of neighbours in the atlas and in the specimen.
        same
            probability that the units are the same.
        hands
            handednesses to consider.
        """
        scales = [Scale(0.0, SAME_UNIT, same), Scale(float(np.log(ratio)), ANY_UNIT, 1 - same)]
        return cls(tuple(one for one in scales if one.weight > 0), hands)


class Hypothesis(NamedTuple):
    """A map into the frame of an atlas, ``matrix @ x + shift``.

    Attributes
    ----------
    matrix, shift
        (3, 3) and (3,) float64.
    scale
        the possibility for the scale that it belongs to.
    mirrored
        whether the specimen is a mirror image of the atlas by it.
    score
        log-likelihood and log-prior so far, by which hypotheses are compared before any warp.
    """

    matrix: NDArray[np.float64]
    shift: NDArray[np.float64]
    scale: Scale
    mirrored: bool
    score: float = 0.0

    def __call__(self, points: Points) -> Points:
        """Return points (n, 3) in the frame of the atlas."""
        return points @ self.matrix.T + self.shift
