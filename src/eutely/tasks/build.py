"""From specimens to the atlas, in stages that a run folder keeps."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation, annotate
from eutely.atlas import Atlas
from eutely.config import Config, to_toml
from eutely.errors import EutelyError
from eutely.execute import Executor, open_executor
from eutely.features import feature_names
from eutely.io.atlas import write_atlas
from eutely.record import digest
from eutely.store.folder import RunFolder, open_run
from eutely.find.learn import Learned
from eutely.find.learn.steps import find_cells
from eutely.tasks import refined
from eutely.tasks.estimator import Estimator
from eutely.frame import content, framed, in_order
from eutely.tasks.outliers import outliers, warn
from eutely.tasks.pins import by_specimen, pinned
from eutely.tasks.records import annotations_of, annotations_saved
from eutely.tasks.results import write_results
from eutely.tasks.weighed import weights_by_name
from eutely.specimen import Specimen
from eutely.find.named import cells_by_name, names_of
from eutely.progress import Watch, nobody

log = logging.getLogger("eutely")

VERSION = 4
"""Of the stages below; raised when their results change."""


@dataclass(frozen=True, eq=False)
class Built:
    """What a build found.

    Attributes
    ----------
    atlas
        without names, unless they were what it was built from.
    specimens
        by name, their nuclei in canonical order.
    cells
        for each specimen (n,) int32: the cell of each nucleus, or -1.
    fits
        for each specimen, what an atlas of the others takes its nuclei for.
    unlike
        specimens that do not fit -> in which way.
    learned
        the costs and how they were learned, by the method ``learn``.
    """

    atlas: Atlas
    specimens: tuple[Specimen, ...]
    cells: list[NDArray[np.int32]]
    fits: list[Annotation]
    unlike: dict[str, str]
    learned: Learned | None = None

    def consistency(self) -> NDArray[np.float64]:
        """Return for each specimen the share of its cells that an atlas of others confirms."""
        return np.array(
            [
                float((own == fit.cells)[own >= 0].mean()) if (own >= 0).any() else 0.0
                for own, fit in zip(self.cells, self.fits, strict=True)
            ]
        )


def build(
    specimens: Sequence[Specimen],
    output: Path | str | None = None,
    *,
    config: Config | None = None,
    supervised: bool = False,
    pins: Mapping[tuple[str, int], str | int] | None = None,
    workers: int | None = None,
    dask: str | None = None,
    watch: Watch = nobody,
    command: str = "",
) -> Built:
    """Find the cells that all specimens share, and estimate their atlas.

    Parameters
    ----------
    specimens
        at least two, in one unit. Their names are not looked at, unless ``supervised``.
    output
        the run folder: results, and what is needed to go on after an interruption; None keeps
        nothing but what is returned.
    config
        the settings; None for those of the preset ``default``.
    supervised
        take the cells from the names instead of finding them.
    pins
        what is known for sure: (specimen, id) -> name, "" for a nucleus that is no cell. Nuclei
        of one name end up in one cell; other names are still not looked at.
    workers, dask
        threads on this machine, or a Dask cluster, as of `eutely.execute.open_executor`.
    watch
        told how far the work is.
    command
        that the report shows, to repeat the run.

    Returns
    -------
    Built
        ``.atlas`` is the atlas; the same bytes for the same specimens, settings and seed.
    """
    settings = config or Config()
    if supervised and pins:
        raise EutelyError("a supervised build takes all cells from names; leave the pins out")
    ordered = in_order(specimens)
    feature_names(ordered, settings.estimate.features)  # unknown ones are said before any work
    with ExitStack() as stack:
        executor = stack.enter_context(open_executor(workers, dask))
        folder = output or stack.enter_context(TemporaryDirectory(prefix="eutely-"))
        run = stack.enter_context(open_run(Path(folder)))
        run.describe(to_toml(settings), {one.name: content(one) for one in ordered})
        frame = framed(ordered, run, executor, scale=settings.realign.scale)
        learned: Learned | None = None
        weights: NDArray[np.float64] | None = None
        if supervised:
            cohort = cells_by_name(ordered, frame.poses, frame.size, frame.spacing, settings)
            if settings.method == "learn" and settings.atlas.model == "offsets":
                weights = weights_by_name(cohort, frame, settings, run, executor, watch)
            elif settings.method == "refine":
                cohort = replace(cohort, features=frame.features(settings)[1])
        elif settings.method == "learn":
            cohort, learned = find_cells(
                frame.poses,
                frame.radii,
                frame.size,
                frame.spacing,
                settings,
                executor,
                run,
                frame.key,
                watch,
            )
            cohort = refined.improved(cohort, frame, settings, run, executor)
            if settings.atlas.model == "offsets":
                weights = learned.parameters.weights()
        else:
            cohort = refined.find(frame, settings, run, executor, watch)
        if pins:
            cohort = pinned(cohort, by_specimen(pins, ordered))
        estimator = Estimator(cohort, frame, settings, weights)
        atlas = estimator.atlas()
        if supervised:
            atlas = atlas.named(names_of(ordered))
        log.info("atlas: %d cells, %d of them rare", len(atlas), int(atlas.rare.sum()))
        built = Built(
            atlas,
            ordered,
            cohort.labels(),
            _fitted(estimator, run, executor, watch),
            {},
            learned,
        )
        built.unlike.update(outliers(built.fits, len(atlas), built.consistency()))
        warn(built.unlike)
        if output is not None:
            write_atlas(atlas, run.path / "atlas.h5")
            write_results(built, settings, run, command)
    return built


def _fitted(
    estimator: Estimator, run: RunFolder, executor: Executor, watch: Watch
) -> list[Annotation]:
    """Match every specimen with an atlas of others: how well it fits, how sure its cells are.

    The atlas of all would confirm whatever a specimen brought into it.
    """
    cohort, settings = estimator.cohort, estimator.settings

    def compute() -> list[Annotation]:
        folds = min(settings.refine.folds, len(cohort))
        fold = np.arange(len(cohort)) % folds
        found: dict[int, Annotation] = {}
        for part in range(folds):
            atlas = estimator.atlas(fold != part)
            inside = np.flatnonzero(fold == part).tolist()
            items = [estimator.frame.specimens[number] for number in inside]
            fits = executor.map(_fit, items, shared=(atlas,))
            found |= dict(zip(inside, fits, strict=True))
            watch("checking how specimens fit", part + 1, folds, "")
        return [found[number] for number in range(len(cohort))]

    weights = None if estimator.weights is None else estimator.weights.tolist()
    arrays = digest([cohort.places(), estimator.radii(), cohort.feature_values()])
    parts = settings.part("costs", "refine", "estimate", "atlas")
    key = [VERSION, estimator.frame.key, arrays, weights, parts]
    return run.stage("fit", key, compute, annotations_saved, annotations_of)


def _fit(atlas: Atlas, specimen: Specimen) -> Annotation:
    return annotate(specimen, atlas)
