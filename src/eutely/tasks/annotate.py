"""An atlas and any specimens: naming its cells, annotating theirs, counting what is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eutely import evaluation
from eutely.tasks.series import ENOUGH, annotate_cohort, annotate_pinned
from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.errors import AtlasError, EutelyError
from eutely.evaluation import Evaluation
from eutely.execute import Progress, open_executor
from eutely.tasks.pins import by_specimen, cells_of
from eutely.specimen import Specimen


def name(
    atlas: Atlas,
    specimens: Sequence[Specimen],
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: Progress | None = None,
) -> Atlas:
    """Return the atlas with names for its cells, by the greedy majority rule (section 3.3).

    Parameters
    ----------
    atlas
        to name; names that it has are replaced.
    specimens
        at least one with names; each is matched with the atlas first, without looking at them.
    workers, dask
        where to run, as of `eutely.build`.
    progress
        told how many specimens are done.
    """
    labels = [one.names or ("",) * len(one) for one in specimens]
    if not any(any(row) for row in labels):
        raise EutelyError("no specimen has a named nucleus; naming needs a column 'name'")
    found = annotate(
        atlas, specimens, alternatives=0, workers=workers, dask=dask, progress=progress
    )
    cells = [one.cells for one in found]
    return atlas.named(evaluation.majority_names(cells, labels, len(atlas)))


def annotate(
    atlas: Atlas,
    specimens: Sequence[Specimen],
    *,
    alternatives: int = 3,
    adapt: bool | None = None,
    pins: Mapping[tuple[str, int], str | int] | None = None,
    workers: int | None = None,
    dask: str | None = None,
    progress: Progress | None = None,
) -> list[Annotation]:
    """Return what the nuclei of each specimen are.

    Parameters
    ----------
    atlas
        to look the cells up in.
    specimens
        of the atlas's kind and unit; their names do not matter.
    alternatives
        next best cells to report for each nucleus.
    adapt
        shift the atlas to the cohort first, so that each specimen is annotated by what the others
        are like as well; by default with ten or more specimens. Give False for specimens of
        different series.
    pins
        what is known for sure: (specimen, id) -> name or number of the cell, "" for none.
    workers, dask
        where to run, as of `eutely.build`.
    progress
        told how many specimens are done.
    """
    settled = [cells_of(atlas, own) for own in by_specimen(pins or {}, specimens)]
    items = [(one.without_names(), own) for one, own in zip(specimens, settled, strict=True)]
    with open_executor(workers, dask) as executor:
        if len(items) >= ENOUGH if adapt is None else adapt:
            return annotate_cohort(
                atlas, items, executor, alternatives=alternatives, progress=progress
            )
        shared = (atlas, alternatives)
        return list(executor.map(annotate_pinned, items, shared=shared, progress=progress))


def evaluate(
    atlas: Atlas,
    specimens: Sequence[Specimen],
    *,
    adapt: bool | None = None,
    workers: int | None = None,
    dask: str | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Return the share of named nuclei that the atlas names right, in each specimen.

    Parameters
    ----------
    atlas
        with names.
    specimens
        at least one with names; they are annotated without looking at them.
    adapt
        as of `annotate`.
    workers, dask
        where to run, as of `eutely.build`.
    progress
        told how many specimens are done.
    """
    if not any(atlas.names):
        raise AtlasError("the atlas has no names yet; give it some with 'eutely name' first")
    found = annotate(
        atlas,
        specimens,
        alternatives=0,
        adapt=adapt,
        workers=workers,
        dask=dask,
        progress=progress,
    )
    return evaluation.evaluation(
        evaluation.score(specimen, one.names)
        for specimen, one in zip(specimens, found, strict=True)
    )
