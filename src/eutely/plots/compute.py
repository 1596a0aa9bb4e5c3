"""What each figure shows, as plain numbers; drawing them is left to others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eutely.atlas import Atlas
from eutely.evaluation import Evaluation, comparable
from eutely.results import NO_CELL, Shown, Trial

UNSURE = 0.5
"""Nuclei with a confidence below this are called uncertain."""

GRID = 64
"""Places at which the outline of a violin is computed."""


class Curve(NamedTuple):
    """Learning of one stage: trial numbers, their losses, and the lowest loss so far; (t,) each."""

    stage: str
    numbers: NDArray[np.int64]
    losses: NDArray[np.float64]
    best: NDArray[np.float64]


class Front(NamedTuple):
    """Trials with two losses (t, 2), which of them no other beats in both, and the one taken."""

    stage: str
    points: NDArray[np.float64]
    on_front: NDArray[np.bool_]
    chosen: int | None


class Ranked(NamedTuple):
    """A value of each of ``n`` specimens, the lowest first; ``marked`` ones stand out."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    marked: NDArray[np.bool_]


class Violin(NamedTuple):
    """A distribution: a value each of ``n`` specimens, and the outline of their density."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    grid: NDArray[np.float64]
    density: NDArray[np.float64]


class Confusion(NamedTuple):
    """A cell that was taken for another: ``times`` of the ``of`` specimens with a named nucleus."""

    name: str
    taken_for: str
    times: int
    of: int


def learning_curves(trials: Sequence[Trial]) -> list[Curve]:
    """Return the curve of each stage, in order; of two losses the first one.

    Trials that failed (a loss that is not finite) are left out.
    """
    curves = []
    sound = [trial for trial in trials if np.isfinite(trial.values).all()]
    for stage in dict.fromkeys(trial.stage for trial in sound):
        own = sorted((trial for trial in sound if trial.stage == stage), key=lambda t: t.number)
        losses = np.array([trial.values[0] for trial in own], dtype=np.float64)
        numbers = np.array([trial.number for trial in own], dtype=np.int64)
        curves.append(Curve(stage, numbers, losses, np.minimum.accumulate(losses)))
    return curves


def pareto_fronts(trials: Sequence[Trial], chosen: Mapping[str, int]) -> list[Front]:
    """Return the front of each stage whose trials have two losses; failed ones are left out."""
    fronts = []
    sound = [t for t in trials if len(t.values) == 2 and np.isfinite(t.values).all()]
    for stage in dict.fromkeys(trial.stage for trial in sound):
        own = [trial for trial in sound if trial.stage == stage]
        points = np.array([trial.values for trial in own], dtype=np.float64)
        no_worse = (points[:, None] <= points[None]).all(axis=2)
        better = (points[:, None] < points[None]).any(axis=2)
        beaten = np.asarray((no_worse & better).any(axis=0), dtype=np.bool_)
        numbers = [trial.number for trial in own]
        taken = chosen.get(stage)
        place = numbers.index(taken) if taken in numbers else None
        fronts.append(Front(stage, points, np.logical_not(beaten), place))
    return fronts


def consistency(specimens: Sequence[Shown]) -> Ranked:
    """Rank specimens by the share of their nuclei that the others confirm; outliers are marked."""
    known = [one for one in specimens if np.isfinite(one.consistency)]
    known.sort(key=lambda one: (one.consistency, one.name))
    return Ranked(
        tuple(one.name for one in known),
        np.array([one.consistency for one in known]),
        np.array([bool(one.outlier) for one in known], dtype=np.bool_),
    )


def accuracy(evaluation: Evaluation) -> Violin:
    """Return the distribution of the specimens' accuracies."""
    named = [score for score in evaluation.scores if score.named]
    return violin(tuple(one.specimen for one in named), evaluation.accuracies)


def violin(names: tuple[str, ...], values: NDArray[np.float64]) -> Violin:
    """Return a Gaussian kernel density of ``values`` (n,), 1 at its highest."""
    spread = float(values.std())
    # Silverman's rule; a floor, so that equal values have an outline as well.
    width = max(1.06 * spread * len(values) ** -0.2, 1e-3 * max(abs(float(values.mean())), 1e-6))
    grid = np.linspace(values.min() - 2 * width, values.max() + 2 * width, GRID)
    density = np.exp(-0.5 * ((grid[:, None] - values) / width) ** 2).sum(axis=1)
    return Violin(names, values, grid, density / density.max())


def confidences(specimens: Sequence[Shown]) -> NDArray[np.float64]:
    """Return the known confidences of all nuclei, one after another."""
    known = [one.confidence for one in specimens if one.confidence is not None]
    values = np.concatenate([np.zeros(0), *known])
    return np.asarray(values[np.isfinite(values)])


def cell_confidence(atlas: Atlas, specimens: Sequence[Shown]) -> NDArray[np.float64]:
    """Return (m,) the mean confidence with which each cell was found; NaN where never."""
    total, count = np.zeros(len(atlas)), np.zeros(len(atlas))
    for one in specimens:
        if one.confidence is not None:
            known = (one.cells != NO_CELL) & np.isfinite(one.confidence)
            np.add.at(total, one.cells[known], one.confidence[known])
            np.add.at(count, one.cells[known], 1)
    mean = np.full(len(atlas), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def spreads(atlas: Atlas) -> NDArray[np.float64]:
    """Return (m,) how far each cell lies from its mean place, root mean square."""
    return np.asarray(np.sqrt(np.trace(atlas.covariances, axis1=1, axis2=2)))


def spacing(atlas: Atlas) -> float:
    """Return the median distance of a cell to its nearest neighbour; 1 for a single cell."""
    if len(atlas) < 2:
        return 1.0
    distances, _ = KDTree(atlas.means).query(atlas.means, [2])
    return float(np.median(distances))


def cell_accuracy(atlas: Atlas, specimens: Sequence[Shown]) -> NDArray[np.float64]:
    """Return (m,) the share of nuclei of each cell's name that got it; NaN where none is known."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for own, given in _named(atlas, specimens):
        total[own] += 1
        right[own] += own == given
    names = [comparable(name) for name in atlas.names]
    return np.array([right[name] / total[name] if total[name] else np.nan for name in names])


def confusions(atlas: Atlas, specimens: Sequence[Shown], most: int = 12) -> list[Confusion]:
    """Return the names that were most often taken for another; "" stands for no cell at all."""
    wrong: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    for own, given in _named(atlas, specimens):
        total[own] += 1
        if own != given:
            wrong[own, given] += 1
    ranked = sorted(wrong.items(), key=lambda item: (-item[1], item[0]))[:most]
    return [Confusion(own, given, times, total[own]) for (own, given), times in ranked]


def groups(names: Sequence[str], most: int = 14, fewest: int = 3) -> list[str]:
    """Return for each name the group it belongs to: a common prefix; "" for no group.

    The largest group is split by its next letter until there are ``most``; such groups tell
    classes of neurons or lineages apart without knowing anything about an organism.
    """
    split: dict[str, list[str]] = {"": [name for name in sorted(set(names)) if name]}
    while len(split) < most:
        splittable = [key for key, own in split.items() if any(len(n) > len(key) for n in own)]
        if not splittable:
            break
        largest = max(splittable, key=lambda key: (len(split[key]), key))
        if len(split[largest]) <= fewest:
            break
        for name in split.pop(largest):
            split.setdefault(name[: len(largest) + 1], []).append(name)
    group_of = {n: key for key, own in split.items() if len(own) >= fewest for n in own}
    return [group_of.get(name, "") for name in names]


def _named(atlas: Atlas, specimens: Sequence[Shown]) -> list[tuple[str, str]]:
    """Return (own name, given name) of every nucleus that has a name of its own."""
    given = [comparable(name) or f"cell {cell}" for cell, name in enumerate(atlas.names)]
    return [
        (comparable(own), given[cell] if cell != NO_CELL else "")
        for one in specimens
        if len(one.names)
        for own, cell in zip(one.names, one.cells.tolist(), strict=True)
        if own.strip()
    ]
