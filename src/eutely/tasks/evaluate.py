"""Names for the cells of an atlas, and how many nuclei it names right."""

from __future__ import annotations

from eutely import evaluation
from eutely.atlas import Atlas
from eutely.errors import AtlasError, EutelyError
from eutely.evaluation import Evaluation
from eutely.execute import Progress, silent
from eutely.tasks.annotate import annotate
from eutely.tasks.inputs import GivenAtlas, Specimens, the_atlas, the_specimens


def name(
    atlas: GivenAtlas,
    specimens: Specimens,
    *,
    workers: int | str | None = None,
    progress: Progress = silent,
) -> Atlas:
    """Return the atlas with names for its cells, by the greedy majority rule (section 3.3).

    Parameters
    ----------
    atlas
        to name, see `eutely.annotate`; names that it has are replaced.
    specimens
        see `eutely.annotate`; at least one with names; each is matched with the atlas first,
        without looking at them.
    workers
        where to run, see `eutely.build`.
    progress
        callback for long-running work.
    """
    atlas, specimens = the_atlas(atlas), the_specimens(specimens)
    labels = [specimen.names or ("",) * len(specimen) for specimen in specimens]
    if not any(any(row) for row in labels):
        raise EutelyError("no specimen has a named nucleus; naming needs a column 'name'")
    annotations = annotate(atlas, specimens, workers=workers, progress=progress)
    cells = [annotation.cells for annotation in annotations]
    return atlas.named(evaluation.majority_names(cells, labels, len(atlas)))


def evaluate(
    atlas: GivenAtlas,
    specimens: Specimens,
    *,
    adapt: bool | None = None,
    workers: int | str | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Return the share of named nuclei that the atlas names right, in each specimen.

    Parameters
    ----------
    atlas
        with names, see `eutely.annotate`.
    specimens
        see `eutely.annotate`; at least one with names; they are annotated without looking at them.
    adapt
        whether to shift the atlas to the series, see `eutely.annotate`.
    workers
        where to run, see `eutely.build`.
    progress
        callback for long-running work.
    """
    atlas, specimens = the_atlas(atlas), the_specimens(specimens)
    if not any(atlas.names):
        raise AtlasError("the atlas has no names yet; give it some with 'eutely name' first")
    annotations = annotate(atlas, specimens, adapt=adapt, workers=workers, progress=progress)
    return evaluation.evaluation(
        evaluation.score(specimen, annotation.names, annotation.cells)
        for specimen, annotation in zip(specimens, annotations, strict=True)
    )
