"""How the features of one specimen follow those of cells, estimated from a first matching."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

PRIOR = 5.0
"""Nuclei that 'not informative' counts for in the covariance of a specimen's scores."""

FEWEST_MATCHES, REWEIGHTINGS = 10, 10
"""Matches needed to estimate how informative features are, and rounds of re-weighting them."""

RIDGE = 0.01
"""Added to the variance of scores: no feature is known better than that."""

CROSSTALK, GRADIENT = 10.0, 10.0
"""Nuclei that 'channels are separate' and 'scores do not depend on the place' count for."""


class Agreement(NamedTuple):
    """How the scores of one specimen follow those of cells.

    Attributes
    ----------
    centre, middle, slope
        (d,): nuclei of cells that score ``x`` score ``middle + slope * (x - centre)`` on average,
    crosstalk
        (d, d): plus ``(x - centre) @ crosstalk``,
    gradient
        (3, d): plus ``place @ gradient``,
    scatter
        (d, d), with this covariance.
    """

    centre: NDArray[np.float64]
    middle: NDArray[np.float64]
    slope: NDArray[np.float64]
    scatter: NDArray[np.float64]
    crosstalk: NDArray[np.float64]
    gradient: NDArray[np.float64]

    def expected(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (m, d), what nuclei of cells with the scores ``means`` (m, d) score on average."""
        straight = self.middle + self.slope * (means - self.centre)
        if not self.crosstalk.any():
            return straight
        return np.asarray(straight + (means - self.centre) @ self.crosstalk)


def agreement(
    cell_scores: NDArray[np.float64],
    scores: NDArray[np.float64],
    freedom: float,
    places: NDArray[np.float64] | None = None,
) -> Agreement | None:
    """Regress the scores (n, d) of nuclei on those (n, d) of their cells.

    Each feature has Student-t residuals, so that wrong matches count less. Two standard errors, the
    slope that chance alone may produce, are subtracted from the slopes. None if too few nuclei have
    all features. With the ``places`` (n, 3) of the nuclei, about standard normal, channels may mix
    and scores may change with the place: deeper nuclei are dimmer.
    """
    complete = np.isfinite(scores).all(axis=1)
    if complete.sum() < FEWEST_MATCHES:
        return None
    x, y = cell_scores[complete], scores[complete]
    count, d = y.shape
    prior = PRIOR * np.cov(y.T, bias=True).reshape(d, d)
    # Sums over nuclei are needed only of products of these columns, once for each re-weighting.
    there = np.zeros((count, 0)) if places is None else places[complete]
    columns = np.concatenate([np.ones((count, 1)), x, there, y], axis=1)
    rows = np.ascontiguousarray(columns.T)  # sums over nuclei are faster along rows
    of_x, of_there, of_y = (
        slice(1, d + 1),
        slice(d + 1, d + 1 + there.shape[1]),
        slice(d + 1 + there.shape[1], None),
    )
    products = rows @ columns
    crosstalk, gradient = np.zeros((d, d)), np.zeros((there.shape[1], d))
    # Scores without their gradient, here called flat, as a mixture of the columns.
    flat = np.zeros((columns.shape[1], d))
    flat[of_y] = np.eye(d)
    for _ in range(REWEIGHTINGS):
        total = products[0, 0]
        means = products[0] / total
        moments = products / total - means[:, None] * means
        with_flat = moments @ flat
        square = moments.diagonal()[of_x] + 1e-9
        slope = np.maximum(with_flat[of_x].diagonal() / square, 1e-9)
        error = np.einsum("ij,ij->j", flat, with_flat) / square / count
        slope *= np.maximum(1 - 4 * error / slope**2, 0.0)
        if places is not None:
            x_x = moments[of_x, of_x]
            normal = total * x_x
            np.einsum("ii->i", normal)[:] += CROSSTALK * (square + 1e-6)
            crosstalk = _solved(normal, total * (with_flat[of_x] - x_x * slope)) * (slope > 0)
        rest = flat.copy()
        rest[of_x] = -crosstalk
        np.einsum("ii->i", rest[of_x])[:] -= slope
        scatter = ridged((total * rest.T @ (moments @ rest) + prior) / (count + PRIOR))
        rest[0] = -means @ rest
        white = whitening_of(scatter) @ rest.T @ rows
        weights = (freedom + d) / (freedom + np.einsum("ij,ij->j", white, white))
        products = (weights * rows) @ columns
        centre, middle = means[of_x], means @ flat
        if places is not None:
            rest[of_there] = 0.0
            normal = products[of_there, of_there] + GRADIENT * np.eye(len(gradient))
            gradient = _solved(normal, products[of_there] @ rest)
            flat[of_there] = -gradient
    if places is None:
        gradient = np.zeros((3, d))
    return Agreement(centre, middle, slope, scatter, crosstalk, gradient)


def at_random(scores: NDArray[np.float64], freedom: float) -> Agreement | None:
    """Return the agreement of the scores (n, d) of nuclei with nothing.

    It is what `agreement` estimates from cells that all score 0, in less time.
    """
    complete = np.isfinite(scores).all(axis=1)
    if complete.sum() < FEWEST_MATCHES:
        return None
    y = np.ascontiguousarray(scores[complete].T)
    d, count = y.shape
    prior = PRIOR * np.cov(y, bias=True).reshape(d, d)
    weights = np.ones(count)
    for _ in range(REWEIGHTINGS):
        middle = y @ weights / weights.sum()
        away = y - middle[:, None]
        scatter = ridged(((weights * away) @ away.T + prior) / (count + PRIOR))
        white = whitening_of(scatter) @ away
        weights = (freedom + d) / (freedom + np.einsum("ij,ij->j", white, white))
    nothing = np.zeros(d)
    return Agreement(nothing, middle, nothing, scatter, np.zeros((d, d)), np.zeros((3, d)))


def ridged(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a covariance that can be inverted even where two features are the same."""
    return covariance + RIDGE * np.eye(len(covariance))


def whitening_of(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return W (d, d), a lower triangle with W S W' = 1 for the covariance S (d, d).

    LAPACK itself: the functions of NumPy spend ten times as long on matrices of this size.
    """
    root, failed = lapack.dpotrf(covariance, lower=1, clean=1)
    if failed:
        raise np.linalg.LinAlgError("a covariance is not positive definite")
    return np.asarray(lapack.dtrtri(root, lower=1)[0])


def _solved(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the solution of matrix @ x = right for a positive definite matrix."""
    _, solution, failed = lapack.dposv(matrix, right)
    if failed:
        raise np.linalg.LinAlgError("a sum of squares is not positive definite")
    return np.asarray(solution)
