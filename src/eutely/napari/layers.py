"""Layers of napari as plain data: labels in the colours of their cells, names on the nuclei."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.napari.named import CLEAR, GREY, Colour, Named, colour_of, places

ON_TOP = "translucent_no_depth"
"""Names are never hidden by nuclei in front of them."""

LayerData = tuple[Any, dict[str, Any], str]

TABLE = "eutely table"
"""Where the metadata of a labels layer says which table it was opened with."""

SIZE = 1.5
"""Of the dots on the nuclei, in units of the layer's scale."""


def labels_layer(
    labels: NDArray[Any], scale: tuple[float, ...], named: Named, table: str
) -> LayerData:
    """Return the volume as a labels layer in which a cell has its colour."""
    options = {
        "name": named.specimen,
        "scale": scale,
        "colormap": colormap(named),
        "metadata": {TABLE: table},
    }
    return labels, options, "labels"


def names_layer(labels: NDArray[Any], scale: tuple[float, ...], named: Named) -> LayerData:
    """Return the names as a layer of points on the nuclei; hover tells the rest."""
    centres = places(labels, named.ids)
    there = np.isfinite(centres).all(axis=1)
    rows = np.flatnonzero(there)
    features = {
        "id": named.ids[rows],
        "name": np.array([named.names[row] for row in rows], dtype=object),
        "confidence": named.confidence[rows],
    }
    return (
        centres[rows],
        {
            "name": f"names of {named.specimen}",
            "scale": scale,
            "features": features,
            "text": {"string": "{name}", "size": 9, "color": "white", "blending": ON_TOP},
            "face_color": np.array([colour_of(named.names[row]) for row in rows]).reshape(-1, 4),
            "size": SIZE,
            "border_width": 0.0,
            "blending": ON_TOP,
        },
        "points",
    )


def colormap(named: Named) -> dict[int | None, Colour]:
    """Return label -> colour as a labels layer takes it; None stands for all other labels."""
    return {0: CLEAR, None: GREY, **named.colours()}
