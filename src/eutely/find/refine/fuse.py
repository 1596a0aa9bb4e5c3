"""Take the best of two solutions, region by region: what one target got wrong another has right.

Two solutions, each with its own cells, agree in most places. Where they do not, cells exchange
nuclei with few others: the components of that exchange can be taken from either solution, and each
is taken from the one that predicts the nuclei of held-out specimens better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from eutely.align.warp import warped_to_mean
from eutely.candidates import Candidates
from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.estimate import Gaussians, joint_gaussians, prior_gaussians
from eutely.estimate.origins import USUAL
from eutely.execute import Executor
from eutely.find.refine.rounds import Row, fit_of, models_of_others, specimens_of, with_fits
from eutely.fit.match import Fit, match_jointly, term_costs
from eutely.fit.model import Model, joint_model
from eutely.fit.rates import LOWEST_RATE, Background, Rates
from eutely.geometry import folds
from eutely.solver.assignment import assign_sparse
from eutely.solver.meanfield import predict
from eutely.solver.softassign import squared_distances
from eutely.specimen import UNMATCHED

SHOWN = 0.5
"""Probability from which a target shows the place of a cell."""

EXCHANGED = 0.03
"""Share of specimens in which two cells must have exchanged a nucleus to be decided together."""


def from_target(cells: Cells, target: int, settings: Estimate, executor: Executor) -> Cells:
    """Match all specimens, warped as in ``cells``, with the nuclei of one of them.

    The cells are new: all that they take over from ``cells`` is how much each may vary. Cells that
    the target lacks are added where they are expected in it.
    """
    partial = any(cells.parts)
    joint = joint_gaussians(cells.places(), cells.body.spacing, settings, partial=partial)
    nuclei = cells.nuclei[target]
    unknown = nuclei < 0
    lacking = unknown & ~_in_doubt(cells, target)
    there = np.where(unknown[:, None], joint.cells.means, cells.warped[target][nuclei])
    expected = predict(joint.cells.means, joint.neighbours, joint.predictors, there)
    points = np.concatenate([cells.warped[target], expected[lacking]])
    # The difference of two specimens varies by twice the covariance of one.
    varied = 2 * joint.cells.covariances
    covariances = np.repeat(np.median(varied, axis=0)[None], len(points), axis=0)
    covariances[nuclei[~unknown]] = varied[~unknown]
    covariances[len(points) - lacking.sum() :] = varied[lacking]
    prior = prior_gaussians(Gaussians(points, covariances), cells.body.spacing, settings)
    model = joint_model(prior, cells, settings, None, np.zeros((len(points), 0)))
    return with_fits(cells, list(executor.map(_match_once, specimens_of(cells), shared=(model,))))


def _in_doubt(cells: Cells, target: int) -> NDArray[np.bool_]:
    """Return (m,), cells that specimens lack more often than others, at places the target shows.

    Where specimens show parts, a row of cells may be shifted by one in some of them, with one cell
    too many. A target that is asked for that cell would never show the row as it is.
    """
    if not any(cells.parts):
        return np.zeros(cells.count, bool)
    often = cells.often()
    return np.asarray((often < USUAL * np.median(often)) & (cells.shown()[target] > SHOWN))


def _match_once(model: Model, specimen: Row) -> Fit:
    posed, warped, scores, _, part = specimen
    nuclei = np.full(len(model.means), UNMATCHED, np.int32)
    return match_jointly(model, fit_of(model, (posed, warped, scores, nuclei, part)), refits=1)


def fuse(
    first: Cells, second: Cells, settings: Estimate, executor: Executor, *, parts: int
) -> tuple[Cells, int]:
    """Return the first solution with the regions of the second that are better.

    Parameters
    ----------
    first, second
        the same specimens in the same poses, each with its own cells.
    settings, executor
        how to estimate, where to run.
    parts
        folds of the cohort whose costs are held out in turn.

    Returns
    -------
    cells, taken
        cells of ``first`` and then those of ``second`` that it lacks, and the number of regions
        taken.
    """
    both = _counterparts(first, second)
    mine = _columns(first, both[:, 0])
    theirs = _columns(second, both[:, 1])
    rates = cohort_rates(first)
    costs = [cell_costs(cells, settings, executor, parts, rates) for cells in (first, second)]
    # A cell that a solution does not have costs it nothing, and explains no nucleus.
    ours, others = (
        np.where(both[:, side] >= 0, cost[both[:, side]], 0.0) for side, cost in enumerate(costs)
    )
    nuclei = mine.copy()
    owners = [_owners(row, len(posed)) for row, posed in zip(mine, first.posed, strict=True)]
    taken = 0
    for cells in _regions(mine, theirs, len(first)):
        if others[cells].sum() < ours[cells].sum():
            _take(nuclei, theirs, cells, owners)
            taken += 1
    kept = (nuclei >= 0).any(axis=0)
    return first.with_nuclei(nuclei[:, kept]), taken


def _columns(cells: Cells, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return (N, c): the nuclei of the cells with these numbers, -1 where a number is -1."""
    table = np.array(cells.nuclei)[:, numbers]
    return np.where(numbers >= 0, table, UNMATCHED).astype(np.int32)


def _counterparts(first: Cells, second: Cells) -> NDArray[np.int64]:
    """Return (c, 2): cells of both that share most nuclei; -1 for those that have no partner."""
    shared = _overlap(np.array(first.nuclei), np.array(second.nuclei))
    pairs = Candidates(shared.indptr.astype(np.int32), shared.indices.astype(np.int32))
    partners = assign_sparse(pairs, -shared.data, shared.shape[1]).astype(np.int64)
    single = np.setdiff1d(np.arange(shared.shape[1]), partners)
    rows = np.stack([np.arange(len(partners)), partners], axis=1)
    return np.concatenate([rows, np.stack([np.full(len(single), UNMATCHED), single], axis=1)])


def _overlap(first: NDArray[np.int32], second: NDArray[np.int32]) -> csr_array:
    """Return (c, d): in how many specimens a cell of one has the nucleus of a cell of the other."""
    rows, columns = [], []
    for mine, theirs in zip(first, second, strict=True):
        cell = np.full(max(mine.max(), theirs.max()) + 2, UNMATCHED)
        cell[theirs[theirs >= 0]] = np.flatnonzero(theirs >= 0)
        partner = np.where(mine >= 0, cell[mine], UNMATCHED)
        rows.append(np.flatnonzero(partner >= 0))
        columns.append(partner[partner >= 0])
    both = np.concatenate(rows), np.concatenate(columns)
    shape = first.shape[1], second.shape[1]
    table = csr_array((np.ones(len(both[0])), both), shape)
    table.sum_duplicates()
    return table


def cohort_rates(cells: Cells) -> Rates:
    """Return the rates of missing cells and spurious nuclei in the whole cohort."""
    matched = sum(int((nuclei >= 0).sum()) for nuclei in cells.nuclei)
    nuclei = sum(map(len, cells.posed))
    expected = float(cells.shown().sum())
    return Rates(
        (expected - matched + 0.5) / (expected + 1),
        max(nuclei - matched + 0.5, 0.5) / (expected + 1),
    )


def cell_costs(
    cells: Cells, settings: Estimate, executor: Executor, parts: int, rates: Rates
) -> NDArray[np.float64]:
    """Return (m,): the held-out cost of each cell in all specimens, relative to c0.

    Where a specimen has the cell: minus the log-density of its nucleus given the neighbours, less
    the cost of the nucleus as a spurious one; and how likely a specimen has the cell at all.
    """
    cells = warped_to_mean(cells, settings)
    models = models_of_others(cells, settings, executor, parts)
    places = cells.places()
    seen = np.isfinite(places[:, :, 0])
    # Each cell is seen as often as it is: this counts for it where it is always there.
    shown = np.maximum(cells.shown().sum(axis=0), seen.sum(axis=0))
    share = (seen.sum(axis=0) + 0.5) / (shown + 1)
    total = -shown * np.log(1 - share)
    if any(cells.parts):
        total += _exceptional(seen.sum(axis=0), shown, share, rates.missing)
    fold = folds(len(cells), parts).tolist()
    items = list(zip(fold, places, specimens_of(cells), strict=True))
    shared = (models, share, rates.spurious, settings.freedom)
    for costs in executor.map(_specimen_costs, items, shared=shared):
        total += costs
    return np.asarray(total, dtype=np.float64)


def _exceptional(
    seen: NDArray[np.int64],
    shown: NDArray[np.float64],
    share: NDArray[np.float64],
    missing: float,
) -> NDArray[np.float64]:
    """Return (m,), the cost of cells that are missing more often than others.

    A cell is missing as often as all others, or it is one of few exceptions: which of m it is costs
    log m. Otherwise a row of cells that some specimens have shifted by one, and one cell too many,
    would be as good as the right one: each specimen lacks another cell of the row.
    """
    lacking = shown - seen
    usual = float(np.clip(missing, LOWEST_RATE, 0.5))
    own = -seen * np.log(share) - lacking * np.log(1 - share)
    as_usual = -seen * np.log(1 - usual) - lacking * np.log(usual)
    return np.asarray(np.clip(as_usual - own, 0.0, np.log(len(seen))))


def _specimen_costs(
    models: list[Model],
    share: NDArray[np.float64],
    spurious: float,
    freedom: float,
    item: tuple[int, NDArray[np.float64], Row],
) -> NDArray[np.float64]:
    """Return (m,), the costs of the cells of one specimen relative to c0; 0 where it has none."""
    part, places, specimen = item
    model, seen = models[part], np.isfinite(places[:, 0])
    c0 = Background(model.background.density, share).c0(Rates(0.0, spurious), freedom)
    costs = conditional_costs(model, places) - c0
    extra = term_costs(model, fit_of(model, specimen))
    if extra is not None:
        costs[seen] += extra.on(Candidates.of_matching(specimen[3]))
    return np.where(seen, costs, 0.0)


def conditional_costs(model: Model, places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (m,): minus the log-density of each cell's place (m, 3) given others'; 0 for NaN."""
    field, freedom = model.field, model.freedom
    seen = np.isfinite(places[:, 0])
    there = np.where(seen[:, None], places, field.means)
    expected = predict(field.means, field.neighbours, field.predictors, there)
    squared = squared_distances(expected, field.centres.whitening, there)
    costs = 0.5 * (freedom + 3) * np.log1p(squared / freedom) - field.centres.heights
    return np.where(seen, costs, 0.0)


def _regions(
    mine: NDArray[np.int32], theirs: NDArray[np.int32], count: int
) -> list[NDArray[np.intp]]:
    """Return sets of cells that exchange nuclei between the solutions, or exist in one only."""
    exchanged = _overlap(mine, theirs).tocoo()
    first, second = exchanged.coords
    linked = (first != second) & (exchanged.data >= EXCHANGED * count)
    graph = csr_array((linked[linked], (first[linked], second[linked])), exchanged.shape)
    number, component = connected_components(graph, directed=False)
    order = np.argsort(component, kind="stable")
    regions = np.split(order, np.searchsorted(component[order], np.arange(1, number)))
    one_sided = np.asarray((mine < 0).all(axis=0) | (theirs < 0).all(axis=0))
    return [cells for cells in regions if len(cells) > 1 or one_sided[cells].any()]


def _owners(nuclei: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Return (count,), the cell of each nucleus, or -1, from the nucleus of each cell (m,)."""
    owners = np.full(count, UNMATCHED, np.int32)
    owners[nuclei[nuclei >= 0]] = np.flatnonzero(nuclei >= 0)
    return owners


def _take(
    nuclei: NDArray[np.int32],
    theirs: NDArray[np.int32],
    cells: NDArray[np.intp],
    owners: list[NDArray[np.int32]],
) -> None:
    """Put the nuclei of the second solution in; ``owners`` are the cells of nuclei in ``nuclei``.

    Where cells outside the region have some of them, a specimen stays as it is; but a cell that
    the first solution lacks gets its nuclei in any case, from wherever they are.
    """
    new = bool((nuclei[:, cells] < 0).all(axis=0).any())
    for mine, other, owner in zip(nuclei, theirs, owners, strict=True):
        taken = other[cells]
        holders = owner[taken[taken >= 0]]
        strayed = holders[(holders >= 0) & ~np.isin(holders, cells)]
        if new or not len(strayed):
            mine[strayed] = UNMATCHED
            owner[mine[cells][mine[cells] >= 0]] = UNMATCHED
            mine[cells] = taken
            owner[taken[taken >= 0]] = cells[taken >= 0]
