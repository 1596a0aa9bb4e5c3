"""Opens a label volume together with the table of ``eutely annotate`` that lies beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.volumes import SUFFIXES, open_volume
from eutely.io.volumes.volume import VoxelSize
from eutely.napari.layers import LayerData, labels_layer, names_layer
from eutely.napari.named import is_annotation, read_named


def get_reader(path: str | list[str]) -> Callable[[str], list[LayerData]] | None:
    """Return the reader of ``path`` if an annotation table lies beside it, else None."""
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
    places = [volume.parent / f"{stem}.csv", *sorted(volume.parent.glob(f"*/{stem}.csv"))]
    return next((place for place in places if is_annotation(place)), None)


def read_layers(path: str) -> list[LayerData]:
    """Return labels and names as layers, in micrometres where the file says so."""
    volume = Path(path)
    table = table_of(volume)
    assert table is not None
    named = read_named(table)
    try:
        labels, scale = _whole(volume, None)
    except ReadError:  # most often a file without a voxel size: to look at, cubes will do
        labels, scale = _whole(volume, (1.0, 1.0, 1.0))
    return [labels_layer(labels, scale, named, str(table)), names_layer(labels, scale, named)]


def _whole(volume: Path, size: VoxelSize | None) -> tuple[NDArray[Any], tuple[float, ...]]:
    """Return a volume with axes z, y, x, and the size of its voxels in that order."""
    with open_volume(volume, size) as opened:
        labels = np.stack(list(opened.planes()))
        return labels, tuple(reversed(opened.size))
