"""The folder of a curation: annotations or a run, pins, and where volumes and images are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.cliques import UNMATCHED
from eutely.errors import EutelyError, ReadError
from eutely.execute import Progress, silent
from eutely.io.annotations import check_names, write_annotations
from eutely.io.pins import read_pins
from eutely.io.sources import Files, read_files
from eutely.io.whole import remove
from eutely.io.written import tables_in
from eutely.record import digest, pack, unpack
from eutely.results import Report, Shown
from eutely.series.channels import in_true_order
from eutely.specimen import Specimen
from eutely.store.files import read_record, write_record
from eutely.tasks.annotate import Handedness, annotate
from eutely.tasks.outputs import (
    pins_listed,
    read_report,
    read_report_atlas,
    report_of_annotations,
    write_annotated_page,
)
from eutely.tasks.pins import PINS as PINS
from eutely.tasks.pins import annotated_specimens

FIRST = "curate-first.npz"
"""Specimens as they were annotated before any correction."""


@dataclass(frozen=True, eq=False)
class Material:
    """What a folder of annotations or of a run holds.

    Attributes
    ----------
    path
        of the folder.
    kind
        ``annotate``, or ``build`` for a run.
    atlas
        that specimens were annotated with, or that was built.
    shown
        specimens before any correction.
    specimens
        name -> the nuclei with coordinates and features; empty where these are not in the folder.
    files
        volumes and images.
    report
        what the page of the folder showed before any correction.
    """

    path: Path
    kind: Literal["build", "annotate", "atlas"]
    atlas: Atlas
    shown: tuple[Shown, ...]
    specimens: Mapping[str, Specimen]
    files: Files
    report: Report


def open_material(path: Path) -> Material:
    """Read a folder of annotations or of a run."""
    atlas = read_report_atlas(path)
    tables = annotated_specimens(path)
    report = _first(path, _key(atlas, tables)) or read_report(path)[1]
    if report.kind != "build":
        check_names(one.name for one in report.specimens)
    if not report.specimens:
        raise ReadError(f"{path} holds no specimens; annotate some first")
    ids = {one.name: one.ids.tolist() for one in report.specimens}
    specimens = {
        name: specimen
        for name, specimen in tables.items()
        if ids.get(name) == specimen.ids.tolist()
    }
    return Material(path, report.kind, atlas, report.specimens, specimens, read_files(path), report)


def specimen_names(path: Path) -> list[str]:
    """Return the names of the specimens in a folder."""
    return [shown.name for shown in read_report(path)[1].specimens]


def annotate_into(
    path: Path,
    atlas: Atlas,
    specimens: Sequence[Specimen],
    *,
    handedness: Handedness = "auto",
    adapt: bool | None = None,
    workers: int | None = None,
    progress: Progress = silent,
) -> None:
    """Annotate specimens into a folder as ``eutely annotate`` does; parameters: see `annotate`."""
    check_names(specimen.name for specimen in specimens)
    annotations = annotate(
        atlas, specimens, handedness=handedness, adapt=adapt, workers=workers, progress=progress
    )
    listed = [annotation.with_alternatives() for annotation in annotations]
    specimens = in_true_order(specimens, annotations)
    report = report_of_annotations(annotations, atlas, specimens, f"eutely curate {path.name}")
    remove(path / FIRST)
    with tables_in(path):
        write_annotations(listed, atlas.names, path, specimens=specimens)
        write_annotated_page(path, atlas, report)


def write_results(material: Material, shown: Sequence[Shown], pins: Path) -> None:
    """Write the tables and the page of curated specimens; tables changed by hand are kept.

    Parameters
    ----------
    material
        the folder.
    shown
        its specimens after all corrections.
    pins
        the log of corrections.
    """
    atlas = material.atlas
    specimens = [material.specimens[one.name] for one in shown]
    annotations = [annotation_of(atlas, one) for one in shown]
    listed = pins_listed(read_pins(pins) if pins.exists() else None, specimens)
    report = replace(material.report, specimens=tuple(shown), pins=listed, evaluation=None)
    _keep_first(material)
    with tables_in(material.path):
        write_annotations(annotations, atlas.names, material.path, specimens=specimens)
        write_annotated_page(material.path, atlas, report)


def tables_agree(material: Material, pins: Path) -> bool:
    """Return whether the tables of a folder are of the corrections in its log."""
    known = read_pins(pins) if pins.exists() else None
    listed = pins_listed(known, list(material.specimens.values()))
    return read_report(material.path)[1].pins == listed


def annotation_of(atlas: Atlas, shown: Shown) -> Annotation:
    """Return a specimen as tables list it."""
    return Annotation(
        shown.name,
        shown.ids,
        shown.cells,
        tuple(atlas.names[cell] if cell != UNMATCHED else "" for cell in shown.cells),
        shown.confidence,
        shown.alternatives or ((),) * len(shown),
        float("nan"),
        shown.positions,
        mirrored=shown.note.startswith("mirrored"),
    ).with_alternatives()


def _first(path: Path, key: str) -> Report | None:
    """Return the report before any correction, if it was kept aside."""
    try:
        report, of = unpack(read_record(path / FIRST), tuple[Report, str])
    except (EutelyError, ValueError, KeyError, TypeError):
        return None
    return report if of == key else None


def _keep_first(material: Material) -> None:
    """Keep the report before any correction, before it is written again."""
    key = _key(material.atlas, material.specimens)
    write_record(material.path / FIRST, pack((material.report, key)))


def _key(atlas: Atlas, specimens: Mapping[str, Specimen]) -> str:
    """Return what tells folders of other specimens or another atlas apart."""
    nuclei = {name: specimens[name].centroids for name in sorted(specimens)}
    return digest({"atlas": pack(atlas).digest, "nuclei": nuclei})
