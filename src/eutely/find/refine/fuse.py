"""Take the best of two solutions, region by region: what one target got wrong another has right.

Two ways to deal the nuclei of a cohort into cells agree in most places. Where they do not, cells
exchange nuclei with few others: the components of that exchange can be taken from either solution,
and each is taken from the one that predicts the nuclei of held-out specimens better.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from eutely.config.model import Estimate
from eutely.estimate import Gaussians, joint_gaussians, prior_gaussians
from eutely.execute import Executor
from eutely.fit.place import Placed, match
from eutely.fit.rates import Background, Rates
from eutely.fit.model import Expectation, what_features_say
from eutely.cells import Cohort
from eutely.find.refine.rounds import expect_others
from eutely.solver.lap_dense import lap_dense
from eutely.solver.meanfield import Field, predict
from eutely.solver.softassign import centres_of, squared_distances

EXCHANGED = 0.03
"""Share of specimens in which two cells must have exchanged a nucleus to be decided together."""


def from_target(cohort: Cohort, target: int, settings: Estimate, executor: Executor) -> Cohort:
    """Match all specimens, warped as in ``cohort``, with the nuclei of one of them.

    The cells are new: they owe to those of ``cohort`` no more than how far each may vary. Only
    cells that the target lacks are taken over, where they are expected in it.
    """
    joint = joint_gaussians(cohort.places(), cohort.spacing, settings)
    own = cohort.nuclei[target]
    lacking = own < 0
    there = np.where(lacking[:, None], joint.cells.means, cohort.warped[target][own])
    told = predict(joint.cells.means, joint.neighbours, joint.predictors, there)
    points = np.concatenate([cohort.warped[target], told[lacking]])
    # The difference of two specimens varies by twice the covariance of one.
    varied = 2 * joint.cells.covariances
    covariances = np.repeat(np.median(varied, axis=0)[None], len(points), axis=0)
    covariances[own[~lacking]] = varied[~lacking]
    covariances[len(points) - lacking.sum() :] = varied[lacking]
    cells = Gaussians(points, covariances)
    prior = prior_gaussians(cells, cohort.spacing, settings)
    field = Field(points, prior.neighbours, prior.predictors, centres_of(prior.conditionals))
    centres = centres_of(covariances)
    most = cohort.most_pairs
    expected = Expectation.of(
        field,
        centres,
        cohort.size,
        cohort.spacing,
        settings.freedom,
        most=most,
        smooth=cohort.smooth,
    )
    nobody = np.full(len(points), -1, np.int32)
    items = [replace(one, nuclei=nobody) for one in cohort.placed()]
    return cohort.replaced(list(executor.map(_match_once, items, shared=(expected,))))


def _match_once(expected: Expectation, before: Placed) -> Placed:
    return match(expected, before, refits=1)


def fuse(
    first: Cohort, second: Cohort, settings: Estimate, executor: Executor, *, folds: int
) -> tuple[Cohort, int]:
    """Return the first solution with the regions of the second that are better.

    Parameters
    ----------
    first, second
        the same specimens in the same poses, each with cells of its own.
    settings, executor
        how to estimate, where to run.
    folds
        parts of the cohort whose costs are held out in turn.

    Returns
    -------
    cohort, taken
        cells of ``first`` and then those of ``second`` that it lacks, and the number of regions
        taken.
    """
    both = _counterparts(first, second)
    mine = _columns(first, both[:, 0])
    theirs = _columns(second, both[:, 1])
    rates = spare_rates(first)
    costs = [cell_costs(one, settings, executor, folds, rates) for one in (first, second)]
    # A cell that a solution does not have costs it nothing, and explains no nucleus.
    ours, others = (
        np.where(both[:, side] >= 0, found[both[:, side]], 0.0) for side, found in enumerate(costs)
    )
    regions = _regions(mine, theirs, len(first))
    nuclei = mine.copy()
    taken = 0
    for cells in regions:
        if others[cells].sum() < ours[cells].sum():
            _take(nuclei, theirs, cells)
            taken += 1
    kept = (nuclei >= 0).any(axis=0)
    return replace(first, nuclei=tuple(np.ascontiguousarray(nuclei[:, kept]))), taken


def _columns(cohort: Cohort, cells: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return (N, c): the nuclei of these cells, -1 where a cell is -1."""
    return np.where(cells >= 0, np.array(cohort.nuclei)[:, cells], -1).astype(np.int32)


def _counterparts(first: Cohort, second: Cohort) -> NDArray[np.int64]:
    """Return (c, 2): cells of both that share most nuclei; -1 for those that have no partner."""
    shared = _overlap(np.array(first.nuclei), np.array(second.nuclei))
    partners = lap_dense(-shared)[0].astype(np.int64)
    lone = np.setdiff1d(np.arange(shared.shape[1]), partners)
    rows = np.stack([np.arange(len(partners)), partners], axis=1)
    return np.concatenate([rows, np.stack([np.full(len(lone), -1), lone], axis=1)])


def _overlap(first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return (c, d): in how many specimens a cell of one has the nucleus of a cell of the other."""
    table = np.zeros((first.shape[1], second.shape[1]))
    for own, other in zip(first, second, strict=True):
        place = np.full(max(own.max(), other.max()) + 2, -1)
        place[other[other >= 0]] = np.flatnonzero(other >= 0)
        partner = np.where(own >= 0, place[own], -1)
        table[np.flatnonzero(partner >= 0), partner[partner >= 0]] += 1
    return table


def spare_rates(cohort: Cohort) -> Rates:
    """Return the rates of missing cells and spurious nuclei in the whole cohort."""
    cells = len(cohort.nuclei[0])
    matched = sum(int((own >= 0).sum()) for own in cohort.nuclei)
    nuclei = sum(map(len, cohort.posed))
    every = len(cohort) * cells
    return Rates(
        (every - matched + 0.5) / (every + 1), max(nuclei - matched + 0.5, 0.5) / (every + 1)
    )


def cell_costs(
    cohort: Cohort, settings: Estimate, executor: Executor, folds: int, rates: Rates
) -> NDArray[np.float64]:
    """Return (m,): what each cell costs all specimens, held out, beyond leaving its nuclei alone.

    Where a specimen has the cell: minus the log-density of its nucleus given the neighbours, less
    what the nucleus would cost as a spurious one; and how likely a specimen has the cell at all.
    """
    cohort = cohort.rewarped(settings)
    expected = expect_others(cohort, settings, executor, folds)
    places = cohort.places()
    seen = np.isfinite(places[:, :, 0])
    # Each cell is seen as often as it is: this counts for it where it is always there.
    share = (seen.sum(axis=0) + 0.5) / (len(cohort) + 1)
    total = -len(cohort) * np.log(1 - share)
    for number, row in enumerate(places):
        own = expected[number % folds]
        always = Background(own.background.density, share)
        alone = always.unmatched(Rates(0.0, rates.spurious), settings.freedom)
        costs = conditional_costs(own, row) - alone
        if cohort.features:
            costs += _feature_costs(own, cohort.features[number], cohort.nuclei[number])
        total += np.where(seen[number], costs, 0.0)
    return np.asarray(total, dtype=np.float64)


def _feature_costs(
    expected: Expectation, features: NDArray[np.float64], nuclei: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Return (m,): what features say against the nucleus of each cell."""
    costs = what_features_say(expected, features, nuclei)
    if costs is None:
        return np.zeros(len(nuclei))
    return costs[np.arange(len(nuclei)), nuclei]


def conditional_costs(expected: Expectation, places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (m,): minus the log-density of each cell's place (m, 3) given others'; 0 for NaN."""
    field, freedom = expected.field, expected.freedom
    seen = np.isfinite(places[:, 0])
    there = np.where(seen[:, None], places, field.means)
    told = predict(field.means, field.neighbours, field.predictors, there)
    squared = squared_distances(told, field.centres.whitening, there)
    costs = 0.5 * (freedom + 3) * np.log1p(squared / freedom) - field.centres.heights
    return np.where(seen, costs, 0.0)


def _regions(
    mine: NDArray[np.int32], theirs: NDArray[np.int32], count: int
) -> list[NDArray[np.intp]]:
    """Return sets of cells that exchange nuclei between the solutions, or exist in one only."""
    exchanged = _overlap(mine, theirs)
    np.fill_diagonal(exchanged, 0)
    linked = (exchanged >= EXCHANGED * count).astype(np.int8)
    number, component = connected_components(linked, directed=False)
    sets = [np.flatnonzero(component == one) for one in range(number)]
    alone = np.asarray((mine < 0).all(axis=0) | (theirs < 0).all(axis=0))
    return [cells for cells in sets if len(cells) > 1 or alone[cells].any()]


def _take(nuclei: NDArray[np.int32], theirs: NDArray[np.int32], cells: NDArray[np.intp]) -> None:
    """Put the nuclei of the second solution in.

    Where cells outside the region have some of them, a specimen stays as it is; but a cell that
    the first solution lacks gets its nuclei in any case, from wherever they are.
    """
    new = bool((nuclei[:, cells] < 0).all(axis=0).any())
    outside = np.ones(nuclei.shape[1], bool)
    outside[cells] = False
    for own, other in zip(nuclei, theirs, strict=True):
        mine = other[cells]
        strayed = outside & np.isin(own, mine[mine >= 0])
        if new or not strayed.any():
            own[strayed] = -1
            own[cells] = mine
