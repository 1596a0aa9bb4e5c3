"""Matching all specimens to an atlas estimated from others of them, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eutely.align.warp import centred, warped_to_mean
from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.estimate import Gaussians, independent_gaussians
from eutely.execute import Executor
from eutely.fit.match import Fit, in_view, match_jointly
from eutely.fit.model import Model, joint_model, model_of_cells
from eutely.fit.refit import match_standing
from eutely.frame import Points, Posed
from eutely.geometry import folds

Row = tuple[Points, Points, Points, NDArray[np.int32], bool]
"""One specimen of `Cells`: posed, warped, scores, nuclei, and whether it shows a part."""


def linear_round(
    cells: Cells,
    specimens: Sequence[Posed],
    means: tuple[Gaussians, NDArray[np.float64]],
    estimate: Estimate,
    executor: Executor,
) -> Cells:
    """Warp and match every specimen to the means, cell by cell; choose among its poses.

    Parameters
    ----------
    cells
        whose cohort is matched; its cells do not matter.
    specimens
        in the poses to choose from.
    means
        Gaussians of the places of the m cells, and their mean scores (m, d).
    estimate, executor
        section of the configuration, and where to run.
    """
    places, scores = means
    model = joint_model(independent_gaussians(places), cells, estimate, None, scores)
    fits = list(executor.map(match_standing, specimens, shared=(model,)))
    return centred(with_fits(cells, fits))


def nuclei_as_cells(points: Points, spacing: float) -> Gaussians:
    """Return the nuclei (n, 3) of one specimen as cells to start from.

    Half the spacing: broad enough to reach the right nucleus, too narrow to blur neighbours.
    """
    wide = np.broadcast_to((spacing / 2) ** 2 * np.eye(3), (len(points), 3, 3))
    return Gaussians(points, np.array(wide))


def joint_round(
    cells: Cells, estimate: Estimate, executor: Executor, *, parts: int, afresh: bool
) -> tuple[Cells, float]:
    """Match every specimen to an atlas of the others, with cells that predict each other.

    A specimen that helped to estimate an atlas finds its own errors confirmed there. So the
    cohort is split into folds, and each fold is matched to the atlas of the others.

    Parameters
    ----------
    cells, estimate, executor
        what to match, how to estimate, where to run.
    parts
        number of folds.
    afresh
        whether to warp each specimen again from its pose, which repairs bad starts.

    Returns
    -------
    cells, cost
        after the round, and the mean cost of a specimen: minus its log-density, held out.
    """
    cells = warped_to_mean(cells, estimate)
    models = models_of_others(cells, estimate, executor, parts)
    fold = folds(len(cells), parts).tolist()
    items = list(zip(fold, specimens_of(cells), strict=True))
    fits = list(executor.map(_rematch, items, shared=(models, afresh)))
    return centred(with_fits(cells, fits)), float(np.mean([fit.cost for fit in fits]))


def models_of_others(
    cells: Cells, estimate: Estimate, executor: Executor, parts: int
) -> list[Model]:
    """Return for each fold the model of the specimens outside of it."""
    return list(executor.map(_model_of_others, range(parts), shared=(cells, estimate, parts)))


def _model_of_others(cells: Cells, estimate: Estimate, parts: int, part: int) -> Model:
    # A single fold has no others: it is matched to the atlas of all.
    others = folds(len(cells), parts) != part if parts > 1 else None
    return model_of_cells(cells, estimate, others)


def _rematch(models: Sequence[Model], afresh: bool, item: tuple[int, Row]) -> Fit:
    model, fit = models[item[0]], fit_of(models[item[0]], item[1])
    if afresh:
        posed = Posed((fit.posed,), np.full(fit.posed.shape, np.nan), fit.scores, part=item[1][-1])
        fit = match_standing(model, posed)
    return match_jointly(model, fit)


def specimens_of(cells: Cells) -> list[Row]:
    """Return the specimens of ``cells`` one by one."""
    parts = cells.parts or (False,) * len(cells)
    return list(zip(cells.posed, cells.warped, cells.scores, cells.nuclei, parts, strict=True))


def fit_of(model: Model, specimen: Row) -> Fit:
    """Return one of `specimens_of` as a fit, with the rates of a specimen not known yet."""
    posed, warped, scores, nuclei, part = specimen
    rates = model.background.start(len(posed))
    view = in_view(model, nuclei, warped) if part else None
    return Fit(posed, warped, scores, nuclei, cost=0.0, rates=rates, view=view)


def with_fits(cells: Cells, fits: Sequence[Fit]) -> Cells:
    """Return cells with the places and nuclei of other fits of the same specimens."""
    return replace(
        cells,
        posed=tuple(fit.posed for fit in fits),
        warped=tuple(fit.warped for fit in fits),
        nuclei=tuple(fit.nuclei for fit in fits),
    )
