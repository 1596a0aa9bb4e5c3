"""Copies of label volumes in which each nucleus has the number of its cell, with a colour table.

The value of a voxel is the number of the cell + 1, the same in all specimens; 0 where there is no
nucleus, or one without a cell. The copies are ImageJ TIFFs with a colour table, which Fiji shows,
or OME-Zarr label images, whose metadata hold name and colour of each cell for viewers;
``colours.csv`` beside them has the colours of all cells, which the napari plugin reads.
"""

from __future__ import annotations

import colorsys
import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation
from eutely.errors import WriteError
from eutely.io.limits import check_memory
from eutely.io.volumes import Volume
from eutely.io.volumes.zarr import create_labels
from eutely.io.whole import new_file, write_text
from eutely.io.written import copy_at
from eutely.specimen import UNMATCHED

FOLDER = "labels"
"""Folder of the copies inside the folder of annotations."""

COLOURS = "colours.csv"
"""Table of the colours: value, cell, name, red, green, blue (0 to 255)."""

COLOUR_COLUMNS = ("value", "cell", "name", "red", "green", "blue")

GREY = (0.5, 0.5, 0.5, 1.0)
"""Colour of nuclei without a cell."""

MOST_CELLS = 2**16 - 2
"""Cells that the 16 bits of a voxel can tell apart."""

CLASSIC = 2**32 - 2**24
"""Bytes from which a TIFF has to be a BigTIFF, which ImageJ reads without the colour table."""

DISTINCT = 510
"""Largest value with a colour of its own, or shared with one neighbour. Fiji maps 0 .. max to the
256 entries of a colour table; with a larger max, value 1 would be as black as the background."""

Colour = tuple[float, float, float, float]
"""Red, green, blue and opacity, 0 to 1."""


def colour_of(name: str) -> Colour:
    """Return the colour of a cell, which depends only on its name; grey without a name."""
    if not name:
        return GREY
    digest = hashlib.sha256(name.strip().upper().encode()).digest()
    lightness, saturation = 0.5 + 0.2 * digest[4] / 255, 0.6 + 0.35 * digest[5] / 255
    hue = int.from_bytes(digest[:4], "big") / 2**32
    return (*colorsys.hls_to_rgb(hue, lightness, saturation), 1.0)


def write_colours(names: Sequence[str], folder: Path) -> None:
    """Write the colours of all cells of an atlas; a cell without a name goes by its number."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLOUR_COLUMNS)
    for cell, (name, colour) in enumerate(zip(names, _colours(names), strict=True)):
        writer.writerow((cell + 1, cell, name, *colour.tolist()))
    write_text(folder / COLOURS, text.getvalue())


def write_relabelled(
    volume: Volume, path: Path, annotation: Annotation, names: Sequence[str]
) -> None:
    """Write a copy of a label volume with the numbers of cells + 1, plane by plane.

    Parameters
    ----------
    volume
        an open volume, with its voxel size.
    path
        of the TIFF or OME-Zarr; written completely or not at all. What a person changed there is
        kept as ``.bak``.
    annotation
        of its nuclei.
    names
        of all cells of the atlas, for the colours.
    """
    if len(names) > MOST_CELLS:
        raise WriteError(f"--labels: {len(names)} cells, at most {MOST_CELLS} fit into 16 bits")
    write = _write_zarr if path.suffix == ".zarr" else _write_tiff
    with copy_at(path) as aside:
        write(volume, aside, annotation, names)


def _write_zarr(volume: Volume, path: Path, annotation: Annotation, names: Sequence[str]) -> None:
    """Write an OME-Zarr label image; its properties tell cell, name, label and confidence."""
    there = np.flatnonzero(annotation.cells != UNMATCHED)
    there = there[np.argsort(annotation.cells[there])]
    cells = annotation.cells[there].tolist()
    colours = _colours(names)
    rows = zip(
        cells, annotation.ids[there].tolist(), annotation.confidence[there].tolist(), strict=True
    )
    about = {
        "colors": [
            {"label-value": cell + 1, "rgba": [*colours[cell].tolist(), 255]} for cell in cells
        ],
        "properties": [
            {
                "label-value": cell + 1,
                "cell": cell,
                "name": names[cell],
                "id": id_,
                "confidence": round(confidence, 4),
            }
            for cell, id_, confidence in rows
        ],
    }
    array = create_labels(path, volume.shape, np.dtype(np.uint16), volume.size, about)
    deep = int(array.chunks[0])
    check_memory(volume.path, 2 * deep * volume.shape[1] * volume.shape[2], "a slab of planes")
    slab: list[NDArray[np.uint16]] = []
    for number, plane in enumerate(_planes(volume, annotation), start=1):
        slab.append(plane)
        if len(slab) == deep or number == volume.shape[0]:
            array[number - len(slab) : number] = np.stack(slab)
            slab = []


def _write_tiff(volume: Volume, path: Path, annotation: Annotation, names: Sequence[str]) -> None:
    """Write an ImageJ TIFF with a colour table."""
    import tifffile

    x, y, z = volume.size
    top = max(255, min(len(names), DISTINCT))
    table = np.zeros((256, 3), np.uint8)
    values = np.arange(1, min(len(names), top) + 1)
    # As in ImageJ: value * 256 / (max + 1), rounded. The last of several cells has the entry.
    table[np.minimum((values * 256 / (top + 1) + 0.5).astype(int), 255)] = _colours(
        names[: len(values)]
    )
    large = 2 * int(np.prod(volume.shape, dtype=np.int64)) > CLASSIC
    metadata = {"axes": "ZYX", "unit": "um", "spacing": z, "min": 0.0, "max": float(top)}
    shown = {"LUTs": [table.T.copy()], "Ranges": (0.0, float(top)), "mode": "color"}
    with new_file(path) as file:
        tifffile.imwrite(
            file,
            _planes(volume, annotation),
            shape=volume.shape,
            dtype=np.uint16,
            imagej=not large,
            bigtiff=large,
            photometric="minisblack",
            compression="zlib",
            resolution=(1 / x, 1 / y),
            metadata=metadata if large else metadata | shown,
        )


def _planes(volume: Volume, annotation: Annotation) -> Iterator[NDArray[np.uint16]]:
    order = np.argsort(annotation.ids)
    labels, values = annotation.ids[order], (annotation.cells[order] + 1).astype(np.uint16)
    for plane in volume.planes():
        # Labels of 64 bits without sign do not compare with those with a sign.
        signed = plane.astype(np.int64, copy=False)
        at = np.minimum(np.searchsorted(labels, signed), len(labels) - 1)
        yield np.where(labels[at] == signed, values[at], 0).astype(np.uint16)


def _colours(names: Sequence[str]) -> NDArray[np.uint8]:
    """Return (m, 3), the colour of each cell."""
    colours = [colour_of(name or f"cell {cell}")[:3] for cell, name in enumerate(names)]
    return (255 * np.array(colours).reshape(-1, 3)).round().astype(np.uint8)
