"""Atlases as open files: ``cells.csv``, ``edges.csv``, ``neighbours.csv`` and ``description.json``.

They hold all that an atlas file holds, in formats that any program reads; docs/formats.md lists the
columns. Numbers are written so that reading restores them bit for bit.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.atlas import Atlas
from eutely.errors import AtlasError, ReadError
from eutely.io.atlas import FORMAT, PLAIN, SCHEMA, checksum
from eutely.io.columns import Columns, read_columns
from eutely.io.limits import check_memory, check_regular
from eutely.io.text import MEMORY, whole_numbers
from eutely.io.whole import new_folder, new_text, whole

DESCRIPTION = "description.json"
"""File by which an exported atlas is recognised."""

CELLS = {
    "means": "",
    "covariances": "covariance_",
    "conditionals": "conditional_",
    "radii": "radius_",
    "radius_covariances": "radius_covariance_",
    "seen": "seen",
    "shown": "shown",
    "rare": "rare",
    "feature_means": "feature_",
    "origin_presence": "presence_",
    "origin_scores": "score_",
}
"""Arrays with one row per cell -> beginning of their columns in cells.csv."""

EDGES = {"edges": "cell_", "offsets": "offset_", "offset_covariances": "covariance_"}
"""Arrays with one row per pair of neighbours -> beginning of their columns in edges.csv."""

NEIGHBOURS = {"neighbours": "neighbour", "predictors": "predictor_"}
"""Arrays with one row per cell and neighbour -> beginning of their columns in neighbours.csv."""

OPTIONAL = ("shown", "origin_presence", "origin_scores")
"""Arrays that are left out where they are empty."""

SMALL = ("weights", "size", "crowding")
"""Arrays in description.json."""


def export_atlas(atlas: Atlas, folder: Path) -> None:
    """Write the files of an atlas into a folder, all of them or none."""
    m, k = atlas.neighbours.shape
    description = {
        "format": FORMAT,
        "schema": SCHEMA,
        "checksum": checksum(atlas),
        **{key: getattr(atlas, key) for key in PLAIN},
        "features": list(atlas.features),
        "origins": {key: atlas.hands_of(key) for key in atlas.origins},
        "provenance": dict(atlas.provenance),
        **{key: getattr(atlas, key).tolist() for key in SMALL},
        "cells": m,
        "neighbours": k,
    }
    with whole(folder) as aside:
        new_folder(aside)
        cells = {"cell": np.arange(m), "name": np.array(atlas.names, dtype=object)}
        _write(aside / "cells.csv", cells | _columns(atlas, CELLS))
        _write(aside / "edges.csv", _columns(atlas, EDGES))
        pairs = {"cell": np.repeat(np.arange(m), k), "rank": np.tile(np.arange(k), m)}
        _write(aside / "neighbours.csv", pairs | _columns(atlas, NEIGHBOURS))
        text = json.dumps(description, indent=1, sort_keys=True)
        with new_text(aside / DESCRIPTION) as file:
            file.write(text + "\n")


def is_export_of(atlas: Atlas, folder: Path) -> bool:
    """Return whether a folder has all files of this atlas already, of an earlier export."""
    if not (folder / DESCRIPTION).is_file():
        return False
    try:
        return checksum(read_exported(folder)) == checksum(atlas)
    except ReadError:
        return False


def read_exported(folder: Path) -> Atlas:
    """Read what `export_atlas` wrote."""
    path = folder / DESCRIPTION
    check_regular(path)
    try:
        check_memory(path, MEMORY * path.stat().st_size, "the description")
        about = json.loads(path.read_text(encoding="utf-8"))
        if about["format"] != FORMAT or int(about["schema"]) > SCHEMA:
            raise ReadError(f"{path}: format {about['format']} {about['schema']}; update eutely")
        m, k = _plain(about, "cells", int), _plain(about, "neighbours", int)
        d = len(about["features"])
        cells = read_columns(folder / "cells.csv")
        edges = read_columns(folder / "edges.csv")
        pairs = read_columns(folder / "neighbours.csv")
        values: dict[str, Any] = {key: _plain(about, key, kind) for key, kind in PLAIN.items()}
        values |= {key: np.array(about[key]) for key in SMALL}
        values["features"] = tuple(map(str, about["features"]))
        origins = dict(about.get("origins", {}))
        values["origins"] = tuple(sorted(map(str, origins)))
        values["hands"] = np.array([origins[key] for key in values["origins"]]).reshape(-1, 2)
        values["provenance"] = {str(key): str(text) for key, text in about["provenance"].items()}
        values["names"] = tuple(cells.fields["name"])
        shape: dict[str, tuple[int, ...]] = dict.fromkeys(("seen", "shown", "rare"), ())
        shape |= {
            "feature_means": (d,),
            "origin_presence": (len(origins),),
            "origin_scores": (len(origins), d),
        }
        matrix = {"covariances", "conditionals", "radius_covariances", "offset_covariances"}
        for table, fields in ((cells, CELLS), (edges, EDGES)):
            for key, begin in fields.items():
                if key in OPTIONAL and not any(name.startswith(begin) for name in table.fields):
                    continue
                rest = (3, 3) if key in matrix else shape.get(key, (3,))
                rest = (2,) if key == "edges" else rest
                values[key] = _array(table, begin, rest, about["features"], key)
        if len(pairs.lines) != m * k:
            raise ReadError(f"{pairs.path}: {len(pairs.lines)} rows, expected {m} cells x {k}")
        values["neighbours"] = _array(pairs, "neighbour", (), (), "neighbours").reshape(m, k)
        values["predictors"] = _array(pairs, "predictor_", (3, 3), (), "").reshape(m, k, 3, 3)
        atlas = Atlas(**values)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError,
            ArithmeticError) as error:  # fmt: skip
        raise ReadError(f"{folder}: not an exported atlas ({error}); export it again") from error
    except AtlasError as error:
        raise ReadError(f"{folder}: {error}") from error
    return atlas


def _plain(about: dict[str, Any], key: str, kind: type) -> Any:
    """Return a plain value of the description; an error where it is of another kind."""
    value = about[key]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and kind(value) == value if kind in (int, float) else isinstance(value, kind)):
        raise ValueError(f"'{key}' is {value!r}")
    return kind(value)


def _suffixes(rest: tuple[int, ...], features: Sequence[str], key: str) -> list[str]:
    """Return the ends of the columns of an array whose entries have the shape ``rest``."""
    if key == "feature_means":
        return list(features)
    if key == "edges":
        return ["i", "j"]
    if key == "origin_scores":  # origins are numbered as in the description
        return [f"{at}_{name}" for at, name in product(range(rest[0]), features)]
    if key == "origin_presence":
        return [str(at) for at in range(rest[0])]
    letters = "123" if key.startswith("radi") else "xyz"
    return ["".join(letters[a] for a in index) for index in product(*map(range, rest))]


def _columns(atlas: Atlas, fields: dict[str, str]) -> dict[str, NDArray[Any]]:
    """Return the columns of arrays, name -> values."""
    columns: dict[str, NDArray[Any]] = {}
    for key, begin in fields.items():
        values = getattr(atlas, key)
        if key in OPTIONAL and not values.size:
            continue
        if key in NEIGHBOURS:
            values = values.reshape(-1, *values.shape[2:])
        flat = values.reshape(len(values), -1)
        ends = _suffixes(values.shape[1:], atlas.features, key)
        columns |= {f"{begin}{end}": flat[:, n] for n, end in enumerate(ends)}
    return columns


def _array(
    table: Columns, begin: str, rest: tuple[int, ...], features: Sequence[str], key: str
) -> NDArray[Any]:
    """Return an array from its columns."""
    names = [f"{begin}{end}" for end in _suffixes(rest, features, key)]
    absent = [name for name in names if name not in table.fields]
    if absent:
        raise ReadError(f"{table.path}: no column {absent[0]}; export the atlas again")
    if key in {"seen", "neighbours", "edges"}:
        columns = [
            whole_numbers(table.fields[name], name, str(table.path), table.lines).astype(np.float64)
            for name in names
        ]
    elif key == "rare":
        columns = [np.array([text == "True" for text in table.fields[name]]) for name in names]
    else:
        columns = [table.numbers(name) for name in names]
    if not names:
        return np.zeros((len(table.lines), 0))
    return np.stack(columns, axis=1).reshape(-1, *rest)


def _write(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Write columns as CSV; numbers by the shortest text that restores them."""

    def rows() -> Iterator[tuple[Any, ...]]:
        yield from zip(*(column.tolist() for column in columns.values()), strict=True)

    with new_text(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows())
