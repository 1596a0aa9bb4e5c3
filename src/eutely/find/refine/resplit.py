"""Split confusable cells again: rounds can settle on mixtures of two or three neighbours.

Where two cells overlap, a specimen may have them either way round, and an atlas of such mixtures
confirms itself. For each small group of confusable cells the orders are found again from many
starts: one specimen is the template, all others take the order that resembles it most, and the
Gaussian of the group (9 dimensions for three cells, and more if there are discriminating features)
is refined until no specimen changes. The start with the highest likelihood wins; what cells were
before is one of them.
"""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.sparse import csr_array

from eutely.align.target import ALL_MATCHED
from eutely.align.warp import warped_to_mean
from eutely.cells import Cells
from eutely.config.model import Estimate
from eutely.estimate import joint_gaussians
from eutely.estimate.small import whiten
from eutely.execute import Executor
from eutely.features import discriminating_scores
from eutely.kernel import inner, kernel
from eutely.solver.meanfield import Field, relax
from eutely.solver.softassign import Rules, centres_of

CONFUSED = 0.03
"""Share of each other's nuclei, in the mean over specimens, from which two cells are confusable."""

TEMPLATES = 20
"""Specimens that are templates in turn."""

GAIN = 3.0
"""Log-likelihood, summed over all specimens, that new orders must gain."""

PASSES = 15
"""Passes of refining the Gaussian of a group."""

WARM = (1.4, 1.0, 1.0, 1.0)
"""Temperatures at which the confusion of cells is measured."""


class _Cohort(NamedTuple):
    """All cells of N specimens, of which small groups are split again.

    Attributes
    ----------
    places, displaced
        (N, m, 3), where specimens have the cells, NaN for no nucleus; and how far off the mean, 0.
    scores
        (N, m, f), discriminating features.
    field
        cells given their neighbours.
    """

    places: NDArray[np.float64]
    displaced: NDArray[np.float64]
    scores: NDArray[np.float64]
    field: Field


def resplit(
    cells: Cells, settings: Estimate, executor: Executor, *, seed: int
) -> tuple[Cells, int]:
    """Return cells of which confusable ones were split again, and how many groups changed."""
    cells = warped_to_mean(cells, settings)
    places = cells.places()
    partial = any(cells.parts)
    joint = joint_gaussians(places, cells.body.spacing, settings, partial=partial)
    means, covariances = joint.cells
    field = Field(means, joint.neighbours, joint.predictors, centres_of(joint.conditionals))
    items = list(zip(cells.warped, cells.labels(), strict=True))
    confusion = csr_array((cells.count, cells.count))
    for table in executor.map(_confusion, items, shared=(field, settings.freedom)):
        confusion = csr_array(confusion + table)
    scores = discriminating_scores(cells.cell_scores())
    prior = block_diag(np.median(covariances, axis=0), np.eye(scores.shape[2]))
    templates = np.random.default_rng(seed).permutation(len(cells))[:TEMPLATES]
    cohort = _Cohort(places, np.nan_to_num(places - means), scores, field)
    groups = _groups(confusion, len(cells))
    shared = (cohort, prior, settings.prior, settings.freedom, templates)
    solutions = list(executor.map(_split, groups, shared=shared))
    nuclei = np.array(cells.nuclei)
    used: set[int] = set()
    changed = 0
    for number in np.argsort([-gain for gain, _ in solutions], kind="stable"):
        gain, orders = solutions[number]
        if gain < GAIN or used & set(groups[number]):
            continue
        used |= set(groups[number])
        changed += 1
        members = np.array(groups[number])
        for row, order in zip(nuclei, orders, strict=True):
            row[members] = row[members[order]]
    return cells.with_nuclei(nuclei), changed


def _confusion(
    field: Field, freedom: float, item: tuple[NDArray[np.float64], NDArray[np.int32]]
) -> csr_array:
    """Return (m, m): how much each cell has of the nucleus of each other one."""
    points, labels = item
    shares = relax(field, points, field.means, Rules(freedom, ALL_MATCHED), cooling=WARM).shares
    m = len(field.means)
    rows = np.repeat(np.arange(m), np.diff(shares.starts))
    columns = labels[shares.points]
    inside = columns >= 0
    return csr_array((shares.values[inside], (rows[inside], columns[inside])), (m, m))


def _groups(confusion: csr_array, count: int) -> list[tuple[int, ...]]:
    """Return pairs of cells that are confusable in ``count`` specimens, and triples."""
    both = (confusion + confusion.T).tocoo()
    first, second = both.coords
    close = (first != second) & (both.data > CONFUSED * count)
    near: list[list[int]] = [[] for _ in range(both.shape[0])]
    for i, j in sorted(zip(first[close].tolist(), second[close].tolist(), strict=True)):
        near[i].append(j)
    pairs = {(i, j) for i, others in enumerate(near) for j in others if i < j}
    triples = {
        tuple(sorted((i, *two))) for i, others in enumerate(near) for two in combinations(others, 2)
    }
    return [*sorted(pairs), *sorted(triples)]


def _places_of(cohort: _Cohort, cells: tuple[int, ...]) -> NDArray[np.float64]:
    """Return (N, c, 3 + f), places of a few cells, and their scores.

    The displacement that their surroundings share is subtracted.
    """
    group, field = np.array(cells, dtype=np.int64), cohort.field
    shift = np.zeros((len(cohort.places), 3))
    for cell in group:
        outside = ~np.isin(field.neighbours[cell], group)
        near = field.neighbours[cell][outside]
        predictors = field.predictors[cell][outside]
        shift += np.einsum("kij,nkj->ni", predictors, cohort.displaced[:, near]) / len(group)
    here = cohort.places[:, group] - shift[:, None]
    return np.concatenate([here, cohort.scores[:, group]], axis=2)


def _split(
    cohort: _Cohort,
    prior: NDArray[np.float64],
    weight: float,
    freedom: float,
    templates: NDArray[np.int64],
    cells: tuple[int, ...],
) -> tuple[float, NDArray[np.int64]]:
    """Return what the best orders gain, and the order (N, c) of a few cells in each specimen."""
    places = _places_of(cohort, cells)
    orders = np.array(list(permutations(range(len(cells)))), dtype=np.int64)
    whole = np.asarray(np.isfinite(places).all(axis=(1, 2)))
    chosen = np.zeros(len(places), dtype=np.int64)
    if whole.sum() < 2:
        return 0.0, orders[chosen]
    # Specimens that lack a cell of the group keep the order they have.
    number = np.cumsum(whole) - 1
    start = number[templates[whole[templates]]]
    whitening = np.ascontiguousarray(np.linalg.inv(np.linalg.cholesky(2 * prior)))
    gain, best = _best_orders(
        np.ascontiguousarray(places[whole]),
        orders,
        start,
        np.kron(np.eye(len(cells)), prior),
        weight,
        freedom,
        whitening,
    )
    chosen[whole] = best
    return float(gain), orders[chosen]


@kernel
def _best_orders(
    places: Any, orders: Any, templates: Any, prior: Any, weight: float, freedom: float, white: Any
) -> Any:
    """Return the gain over the orders as they are, and the order of each specimen: (N,) int64."""
    count = len(places)
    starts = np.zeros((len(templates) + 1, count), np.int64)
    before, best = _refined(places, orders, starts[0], prior, weight, freedom)
    lowest = before
    wide = places.shape[2]
    apart = np.empty(wide)
    for number in range(len(templates)):
        template = templates[number]
        start = starts[number + 1]
        for one in range(count):
            lowest_cost = np.inf
            for o in range(len(orders)):
                cost = 0.0
                for a in range(orders.shape[1]):
                    for c in range(wide):
                        apart[c] = places[one, orders[o, a], c] - places[template, a, c]
                    cost += np.log1p(_lower_squared(white, apart) / freedom)
                if cost < lowest_cost:
                    lowest_cost = cost
                    start[one] = o
        # Many templates give one and the same start.
        again = False
        for earlier in range(number + 1):
            same = True
            for one in range(count):
                same = same and starts[earlier, one] == start[one]
            again = again or same
        if again:
            continue
        cost, refined = _refined(places, orders, start, prior, weight, freedom)
        if cost < lowest - 1e-6:
            lowest = cost
            best = refined
    return before - lowest, best


@inner
def _refined(
    places: Any, orders: Any, start: Any, prior: Any, weight: float, freedom: float
) -> Any:
    """Alternate between the Student-t distribution of a group and the order of each specimen."""
    count, cells, wide = places.shape[0], orders.shape[1], places.shape[2]
    size = wide * cells
    chosen = np.empty(count, np.int64)
    best = np.empty(count, np.int64)
    for one in range(count):
        chosen[one] = best[one] = start[one]
    lowest = np.inf
    rows = np.empty((count, size))
    weights = np.empty(count)
    mean, away = np.empty(size), np.empty(size)
    covariance = np.empty((size, size))
    white = np.zeros((size, size))
    for _ in range(PASSES):
        for one in range(count):
            for a in range(cells):
                for c in range(wide):
                    rows[one, wide * a + c] = places[one, orders[chosen[one], a], c]
        for one in range(count):
            weights[one] = 1.0
        for _ in range(3):
            total = 0.0
            for a in range(size):
                mean[a] = 0.0
                for b in range(size):
                    covariance[a, b] = weight * prior[a, b]
            for one in range(count):
                total += weights[one]
                for a in range(size):
                    mean[a] += weights[one] * rows[one, a]
            for a in range(size):
                mean[a] /= total
            for one in range(count):
                for a in range(size):
                    away[a] = rows[one, a] - mean[a]
                for a in range(size):
                    for b in range(a + 1):
                        covariance[a, b] += weights[one] * away[a] * away[b]
            for a in range(size):
                for b in range(a + 1):
                    covariance[a, b] /= weight + count
            whiten(covariance, white)
            for one in range(count):
                for a in range(size):
                    away[a] = rows[one, a] - mean[a]
                squared = _lower_squared(white, away)
                weights[one] = (freedom + size) / (freedom + squared)
        height = 0.0
        for a in range(size):
            height += np.log(white[a, a])
        total = 0.0
        changed = False
        for one in range(count):
            nearest = np.inf
            choice = 0
            for o in range(len(orders)):
                for a in range(cells):
                    for c in range(wide):
                        away[wide * a + c] = places[one, orders[o, a], c] - mean[wide * a + c]
                squared = _lower_squared(white, away)
                if squared < nearest:
                    nearest = squared
                    choice = o
            total += 0.5 * (freedom + size) * np.log1p(nearest / freedom) - height
            changed = changed or choice != chosen[one]
            chosen[one] = choice
        if total < lowest - 1e-9:
            lowest = total
            for one in range(count):
                best[one] = chosen[one]
        if not changed:
            break
    return lowest, best


@inner
def _lower_squared(white: Any, away: Any) -> float:
    """Return the squared length of ``white @ away`` for a lower triangle."""
    total = 0.0
    for a in range(len(away)):
        part = 0.0
        for b in range(a + 1):
            part += white[a, b] * away[b]
        total += part * part
    return total
