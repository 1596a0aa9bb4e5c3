"""Copies of label volumes in which the nuclei have the numbers of their cells."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np

from eutely.annotation import Annotation
from eutely.execute import Progress, silent
from eutely.io.relabel import write_colours, write_relabelled
from eutely.io.volumes import Volume
from eutely.io.whole import refuse_link
from eutely.specimen import UNMATCHED

log = logging.getLogger("eutely")

Opener = Callable[[], AbstractContextManager[Volume]]
"""Opens the label volume of a specimen."""


def with_minimum(annotation: Annotation, min_confidence: float) -> Annotation:
    """Return the annotation without the cells of nuclei with a lower confidence."""
    unsure = annotation.confidence < min_confidence
    named = zip(annotation.names, unsure.tolist(), strict=True)
    return replace(
        annotation,
        cells=np.where(unsure, UNMATCHED, annotation.cells),
        names=tuple("" if doubt else name for name, doubt in named),
        confidence=np.where(unsure, np.nan, annotation.confidence),
    )


def write_label_copies(
    folder: Path,
    volumes: Sequence[tuple[Opener, str] | None],
    annotations: Sequence[Annotation],
    names: Sequence[str],
    progress: Progress = silent,
) -> None:
    """Write a copy of each label volume, and the colours of all cells.

    Parameters
    ----------
    folder
        to write into.
    volumes
        how to open the label volume of each specimen, and the ending of its copy (``.tif``,
        ``.ome.zarr``); None where there is none, which is said.
    annotations
        one per specimen.
    names
        of the cells of the atlas, for their colours.
    progress
        callback for long-running work.
    """
    refuse_link(folder)
    write_colours(names, folder)
    for number, (copied, annotation) in enumerate(zip(volumes, annotations, strict=True)):
        progress("copying label volumes", number, len(annotations), annotation.specimen)
        if copied is None:
            log.warning("%s is no label volume: no copy of it", annotation.specimen)
            continue
        opener, suffix = copied
        with opener() as volume:
            path = folder / f"{annotation.specimen}{suffix}"
            write_relabelled(volume, path, annotation, names)
    progress("copying label volumes", len(annotations), len(annotations), "")
