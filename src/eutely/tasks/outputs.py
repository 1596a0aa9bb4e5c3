"""Files that tasks leave: cliques, parameters, the report of a run or of annotations."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.config import Config, to_toml
from eutely.evaluation import Evaluation, majority_names, pre_atlas, score
from eutely.io.atlas import cells_of, read_atlas, write_atlas
from eutely.io.whole import new_text
from eutely.io.written import PAGE as PAGE
from eutely.io.written import REPORT as REPORT
from eutely.io.written import check_finished, check_together, tables_in
from eutely.io.written import write_page as write_whole_page
from eutely.plots.compute import own_colours
from eutely.record import pack, unpack
from eutely.report import render
from eutely.results import Report, Shown
from eutely.specimen import Specimen
from eutely.store.files import new_record, read_record
from eutely.store.folder import RunFolder, versions
from eutely.tasks.outliers import doubtful_hands, outliers, sides_alike, warn
from eutely.tasks.pins import Pins

if TYPE_CHECKING:
    from eutely.tasks.build import Built

ATLAS, CLIQUES, PARAMETERS = "atlas.h5", "cliques.csv", "parameters.json"
ATLAS_USED = "used-atlas.npz"
"""Copy of the atlas in a folder of annotations, to write their page again."""


def write_build(built: Built, config: Config, run: RunFolder, pins: Pins | None = None) -> None:
    """Write the atlas, ``cliques.csv``, ``parameters.json`` and the report of a run."""
    text = json.dumps(parameters(built), indent=2, sort_keys=True) + "\n"
    report = report_of_build(built, config, run.command, pins)
    with tables_in(run.path, cells_of(built.atlas)) as aside:
        write_atlas(built.atlas, aside / ATLAS)
        for name, content in {CLIQUES: cliques_table(built), PARAMETERS: text}.items():
            with new_text(aside / name) as file:
                file.write(content)
        new_record(aside / REPORT, pack(report))
        write_page(run.path, built.atlas, report)


def cliques_table(built: Built) -> str:
    """Return the table of all nuclei (CSV): specimen, id, cell, mirrored."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("specimen", "id", "cell", "mirrored"))
    for specimen, cells, fit in zip(built.specimens, built.cells, built.fits, strict=True):
        order = np.argsort(specimen.ids)
        for id_, cell in zip(specimen.ids[order].tolist(), cells[order].tolist(), strict=True):
            writer.writerow((specimen.name, id_, "" if cell < 0 else cell, int(fit.mirrored)))
    return text.getvalue()


def parameters(built: Built) -> dict[str, object]:
    """Return what was learned about the cohort as a whole; lengths in the unit of the atlas."""
    atlas = built.atlas

    def variances(covariances: NDArray[np.float64]) -> list[float] | None:
        typical = np.median(np.diagonal(covariances, axis1=1, axis2=2), axis=0)
        return [float(value) for value in typical] if np.isfinite(typical).all() else None

    learned = {} if built.learned is None else {"learned": built.learned.parameters.as_dict()}
    return learned | {
        "unit": atlas.unit,
        "cells": len(atlas),
        "specimens": atlas.specimens,
        "length": float(atlas.size[0]),
        "width": float(atlas.size[1]),
        "centroid_variances": variances(atlas.covariances),
        "radius_variances": variances(atlas.radius_covariances),
        "offset_variances": variances(atlas.offset_covariances),
        "conditional_variances": variances(atlas.conditionals),
    }


def report_of_build(
    built: Built, config: Config, command: str = "", pins: Pins | None = None
) -> Report:
    """Return what the page of a run shows."""
    named = any(specimen.names for specimen in built.specimens)
    apart = set(doubtful_hands(built.fits) if sides_alike(built.fits) else ())
    rows = zip(built.specimens, built.cells, built.fits, built.consistency(), strict=True)
    return Report(
        "build",
        specimens=tuple(
            Shown(
                specimen.name,
                fit.places,
                cells,
                # Where others would choose another cell, the doubt is as large as they are sure.
                np.where(fit.cells == cells, fit.confidence, 1 - fit.confidence),
                specimen.ids,
                specimen.names or (),
                fit.alternatives,
                float(consistency),
                built.outliers.get(specimen.name, ""),
                fit.note(built.atlas, more=fit.specimen in apart),
                own_colours(specimen),
            )
            for specimen, cells, fit, consistency in rows
        ),
        trials=() if built.learned is None else built.learned.trials,
        chosen={} if built.learned is None else built.learned.chosen,
        parameters=parameters(built),
        timings=built.timings,
        command=command,
        versions=versions(),
        config=to_toml(config),
        evaluation=pre_atlas(built.specimens, built.cells) if named else None,
        pins=pins_listed(pins, built.specimens),
    )


def pins_listed(
    pins: Pins | None, specimens: Sequence[Specimen]
) -> tuple[tuple[str, int, str], ...]:
    """Return the pins of specimens that are there, in order."""
    there = {specimen.name for specimen in specimens}
    rows = sorted((pins or {}).items(), key=lambda pin: pin[0])
    return tuple(
        (name, id_, f"cell {cell}" if isinstance(cell, int) and cell >= 0 else str(cell))
        for (name, id_), cell in rows
        if name in there
    )


def report_of_annotations(
    annotations: Sequence[Annotation],
    atlas: Atlas,
    specimens: Sequence[Specimen],
    command: str = "",
    pins: Pins | None = None,
) -> Report:
    """Return what the page about annotated specimens shows; accuracy where they have names.

    Parameters
    ----------
    annotations, specimens
        annotations, and the specimens that they are about.
    atlas
        that they were made with.
    command
        that made them.
    pins
        that were used.
    """
    unlike = outliers(annotations, len(atlas))
    warn(unlike)
    scores = tuple(
        score(specimen, annotation.names, annotation.cells)
        for specimen, annotation in zip(specimens, annotations, strict=True)
        if specimen.names and any(atlas.names)
    )
    return Report(
        "annotate",
        specimens=tuple(
            Shown(
                annotation.specimen,
                annotation.places,
                annotation.cells,
                annotation.confidence,
                annotation.ids,
                specimen.names or (),
                annotation.alternatives,
                outlier=unlike.get(annotation.specimen, ""),
                note=annotation.note(atlas),
                colours=own_colours(specimen),
            )
            for specimen, annotation in zip(specimens, annotations, strict=True)
        ),
        command=command,
        versions=versions(),
        evaluation=Evaluation(scores) if scores else None,
        pins=pins_listed(pins, specimens),
    )


def write_page(folder: Path, atlas: Atlas, report: Report) -> None:
    """Write the page of a report into ``folder``."""
    write_whole_page(folder / PAGE, render(_with_names(atlas, report), report))


def write_annotated_page(folder: Path, atlas: Atlas, report: Report) -> None:
    """Write the page about annotated specimens, and what is needed to write it again."""
    with tables_in(folder, cells_of(atlas)) as aside:
        new_record(aside / REPORT, pack(report))
        new_record(aside / ATLAS_USED, pack(atlas))
        write_page(folder, atlas, report)


def read_report(folder: Path) -> tuple[Atlas, Report]:
    """Return the atlas of a run or of annotations, and what its page shows besides."""
    atlas = _atlas_in(folder)
    report = unpack(read_record(folder / REPORT), Report)
    check_together(folder, cells_of(atlas), [REPORT])
    report.check(atlas)
    return _with_names(atlas, report), report


def read_report_atlas(folder: Path) -> Atlas:
    """Return the atlas that `read_report` returns; the report is read only for its names."""
    atlas = _atlas_in(folder)
    return atlas if any(atlas.names) else read_report(folder)[0]


def _atlas_in(folder: Path) -> Atlas:
    check_finished(folder)
    if (folder / ATLAS).exists() or not (folder / ATLAS_USED).exists():
        return read_atlas(folder / ATLAS)
    return unpack(read_record(folder / ATLAS_USED), Atlas)


def _with_names(atlas: Atlas, report: Report) -> Atlas:
    """Name an unnamed atlas by the true names of specimens, if any, for the page alone.

    So the page can show which cells are confused.
    """
    truth = [shown.names or ("",) * len(shown) for shown in report.specimens]
    if any(atlas.names) or not any(map(any, truth)):
        return atlas
    return atlas.named(majority_names([one.cells for one in report.specimens], truth, len(atlas)))
