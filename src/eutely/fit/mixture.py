"""Cells as a mixture of round Gaussians: likelihood of nuclei under many poses, quickly."""

from __future__ import annotations

from typing import Any

import numpy as np

from eutely.kernel import kernel

REACH = 3.5
"""Distance, in standard deviations, beyond which a cell does not explain a nucleus."""


@kernel
def grid_sums(points: Any, moves: Any, density: Any, low: Any, step: float) -> Any:
    """Return (k,), the sum of a log-density over points (n, 3), for each of the moves (k, 3).

    ``density`` (a, b, c) holds the log-density in cubes of the edge length ``step``, from the
    corner ``low`` (3,) on; outside it has its lowest value.
    """
    sums = np.empty(len(moves))
    a, b, c = density.shape
    outside = density.min()
    for k in range(len(moves)):
        total = 0.0
        for j in range(len(points)):
            x = int(np.floor((points[j, 0] + moves[k, 0] - low[0]) / step))
            y = int(np.floor((points[j, 1] + moves[k, 1] - low[1]) / step))
            z = int(np.floor((points[j, 2] + moves[k, 2] - low[2]) / step))
            if 0 <= x < a and 0 <= y < b and 0 <= z < c:
                total += density[x, y, z]
            else:
                total += outside
        sums[k] = total
    return sums


@kernel
def mixture(means: Any, prior: Any, points: Any, extra: Any, variance: float, noise: float) -> Any:
    """Return where the cells of points are on average, (n, 3), how surely, (n,), and the score.

    The score is the sum of the log-density of points (n, 3) under cells at ``means`` (m, 3), which
    ascend in x, with weights ``prior`` (m,), costs of features ``extra`` (m, n) or (0, 0), and
    ``noise``, the density of points that are no cell.
    """
    n = len(points)
    targets = np.zeros((n, 3))
    weights = np.zeros(n)
    height = (2 * np.pi * variance) ** -1.5
    reach = REACH * np.sqrt(variance)
    score = 0.0
    for j in range(n):
        low = np.searchsorted(means[:, 0], points[j, 0] - reach)
        high = np.searchsorted(means[:, 0], points[j, 0] + reach)
        total = 0.0
        for i in range(low, high):
            squared = 0.0
            for a in range(3):
                squared += (points[j, a] - means[i, a]) ** 2
            if squared > reach * reach:
                continue
            cost = 0.5 * squared / variance
            if len(extra):
                cost += extra[i, j]
            value = prior[i] * height * np.exp(-cost)
            total += value
            for a in range(3):
                targets[j, a] += value * means[i, a]
        if total > 0:
            for a in range(3):
                targets[j, a] /= total
        weights[j] = total / (total + noise)
        score += np.log(total + noise)
    return targets, weights, score
