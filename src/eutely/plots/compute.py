"""The numbers behind each figure of the page and of a paper, as plain tuples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.evaluation import Evaluation, comparable, spellings
from eutely.learned import Trial
from eutely.meaning import matched
from eutely.results import Shown
from eutely.specimen import UNMATCHED, Specimen

UNSURE = 0.5
"""Nuclei with a confidence below this are called uncertain."""

BARS = 20
"""Number of bars in the histogram of confidences."""

NAMED_OUTLIERS = 8
"""Number of outliers whose names are written into the figure of consistency."""

OUTLINE_POINTS = 64
"""Number of points at which the outline of a violin is computed."""

GOLDEN_RATIO = 0.618034
"""Steps of this size, modulo 1, spread dots evenly over the width of a violin."""


COLOURS, FEWEST_COLOURS = ("R", "G", "B"), 2
"""Features that colour a nucleus, and how many of them must be known."""

DIM, GAMMA, DARKEST = (5.0, 98.0), 0.6, 0.12
"""Percentiles between which a channel is drawn; the exponent and the least light by which dim
nuclei stay visible on a dark ground."""

NEURONS = 0.6
"""Share of the named cells that are neurons from which ganglia are the groups."""


class Curve(NamedTuple):
    """Trials of one stage of learning: numbers, losses, and the lowest loss so far; (t,) each."""

    stage: str
    numbers: NDArray[np.int64]
    losses: NDArray[np.float64]
    best: NDArray[np.float64]


class Front(NamedTuple):
    """Pareto front of one stage of learning.

    Attributes
    ----------
    stage
        of learning.
    points
        (t, 2) float64, the two losses of each trial.
    on_front
        (t,) bool, trials that no other trial beats in both losses.
    chosen
        row of the trial whose parameters were taken; None if it is not among them.
    """

    stage: str
    points: NDArray[np.float64]
    on_front: NDArray[np.bool_]
    chosen: int | None


class Ranked(NamedTuple):
    """Names and values of ``n`` specimens, lowest value first; ``marked`` specimens stand out."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    marked: NDArray[np.bool_]


class Violin(NamedTuple):
    """Distribution of one value per specimen.

    Attributes
    ----------
    names, values
        of the n specimens.
    grid, density
        (g,) float64 each, outline of the violin; the highest density is 1.
    offsets
        (n,) float64 in -1 .. 1, distance of each specimen's dot from the axis of the violin.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    grid: NDArray[np.float64]
    density: NDArray[np.float64]
    offsets: NDArray[np.float64]


class Confusion(NamedTuple):
    """Cell ``name`` was named ``taken_for`` in ``times`` of the ``of`` specimens that have it."""

    name: str
    taken_for: str
    times: int
    of: int


def learning_curves(trials: Sequence[Trial]) -> list[Curve]:
    """Return one curve per stage, in order; of two losses it shows the first.

    Failed trials (with a loss that is not finite) are left out.
    """
    curves = []
    finished = [trial for trial in trials if np.isfinite(trial.losses).all()]
    for stage in dict.fromkeys(trial.stage for trial in finished):
        stage_trials = [trial for trial in finished if trial.stage == stage]
        stage_trials.sort(key=lambda trial: trial.number)
        losses = np.array([trial.losses[0] for trial in stage_trials], dtype=np.float64)
        numbers = np.array([trial.number for trial in stage_trials], dtype=np.int64)
        curves.append(Curve(stage, numbers, losses, np.minimum.accumulate(losses)))
    return curves


def pareto_fronts(trials: Sequence[Trial], chosen: Mapping[str, int]) -> list[Front]:
    """Return one front per stage whose trials have two losses; failed trials are left out.

    Parameters
    ----------
    trials
        of all stages.
    chosen
        stage -> number of the trial whose parameters were taken.
    """
    fronts = []
    finished = [
        trial for trial in trials if len(trial.losses) == 2 and np.isfinite(trial.losses).all()
    ]
    for stage in dict.fromkeys(trial.stage for trial in finished):
        stage_trials = [trial for trial in finished if trial.stage == stage]
        points = np.array([trial.losses for trial in stage_trials], dtype=np.float64)
        no_worse = (points[:, None] <= points[None]).all(axis=2)
        better = (points[:, None] < points[None]).any(axis=2)
        beaten = np.asarray((no_worse & better).any(axis=0), dtype=np.bool_)
        numbers = [trial.number for trial in stage_trials]
        taken = chosen.get(stage)
        row = numbers.index(taken) if taken in numbers else None
        fronts.append(Front(stage, points, np.logical_not(beaten), row))
    return fronts


def consistency(specimens: Sequence[Shown]) -> Ranked:
    """Rank specimens by consistency, lowest first; outliers are marked.

    Consistency is the share of a specimen's nuclei whose cell the other specimens confirm.
    Specimens whose consistency is not known are left out.
    """
    known = [shown for shown in specimens if np.isfinite(shown.consistency)]
    known.sort(key=lambda shown: (shown.consistency, shown.name))
    return Ranked(
        tuple(shown.name for shown in known),
        np.array([shown.consistency for shown in known]),
        np.array([bool(shown.outlier) for shown in known], dtype=np.bool_),
    )


def accuracy(evaluation: Evaluation) -> Violin:
    """Return the distribution of the accuracies of all specimens with known names."""
    names = tuple(score.specimen for score in evaluation.scores if score.named)
    return violin(names, evaluation.accuracies)


def violin(names: tuple[str, ...], values: NDArray[np.float64]) -> Violin:
    """Return a Gaussian kernel density of ``values`` (n,), n >= 1."""
    deviation = float(values.std())
    # Silverman's rule; the lower limit gives equal values an outline as well.
    bandwidth = max(
        1.06 * deviation * len(values) ** -0.2, 1e-3 * max(abs(float(values.mean())), 1e-6)
    )
    grid = np.linspace(values.min() - 2 * bandwidth, values.max() + 2 * bandwidth, OUTLINE_POINTS)
    density = np.exp(-0.5 * ((grid[:, None] - values) / bandwidth) ** 2).sum(axis=1)
    density /= density.max()
    # Dots fill 80% of the width of the violin at their value.
    share = 2 * ((np.arange(len(values)) * GOLDEN_RATIO) % 1) - 1
    offsets = np.asarray(share * 0.8 * np.interp(values, grid, density))
    return Violin(names, values, grid, density, offsets)


def confidences(specimens: Sequence[Shown]) -> NDArray[np.float64]:
    """Return the confidences of all nuclei whose confidence is known, in order."""
    values = np.concatenate([np.zeros(0), *(shown.confidence for shown in specimens)])
    return np.asarray(values[np.isfinite(values)])


def cell_confidence(atlas: Atlas, specimens: Sequence[Shown]) -> NDArray[np.float64]:
    """Return (m,), the mean confidence of each cell's nuclei; NaN where there are none."""
    total, count = np.zeros(len(atlas)), np.zeros(len(atlas))
    for shown in specimens:
        known = (shown.cells != UNMATCHED) & np.isfinite(shown.confidence)
        np.add.at(total, shown.cells[known], shown.confidence[known])
        np.add.at(count, shown.cells[known], 1)
    mean = np.full(len(atlas), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def spreads(atlas: Atlas) -> NDArray[np.float64]:
    """Return (m,), the root mean square distance of each cell from its mean position."""
    return np.asarray(np.sqrt(np.trace(atlas.covariances, axis1=1, axis2=2)))


def cell_accuracy(atlas: Atlas, specimens: Sequence[Shown]) -> NDArray[np.float64]:
    """Return (m,), the share of nuclei known to be a cell that were named so.

    NaN where no nucleus is known to be the cell.
    """
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for true_name, given_name in _named(atlas, specimens):
        total[true_name] += 1
        right[true_name] += true_name == given_name
    names = [comparable(name) for name in atlas.names]
    return np.array([right[name] / total[name] if total[name] else np.nan for name in names])


def confusions(atlas: Atlas, specimens: Sequence[Shown], most: int = 12) -> list[Confusion]:
    """Return the ``most`` frequent confusions of two names; "" stands for no cell."""
    wrong: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    for true_name, given_name in _named(atlas, specimens):
        total[true_name] += 1
        if true_name != given_name:
            wrong[true_name, given_name] += 1
    ranked = sorted(wrong.items(), key=lambda item: (-item[1], item[0]))[:most]
    # Names as the atlas spells them, or else as the specimens do.
    spelt = spellings(shown.names for shown in specimens) | spellings([atlas.names])
    return [
        Confusion(spelt.get(true_name, true_name), spelt.get(given, given), times, total[true_name])
        for (true_name, given), times in ranked
    ]


def groups(names: Sequence[str], most: int = 14, fewest: int = 3) -> list[str]:
    """Return the group of each name, a common prefix; "" for no group.

    The largest group is split by its next letter until there are ``most`` groups. Such prefixes
    separate classes of neurons or lineages without any knowledge of the organism.

    Parameters
    ----------
    names
        of cells; "" where there is none.
    most
        number of groups at which splitting ends.
    fewest
        names that a group needs.
    """
    members: dict[str, list[str]] = {"": [name for name in sorted(set(names)) if name]}
    while len(members) < most:
        splittable = [
            prefix
            for prefix, group in members.items()
            if any(len(name) > len(prefix) for name in group)
        ]
        if not splittable:
            break
        largest = max(splittable, key=lambda prefix: (len(members[prefix]), prefix))
        if len(members[largest]) <= fewest:
            break
        for name in members.pop(largest):
            members.setdefault(name[: len(largest) + 1], []).append(name)
    group_of = {
        name: prefix for prefix, group in members.items() if len(group) >= fewest for name in group
    }
    return [group_of.get(name, "") for name in names]


def cell_groups(names: Sequence[str]) -> list[str]:
    """Return the group of each cell, as it is shown: its ganglion, or the first letters.

    Ganglia where most names are those of neurons of C. elegans; see `groups` otherwise.
    """
    ganglia = _ganglia()
    named = [name for name in names if name]
    found = [ganglia.get(comparable(name).upper(), "") for name in names]
    if named and sum(map(bool, found)) > NEURONS * len(named):
        return found
    return [f"{group}…" if group else "" for group in groups(names)]


@cache
def _ganglia() -> dict[str, str]:
    """Return neuron -> ganglion of the hermaphrodite of C. elegans."""
    text = (files("eutely.plots") / "ganglia.txt").read_text(encoding="utf-8")
    rows = [line.partition(": ") for line in text.splitlines() if not line.startswith("#")]
    return {name: ganglion for ganglion, _, members in rows for name in members.split()}


def own_colours(specimen: Specimen) -> NDArray[np.uint8]:
    """Return (n, 3), the nuclei in their own red, green and blue; (0, 3) where these are unknown.

    Each channel between the darkest and the brightest nuclei of the specimen.
    """
    columns = matched(COLOURS, specimen.features)
    if len(columns) < FEWEST_COLOURS:
        return np.zeros((0, 3), np.uint8)
    unknown = np.full(len(specimen), np.nan)
    given = [specimen.features[columns[key]] if key in columns else unknown for key in COLOURS]
    return _lit(np.stack(given, axis=1))


def mean_colours(atlas: Atlas) -> NDArray[np.uint8]:
    """Return (m, 3), the cells in their mean red, green and blue; (0, 3) where not known."""
    columns = matched(COLOURS, atlas.features)
    if len(columns) < FEWEST_COLOURS:
        return np.zeros((0, 3), np.uint8)
    means = np.sinh(atlas.feature_means)  # scores are inverse hyperbolic sines, see features
    unknown = np.full(len(atlas), np.nan)
    given = [
        means[:, atlas.features.index(columns[key])] if key in columns else unknown
        for key in COLOURS
    ]
    return _lit(np.stack(given, axis=1))


def _lit(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return values (n, 3) as colours: each column from 0 to 255; what is not known is dark."""
    result = np.zeros(values.shape)
    for column, given in enumerate(values.T):
        known = np.isfinite(given)
        if known.any():
            low, high = np.percentile(given[known], DIM)
            share = np.clip((given[known] - low) / max(high - low, 1e-12), 0, 1)
            result[known, column] = share**GAMMA
    return np.rint(255 * (DARKEST + (1 - DARKEST) * result)).astype(np.uint8)


def _named(atlas: Atlas, specimens: Sequence[Shown]) -> list[tuple[str, str]]:
    """Return (true name, given name) of every nucleus whose true name is known."""
    given = [comparable(name) or f"cell {cell}" for cell, name in enumerate(atlas.names)]
    return [
        (comparable(true_name), given[cell] if cell != UNMATCHED else "")
        for shown in specimens
        if len(shown.names)
        for true_name, cell in zip(shown.names, shown.cells.tolist(), strict=True)
        if true_name.strip()
    ]
