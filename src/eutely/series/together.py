"""Whole specimens by an atlas of parts: cells at the ends that it lacks, and matches of each other.

Hardly any part of a body shows its outermost cells, and few parts show the same cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from scipy.spatial import KDTree

from eutely.align.warp import warped_to_mean
from eutely.atlas import NO_NEIGHBOUR, Atlas
from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.execute import Executor
from eutely.find.refine.grow import clusters
from eutely.find.refine.resplit import resplit
from eutely.find.refine.rounds import Row, fit_of, joint_round, models_of_others, specimens_of
from eutely.fit.evidence import PLACED, support, trust
from eutely.fit.match import Fit, match_jointly
from eutely.fit.model import Model
from eutely.fit.posterior import Posterior
from eutely.frame import Body, Points
from eutely.geometry import folds, spacing
from eutely.series.shared import FOLDS, SERIES
from eutely.solver.softassign import Shares, centres_of
from eutely.specimen import UNMATCHED

LACKING, SELDOM = 0.3, 0.5
"""Share of the whole specimens of a series that must have a nucleus at one place, and no cell for
it, for a cell that the atlas lacks there; and share of the specimens of the atlas from which on a
place was shown so often that no cell is lacking."""

ROUNDS = 2
"""Times that specimens are matched by each other before confusable cells are split again."""

A_NUCLEUS = 0.5
"""Spurious nuclei from which nuclei that crowd each other are looked at, which takes time."""

NOTHING_ELSE = 1e-9
"""Nuclei that a cell has in common with itself at least: where it has none, it keeps its number."""


def completed(atlas: Atlas, fits: Sequence[Fit]) -> Atlas:
    """Return the atlas with the cells of the ends of the body that it lacks, without names.

    Hardly any part of a body shows its outermost cells, so an atlas of parts lacks them. In whole
    specimens their nuclei would be taken for the next cells, and a row of cells shifted by one. The
    atlas itself is returned where all of its specimens show the whole body, or nothing is lacking.

    Parameters
    ----------
    atlas
        of the model ``joint``; others are returned as they are.
    fits
        of the specimens of a series; those that show parts do not count.
    """
    whole = [fit for fit in fits if fit.part is None]
    if not len(atlas.shown) or atlas.model != "joint" or len(whole) < SERIES:
        return atlas
    spare = [fit.warped[fit.cells < 0] for fit in whole]
    owners = np.repeat(np.arange(len(whole)), [len(points) for points in spare])
    points = np.concatenate(spare)
    _, nearest = KDTree(atlas.means).query(points)
    seldom = atlas.shown[nearest] < SELDOM * atlas.specimens
    points, owners = points[seldom], owners[seldom]
    typical = np.median(atlas.covariances, axis=0)
    white = points @ centres_of(typical[None]).whitening[0].T
    found = clusters(white, owners, np.full(len(points), LACKING * len(whole)))
    if not found:
        return atlas
    means = np.array([np.median(points[members], axis=0) for members in found])
    prior = Estimate().prior
    covariances = np.array(
        [
            (prior * typical + (points[members] - mean).T @ (points[members] - mean))
            / (prior + len(members))
            for members, mean in zip(found, means, strict=True)
        ]
    )
    return _with_cells(atlas, means, covariances)


def _with_cells(atlas: Atlas, means: Points, covariances: NDArray[np.float64]) -> Atlas:
    """Return the atlas with k further cells that are always there, each by itself."""
    k, always = len(means), np.full(len(means), atlas.specimens)
    further: dict[str, NDArray[Any]] = {
        "means": means,
        "covariances": covariances,
        "conditionals": covariances,
        "radii": np.full((k, 3), np.nan),
        "radius_covariances": np.full((k, 3, 3), np.nan),
        "seen": always,
        "shown": always.astype(np.float64),
        "rare": np.zeros(k, bool),
        "neighbours": np.full((k, atlas.neighbours.shape[1]), NO_NEIGHBOUR),
        "predictors": np.zeros((k, *atlas.predictors.shape[1:])),
        "feature_means": np.zeros((k, len(atlas.features))),
    }
    if len(atlas.origin_presence):
        further["origin_presence"] = np.ones((k, len(atlas.origins)))
        further["origin_scores"] = np.zeros((k, *atlas.origin_scores.shape[1:]))
    rows: dict[str, Any] = {
        key: np.concatenate([getattr(atlas, key), more]) for key, more in further.items()
    }
    return replace(atlas, **rows, names=(*atlas.names, *[""] * k))


def outnumber(atlas: Atlas, results: Sequence[Posterior]) -> bool:
    """Return whether whole specimens of a series are more than the parts that an atlas is of.

    Then they show its cells better than the atlas does, most of all at the ends of the body. An
    atlas of whole specimens, whose cells a person may have named, is not left for a series.
    """
    enough = len(results) >= SERIES and len(results) > atlas.specimens
    return atlas.model == "joint" and len(atlas.shown) > 0 and enough


def is_whole(result: Posterior) -> bool:
    """Return whether a specimen is placed, shows the whole body, and is matched softly."""
    placed = result.support is not None and result.support > PLACED
    return placed and result.fit.part is None and result.fit.shares is not None


def matched_together(
    atlas: Atlas, results: Sequence[Posterior], executor: Executor
) -> list[Posterior]:
    """Match whole specimens of a series by cells that are estimated from each other.

    As the last rounds of a build do, held out by folds: rounds of matching, then cells that are
    easily confused are split again. Cells keep the numbers of the atlas.

    Parameters
    ----------
    atlas
        that the specimens were matched with, at best shifted to them.
    results
        of whole specimens, see `is_whole`.
    executor
        where to run.
    """
    settings = Estimate()
    fits = [result.fit for result in results]
    cells = Cells(
        posed=tuple(fit.posed for fit in fits),
        warped=tuple(fit.warped for fit in fits),
        nuclei=tuple(fit.nuclei for fit in fits),
        scores=tuple(fit.scores for fit in fits),
        body=Body(atlas.size, spacing(atlas.means), atlas.warp),
    )
    cells, kept = _in_all_folds(cells, np.arange(len(atlas)))
    for _ in range(ROUNDS):
        cells, _ = joint_round(cells, settings, executor, parts=FOLDS, afresh=False)
        cells, kept = _in_all_folds(cells, kept)
    cells, _ = resplit(cells, settings, executor, seed=0)
    cells = warped_to_mean(cells, settings)
    models = [
        model._replace(crowding=atlas.crowding, complete=True)
        for model in models_of_others(cells, settings, executor, FOLDS)
    ]
    fold = folds(len(cells), FOLDS).tolist()
    items = list(zip(fold, specimens_of(cells), results, strict=True))
    matched = list(executor.map(_match_by_others, items, shared=(models,)))
    numbers = _numbers(fits, [fit for fit, _, _ in matched], kept)
    together = []
    for result, (fit, placed, trusted) in zip(results, matched, strict=True):
        again = replace(
            result,
            fits=(_renumbered(fit, numbers, atlas.means),),
            logs=np.array([result.logs[result.best]]),
            supports=(placed,),
            trusts=(trusted,),
        )
        together.append(again.beside(result))
    return together


def _in_all_folds(cells: Cells, kept: NDArray[np.intp]) -> tuple[Cells, NDArray[np.intp]]:
    """Return the cells that the others of every fold have, and their numbers (k,) of ``kept``."""
    table, fold = np.array(cells.nuclei), folds(len(cells), FOLDS)
    parts = sum((table[fold == part] >= 0).any(axis=0).astype(int) for part in range(FOLDS))
    shared = np.asarray(parts) > 1
    return cells.with_nuclei(table[:, shared]), kept[shared]


def _match_by_others(
    models: Sequence[Model], item: tuple[int, Row, Posterior]
) -> tuple[Fit, float, NDArray[np.float64]]:
    """Match a specimen by the model of the other folds; return its support and trust."""
    model, row, result = models[item[0]], *item[1:]
    fit = fit_of(model, row)
    rates = model.background.rates(fit.nuclei, len(fit.posed))
    if rates.spurious * len(model.means) < A_NUCLEUS:
        model = model._replace(crowding=np.zeros(0))
    fit = match_jointly(model, replace(fit, rates=rates), probabilities=True)
    return fit, support(model, fit, result.points), trust(model, fit, result.points)


def _numbers(
    before: Sequence[Fit], after: Sequence[Fit], kept: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return (k,), which of the numbers ``kept`` (k,) each cell has after specimens were rematched.

    Cells that are split again come in any order. They get the numbers by which they have most
    nuclei in common with the fits before, where nuclei count by their probabilities.
    """
    # SciPy before 1.15 matches rows and columns of 32 bits only.
    column = np.full(len(before[0].nuclei), NO_NEIGHBOUR, np.int32)
    column[kept] = np.arange(len(kept))
    common = csr_array(NOTHING_ELSE * eye_array(len(kept)))
    for one, other in zip(before, after, strict=True):
        assert one.shares is not None
        columns = np.repeat(column, np.diff(one.shares.starts))
        rows = other.cells[one.shares.points]
        both = (rows >= 0) & (columns >= 0) & (one.shares.values > 0)
        table = (one.shares.values[both], (rows[both], columns[both]))
        common = csr_array(common + csr_array(table, common.shape))
    cells, numbers = min_weight_full_bipartite_matching(common, maximize=True)
    return kept[numbers[np.argsort(cells)]]


def _renumbered(fit: Fit, numbers: NDArray[np.intp], means: Points) -> Fit:
    """Return a fit to k cells as one to all cells at ``means`` (m, 3), by their numbers (k,)."""
    assert fit.expected is not None
    assert fit.shares is not None
    nuclei, expected = np.full(len(means), UNMATCHED, np.int32), means.copy()
    nuclei[numbers], expected[numbers] = fit.nuclei, fit.expected
    starts, points, values = fit.shares
    rows = np.repeat(numbers, np.diff(starts))
    order = np.argsort(rows, kind="stable")
    ends = np.cumsum(np.bincount(rows, minlength=len(means)))
    shares = Shares(np.append(0, ends).astype(starts.dtype), points[order], values[order])
    return replace(fit, nuclei=nuclei, expected=expected, shares=shares)
