"""Opens a label volume with its table of annotations: labels in colour, names on the nuclei."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from eutely.errors import ReadError
from eutely.io.relabel import COLOUR_COLUMNS, COLOURS, GREY, colour_of
from eutely.io.volumes import SUFFIXES, open_volume
from eutely.io.volumes.volume import VoxelSize
from eutely.napari.named import CLEAR, Named, is_annotation, read_named
from eutely.napari.planes import Cuts, Packed, cuts

LayerData = tuple[Any, dict[str, Any], str]
"""A layer of napari: data, options, kind."""

TABLE = "eutely table"
"""Key of the path of the table in the metadata of a labels layer."""

CENTRES = "eutely centres"
"""Key of the centroids (n, 3) of the nuclei in the metadata of a labels layer, in voxels."""

CENTRAL = "eutely central"
"""Key of the rows to show in 3D in the metadata of a layer of names: one for each nucleus."""

ON_TOP = "translucent_no_depth"
"""Blending by which names are never hidden by nuclei in front of them."""

MOST_ROWS = 2**15
"""Largest label for which colours are a table: what napari keeps in 16 bits, and half of it."""

SIZE = 1.5
"""Diameter of the dots on the nuclei, in units of the layer's scale."""


def get_reader(path: str | list[str]) -> Callable[[str], list[LayerData]] | None:
    """Return the reader of ``path`` if it has a table of annotations or of colours, else None."""
    if not isinstance(path, str):
        return None
    if table_of(Path(path)) is None and colours_of(Path(path)) is None:
        return None
    return read_layers


def table_of(volume: Path) -> Path | None:
    """Return the table of a volume: ``worm.csv`` beside ``worm.tif``, or in a folder beside it."""
    stem = _stem(volume)
    tables = [volume.parent / f"{stem}.csv", *sorted(volume.parent.glob(f"*/{stem}.csv"))]
    return next((table for table in tables if is_annotation(table)), None)


def colours_of(volume: Path) -> Path | None:
    """Return the table of colours beside a copy that ``eutely annotate --labels`` wrote."""
    table = volume.parent / COLOURS
    try:
        with table.open(encoding="utf-8") as file:
            return table if tuple(file.readline().strip().split(",")) == COLOUR_COLUMNS else None
    except (OSError, UnicodeDecodeError):
        return None


def _stem(volume: Path) -> str:
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if volume.name.lower().endswith(suffix):
            return volume.name[: -len(suffix)]
    return volume.name


def read_layers(path: str) -> list[LayerData]:
    """Return labels and names as layers, in micrometres if the file has a voxel size."""
    volume = Path(path)
    table = table_of(volume)
    colours = colours_of(volume)
    assert table is not None or colours is not None
    named = read_cells(colours, _stem(volume)) if table is None else read_named(table)
    try:
        labels, places, scale = _read_volume(volume, None, named)
    except ReadError:  # most often a file without a voxel size: cubic voxels do for looking at it
        labels, places, scale = _read_volume(volume, (1.0, 1.0, 1.0), named)
    show_one_name_in_3d()
    of_labels = labels_layer(labels, scale, named, colormap(named, places.top))
    metadata = of_labels[1]["metadata"] = {CENTRES: places.centroids()}
    if table is not None:
        metadata[TABLE] = str(table)
    return [of_labels, names_layer(places, scale, named)]


def read_cells(colours: Path | None, specimen: str) -> Named:
    """Return the cells of a table of colours as nuclei: a label is the number of a cell + 1."""
    assert colours is not None
    with colours.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    try:
        ids = np.array([int(row["value"]) for row in rows], dtype=np.int64)
    except (ValueError, TypeError) as error:
        raise ReadError(f"{colours}: {error}; expected a table of eutely annotate") from error
    names = tuple(row["name"] or f"cell {row['cell']}" for row in rows)
    return Named(specimen, ids, names, np.full(len(ids), np.nan), ("",) * len(ids))


def labels_layer(labels: Any, scale: tuple[float, ...], named: Named, colours: Any) -> LayerData:
    """Return the volume as a labels layer in which each cell has its colour."""
    return labels, {"name": named.specimen, "scale": scale, "colormap": colours}, "labels"


def names_layer(places: Cuts, scale: tuple[float, ...], named: Named) -> LayerData:
    """Return the names as a layer of points, one on each nucleus that a plane cuts.

    Hovering shows id and confidence. In 3D a nucleus has one name, see `show_one_name_in_3d`.
    """
    rows, central = places.rows, places.central()
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
        "metadata": {CENTRAL: central},
    }
    return places.places, options, "points"


def show_one_name_in_3d(viewer: Any = None) -> None:
    """Let a viewer show one name for each nucleus in 3D, and one in each plane in 2D."""
    viewer = viewer or _viewer()
    if viewer is not None:
        viewer.dims.events.ndisplay.connect(_choose_names)
        viewer.layers.events.inserted.connect(_choose_names)


def _viewer() -> Any:
    """Return the viewer that is open; None without one."""
    module = sys.modules.get("napari.viewer")  # importing it takes seconds
    return None if module is None else module.current_viewer()


def _choose_names(_: object = None) -> None:
    viewer = _viewer()
    for layer in () if viewer is None else viewer.layers:
        central = layer.metadata.get(CENTRAL)
        if central is not None and len(central) == len(layer.data):
            layer.shown = central if viewer.dims.ndisplay == 3 else np.ones(len(central), bool)


def colormap(named: Named, top: int) -> Any:
    """Return the colours of labels in a form of napari.

    That is a table with a row for each label, since napari compiles code for dictionaries, which
    takes longer than reading the volume. Volumes with large labels get a dictionary all the same.

    Parameters
    ----------
    named
        nuclei by their labels; all other labels are grey.
    top
        the largest label in the volume.
    """
    colours = named.colours()
    top = max([top, *named.ids.tolist()])
    if top > MOST_ROWS or min([0, *named.ids.tolist()]) < 0:
        return {0: CLEAR, None: GREY, **colours}
    from napari.utils import CyclicLabelColormap

    table = np.tile(np.array(GREY), (top + 1, 1))
    table[0] = CLEAR
    for label, colour in colours.items():
        table[label] = colour
    return CyclicLabelColormap(colors=table, name="cells")


def _read_volume(
    volume: Path, size: VoxelSize | None, named: Named
) -> tuple[Any, Cuts, tuple[float, ...]]:
    """Return a volume with axes z, y, x, where its nuclei lie, and the size of its voxels."""
    packed = Packed()
    with open_volume(volume, size) as opened:
        places = cuts(packed.kept(opened.planes()), named.ids)
        return packed.array(), places, tuple(reversed(opened.size))
