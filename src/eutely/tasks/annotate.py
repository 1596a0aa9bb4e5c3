"""Annotate specimens by an atlas; a series also by what its specimens have in common."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.align.affine import least_squares
from eutely.annotation import Annotation, NucleusCells, annotation
from eutely.atlas import Atlas
from eutely.errors import AtlasError, EutelyError
from eutely.execute import Executor, Progress, open_executor, silent
from eutely.features import features_told
from eutely.fit.evidence import Weighed
from eutely.fit.hypothesis import HANDS, Hands, Prior
from eutely.fit.mirror import ASYMMETRIC, MIRROR, asymmetry
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.posterior import Posterior, Target, place
from eutely.fit.quadratic import place_by_offsets
from eutely.fit.refit import place_again, place_standing
from eutely.frame import Points, Posed, canonical_order
from eutely.geometry import folds
from eutely.origin import groups_of, origin_of
from eutely.pose import Oriented, anonymous, oriented, posed, strays
from eutely.series.channels import renaming, same_columns, settle_order
from eutely.series.shared import FOLDS, SERIES, by_cell, gain, settle_hands, shifted
from eutely.specimen import MICROMETRE, UNKNOWN, UNMATCHED, Specimen
from eutely.tasks import inputs
from eutely.tasks.first_look import called, looked_at
from eutely.tasks.pins import pinned_nuclei, pins_of_specimens

log = logging.getLogger("eutely")

SAME_UNIT = 0.9
"""Probability that a specimen of no declared unit has the unit of an atlas in micrometres."""

Handedness = Literal["auto", "as-is", "mirrored"]

MOST_NAMES = 3
"""Specimens of a series that a line names."""


class Task(NamedTuple):
    """One specimen to annotate.

    Attributes
    ----------
    specimen
        anonymous.
    pins
        (n,), the cells that its nuclei must be, or None.
    hands
        handednesses to consider.
    """

    specimen: Specimen
    pins: NDArray[np.int32] | None
    hands: Hands = (False, True)


def annotate(
    atlas: inputs.GivenAtlas,
    specimens: inputs.Specimens,
    *,
    adapt: bool | None = None,
    handedness: Handedness = "auto",
    pins: inputs.GivenPins | None = None,
    workers: int | str | None = None,
    progress: Progress = silent,
) -> list[Annotation]:
    """Return what the nuclei of each specimen are.

    The result does not depend on the order of specimens and nuclei, on ids or names. Specimens may
    be mirror images, in any pose and scale, and show a part of the body.

    Parameters
    ----------
    atlas
        to look the cells up in: an `Atlas`, its file, the folder of a run, or the name of a
        built-in one.
    specimens
        of the atlas's kind, one or many: `Specimen`, files, folders, pandas tables. The names of
        their nuclei do not matter.
    adapt
        shift the atlas to the series first, so that each specimen is annotated by what the others
        are like as well. By default with ten or more specimens of a series (see `eutely.origin`;
        all of no known origin are one), for those that the shift by the others makes likelier. True
        shifts always; by False each specimen is taken by itself, its handedness too.
    handedness
        whether specimens are mirror images: ``as-is`` (none is), ``mirrored`` (all are), or
        ``auto`` to find out for each specimen, and for all of a series together, also with those
        that the atlas is of, where a specimen alone does not show it. By an atlas that is symmetric
        itself all are taken as they are.
    pins
        what is known for sure: (specimen, id) -> name or number of the cell, "" for none; or a
        table of it.
    workers
        threads on this machine, or the address of a Dask cluster; see `eutely.build`.
    progress
        callback for long-running work; specimens of a series are counted twice.
    """
    inputs.check_progress(progress)
    inputs.check_flag("adapt", adapt)
    atlas = inputs.the_atlas(atlas)
    specimens = looked_at(specimens, atlas)
    given = pins_of_specimens(inputs.the_pins(pins) or {}, specimens)
    said, lacking = features_told(atlas.features, specimens)
    if said:
        log.log(logging.WARNING if lacking else logging.INFO, "%s", said)
    hands = _hands(atlas, handedness)
    # By name, so that the order of files does not matter.
    ranked = sorted(range(len(specimens)), key=lambda number: specimens[number].name)
    orders = [canonical_order(specimens[number]) for number in ranked]
    for rank, number in enumerate(ranked):
        # Nuclei far outside of the body are no cells, and tell nothing about its place.
        away = strays(specimens[number].centroids[orders[rank]])
        orders[rank] = orders[rank][~away]
    tasks = [
        Task(
            anonymous(specimens[number].take(order), specimens[number].name),
            pinned_nuclei(atlas, specimens[number], given[number], order),
            hands,
        )
        for number, order in zip(ranked, orders, strict=True)
    ]
    origins = [_origin(atlas, specimens[number]) for number in ranked]
    together = groups_of(origins)
    shifts = [group for group in together if (len(group) >= SERIES if adapt is None else adapt)]
    total = len(tasks) + sum(map(len, shifts))
    with open_executor(workers) as executor:
        results = list(
            executor.map(
                _fit_task,
                tasks,
                shared=(atlas, _target(atlas)),
                on_done=lambda done, _: progress("matching", done, total, ""),
            )
        )
        alone = [[number] for number in range(len(tasks))]
        groups = alone if adapt is False else together
        exchanged = _put_in_order(atlas, tasks, results, groups, executor)
        again: dict[Atlas, dict[int, bool]] = {}
        for group in groups:
            origin = origins[group[0]]
            own = _of_origin(atlas, origin)
            settle_hands(results, group, atlas.hands_of(origin))
            # Names of one origin may be exchanged between left and right, so that handedness is
            # found by the atlas of all origins.
            if own is not atlas:
                again.setdefault(own, {}).update({n: results[n].mirrored for n in group})
        for own, hands_of in again.items():
            _fit_in_hands(own, tasks, results, hands_of, executor)
        done = len(tasks)
        for group in shifts:
            own = _of_origin(atlas, origins[group[0]])
            _fit_series(own, tasks, results, group, executor, always=bool(adapt))
            done += len(group)
            progress("matching", done, total, "by the series")
    annotations = {
        number: replace(
            _annotation(atlas, specimens[number], result, order), exchanged=exchanged.get(rank, {})
        )
        for rank, (number, result, order) in enumerate(zip(ranked, results, orders, strict=True))
    }
    return [annotations[number] for number in range(len(specimens))]


def _origin(atlas: Atlas, specimen: Specimen) -> str:
    """Return the origin of a specimen; of no declared unit, it may be one that the atlas knows."""
    if specimen.unit == UNKNOWN and atlas.unit == MICROMETRE:
        origin = origin_of(replace(specimen, unit=MICROMETRE))
        return origin if specimen.series or origin in atlas.origins else ""
    return origin_of(specimen)


def _hands(atlas: Atlas, handedness: str) -> Hands:
    """Return the handednesses to consider; as it is where the atlas could not tell."""
    if handedness not in HANDS:
        raise EutelyError(f"handedness '{handedness}'; there are: {', '.join(HANDS)}")
    if handedness != "auto" or atlas.model != "joint":
        return HANDS[handedness]
    if _asymmetry(atlas) >= ASYMMETRIC:
        return HANDS["auto"]
    log.info("the atlas is too symmetric to show mirror images: specimens are taken as they are")
    return HANDS["as-is"]


@lru_cache(maxsize=8)
def _asymmetry(atlas: Atlas) -> float:
    """Return `eutely.fit.mirror.asymmetry`, which takes as long as annotating a specimen."""
    return asymmetry(_target(atlas).model, atlas.seen)


@lru_cache(maxsize=8)
def _target(atlas: Atlas) -> Target:
    """Return the atlas prepared for placing specimens, which may come one by one."""
    return Target.of(model_of_atlas(atlas))


@lru_cache(maxsize=8)
def _of_origin(atlas: Atlas, origin: str) -> Atlas:
    """Return `Atlas.of_origin`, the same one each time; the atlas itself where it is not joint."""
    return atlas.of_origin(origin) if atlas.model == "joint" else atlas


def _annotation(
    atlas: Atlas, specimen: Specimen, result: Posterior, order: NDArray[np.intp]
) -> Annotation:
    """Return the annotation of a specimen; strays, which ``order`` (k,) lacks, have no cell."""
    nuclei = result.nucleus_cells()
    if len(order) < len(specimen):
        nuclei, order = _with_strays(nuclei, specimen, order)
    return replace(
        annotation(atlas, specimen, nuclei, order),
        mirrored=result.mirrored,
        other_hand=0.0 if result.one_handed else min(result.mirrored_by, 1 - result.mirrored_by),
        view=result.fit.part,
        support=result.support,
        placed=float(result.trust.mean()),
    )


def _with_strays(
    nuclei: NucleusCells, specimen: Specimen, order: NDArray[np.intp]
) -> tuple[NucleusCells, NDArray[np.intp]]:
    """Return nuclei and order with the nuclei that ``order`` (k,) lacks, which are no cells."""
    away = np.setdiff1d(np.arange(len(specimen)), order)
    matrix, shift = least_squares(specimen.centroids[order], nuclei.places)

    def grown(values: NDArray[Any], filled: float) -> NDArray[Any]:
        more = np.full((len(away), *values.shape[1:]), filled, values.dtype)
        return np.concatenate([values, more])

    joined = nuclei._replace(
        cells=grown(nuclei.cells, UNMATCHED),
        confidence=grown(nuclei.confidence, np.nan),
        other_cells=grown(nuclei.other_cells, UNMATCHED),
        other_shares=grown(nuclei.other_shares, 0.0),
        places=np.concatenate([nuclei.places, specimen.centroids[away] @ matrix.T + shift]),
    )
    return joined, np.concatenate([order, away])


def fit_specimen(atlas: Atlas, model: Model, specimen: Posed) -> Weighed:
    """Match a specimen whose poses are right with an atlas, by the model that the atlas is of."""
    if atlas.model == "joint":
        return place_standing(model, specimen)
    return Weighed(place_by_offsets(atlas, specimen), 0.0, np.nan)


def _fit_task(atlas: Atlas, target: Target, task: Task) -> Posterior:
    """Fit a specimen, whichever part of the body it shows."""
    given = oriented(task.specimen)
    specimen = posed(given, atlas.size if atlas.scale else None, atlas.features)
    if atlas.model == "joint":
        return place(target, specimen, _prior(atlas, given, specimen, task.hands), task.pins)
    if task.pins is not None:
        raise AtlasError("an atlas of the model 'offsets' takes no pins; build one without it")
    if task.hands == HANDS["mirrored"]:
        specimen = replace(specimen, poses=tuple(points * MIRROR for points in specimen.poses))
    return _by_offsets(atlas, specimen, specimen.unstretched())


def _by_offsets(atlas: Atlas, specimen: Posed, points: Points) -> Posterior:
    """Fit a specimen by an atlas of the model ``offsets``, which knows one fit and no doubt."""
    fit = Weighed(place_by_offsets(atlas, specimen), 0.0, np.nan)
    return Posterior(points, Prior.of(1.0, same=1.0), (fit,), (np.ones(len(points)),))


def _prior(atlas: Atlas, given: Oriented, specimen: Posed, hands: Hands) -> Prior:
    """Return what is known about the scale of a specimen."""
    unit = given.specimen.unit
    if unit == atlas.unit != UNKNOWN:
        return Prior.of(1.0, same=1.0, hands=hands)
    known = UNKNOWN in (unit, atlas.unit) and MICROMETRE in (unit, atlas.unit)
    ratio = _target(atlas).ratio(specimen)
    return Prior.of(ratio, same=SAME_UNIT if known else 0.0, hands=hands)


def _put_in_order(
    atlas: Atlas,
    tasks: list[Task],
    results: list[Posterior],
    groups: Sequence[Sequence[int]],
    executor: Executor,
) -> dict[int, dict[str, str]]:
    """Place series again whose channels clearly are exchanged; return how columns are called."""
    exchanged: dict[int, dict[str, str]] = {}
    told: dict[str, list[str]] = {}
    cohort = [task.specimen for task in tasks]
    for group in same_columns(atlas.features, cohort, groups) if atlas.model == "joint" else ():
        series = [cohort[number] for number in group]

        def again(names: Mapping[str, str], group: Sequence[int] = group) -> list[Posterior]:
            items = [tasks[n]._replace(specimen=cohort[n].renamed(names)) for n in group]
            return list(executor.map(_fit_task, items, shared=(atlas, _target(atlas))))

        fits = [results[number].fit for number in group]
        settled = settle_order(_target(atlas).model, atlas.features, series[0], fits, again)
        if settled is None or settled.declared:
            continue
        spoken = told.setdefault(settled.told(atlas.features, series[0]), [])
        spoken += [called.get().get(one.name, one.name) for one in series]
        if settled.changed:
            names = renaming(atlas.features, series[0], settled.other)
            for number, result in zip(group, again(names), strict=True):
                tasks[number] = tasks[number]._replace(specimen=cohort[number].renamed(names))
                results[number], exchanged[number] = result, names
    for line, who in told.items():
        more = f" and {len(who) - MOST_NAMES} more" if len(who) > MOST_NAMES else ""
        log.warning("%s: %s", ", ".join(who[:MOST_NAMES]) + more, line)
    return exchanged


def _fit_in_hands(
    own: Atlas,
    tasks: Sequence[Task],
    results: list[Posterior],
    hands: dict[int, bool],
    executor: Executor,
) -> None:
    """Fit specimens again by an atlas of their origin, mirrored or not as ``hands`` says."""
    items = [tasks[number]._replace(hands=(mirrored,)) for number, mirrored in hands.items()]
    fits = executor.map(_fit_task, items, shared=(own, _target(own))) if items else ()
    for number, result in zip(hands, fits, strict=True):
        # What speaks for the other handedness is still known.
        before = results[number]
        results[number] = replace(result.beside(before), mirrored_by=before.mirrored_by)


def _fit_again(atlas: Atlas, model: Model, item: tuple[Posterior, Task]) -> Posterior:
    """Fit a specimen of which the place is known."""
    result, task = item
    if atlas.model == "joint":
        return result.with_fit(model, place_again(model, result.fit, task.pins), task.pins)
    features = posed(oriented(task.specimen), None, atlas.features)
    placed = replace(features, poses=(result.fit.warped,))
    return _by_offsets(atlas, placed, result.points)


def _fit_series(
    atlas: Atlas,
    tasks: Sequence[Task],
    results: list[Posterior],
    group: Sequence[int],
    executor: Executor,
    *,
    always: bool,
) -> None:
    """Fit specimens of one series by the atlas shifted to where the others have its cells.

    Other hands, media or microscopes move cells systematically. Unless it is to be done ``always``,
    a specimen keeps its fit where the shift, which others show, makes it less likely: then it is of
    another series.
    """
    before = [results[number] for number in group]
    places = np.stack([by_cell(result.fit, result.fit.warped) for result in before])
    scores = np.stack([by_cell(result.fit, result.fit.scores) for result in before])
    model = _target(atlas).model
    fold = folds(len(group), FOLDS)
    for part in range(min(FOLDS, len(group))):
        moved = shifted(atlas, places[fold != part], scores[fold != part])
        by_series = model_of_atlas(moved)
        inside = [
            at
            for at in np.flatnonzero(fold == part).tolist()
            if always or gain(model, by_series, before[at].fit, before[at].points) > 0
        ]
        items = [(before[at], tasks[group[at]]) for at in inside]
        fits = executor.map(_fit_again, items, shared=(moved, by_series))
        for at, result in zip(inside, fits, strict=True):
            results[group[at]] = result
