"""Annotated nuclei as AnnData, for scanpy and its relatives: one row per nucleus, or per cell.

Nuclei: ``obs`` says which nucleus it is and what it was taken for, ``X`` has its features,
``obsm["spatial"]`` its place in the input, ``obsm["atlas"]`` its place in the frame of the atlas.
Cells: ``obs`` has the cells of the atlas, ``var`` the specimens, and each layer one quantity of the
cohort, cells x specimens, NaN where a specimen lacks the cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eutely.annotation import Annotation
from eutely.atlas import Atlas
from eutely.errors import EutelyError, install
from eutely.io.written import table_at
from eutely.specimen import UNMATCHED, Specimen

if TYPE_CHECKING:
    from anndata import AnnData

LAYERS = ("confidence", "x", "y", "z")
"""Layers of cells besides the features; the coordinates are those of the atlas's frame."""

KEY = "eutely"
"""Entry of ``uns`` with the provenance."""


def nuclei_anndata(
    annotations: Sequence[Annotation],
    specimens: Sequence[Specimen],
    atlas: Atlas,
    provenance: Mapping[str, str] | None = None,
) -> AnnData:
    """Return all nuclei of all specimens, in input order.

    Parameters
    ----------
    annotations, specimens
        annotations, and the specimens that they are about.
    atlas
        that they were made with.
    provenance
        further entries of ``uns["eutely"]``, such as the command.

    Returns
    -------
    AnnData
        ``obs``: specimen, id, cell (-1: none), name, confidence, contested, mirrored, and
        ``named`` (the name that the input has) where there is any; ``var``: the features;
        ``X``: (nuclei, features) float64, NaN where unknown; ``obsm``: ``spatial``, ``atlas``,
        ``radii``; ``uns["eutely"]``: version, units, atlas, provenance.
    """
    import pandas as pd

    ad = _library()
    features = feature_columns(specimens)
    rows = list(zip(annotations, specimens, strict=True))
    index = [f"{one.name}:{id_}" for one in specimens for id_ in one.ids.tolist()]
    obs = pd.DataFrame(
        {
            "specimen": _category(one.name for one in specimens for _ in range(len(one))),
            "id": _joined([one.ids for one in specimens], np.int64),
            "cell": _joined([found.cells for found in annotations], np.int32),
            "name": _category(name for found in annotations for name in found.names),
            "confidence": _joined([found.confidence for found in annotations], np.float64),
            "contested": _joined([found.contested for found in annotations], np.bool_),
            "mirrored": _joined([np.full(len(a), a.mirrored) for a in annotations], np.bool_),
        },
        index=pd.Index(index, dtype=object),
    )
    if any(one.names for one in specimens):
        obs["named"] = _category(
            name for one in specimens for name in (one.names or ("",) * len(one))
        )
    values = np.full((len(obs), len(features)), np.nan)
    begin = 0
    for _, one in rows:
        for column, feature in enumerate(features):
            if feature in one.features:
                values[begin : begin + len(one), column] = one.features[feature]
        begin += len(one)
    return ad.AnnData(
        values,
        obs=obs,
        var=pd.DataFrame(index=pd.Index(features, dtype=object)),
        obsm={
            "spatial": _joined([one.centroids for one in specimens], np.float64, (0, 3)),
            "atlas": _joined([found.places for found in annotations], np.float64, (0, 3)),
            "radii": _joined([one.radii for one in specimens], np.float64, (0, 3)),
        },
        uns={KEY: _provenance(specimens, atlas, provenance)},
    )


def cells_anndata(
    annotations: Sequence[Annotation],
    specimens: Sequence[Specimen],
    atlas: Atlas,
    provenance: Mapping[str, str] | None = None,
) -> AnnData:
    """Return the cohort by cell: a matrix cells x specimens for each feature.

    Parameters: see `nuclei_anndata`.

    Returns
    -------
    AnnData
        ``obs``: the cells of the atlas (cell, name, seen); ``var``: the specimens; ``layers``: each
        feature, ``confidence``, and ``x``, ``y``, ``z`` in the frame of the atlas, NaN where a
        specimen lacks the cell; ``obsm["spatial"]``: the means of the atlas.
    """
    import pandas as pd

    ad = _library()
    sources: dict[str, str] = {
        (f"input_{key}" if key in LAYERS else key): key for key in feature_columns(specimens)
    }
    layers = {key: np.full((len(atlas), len(specimens)), np.nan) for key in (*LAYERS, *sources)}
    for number, (found, specimen) in enumerate(zip(annotations, specimens, strict=True)):
        there = found.cells != UNMATCHED
        cells = found.cells[there]
        columns = {"confidence": found.confidence, **dict(zip("xyz", found.places.T, strict=True))}
        for layer, feature in sources.items():
            if feature in specimen.features:
                columns[layer] = specimen.features[feature]
        for key, column in columns.items():
            layers[key][cells, number] = column[there]
    names = [name or f"cell {cell}" for cell, name in enumerate(atlas.names)]
    obs = pd.DataFrame(
        {
            "cell": np.arange(len(atlas), dtype=np.int32),
            "name": _category(atlas.names),
            "seen": np.asarray(atlas.seen, np.int64),
        },
        index=pd.Index(names, dtype=object),
    )
    var = pd.DataFrame(
        {"mirrored": [bool(found.mirrored) for found in annotations]},
        index=pd.Index([one.name for one in specimens], dtype=object),
    )
    return ad.AnnData(
        obs=obs,
        var=var,
        layers=layers,
        obsm={"spatial": np.array(atlas.means)},
        uns={KEY: _provenance(specimens, atlas, provenance)},
    )


def write_h5ad(data: AnnData, path: Path) -> None:
    """Write AnnData, completely or not at all; a file with other content is kept as ``.bak``."""
    with table_at(path) as aside:
        data.write_h5ad(aside, compression="gzip")


def check_anndata() -> None:
    """Raise an error if the library is not installed; to be called before long work."""
    _library()


def feature_columns(specimens: Iterable[Specimen]) -> list[str]:
    """Return the names of all features, in the order in which they first occur."""
    return list(dict.fromkeys(key for specimen in specimens for key in specimen.features))


def _library() -> Any:
    try:
        import anndata
    except ImportError as error:
        raise EutelyError(f"AnnData is not installed; {install('anndata')}") from error
    return anndata


def _category(texts: Iterable[str]) -> Any:
    import pandas as pd

    values = list(texts)
    return pd.Categorical(values, categories=sorted(set(values)))


def _joined(
    parts: Sequence[NDArray[Any]], dtype: type, empty: tuple[int, ...] = (0,)
) -> NDArray[Any]:
    return np.concatenate([np.empty(empty, dtype), *(np.asarray(p, dtype) for p in parts)])


def _provenance(
    specimens: Sequence[Specimen], atlas: Atlas, further: Mapping[str, str] | None
) -> dict[str, Any]:
    """Return version, units and where the atlas comes from, as texts and numbers."""
    return {
        "version": version("eutely"),
        "unit": specimens[0].unit if specimens else "",
        "atlas_unit": atlas.unit,
        "atlas_cells": len(atlas),
        "atlas_specimens": int(atlas.specimens),
        "atlas": {key: str(value) for key, value in atlas.provenance.items()},
        **dict(further or {}),
    }
