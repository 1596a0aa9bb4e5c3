"""From specimens to the atlas, in stages that a run folder keeps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation, annotate
from eutely.atlas import Atlas
from eutely.config import Config, to_toml
from eutely.estimate import estimate
from eutely.execute import Executor, open_executor
from eutely.io.atlas import write_atlas
from eutely.io.record import Record, digest
from eutely.io.runfolder import RunFolder, open_run
from eutely.pipeline.frame import Framed, content, framed, in_order
from eutely.pipeline.outliers import outliers
from eutely.pipeline.records import (
    annotations_of,
    annotations_saved,
    cohort_of,
    cohort_saved,
    same,
)
from eutely.pipeline.results import write_results
from eutely.refine import Cohort, choose_targets, refine
from eutely.specimen import Specimen
from eutely.supervised import cells_by_name, names_of
from eutely.watch import Watch, nobody

log = logging.getLogger("eutely")

VERSION = 1
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
    """

    atlas: Atlas
    specimens: tuple[Specimen, ...]
    cells: list[NDArray[np.int32]]
    fits: list[Annotation]
    unlike: dict[str, str]

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
    ordered = in_order(specimens)
    with ExitStack() as stack:
        executor = stack.enter_context(open_executor(workers, dask))
        folder = output or stack.enter_context(TemporaryDirectory(prefix="eutely-"))
        run = stack.enter_context(open_run(Path(folder)))
        run.describe(to_toml(settings), {one.name: content(one) for one in ordered})
        frame = framed(ordered, run, executor)
        if supervised:
            cohort = cells_by_name(ordered, frame.poses, frame.size, frame.spacing, settings)
        else:
            cohort = _found(frame, settings, run, executor, watch)
        atlas = _estimated(cohort, frame, settings)
        if supervised:
            atlas = atlas.named(names_of(ordered))
        log.info("atlas: %d cells, %d of them rare", len(atlas), int(atlas.rare.sum()))
        built = Built(
            atlas,
            ordered,
            cohort.labels(),
            _fitted(cohort, frame, settings, run, executor, watch),
            unlike={},
        )
        built.unlike.update(outliers(built.fits, built.consistency()))
        for one, why in built.unlike.items():
            log.warning("%s %s", one, why)
        if output is not None:
            write_atlas(atlas, run.path / "atlas.h5")
            write_results(built, settings, run, command)
    return built


def _found(
    frame: Framed, settings: Config, run: RunFolder, executor: Executor, watch: Watch
) -> Cohort:
    """Find the cells without names."""
    key = digest([VERSION, frame.key, settings.part("seed", "refine", "estimate")])

    def targets() -> Record:
        chosen = choose_targets(
            frame.poses,
            settings.refine.targets,
            spacing=frame.spacing,
            executor=executor,
            seed=settings.seed,
        )
        return Record({"targets": np.array(chosen)})

    def keep(step: str, compute: Callable[[], Cohort]) -> Cohort:
        return run.stage(step.replace(" ", "-"), key, compute, cohort_saved, cohort_of)

    chosen = run.stage("targets", key, targets, same, same).arrays["targets"].tolist()
    log.info("targets: %s", ", ".join(frame.specimens[one].name for one in chosen))
    return refine(
        frame.poses,
        chosen,
        size=frame.size,
        spacing=frame.spacing,
        settings=settings.refine,
        estimate=settings.estimate,
        executor=executor,
        keep=keep,
        watch=watch,
    )


def _estimated(
    cohort: Cohort, frame: Framed, settings: Config, chosen: NDArray[np.bool_] | None = None
) -> Atlas:
    """Estimate the atlas from the cells of a cohort, or of the ``chosen`` specimens in it."""
    places = cohort.places()
    radii = np.full(places.shape, np.nan)
    for row, own, nuclei in zip(radii, frame.radii, cohort.nuclei, strict=True):
        row[nuclei >= 0] = own[nuclei[nuclei >= 0]]
    if chosen is not None and np.isfinite(places[chosen, :, 0]).any(axis=0).all():
        places, radii = places[chosen], radii[chosen]
    return estimate(
        places,
        size=cohort.size,
        spacing=cohort.spacing,
        settings=settings.estimate,
        radii=radii,
        neighbours=settings.costs.neighbours,
        unit=frame.specimens[0].unit,
    )


def _fitted(
    cohort: Cohort,
    frame: Framed,
    settings: Config,
    run: RunFolder,
    executor: Executor,
    watch: Watch,
) -> list[Annotation]:
    """Match every specimen with an atlas of others: how well it fits, how sure its cells are.

    The atlas of all would confirm whatever a specimen brought into it.
    """

    def compute() -> list[Annotation]:
        folds = min(settings.refine.folds, len(cohort))
        fold = np.arange(len(cohort)) % folds
        found: dict[int, Annotation] = {}
        for part in range(folds):
            atlas = _estimated(cohort, frame, settings, fold != part)
            inside = np.flatnonzero(fold == part).tolist()
            items = [frame.specimens[number] for number in inside]
            fits = executor.map(_fit, items, shared=(atlas,))
            found |= dict(zip(inside, fits, strict=True))
            watch("checking how specimens fit", part + 1, folds, "")
        return [found[number] for number in range(len(cohort))]

    arrays = [cohort.places(), *frame.radii]
    key = [VERSION, frame.key, digest(arrays), settings.part("costs", "refine", "estimate")]
    return run.stage("fit", key, compute, annotations_saved, annotations_of)


def _fit(atlas: Atlas, specimen: Specimen) -> Annotation:
    return annotate(specimen, atlas)
