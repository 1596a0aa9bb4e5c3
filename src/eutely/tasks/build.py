"""From specimens to the atlas: orient, find cells, estimate, check how well each specimen fits."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation, NucleusCells, annotation
from eutely.atlas import Atlas
from eutely.cells import Cells
from eutely.config import Config, to_toml
from eutely.errors import EutelyError, SpecimenError
from eutely.estimate import atlas_of
from eutely.estimate.origins import with_origins
from eutely.execute import Progress, open_executor, silent
from eutely.features import feature_names
from eutely.find import METHODS, Labels
from eutely.find.poses import settled_poses, unsettled
from eutely.fit import match
from eutely.fit.evidence import is_mirrored, trust
from eutely.fit.mirror import DOUBTFUL, both_hands, mirror_images
from eutely.fit.model import Model, model_of_atlas
from eutely.fit.posterior import nucleus_cells
from eutely.frame import Frame, Posed, canonical_order
from eutely.geometry import folds
from eutely.learned import Learned
from eutely.pose import Oriented, anonymous, framed, oriented
from eutely.record import pack
from eutely.specimen import UNKNOWN, Specimen, html_table
from eutely.steps import Context, Run, Store, step
from eutely.store import Memory
from eutely.store.folder import RunFolder, open_run
from eutely.tasks import inputs
from eutely.tasks.annotate import fit_specimen
from eutely.tasks.first_look import looked_at
from eutely.tasks.kept import pins_of_run, remember_pins, with_kept_names
from eutely.tasks.outliers import outliers, warn, warn_of_hands, warn_unsettled
from eutely.tasks.outputs import write_build
from eutely.tasks.pins import pins_of_specimens, with_pins

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

log = logging.getLogger("eutely")

FEWEST_SPECIMENS = 2
"""Specimens that an atlas needs."""

ALTERNATIVES = 3
"""Next best cells that the report lists for each nucleus."""


@dataclass(frozen=True, eq=False)
class Built:
    """What a build found.

    Attributes
    ----------
    atlas
        without names, unless it was built from them.
    specimens
        by name, their nuclei in canonical order.
    cells
        for each specimen (n,) int32: the cell of each nucleus, or -1.
    fits
        for each specimen, what an atlas of the others takes its nuclei for.
    outliers
        specimens that do not fit -> in which way.
    learned
        the costs and how they were learned, by the method ``learn``.
    timings
        (step, seconds) in the order in which the steps ran.
    """

    atlas: Atlas
    specimens: tuple[Specimen, ...]
    cells: tuple[NDArray[np.int32], ...]
    fits: tuple[Annotation, ...]
    outliers: dict[str, str]
    learned: Learned | None = None
    timings: tuple[tuple[str, float], ...] = ()

    def __repr__(self) -> str:
        return f"<Built: {len(self.atlas)} cells in {len(self.specimens)} specimens>"

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        rows = {
            "cells": len(self.atlas),
            "specimens": len(self.specimens),
            "confirmed by an atlas of others": f"{self.consistency().mean():.1%}",
            "unlike the others": len(self.outliers),
        }
        return html_table("Built", rows)

    def consistency(self) -> NDArray[np.float64]:
        """Return (N,), the share of the cells of each specimen that an atlas of others confirms."""
        rows = zip(self.cells, self.fits, strict=True)
        return np.array(
            [
                float((cells == fit.cells)[cells >= 0].mean()) if (cells >= 0).any() else 0.0
                for cells, fit in rows
            ]
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table, one row per nucleus: specimen, id, cell, name, confirmed.

        ``cell`` is missing where a nucleus has none; ``confirmed`` tells whether an atlas of the
        other specimens agrees.
        """
        import pandas as pd

        tables = []
        for cells, fit in zip(self.cells, self.fits, strict=True):
            names = [self.atlas.names[cell] if cell >= 0 else "" for cell in cells]
            table = replace(fit, cells=cells, names=tuple(names)).to_frame()
            tables.append(
                table[["specimen", "id", "cell", "name"]].assign(confirmed=cells == fit.cells)
            )
        return pd.concat(tables, ignore_index=True)

    def to_anndata(self, by: Literal["nucleus", "cell"] = "nucleus") -> AnnData:
        """Return the cohort as AnnData, see `eutely.io.h5ad`; needs the extra ``anndata``.

        Parameters
        ----------
        by
            ``nucleus``: a row per nucleus, with features, places in the input and in the atlas;
            ``cell``: a matrix cells x specimens for each feature.
        """
        from eutely.io.h5ad import cells_anndata, nuclei_anndata

        if by not in ("nucleus", "cell"):
            raise EutelyError(f"by='{by}'; expected 'nucleus' or 'cell'")
        annotations = [
            replace(
                fit,
                cells=cells,
                names=tuple(self.atlas.names[cell] if cell >= 0 else "" for cell in cells),
                # Where others would choose another cell, the doubt is as large as they are sure.
                confidence=np.where(
                    cells < 0,
                    np.nan,
                    np.where(fit.cells == cells, fit.confidence, 1 - fit.confidence),
                ),
            )
            for cells, fit in zip(self.cells, self.fits, strict=True)
        ]
        table = nuclei_anndata if by == "nucleus" else cells_anndata
        return table(annotations, self.specimens, self.atlas)


def build(
    specimens: inputs.Specimens,
    output: str | PathLike[str] | Store | None = None,
    *,
    config: inputs.GivenConfig | None = None,
    supervised: bool = False,
    pins: inputs.GivenPins | None = None,
    workers: int | str | None = None,
    progress: Progress = silent,
) -> Built:
    """Find the cells that all specimens share, and estimate their atlas.

    Parameters
    ----------
    specimens
        at least two, in one unit: `Specimen`, files, folders, pandas tables. Their names are not
        looked at, unless ``supervised``.
    output
        the run folder: results, and what is needed to continue after an interruption; or an open
        store. None keeps everything in memory.
    config
        the settings, the name of a preset, a TOML file, or settings that differ from the defaults,
        such as ``{"seed": 1, "refine.folds": 3}``; None for the preset ``default``.
    supervised
        take the cells from the names instead of finding them: the method ``named``.
    pins
        what is known for sure: (specimen, id) -> name, "" for a nucleus that is no cell. Nuclei
        of one name end up in one cell; other names are still not looked at. Or a table of it.
    workers
        threads on this machine (None: one for each core); or where Dask runs: ``local:N``
        processes, the address of a scheduler, or the path of its scheduler file.
    progress
        callback for long-running work.

    Returns
    -------
    Built
        ``.atlas`` is the atlas; the same bytes for the same specimens, settings and seed.
    """
    inputs.check_progress(progress)
    inputs.check_flag("supervised", supervised)
    settings, pins = inputs.the_config(config), inputs.the_pins(pins)
    if supervised:
        settings = settings.model_copy(update={"method": "named"})
    named = settings.method == "named"
    if named and pins:
        raise EutelyError("a supervised build takes all cells from names; leave the pins out")
    ordered = in_order(looked_at(specimens))
    # Wrong ids and unknown features are reported before any work.
    features = feature_names(ordered, settings.estimate.features)
    labels = tuple(one.names or ("",) * len(one) for one in ordered) if named else ()
    with open_executor(workers) as executor, _store(output) as store:
        if isinstance(store, RunFolder):
            digests = {specimen.name: pack(specimen).digest for specimen in ordered}
            if not named:
                pins = pins_of_run(store, pins, digests)
            store.describe(to_toml(settings), digests)
        pinned = pins_of_specimens(pins or {}, ordered)
        if isinstance(store, RunFolder) and pins is not None:
            remember_pins(store, pins)
        terms = tuple(f"{term.__module__}.{term.__qualname__}" for term in match.TERMS)
        run = Run(settings, executor, store, progress, terms)
        straight = _oriented(run, ordered)
        frame = framed(
            straight, features, scale=settings.realign.scale, smooth=settings.realign.warp
        )
        if not named:
            sizes = np.array([one.poses[0].size for one in straight])
            frame = run(settled_poses, frame, sizes, ordered[0].unit != UNKNOWN)
            warn_unsettled([ordered[number].name for number in unsettled(frame)], len(ordered))
        built = _built(run, ordered, frame, labels, pinned)
        warn(built.outliers)
        warn_of_hands(built.fits)
        if isinstance(store, RunFolder):
            progress("writing", 0, 1, "")
            built = replace(built, atlas=with_kept_names(built, store))
            write_build(built, settings, store, pins)
    return built


def _built(
    run: Run,
    specimens: tuple[Specimen, ...],
    frame: Frame,
    labels: Labels,
    pins: Sequence[dict[int, str | int]],
) -> Built:
    """Find cells, estimate their atlas, and check how well each specimen fits."""
    found = METHODS[run.config.method](run, frame, labels)
    cells = with_pins(found.cells, pins) if any(pins) else found.cells
    atlas = replace(
        atlas_of(cells, frame, run.config, weights=found.weights), unit=specimens[0].unit
    )
    if found.names:
        atlas = atlas.named(found.names)
    log.info("atlas: %d cells, %d of them rare", len(atlas), int(atlas.rare.sum()))
    mirrored = [posed.mirrored for posed in frame.specimens]
    standing = bool(labels) and frame.body.smooth and not run.config.realign.base
    if standing:
        # Names have settled the poses, mirror images undone and parts not stretched.
        rows = zip(frame.specimens, cells.posed, strict=True)
        mirrored = [is_mirrored(specimen.unstretched(), places) for specimen, places in rows]
        frame = _standing(frame, cells)
    atlas = with_origins(atlas, cells, frame.origins, mirrored)
    fits = tuple(
        replace(
            annotation(
                atlas, specimens[number], held_out.nuclei, np.arange(len(specimens[number]))
            ),
            mirrored=mirrored[number],
            other_hand=frame.specimens[number].other_hand,
            view=held_out.view,
            support=held_out.support,
            placed=held_out.placed,
        )
        for number, held_out in enumerate(run(held_out_fits, frame, cells, found.weights))
    )
    for fit in fits:
        if note := fit.note(atlas):
            log.info("%s: %s", fit.specimen, note)
    built = Built(atlas, specimens, cells.labels(), fits, {}, found.learned, tuple(run.timings))
    parts = standing or bool(frame.parts)
    return replace(built, outliers=outliers(fits, len(atlas), built.consistency(), parts=parts))


def _standing(frame: Frame, cells: Cells) -> Frame:
    """Return the frame with each specimen in the pose of its cells; it may show any part."""
    rows = zip(frame.specimens, cells.posed, strict=True)
    standing = tuple(Posed((points,), one.radii, one.scores, part=None) for one, points in rows)
    return replace(frame, specimens=standing)


@contextmanager
def _store(output: str | PathLike[str] | Store | None) -> Iterator[Store]:
    """Yield the store that was asked for."""
    if output is None:
        yield Memory()
    elif isinstance(output, str | PathLike):
        with open_run(Path(output)) as folder:
            yield folder
    elif hasattr(output, "journal"):
        yield output
    else:
        raise EutelyError(f"output: expected a folder, found {inputs.kind(output)}")


def in_order(specimens: Sequence[Specimen]) -> tuple[Specimen, ...]:
    """Return specimens by name, nuclei in canonical order: that of files and rows is not seen."""
    units = sorted({specimen.unit for specimen in specimens})
    if len(units) > 1:
        raise EutelyError(f"mixed units ({', '.join(units)}); convert all specimens to one")
    names = [specimen.name for specimen in specimens]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise EutelyError(f"two specimens are called {twice}; rename one")
    if len(names) < FEWEST_SPECIMENS:
        raise EutelyError(f"{len(names)} specimen given; atlases need at least {FEWEST_SPECIMENS}")
    ordered = sorted(specimens, key=lambda specimen: specimen.name)
    return tuple(one.take(canonical_order(one)) for one in ordered)


def _oriented(run: Run, specimens: Sequence[Specimen]) -> tuple[Oriented, ...]:
    """Find the poses of all specimens; errors name the specimen."""
    bare = tuple(anonymous(specimen, str(number)) for number, specimen in enumerate(specimens))
    try:
        return run(poses, bare)
    except SpecimenError as error:
        number, _, why = str(error).partition(": ")
        raise SpecimenError(f"{specimens[int(number)].name}: {why}") from error


@step()
def poses(context: Context, specimens: tuple[Specimen, ...]) -> tuple[Oriented, ...]:
    """Straighten bent specimens and find the plausible poses of all."""
    return tuple(context.executor.map(oriented, specimens))


class HeldOut(NamedTuple):
    """A specimen by an atlas of others; see `Annotation`. None by an atlas of ``offsets``."""

    nuclei: NucleusCells
    support: float | None = None
    placed: float | None = None
    view: NDArray[np.float64] | None = None


@step("costs", "refine.folds", "estimate", "atlas", "realign.scale")
def held_out_fits(
    context: Context, frame: Frame, cells: Cells, weights: NDArray[np.float64] | None
) -> tuple[HeldOut, ...]:
    """Match every specimen with an atlas of others: how well it fits, how sure its cells are.

    The atlas of all would confirm whatever a specimen brought into it.
    """
    settings = context.settings
    parts = min(settings.refine.folds, len(cells))
    shared = (cells, frame, settings, weights, parts)
    atlases = list(context.executor.map(_atlas_of_others, range(parts), shared=shared))
    doubtful = any(one.other_hand > DOUBTFUL for one in frame.specimens)
    images = mirror_images(atlases[0][1]) if doubtful else None
    items = list(zip(folds(len(cells), parts).tolist(), frame.specimens, strict=True))
    fits = context.executor.map(
        _fit,
        items,
        shared=(atlases, images),
        on_done=lambda done, total: context.progress("checking how specimens fit", done, total, ""),
    )
    return tuple(fits)


def _atlas_of_others(
    cells: Cells,
    frame: Frame,
    settings: Config,
    weights: NDArray[np.float64] | None,
    parts: int,
    part: int,
) -> tuple[Atlas, Model]:
    """Return the atlas of the specimens outside of a fold, and its model."""
    others = folds(len(cells), parts) != part
    atlas = atlas_of(cells, frame, settings, weights=weights, chosen=others)
    return atlas, model_of_atlas(atlas)


def _fit(
    others: Sequence[tuple[Atlas, Model]], images: NDArray[np.int32] | None, one: tuple[int, Posed]
) -> HeldOut:
    """Match a specimen with the atlas of the specimens outside of its fold."""
    part, specimen = one
    atlas, model = others[part]
    found = fit_specimen(atlas, model, specimen)
    fits, weights = both_hands(found.fit, images, specimen.other_hand)
    if atlas.model != "joint":
        return HeldOut(nucleus_cells(fits, weights, alternatives=ALTERNATIVES))
    trusted = trust(model, found)
    nuclei = nucleus_cells(fits, weights, trusted, ALTERNATIVES)
    return HeldOut(nuclei, found.support, float(trusted.mean()), found.fit.part)
