"""Opens a label volume with its table of annotations: labels in colour, names on the nuclei."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.relabel import GREY, Colour, colour_of
from eutely.io.volumes import SUFFIXES, open_volume
from eutely.io.volumes.volume import VoxelSize
from eutely.napari.named import (
    CLEAR,
    Named,
    centroids,
    is_annotation,
    read_named,
)

LayerData = tuple[Any, dict[str, Any], str]
"""A layer of napari: data, options, kind."""

TABLE = "eutely table"
"""Key of the path of the table in the metadata of a labels layer."""

ON_TOP = "translucent_no_depth"
"""Blending by which names are never hidden by nuclei in front of them."""

SIZE = 1.5
"""Diameter of the dots on the nuclei, in units of the layer's scale."""


def get_reader(path: str | list[str]) -> Callable[[str], list[LayerData]] | None:
    """Return the reader of ``path`` if it has a table of annotations, else None."""
    if not isinstance(path, str) or table_of(Path(path)) is None:
        return None
    return read_layers


def table_of(volume: Path) -> Path | None:
    """Return the table of a volume: ``worm.csv`` beside ``worm.tif``, or in a folder beside it."""
    stem = volume.name
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if stem.lower().endswith(suffix):
            stem = stem[: -len(suffix)]
            break
    tables = [volume.parent / f"{stem}.csv", *sorted(volume.parent.glob(f"*/{stem}.csv"))]
    return next((table for table in tables if is_annotation(table)), None)


def read_layers(path: str) -> list[LayerData]:
    """Return labels and names as layers, in micrometres if the file has a voxel size."""
    volume = Path(path)
    table = table_of(volume)
    assert table is not None
    named = read_named(table)
    try:
        labels, scale = _read_volume(volume, None)
    except ReadError:  # most often a file without a voxel size: cubic voxels do for looking at it
        labels, scale = _read_volume(volume, (1.0, 1.0, 1.0))
    return [labels_layer(labels, scale, named, str(table)), names_layer(labels, scale, named)]


def labels_layer(
    labels: NDArray[Any], scale: tuple[float, ...], named: Named, table: str
) -> LayerData:
    """Return the volume as a labels layer in which each cell has its colour."""
    options = {
        "name": named.specimen,
        "scale": scale,
        "colormap": colormap(named),
        "metadata": {TABLE: table},
    }
    return labels, options, "labels"


def names_layer(labels: NDArray[Any], scale: tuple[float, ...], named: Named) -> LayerData:
    """Return the names as a layer of points on the nuclei; hovering shows id and confidence."""
    centres = centroids(labels, named.ids)
    rows = np.flatnonzero(np.isfinite(centres).all(axis=1))
    features = {
        "id": named.ids[rows],
        "name": np.array([named.names[row] for row in rows], dtype=object),
        "confidence": named.confidence[rows],
    }
    options = {
        "name": f"names of {named.specimen}",
        "scale": scale,
        "features": features,
        "text": {"string": "{name}", "size": 9, "color": "white", "blending": ON_TOP},
        "face_color": np.array([colour_of(named.names[row]) for row in rows]).reshape(-1, 4),
        "size": SIZE,
        "border_width": 0.0,
        "blending": ON_TOP,
    }
    return centres[rows], options, "points"


def colormap(named: Named) -> dict[int | None, Colour]:
    """Return label -> colour in the form of napari; None stands for all other labels."""
    return {0: CLEAR, None: GREY, **named.colours()}


def _read_volume(volume: Path, size: VoxelSize | None) -> tuple[NDArray[Any], tuple[float, ...]]:
    """Return a volume with axes z, y, x, and the size of its voxels in that order."""
    with open_volume(volume, size) as opened:
        labels = np.stack(list(opened.planes()))
        return labels, tuple(reversed(opened.size))
