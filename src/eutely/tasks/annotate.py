"""Annotate specimens by an atlas; a series also by what its specimens have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation, annotation
from eutely.atlas import Atlas
from eutely.config.model import Estimate
from eutely.errors import AtlasError
from eutely.estimate import robust_gaussians
from eutely.execute import Executor, Progress, open_executor, silent
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.place import Fit, nucleus_cells, place
from eutely.fit.quadratic import place_by_offsets
from eutely.frame import Points, Posed, canonical_order
from eutely.geometry import folds
from eutely.pose import anonymous, oriented, posed
from eutely.specimen import Specimen
from eutely.tasks.pins import Pins, pinned_nuclei, pins_of_specimens

PRIOR = 5.0
"""Specimens that the atlas counts for against a new series. On worms of another series the cost
of held-out specimens, which needs no names, is lowest between 3 and 20."""

SERIES = 10
"""Specimens from which a series shows where its cells are: the atlas is shifted unless the caller
says no. The cost of held-out worms of another series falls from 4.04 to 3.66 per cell."""

FOLDS = 5
"""Parts of a series, each annotated by the atlas shifted to the others: no specimen confirms
itself."""


class Task(NamedTuple):
    """One specimen to annotate: anonymous, with the cells that its nuclei must be (n,), or None."""

    specimen: Specimen
    pins: NDArray[np.int32] | None


class Result(NamedTuple):
    """One specimen in its poses, and its fit to the atlas."""

    posed: Posed
    fit: Fit


def annotate(
    atlas: Atlas,
    specimens: Sequence[Specimen],
    *,
    alternatives: int = 3,
    adapt: bool | None = None,
    pins: Pins | None = None,
    workers: int | str | None = None,
    progress: Progress = silent,
) -> list[Annotation]:
    """Return what the nuclei of each specimen are.

    The result does not depend on the order of specimens and nuclei, on ids or names.

    Parameters
    ----------
    atlas
        to look the cells up in.
    specimens
        of the atlas's kind; their names do not matter.
    alternatives
        next best cells to report for each nucleus.
    adapt
        shift the atlas to the series first, so that each specimen is annotated by what the others
        are like as well; by default with ten or more specimens. Give False for specimens of
        different series.
    pins
        what is known for sure: (specimen, id) -> name or number of the cell, "" for none.
    workers
        threads on this machine, or the address of a Dask cluster; see `eutely.build`.
    progress
        callback for long-running work; specimens of a series are counted twice.
    """
    given = pins_of_specimens(pins or {}, specimens)
    # By name, so that the order of files does not matter.
    ranked = sorted(range(len(specimens)), key=lambda number: specimens[number].name)
    orders = [canonical_order(specimens[number].centroids) for number in ranked]
    tasks = [
        Task(
            anonymous(specimens[number], specimens[number].name),
            pinned_nuclei(atlas, specimens[number], given[number], order),
        )
        for number, order in zip(ranked, orders, strict=True)
    ]
    series = len(tasks) >= SERIES if adapt is None else adapt
    with open_executor(workers) as executor:
        if series and tasks:
            fits = _fit_series(atlas, tasks, executor, progress)
        else:
            shared = (atlas, model_of_atlas(atlas))
            results = executor.map(
                _fit_task,
                tasks,
                shared=shared,
                on_done=lambda done, total: progress("matching", done, total, ""),
            )
            fits = [result.fit for result in results]
    annotations = {
        number: annotation(atlas, specimens[number], nucleus_cells(fit, alternatives), order)
        for number, fit, order in zip(ranked, fits, orders, strict=True)
    }
    return [annotations[number] for number in range(len(specimens))]


def fit_specimen(
    atlas: Atlas, model: Model, specimen: Posed, pins: NDArray[np.int32] | None = None
) -> Fit:
    """Match a specimen in its poses with an atlas, by the model that the atlas is of."""
    if atlas.model == "joint":
        return place(model, specimen, pins)
    if pins is not None:
        raise AtlasError("an atlas of the model 'offsets' takes no pins; build one without it")
    return place_by_offsets(atlas, specimen)


def _fit_task(atlas: Atlas, model: Model, task: Task) -> Result:
    size = atlas.size if atlas.scale else None
    specimen = posed(oriented(task.specimen), size, atlas.features)
    return Result(specimen, fit_specimen(atlas, model, specimen, task.pins))


def _fit_again(atlas: Atlas, model: Model, item: tuple[Result, NDArray[np.int32] | None]) -> Fit:
    """Fit a specimen of which the pose is known."""
    (specimen, fit), pins = item
    placed = Posed((fit.warped,), specimen.radii, specimen.scores)
    return fit_specimen(atlas, model, placed, pins)


def _fit_series(
    atlas: Atlas, tasks: Sequence[Task], executor: Executor, progress: Progress
) -> list[Fit]:
    """Fit specimens of one series by the atlas shifted to where the others have its cells.

    Other hands, media or microscopes move cells systematically.
    """
    total = 2 * len(tasks)
    results = list(
        executor.map(
            _fit_task,
            tasks,
            shared=(atlas, model_of_atlas(atlas)),
            on_done=lambda done, _: progress("matching", done, total, ""),
        )
    )
    places = np.stack([_by_cell(result.fit, result.fit.warped) for result in results])
    scores = np.stack([_by_cell(result.fit, result.fit.scores) for result in results])
    fold = folds(len(tasks), FOLDS)
    fits: dict[int, Fit] = {}
    for part in range(min(FOLDS, len(tasks))):
        inside = np.flatnonzero(fold == part).tolist()
        moved = shifted(atlas, places[fold != part], scores[fold != part])
        items = [(results[number], tasks[number].pins) for number in inside]
        again = executor.map(_fit_again, items, shared=(moved, model_of_atlas(moved)))
        fits |= dict(zip(inside, again, strict=True))
        progress("matching", len(tasks) + len(fits), total, "by the series")
    return [fits[number] for number in range(len(tasks))]


def _by_cell(fit: Fit, values: Points) -> NDArray[np.float64]:
    """Return (m, d) from values (n, d) of nuclei; NaN where a cell has no nucleus."""
    table = np.full((len(fit.nuclei), values.shape[1]), np.nan)
    matched = fit.nuclei >= 0
    table[matched] = values[fit.nuclei[matched]]
    return table


def shifted(atlas: Atlas, places: NDArray[np.float64], scores: NDArray[np.float64]) -> Atlas:
    """Return the atlas with its cells moved towards where specimens have them.

    Parameters
    ----------
    atlas
        counts for ``PRIOR`` specimens.
    places
        (N, m, 3), NaN where a specimen lacks a cell.
    scores
        (N, m, d), of their features, NaN where not known.
    """
    seen = np.isfinite(places[:, :, 0]).sum(axis=0)[:, None]
    if not seen.any():
        return atlas
    means = robust_gaussians(places, Estimate()).means
    moved = np.where(seen > 0, (means - atlas.means) * seen / (seen + PRIOR), 0.0)
    known = np.isfinite(scores).sum(axis=0)
    total = np.where(np.isfinite(scores), scores, 0.0).sum(axis=0)
    first, second = atlas.edges.T
    return replace(
        atlas,
        means=atlas.means + moved,
        feature_means=(total + PRIOR * atlas.feature_means) / (known + PRIOR),
        offsets=atlas.offsets + moved[first] - moved[second],
    )
