"""How likely a fit makes a specimen, to compare views and handednesses and to doubt them all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from eutely.candidates import Candidates
from eutely.fit.model import Model
from eutely.fit.place import Fit, Rival, feature_term, warp_pose
from eutely.fit.poses import MIRROR
from eutely.fit.rates import LOWEST_RATE, START, student_constant
from eutely.frame import Points
from eutely.solver.softassign import Centres, squared_distances

PLACED = -0.7
"""Support from which a specimen counts as placed."""

SOFTNESS = 0.15
"""Support over which doubt turns into trust."""

HAND = 0.1
"""Log-odds of handedness per unit of log-likelihood, which neighbours share. By logistic regression
over named heads, each by an atlas of other folds; 0.08 to 0.14 by the training heads of a fold."""

MIRRORED = 1 / 3
"""Probability, before anything is known, that a specimen is a mirror image of the atlas."""

EXCHANGED = 0.05
"""Least probability of the other handedness of a specimen, unless it is clear, see `CLEAR` in
`eutely.fit.choose`: left and right may be exchanged in its names. Three of 66 named heads
contradict their anatomy in this way, 2 to 7% of the training heads of a fold."""

ASYMMETRIC = 4.0
"""Asymmetry from which an atlas shows handedness. Symmetric simulated animals have 1 to 2.6, heads
8 to 11, whole worms 16 to 110."""

UNPAIRED = 25.0
"""Squared distance that stands for a cell without a mirror image, in variances."""


def surprise(model: Model, fit: Fit, points: Points) -> float:
    """Return minus the log-likelihood of a specimen, at rates that are the same for all fits.

    Places count given their neighbours, where those are known: cells that move together would be as
    many witnesses by themselves.

    Parameters
    ----------
    model
        all cells.
    fit
        from `match_jointly`, or before it.
    points
        (n, 3), the nuclei in their own unit, so that poses of different scales compare.
    """
    wider = model.loosened(fit.error)
    shown = np.ones(len(fit.nuclei)) if fit.view is None else fit.view
    present = np.clip(model.background.presence * shown * (1 - START), LOWEST_RATE, 1 - LOWEST_RATE)
    cells = np.flatnonzero(fit.nuclei >= 0)
    if fit.expected is None:
        total = _place_costs(model, model.means, wider.centres, fit)
    else:
        total = _place_costs(model, fit.expected, wider.field.centres, fit)
    total -= np.log(present[cells]).sum()
    by_features = feature_term(model, fit)
    if by_features is not None:
        total += by_features.on(Candidates.of_matching(fit.nuclei)).sum()
    total -= np.log1p(-present[fit.nuclei < 0]).sum()
    spurious = len(points) - len(cells)
    total -= spurious * (np.log(START) + model.background.density)
    return float(total - len(points) * _growth(points, fit.warped))


def _place_costs(model: Model, places: Points, centres: Centres, fit: Fit) -> float:
    """Return minus the log-density of matched nuclei around ``places`` (m, 3) of their cells."""
    cells = np.flatnonzero(fit.nuclei >= 0)
    squared = squared_distances(
        places[cells], centres.whitening[cells], fit.warped[fit.nuclei[cells]]
    )
    costs = 0.5 * (model.freedom + 3) * np.log1p(squared / model.freedom) - centres.heights[cells]
    return float(costs.sum() - len(cells) * student_constant(model.freedom))


def support(model: Model, fit: Fit, points: Points) -> float:
    """Return by how much, per nucleus, the cells explain a specimen better than chance does.

    The logarithm of how many times likelier the nuclei are at their places than as points anywhere
    in the body. Specimens at their right places have 0 to 4, random points and other organisms -1.4
    or less. Parameters: see `surprise`.
    """
    chance = -len(points) * (model.background.density + _growth(points, fit.warped))
    return (chance - surprise(model, fit, points)) / len(points)


def trust(support: float | None) -> float:
    """Return the probability that a specimen of such a `support` is placed at all; None: 1."""
    return 1.0 if support is None else float(expit((support - PLACED) / SOFTNESS))


def rival_weights(rivals: Sequence[Rival], mirrored: float | None = None) -> list[float]:
    """Return the probabilities of fits of one specimen, which sum to 1.

    Nuclei that lie near each other err together: about 1 / `HAND` of them are one witness, and so
    are the fewer ones in which two fits differ.

    Parameters
    ----------
    rivals
        the fits; without any there is one, of which nothing else is known.
    mirrored
        probability that the specimen is a mirror image, as far as it is known otherwise; by default
        it follows from the fits.
    """
    if not rivals:
        return [1.0]
    hands = np.array([rival.mirrored for rival in rivals])
    apart = np.array([(rival.cells != rivals[0].cells).sum() for rival in rivals])
    costs = np.array([rival.cost for rival in rivals]) - rivals[0].cost
    logs = -np.maximum(HAND, 1 / np.maximum(apart, 1)) * costs
    if mirrored is None:
        logs += np.where(hands, np.log(MIRRORED), np.log1p(-MIRRORED))
        return [float(weight) for weight in softmax(logs)]
    weights = np.zeros(len(rivals))
    for hand, probability in ((True, mirrored), (False, 1 - mirrored)):
        if (hands == hand).any():
            weights[hands == hand] = probability * softmax(logs[hands == hand])
    return [float(weight) for weight in weights / weights.sum()]


def mirror_fit(model: Model) -> Fit:
    """Match the mirror image of the cells with the cells: a body nearly is its own mirror image.

    Its "nuclei" are cells: that of cell i is the cell whose mirror image lies at i.
    """
    scores = model.features if model.features.size else np.zeros((len(model.means), 0))
    return warp_pose(model, model.means * MIRROR, scores, None)


def asymmetry(model: Model, seen: NDArray[np.int64]) -> float:
    """Return how much farther cells are from mirror images of cells than chance explains.

    The mean squared distance in variances of the cells, each counted as often as it is present,
    relative to that of two symmetric cells whose places were estimated from as many specimens as
    ``seen`` (m,) says. 1 for a symmetric animal: specimens are as likely as their mirror images.
    """
    fit = mirror_fit(model)
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


def is_mirrored(points: Points, places: Points) -> bool:
    """Return whether nuclei (n, 3) are a mirror image of their places (n, 3) in an atlas."""
    return bool(np.linalg.det((points - points.mean(axis=0)).T @ places) < 0)


def _growth(points: Points, places: Points) -> float:
    """Return the logarithm of the volume of a specimen in an atlas, relative to its own."""
    design = np.column_stack([points, np.ones(len(points))])
    matrix = np.linalg.lstsq(design, places, rcond=None)[0][:3]
    return float(np.log(max(abs(np.linalg.det(matrix)), 1e-12)))
