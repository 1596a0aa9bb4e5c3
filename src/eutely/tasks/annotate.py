"""Annotate specimens by an atlas; a series also by what its specimens have in common."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation, annotation
from eutely.atlas import Atlas
from eutely.errors import AtlasError, EutelyError
from eutely.execute import Executor, Progress, open_executor, silent
from eutely.features import features_told
from eutely.fit.again import place_again
from eutely.fit.choose import place_in_view
from eutely.fit.evidence import ASYMMETRIC, asymmetry, rival_weights, support, trust
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.place import Fit, place
from eutely.fit.poses import MIRROR
from eutely.fit.probabilities import nucleus_cells
from eutely.fit.quadratic import place_by_offsets
from eutely.fit.view import Unposed
from eutely.frame import Posed, canonical_order
from eutely.geometry import folds
from eutely.origin import groups_of, origin_of
from eutely.pose import Oriented, anonymous, oriented, posed
from eutely.specimen import UNKNOWN, Specimen
from eutely.tasks import inputs
from eutely.tasks.pins import pinned_nuclei, pins_of_specimens
from eutely.tasks.series import (
    FOLDS,
    SERIES,
    Result,
    by_cell,
    completed,
    gain,
    is_whole,
    matched_together,
    outnumber,
    settle_hands,
    shifted,
    support_gain,
)

log = logging.getLogger("eutely")

ODD_SHAPE = 0.3
"""Logarithm of a ratio of lengths from which a specimen hardly shows the whole body. In whole worms
the length varies by 0.07, the width by 0.04."""

Handedness = Literal["auto", "as-is", "mirrored"]

HANDS: dict[str, tuple[bool, ...]] = {
    "auto": (False, True),
    "as-is": (False,),
    "mirrored": (True,),
}
"""Mirror images that are considered."""


class Task(NamedTuple):
    """One specimen to annotate.

    Attributes
    ----------
    specimen
        anonymous.
    pins
        (n,), the cells that its nuclei must be, or None.
    hands
        handednesses to consider, see `eutely.fit.view.Unposed`.
    """

    specimen: Specimen
    pins: NDArray[np.int32] | None
    hands: tuple[bool, ...] = (False, True)


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
    atlas, specimens = inputs.the_atlas(atlas), inputs.the_specimens(specimens)
    given = pins_of_specimens(inputs.the_pins(pins) or {}, specimens)
    said, lacking = features_told(atlas.features, specimens)
    if said:
        log.log(logging.WARNING if lacking else logging.INFO, "%s", said)
    hands = _hands(atlas, handedness)
    # By name, so that the order of files does not matter.
    ranked = sorted(range(len(specimens)), key=lambda number: specimens[number].name)
    orders = [canonical_order(specimens[number]) for number in ranked]
    tasks = [
        Task(
            anonymous(specimens[number], specimens[number].name),
            pinned_nuclei(atlas, specimens[number], given[number], order),
            hands,
        )
        for number, order in zip(ranked, orders, strict=True)
    ]
    origins = [origin_of(specimens[number]) for number in ranked]
    together = groups_of(origins)
    shifts = [group for group in together if (len(group) >= SERIES if adapt is None else adapt)]
    total = len(tasks) + sum(map(len, shifts))
    with open_executor(workers) as executor:
        results = list(
            executor.map(
                _fit_task,
                tasks,
                shared=(atlas, _model(atlas)),
                on_done=lambda done, _: progress("matching", done, total, ""),
            )
        )
        alone = [[number] for number in range(len(tasks))]
        again: dict[Atlas, dict[int, bool]] = {}
        for group in alone if adapt is False else together:
            origin = origins[group[0]]
            own = _of_origin(atlas, origin)
            hands_of = settle_hands(results, group, atlas.hands_of(origin), every=own is not atlas)
            again.setdefault(own, {}).update(hands_of)
        for own, hands_of in again.items():
            _fit_in_hands(own, tasks, results, hands_of, executor)
        done = len(tasks)
        for group in shifts:
            own = _of_origin(atlas, origins[group[0]])
            own = _fit_ends(own, tasks, results, group, executor)
            alike = _fit_series(own, tasks, results, group, executor, always=bool(adapt))
            _fit_together(own, tasks, results, group, alike, executor)
            done += len(group)
            progress("matching", done, total, "by the series")
    annotations = {
        number: _annotation(atlas, specimens[number], result, order)
        for number, result, order in zip(ranked, results, orders, strict=True)
    }
    return [annotations[number] for number in range(len(specimens))]


def _hands(atlas: Atlas, handedness: str) -> tuple[bool, ...]:
    """Return the handednesses to consider; as it is where the atlas could not tell."""
    if handedness not in HANDS:
        raise EutelyError(f"handedness '{handedness}'; there are: {', '.join(HANDS)}")
    if handedness != "auto" or atlas.model != "joint":
        return HANDS[handedness]
    if _asymmetry(atlas) >= ASYMMETRIC:
        return HANDS["auto"]
    log.debug("the atlas is too symmetric to show mirror images: specimens are taken as they are")
    return HANDS["as-is"]


@lru_cache(maxsize=8)
def _asymmetry(atlas: Atlas) -> float:
    """Return `eutely.fit.evidence.asymmetry`, which takes as long as annotating a specimen."""
    return asymmetry(_model(atlas), atlas.seen)


@lru_cache(maxsize=8)
def _model(atlas: Atlas) -> Model:
    """Return `eutely.fit.model.model_of_atlas`; specimens may come one by one."""
    return model_of_atlas(atlas)


@lru_cache(maxsize=8)
def _of_origin(atlas: Atlas, origin: str) -> Atlas:
    """Return `Atlas.of_origin`, the same one each time; the atlas itself where it is not joint."""
    return atlas.of_origin(origin) if atlas.model == "joint" else atlas


def _annotation(
    atlas: Atlas, specimen: Specimen, result: Result, order: NDArray[np.intp]
) -> Annotation:
    """Return the annotation of a specimen; doubt about its place is doubt about every nucleus."""
    fit = result.fit.among(len(atlas))  # cells that a series added have no number in the atlas
    weights = rival_weights(fit.rivals, result.mirrored_by)
    nuclei = nucleus_cells(fit, trust=trust(result.support), weights=weights)
    return replace(
        annotation(atlas, specimen, nuclei, order),
        mirrored=result.mirrored,
        view=fit.part,
        support=result.support,
    )


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
    """Fit a specimen, whichever part of the body it shows."""
    given = oriented(task.specimen)
    specimen = posed(given, atlas.size if atlas.scale else None, atlas.features)
    unposed = _unposed(atlas, given, task.hands)
    if atlas.model == "joint":
        return Result(specimen, unposed.points, *place_in_view(model, specimen, unposed, task.pins))
    if task.hands == HANDS["mirrored"]:
        specimen = replace(specimen, poses=tuple(points * MIRROR for points in specimen.poses))
    return Result(specimen, unposed.points, fit_specimen(atlas, model, specimen, task.pins), None)


def _unposed(atlas: Atlas, given: Oriented, hands: tuple[bool, ...]) -> Unposed:
    """Return a specimen in its own size, the long axis along x."""
    pose = given.poses[0]
    matrix, shift = pose.affine()
    length, width = np.log(atlas.size / np.array(pose.size)).tolist()
    apart = [length - width]
    scale = None
    if given.specimen.unit == atlas.unit != UNKNOWN:
        scale = 1.0
        apart += [length, width]
    whole = max(map(abs, apart)) < ODD_SHAPE
    return Unposed(given.specimen.centroids @ matrix.T + shift, scale, whole, hands)


def _fit_in_hands(
    own: Atlas,
    tasks: Sequence[Task],
    results: list[Result],
    hands: dict[int, bool],
    executor: Executor,
) -> None:
    """Fit specimens again by an atlas of their origin, mirrored or not as ``hands`` says."""
    items = [tasks[number]._replace(hands=(mirrored,)) for number, mirrored in hands.items()]
    fits = executor.map(_fit_task, items, shared=(own, _model(own))) if items else ()
    for number, result in zip(hands, fits, strict=True):
        before = results[number]
        # What speaks for the other handedness is still known.
        others = [rival for rival in before.fit.rivals if rival.mirrored != result.mirrored]
        if others:
            rivals = (*(result.fit.rivals or (result.as_rival(),)), *others)
            result = result._replace(fit=replace(result.fit, rivals=rivals))
        results[number] = result._replace(mirrored_by=before.mirrored_by)


def _fit_again(atlas: Atlas, model: Model, item: tuple[Result, NDArray[np.int32] | None]) -> Result:
    """Fit a specimen of which the pose is known."""
    result, pins = item
    if atlas.model == "joint":
        fit = place_again(model, result.fit, pins)
        return result._replace(fit=fit, support=support(model, fit, result.points))
    placed = replace(result.posed, poses=(result.fit.warped,))
    return result._replace(fit=fit_specimen(atlas, model, placed, pins))


def _fit_ends(
    atlas: Atlas,
    tasks: Sequence[Task],
    results: list[Result],
    group: Sequence[int],
    executor: Executor,
) -> Atlas:
    """Fit a series again with the cells that the atlas lacks; return the atlas with them."""
    more = completed(atlas, [results[number].fit for number in group])
    if len(more) > len(atlas):
        log.info("%d cells that the atlas lacks at the ends of the body", len(more) - len(atlas))
        wider = (results[n]._replace(fit=results[n].fit.among(len(more))) for n in group)
        items = [(result, tasks[n].pins) for result, n in zip(wider, group, strict=True)]
        fits = executor.map(_fit_again, items, shared=(more, _model(more)))
        for number, result in zip(group, fits, strict=True):
            results[number] = result
    return more


def _fit_series(
    atlas: Atlas,
    tasks: Sequence[Task],
    results: list[Result],
    group: Sequence[int],
    executor: Executor,
    *,
    always: bool,
) -> set[int]:
    """Fit specimens of one series by the atlas shifted to where the others have its cells.

    Other hands, media or microscopes move cells systematically. Unless it is to be done ``always``,
    a specimen keeps its fit where the shift, which others show, makes it less likely: then it is of
    another series. Returns those that were fitted again.
    """
    alike = set()
    before = [results[number] for number in group]
    places = np.stack([by_cell(result.fit, result.fit.warped) for result in before])
    scores = np.stack([by_cell(result.fit, result.fit.scores) for result in before])
    model = _model(atlas)
    fold = folds(len(group), FOLDS)
    for part in range(min(FOLDS, len(group))):
        moved = shifted(atlas, places[fold != part], scores[fold != part])
        by_series = model_of_atlas(moved)
        inside = [
            at
            for at in np.flatnonzero(fold == part).tolist()
            if always or gain(model, by_series, before[at].fit, before[at].points) > 0
        ]
        items = [(before[at], tasks[group[at]].pins) for at in inside]
        fits = executor.map(_fit_again, items, shared=(moved, by_series))
        for at, result in zip(inside, fits, strict=True):
            results[group[at]] = result
            alike.add(group[at])
    return alike


def _fit_together(
    atlas: Atlas,
    tasks: Sequence[Task],
    results: list[Result],
    group: Sequence[int],
    alike: set[int],
    executor: Executor,
) -> None:
    """Fit whole specimens of a series by each other, where an atlas of parts knows less than they.

    Cells that are split again are others in all specimens, so most of them must be likelier, held
    out. A specimen keeps its fit where it has pins, or would not be placed any more, or is neither
    likelier nor among those ``alike`` by `_fit_series`: then it is of another series.
    """
    whole = [number for number in group if is_whole(results[number])]
    before = [results[number] for number in whole]
    if not outnumber(atlas, before):
        return
    after = matched_together(atlas, before, executor)
    gains = np.array([support_gain(*pair) for pair in zip(before, after, strict=True)])
    if np.median(gains) <= 0:
        return
    for number, result, gained in zip(whole, after, gains.tolist(), strict=True):
        if is_whole(result) and tasks[number].pins is None and (gained > 0 or number in alike):
            results[number] = result
