"""Results of a folder for other programs: tables, Excel, AnnData, NWB, label volumes."""

from __future__ import annotations

import io
import logging
import re
import zipfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.errors import EutelyError, WriteError, install
from eutely.execute import Progress, silent
from eutely.io.annotations import ALL, tidy, write_annotations
from eutely.io.h5ad import cells_anndata, check_anndata, nuclei_anndata, write_h5ad
from eutely.io.images import image_in
from eutely.io.nwb_layout import drawn_labels, drawn_points, write_nwb
from eutely.io.nwb_write import About, check_pynwb, subject_of, write_annotated
from eutely.io.relabel import FOLDER
from eutely.io.sources import Files
from eutely.io.volumes import Volume, is_zarr, open_volume
from eutely.io.whole import new_bytes
from eutely.io.written import copy_at
from eutely.specimen import Specimen
from eutely.tasks.relabel import with_minimum, write_label_copies

log = logging.getLogger("eutely")

KINDS = ("csv", "excel", "h5ad", "nwb", "labels")
"""What can be written."""

MOST_ROWS = 2**20 - 1
"""Rows of a sheet of Excel, below the header."""

UNDATED = b">1980-01-01T00:00:00Z<"
"""When workbooks were made: the first day that a ZIP archive knows."""

Opener = tuple[Callable[[], AbstractContextManager[Volume]], str]


@dataclass(frozen=True)
class Results:
    """What a folder of annotations holds.

    Attributes
    ----------
    atlas
        that specimens were annotated with.
    annotations, specimens
        what the nuclei are, and the nuclei.
    files
        where they were read from.
    """

    atlas: Atlas
    annotations: Sequence[Annotation]
    specimens: Sequence[Specimen]
    files: Files

    def sure(self, least: float) -> Results:
        """Return the same without cells of a lower confidence."""
        kept = [with_minimum(annotation, least) for annotation in self.annotations]
        return Results(self.atlas, kept, self.specimens, self.files)


def check_kinds(kinds: Sequence[str]) -> None:
    """Raise an error if a kind is unknown, or its library is not installed; before any work."""
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise EutelyError(f"cannot export '{unknown[0]}'; there are: {', '.join(KINDS)}")
    if "h5ad" in kinds:
        check_anndata()
    if "nwb" in kinds:
        check_pynwb()
    if "excel" in kinds:
        _check_openpyxl()


def export(
    results: Results,
    folder: Path,
    kinds: Sequence[str],
    *,
    h5ad: Path | None = None,
    about: About | None = None,
    progress: Progress = silent,
) -> list[Path]:
    """Write results for other programs; return the files and folders.

    Parameters
    ----------
    results
        what to write.
    folder
        to write into.
    kinds
        of `KINDS`.
    h5ad
        file of AnnData; by default ``annotations.h5ad`` in the folder.
    about
        what is known about the recordings, for NWB.
    progress
        callback for long-running work.
    """
    check_kinds(kinds)
    atlas, annotations, specimens = results.atlas, results.annotations, results.specimens
    written: list[Path] = []
    if "csv" in kinds:
        progress("writing tables", 0, 1, "")
        write_annotations(annotations, atlas.names, folder, specimens=specimens)
        written.append(folder / f"{ALL}.csv")
    if "excel" in kinds:
        written.append(_write_excel(results, folder / f"{ALL}.xlsx"))
    if "h5ad" in kinds:
        nuclei = folder / f"{ALL}.h5ad" if h5ad is None else h5ad
        cells = nuclei.with_name(f"{nuclei.stem}.cells.h5ad")
        write_h5ad(nuclei_anndata(annotations, specimens, atlas), nuclei)
        write_h5ad(cells_anndata(annotations, specimens, atlas), cells)
        written += [nuclei, cells]
    if "labels" in kinds:
        copies = [_label_copy(results.files, specimen.name) for specimen in specimens]
        if not any(copies):
            raise EutelyError(
                "labels: no specimen was read from a label volume that is still there; leave it out"
            )
        write_label_copies(folder / FOLDER, copies, annotations, atlas.names, progress)
        written.append(folder / FOLDER)
    if "nwb" in kinds:
        subject = subject_of(atlas.provenance) | dict(about.subject if about else {})
        known = About(about.session if about else {}, subject)
        if about is None:
            log.info("NWB files say of the animal what the atlas says; --about F.toml says more")
        rows = list(zip(specimens, annotations, strict=True))
        for number, (specimen, annotation) in enumerate(rows):
            progress("writing NWB", number, len(rows), specimen.name)
            path = folder / f"{specimen.name}.nwb"
            with copy_at(path) as aside:
                _write_nwb(aside, specimen, annotation, results, known)
            written.append(path)
        progress("writing NWB", len(rows), len(rows), "")
    return written


def _write_nwb(
    path: Path,
    specimen: Specimen,
    annotation: Annotation,
    results: Results,
    about: About,
) -> None:
    """Write an NWB file: a copy with new columns where the input is one, else a new file."""
    files, name = results.files, specimen.name
    kind, place, part = files.others.get(name, ("", "", ""))
    if kind == "nwb" and Path(place).exists():
        write_annotated(Path(place), path, annotation, part or None)
        return
    volume_path, inside = files.volumes.get(name, ("", ""))
    with ExitStack() as stack:
        if volume_path and Path(volume_path).exists():
            volume = stack.enter_context(
                open_volume(Path(volume_path), files.size_of(name), inside or None)
            )
            drawn = drawn_labels(volume, specimen)
            image = stack.enter_context(image_in(files, name, volume.shape))
        else:
            image = stack.enter_context(image_in(files, name))
            drawn = drawn_points(specimen, None if image is None else image.volume)
        write_nwb(path, specimen, annotation, drawn, image, about)


def _label_copy(files: Files, name: str) -> Opener | None:
    """Return how to open a label volume, and the ending of its copy; None where there is none."""
    place, part = files.volumes.get(name, ("", ""))
    path = Path(place)
    if not place or not path.exists():
        return None
    opener = partial(open_volume, path, files.size_of(name), part or None)
    return opener, ".ome.zarr" if is_zarr(path) else ".tif"


def _write_excel(results: Results, path: Path) -> Path:
    """Write the table of all nuclei as the only sheet of a workbook."""
    import pandas as pd

    table = tidy(results.annotations, results.specimens)
    if len(table) > MOST_ROWS:
        raise WriteError(f"{path}: {len(table)} rows, Excel holds {MOST_ROWS}; export csv instead")
    memory = io.BytesIO()
    with pd.ExcelWriter(memory, engine="openpyxl") as book:
        table.to_excel(book, sheet_name=ALL, index=False)
        for number, column in enumerate(table, start=1):
            texts = table[column].map(lambda value: isinstance(value, str) and value[:1] == "=")
            for row in np.flatnonzero(texts).tolist():  # a name, not a formula to be computed
                book.sheets[ALL].cell(row + 2, number).data_type = "s"
    with copy_at(path) as aside:
        new_bytes(aside, _undated(memory))
    return path


def _undated(workbook: io.BytesIO) -> bytes:
    """Return a workbook without the time at which it was made: the same table, the same bytes."""
    result = io.BytesIO()
    with zipfile.ZipFile(workbook) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "docProps/core.xml":
                content = re.sub(rb">\d{4}-\d\d-\d\dT[0-9:]+Z<", UNDATED, content)
            new.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return result.getvalue()


def _check_openpyxl() -> None:
    try:
        import openpyxl  # noqa: F401
    except ImportError as error:
        raise EutelyError(f"Excel needs openpyxl; {install('excel')}") from error
