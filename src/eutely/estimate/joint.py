"""How displacements of cells go together: each is predicted from those most correlated with it.

Correlations fade with distance, by the prior and by how far what is seen is trusted. So the cells
most correlated with a cell are found among those around it, from near to far, until no cell farther
off can be among them; a covariance of all cells is never made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.arrays import longer
from eutely.config.model import Estimate
from eutely.costs.grid import Grid, grid_of, shell
from eutely.estimate.gaussians import Gaussians, robust_gaussians
from eutely.estimate.small import solve_positive
from eutely.kernel import inlined, inner, kernel

CLIP = 5.0
"""Residuals beyond so many standard deviations are pulled in before they are correlated."""

KEPT = 64
"""Covariances with others that are kept for each cell; those with cells farther off are computed
again where they are needed."""

NARROW = 0.02
"""Share of a distance to which it is computed how far off correlated cells can be."""


class Joint(NamedTuple):
    """Cells by themselves and given their neighbours, as in `eutely.atlas.Atlas`."""

    cells: Gaussians
    neighbours: NDArray[np.int32]
    predictors: NDArray[np.float64]
    conditionals: NDArray[np.float64]


def joint_gaussians(
    places: NDArray[np.float64], spacing: float, settings: Estimate, *, partial: bool = False
) -> Joint:
    """Estimate what matching needs of an atlas, and no more; parameters: see `displacements`."""
    cells = robust_gaussians(places, settings)
    moved = displacements(places, cells, spacing, settings, partial=partial)
    return _predicted(cells, moved, settings)


def independent_gaussians(cells: Gaussians) -> Joint:
    """Return cells that predict nothing about each other."""
    m = len(cells.means)
    nothing = np.zeros((m, 0), np.int32), np.zeros((m, 0, 3, 3))
    return Joint(cells, *nothing, cells.covariances)


def prior_gaussians(cells: Gaussians, spacing: float, settings: Estimate) -> Joint:
    """Return cells that predict each other by the prior alone, before anything was seen."""
    nothing = np.zeros((len(cells.means), 0, 3))
    unseen = _displacements(nothing, cells, cells.covariances, spacing, settings)
    return _predicted(cells, unseen, settings)


class Displacements(NamedTuple):
    """What the joint covariance of all cells is made of, in the form that kernels take.

    The block of cells i and j at the distance d is a weighted mean of what is seen, faded out with
    distance (few specimens make distant cells look correlated by chance), and of a prior:

    (shrinkage * a(d) * R_i R_j' + t(d) * sum over specimens of x_i x_j') / (shrinkage + N)

    with a(d) = ``strength * exp(-d / length)``, 1 for a cell with itself, t(d) =
    ``exp(-d^2 / (2 fade^2))``, and R the square root of a cell's covariance.

    Attributes
    ----------
    seen
        (m, N, 3) float64, displacements x of each cell in N specimens.
    roots
        (m, 3, 3) float64, R.
    grid
        of the cells; distances are measured along the axes in proportion to the root of the typical
        displacement there, in spacings.
    weights
        (4,) float64: strength, length, fade, shrinkage.
    """

    seen: NDArray[np.float64]
    roots: NDArray[np.float64]
    grid: Grid
    weights: NDArray[np.float64]


def displacements(
    places: NDArray[np.float64],
    cells: Gaussians,
    spacing: float,
    settings: Estimate,
    *,
    partial: bool = False,
) -> Displacements:
    """Return displacements of cells from their means; outliers are pulled in.

    Parameters
    ----------
    places
        (N, m, 3), where each specimen has each cell; NaN where it has not.
    cells
        means and covariances of the places.
    spacing, settings
        typical distance of neighbouring cells, and the section ``estimate`` of the configuration.
    partial
        whether some specimens show parts of the body. Then the prior counts for more where few
        specimens show a cell; otherwise as if each cell were seen in all.
    """
    count = len(places)
    seen = np.isfinite(places[:, :, 0])
    residuals = np.where(seen[:, :, None], places - cells.means, 0.0)
    whitening = np.linalg.inv(np.linalg.cholesky(cells.covariances))
    lengths = np.linalg.norm(np.einsum("mij,nmj->nmi", whitening, residuals), axis=2)
    residuals *= np.minimum(1.0, CLIP / np.maximum(lengths, 1e-12))[:, :, None]
    counts = np.maximum(seen.sum(axis=0), 1)
    if not partial:
        # A cell seen in few specimens counts as if it were seen in all: variances stay right.
        residuals *= np.sqrt(count / counts)[None, :, None]
        counts = np.full_like(counts, count)
    own = np.einsum("nmi,nmj->mij", residuals, residuals)
    own += settings.prior * np.median(cells.covariances, axis=0)
    own /= (counts + settings.prior)[:, None, None]
    # Turns the N in the block of two cells into the root of the product of their counts.
    factors = np.sqrt((settings.shrinkage + count) / (settings.shrinkage + counts))
    by_cell = np.ascontiguousarray((residuals * factors[None, :, None]).transpose(1, 0, 2))
    moved = _displacements(by_cell, cells, own, spacing, settings)
    return moved._replace(roots=moved.roots * factors[:, None, None])


def _displacements(
    seen: NDArray[np.float64],
    cells: Gaussians,
    covariances: NDArray[np.float64],
    spacing: float,
    settings: Estimate,
) -> Displacements:
    typical = np.sqrt(np.diag(np.median(cells.covariances, axis=0)))
    scaled = cells.means / (spacing * np.sqrt(typical / typical.max()))
    weights = [settings.strength, settings.length, settings.fade, settings.shrinkage]
    return Displacements(
        seen, _square_roots(covariances), grid_of(scaled), np.array(weights, dtype=np.float64)
    )


def _predicted(cells: Gaussians, moved: Displacements, settings: Estimate) -> Joint:
    """Regress each cell on those that are most correlated with it."""
    chosen, *near, _ = _predictive(moved, min(settings.neighbours, len(cells.means) - 1))
    return Joint(cells, chosen, *_regression(moved, chosen, *near))


def _square_roots(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(matrices)
    roots = np.einsum("mij,mj,mkj->mik", vectors, np.sqrt(np.maximum(values, 0)), vectors)
    return np.asarray(roots, dtype=np.float64)


@inner
def block(moved: Any, i: Any, j: Any, out: Any) -> None:
    """Write the joint covariance of two cells to ``out`` (3, 3)."""
    strength, length = moved.weights[0], moved.weights[1]
    fade, shrinkage = moved.weights[2], moved.weights[3]
    squared = 0.0
    for a in range(3):
        squared += (moved.grid.points[i, a] - moved.grid.points[j, a]) ** 2
    alike = 1.0 if i == j else strength * np.exp(-np.sqrt(squared) / length)
    trust = np.exp(-0.5 * squared / fade**2)
    x, y = moved.seen[i], moved.seen[j]
    count = len(x)
    s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = 0.0
    for n in range(count):
        p, q, r = x[n, 0], x[n, 1], x[n, 2]
        u, v, w = y[n, 0], y[n, 1], y[n, 2]
        s00 += p * u
        s01 += p * v
        s02 += p * w
        s10 += q * u
        s11 += q * v
        s12 += q * w
        s20 += r * u
        s21 += r * v
        s22 += r * w
    out[0, 0], out[0, 1], out[0, 2] = s00, s01, s02
    out[1, 0], out[1, 1], out[1, 2] = s10, s11, s12
    out[2, 0], out[2, 1], out[2, 2] = s20, s21, s22
    for a in range(3):
        for b in range(3):
            prior = 0.0
            for c in range(3):
                prior += moved.roots[i, a, c] * moved.roots[j, b, c]
            out[a, b] = (shrinkage * alike * prior + trust * out[a, b]) / (shrinkage + count)


@kernel
def _predictive(moved: Any, most: int) -> Any:
    """Return (m, k), the cells whose displacements are most correlated with each cell's.

    The strength of a correlation is the sum of the squared correlations of coordinates. With w, the
    largest eigenvalue of the correlations of the cell's own coordinates, q, the sum of the shares
    of its variances that were seen, and Q, the largest such share of any coordinate, it is at most
    3 (a(d) sqrt(w) + t(d) sqrt(q Q))^2 by Cauchy's inequality, see `Displacements`. The first
    `KEPT` blocks of each cell are returned as well: starts (m + 1,), the other cells (p,), and the
    blocks (p, 3, 3); and how many pairs were looked at.
    """
    m = len(moved.seen)
    prior = moved.weights[3] / (moved.weights[3] + moved.seen.shape[1])
    deviations = np.empty((m, 3))
    widest = np.empty(m)
    seen_share = np.zeros(m)
    highest = 0.0
    out = np.empty((3, 3))
    for i in range(m):
        widest[i] = 1.0
        block(moved, i, i, out)
        for a in range(3):
            deviations[i, a] = np.sqrt(out[a, a])
        for a in range(3):  # the largest sum of a row bounds the largest eigenvalue
            total = 0.0
            for b in range(3):
                total += abs(out[a, b]) / (deviations[i, a] * deviations[i, b])
            widest[i] = max(widest[i], total)
            own = 0.0
            for c in range(3):
                own += moved.roots[i, a, c] ** 2
            share = max(1.0 - prior * own / out[a, a], 0.0)
            seen_share[i] += share
            highest = max(highest, share)
    chosen = np.empty((m, most), np.int32)
    best = np.empty(most)
    near = np.empty(m, np.int32)
    starts = np.zeros(m + 1, np.int64)
    others = np.empty(64 * m, np.int32)
    blocks = np.empty((len(others), 3, 3))
    end, looked_at = 0, 0
    for i in range(m):
        known, radius, limit = 0, 0, np.inf
        while most > 0:
            count, reach = shell(moved.grid, moved.grid.points[i], radius, near)
            radius += 1
            for at in range(count):
                j = np.int64(near[at])
                apart = 0.0
                for a in range(3):
                    apart += (moved.grid.points[i, a] - moved.grid.points[j, a]) ** 2
                if j == i or apart > limit * limit:
                    continue
                block(moved, i, j, out)
                looked_at += 1
                if end - starts[i] < KEPT:
                    if end == len(others):
                        others = longer(others, end, 2 * end)
                        blocks = _roomier(blocks, end)
                    others[end] = j
                    for a in range(3):
                        for b in range(3):
                            blocks[end, a, b] = out[a, b]
                    end += 1
                total = 0.0
                for a in range(3):
                    for b in range(3):
                        total += (out[a, b] / (deviations[i, a] * deviations[j, b])) ** 2
                known = _insert(chosen[i], best, known, j, total)
            if known == most:
                shares = np.sqrt(min(seen_share[i], widest[i]) * highest)
                limit = _limit(moved.weights, np.sqrt(widest[i]), shares, np.sqrt(best[-1] / 3))
            if reach >= limit or reach == np.inf:
                break
        starts[i + 1] = end
    return chosen, starts, others[:end], blocks[:end], looked_at


@inner
def _limit(weights: Any, prior: Any, seen: Any, least: Any) -> Any:
    """Return a distance d beyond which ``a(d) prior + t(d) seen`` is less than ``least``.

    ``weights``, a(d), t(d): see `Displacements`.
    """
    if least <= 0.0:
        return np.inf
    low, high = 0.0, weights[1] + weights[2]
    while _at_most(weights, prior, seen, high) >= least:
        low, high = high, 2 * high
    while high - low > NARROW * high:
        middle = (low + high) / 2
        if _at_most(weights, prior, seen, middle) >= least:
            low = middle
        else:
            high = middle
    return high


@inlined
def _at_most(weights: Any, prior: Any, seen: Any, distance: Any) -> Any:
    """Return ``a(d) prior + t(d) seen`` at a distance d, see `_limit`."""
    smooth = weights[0] * np.exp(-distance / weights[1]) * prior
    return smooth + np.exp(-0.5 * (distance / weights[2]) ** 2) * seen


@inner
def _roomier(blocks: Any, size: int) -> Any:
    """Return a copy of ``size`` blocks (size, 3, 3) with room for as many again."""
    more = np.empty((2 * size, 3, 3))
    for k in range(size):
        for a in range(3):
            for b in range(3):
                more[k, a, b] = blocks[k, a, b]
    return more


@inner
def _insert(cells: Any, best: Any, known: int, cell: Any, value: float) -> int:
    """Insert a cell into a list of the best, highest value first; return how many there are."""
    at = known
    if known == len(best):
        at -= 1
        if value < best[at] or (value == best[at] and cell > cells[at]):
            return known
    while at > 0 and (best[at - 1] < value or (best[at - 1] == value and cells[at - 1] > cell)):
        best[at] = best[at - 1]
        cells[at] = cells[at - 1]
        at -= 1
    best[at] = value
    cells[at] = cell
    return min(known + 1, len(best))


@kernel
def _regression(moved: Any, chosen: Any, starts: Any, near: Any, blocks: Any) -> Any:
    """Regress each cell on its neighbours: predictors (m, k, 3, 3), conditionals (m, 3, 3).

    ``starts``, ``near``, ``blocks``: blocks of the joint covariance that are known already.
    """
    m, k = chosen.shape
    predictors = np.empty((m, k, 3, 3))
    conditionals = np.empty((m, 3, 3))
    own = np.empty((m, 3, 3))
    for i in range(m):
        block(moved, i, i, own[i])
    others = np.empty((3 * k, 3 * k))
    cross = np.empty((3, 3 * k))
    weights = np.empty((3 * k, 3))
    out = np.empty((1, 3, 3))
    rest = np.empty((3, 3))
    place = np.full(m, -1, np.int64)  # of a cell among the chosen ones
    for i in range(m):
        for p in range(k):
            place[chosen[i, p]] = p
            cross[0, 3 * p] = np.nan  # not known yet
        for at in range(starts[i], starts[i + 1]):
            if place[near[at]] >= 0:
                _put(cross, 0, 3 * place[near[at]], blocks, at)
        for p in range(k):
            j = np.int64(chosen[i, p])
            if np.isnan(cross[0, 3 * p]):
                block(moved, i, j, out[0])
                _put(cross, 0, 3 * p, out, 0)
            for q in range(p + 1, k):
                others[3 * p, 3 * q] = np.nan
            _put(others, 3 * p, 3 * p, own, j)
            for at in range(starts[j], starts[j + 1]):
                if place[near[at]] > p:
                    _put(others, 3 * p, 3 * place[near[at]], blocks, at)
            for q in range(p + 1, k):
                if np.isnan(others[3 * p, 3 * q]):
                    block(moved, j, np.int64(chosen[i, q]), out[0])
                    _put(others, 3 * p, 3 * q, out, 0)
        for p in range(k):
            place[chosen[i, p]] = -1
        for a in range(3 * k):
            for b in range(3):
                weights[a, b] = cross[b, a]
        solve_positive(others, weights)
        for a in range(3):
            for b in range(3):
                rest[a, b] = own[i, a, b]
                for c in range(3 * k):
                    rest[a, b] -= weights[c, a] * cross[b, c]
        for p in range(k):
            for a in range(3):
                for b in range(3):
                    predictors[i, p, a, b] = weights[3 * p + b, a]
        for a in range(3):
            for b in range(3):
                conditionals[i, a, b] = (rest[a, b] + rest[b, a]) / 2
    return predictors, conditionals


@inlined
def _put(matrix: Any, row: Any, column: Any, values: Any, at: Any) -> None:
    """Copy ``values[at]`` (3, 3) into a matrix."""
    for a in range(3):
        for b in range(3):
            matrix[row + a, column + b] = values[at, a, b]
