"""Geff: graphs of tracked nuclei in Zarr; the nodes are read, the edges are not."""

import json
import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.limits import check_memory
from eutely.io.programs.recording import Recording
from eutely.io.volumes.volume import BROKEN, broken, in_micrometres
from eutely.io.volumes.zarr_chunks import check_chunks, files_of, present_chunks
from eutely.specimen import MICROMETRE, UNKNOWN

log = logging.getLogger("eutely")

ATTRIBUTES = (".zattrs", "zarr.json")
"""Files with the attributes of a group, of Zarr 2 and 3."""

LARGEST = 2**24
"""Bytes of the metadata of a graph."""

NAMES = ("name", "label", "cell", "cell_name")
"""Properties that hold the name of a node; the first that exists counts."""

RADII = ("radius", "r")
"""Properties that hold a radius, unless the metadata name one."""


def is_geff(path: Path) -> bool:
    """Return whether a folder is a graph in geff."""
    return path.is_dir() and _metadata(path) is not None


def read_geff(path: Path) -> Recording:
    """Read the nodes of a graph; axes must be x, y, z in one unit, and time if there is any."""
    import zarr.errors

    metadata = _metadata(path) or {}
    # Names as geff stores them are no data type of the Zarr 3 specification yet.
    with warnings.catch_warnings(
        category=zarr.errors.UnstableSpecificationWarning, action="ignore"
    ):
        return _recording(path, metadata)


def _recording(path: Path, metadata: Mapping[str, Any]) -> Recording:
    """Return the nodes of a graph that is described by its ``metadata``."""
    import zarr

    try:
        files = files_of(path)
        nodes: Any = zarr.open_group(path, mode="r")["nodes"]
        axes = {str(axis["name"]): axis for axis in metadata.get("axes") or ()}
        space = [name for name, axis in axes.items() if axis.get("type") == "space"] or [*"zyx"]
        if len(space) != 3:
            raise ReadError(f"{path}: {len(space)} axes of space, expected x, y, z")
        order = (
            sorted(space, key=str.lower) if {*map(str.lower, space)} == {*"xyz"} else space[::-1]
        )
        time = next((name for name, axis in axes.items() if axis.get("type") == "time"), None)
        time = time or ("t" if "t" in nodes["props"] and "t" not in space else None)
        ids = _values(path, nodes["ids"], files)
        props = nodes["props"]

        def column(name: str) -> NDArray[Any]:
            return _values(path, props[name]["values"], files)

        points = np.stack([_numbers(path, name, column(name)) for name in order], axis=1)
        sizes, unit = _units(path, [axes.get(name, {}) for name in order])
        times = np.zeros(len(ids)) if time is None else _numbers(path, time, column(time))
        radius = str(metadata.get("sphere") or next((r for r in RADII if r in props), ""))
        word = next((name for name in NAMES if name in props), None)
        names = () if word is None else [str(value) for value in column(word)]
        others = sorted({*map(str, props)} - {*space, time, radius, word})
        features = {
            name: _numbers(path, name, column(name))
            for name in others
            if props[name]["values"].ndim == 1 and props[name]["values"].dtype.kind in "fiub"
        }
        radii = _numbers(path, radius, column(radius)) * sizes[0] if radius else None
        lengths = {*map(len, (points, times, *features.values()))}
        lengths |= {len(some) for some in (names, radii) if some is not None and len(some)}
        if lengths != {len(ids)}:
            raise ReadError(f"{path}: properties of {sorted(lengths)} nodes; write it again")
    except BROKEN as error:
        raise broken(path, error) from error
    return Recording(
        "geff", np.round(times).astype(np.int64), ids.astype(np.int64), points * sizes,
        radii, names, features, unit,
    )  # fmt: skip


def _metadata(path: Path) -> Mapping[str, Any] | None:
    """Return what the attribute ``geff`` of a group says; None if there is none."""
    for name in ATTRIBUTES:
        file = path / name
        try:
            if not file.is_file() or file.stat().st_size > LARGEST:
                continue
            content = json.loads(file.read_bytes())
            attributes = content.get("attributes", content)
            if isinstance(attributes.get("geff"), dict):
                return dict(attributes["geff"])
        except (OSError, ValueError, AttributeError, RecursionError):
            continue
    return None


def _values(path: Path, array: Any, files: Mapping[str, int]) -> NDArray[Any]:
    """Return the content of an array of nodes, after checks of what it declares."""
    if array.ndim != 1 or min(array.chunks) < 1:
        raise ReadError(f"{path}: {array.name} has shape {array.shape}, expected one per node")
    check_memory(path, 2 * array.nbytes, "a property of the nodes")
    present, total = present_chunks(array, files)
    check_chunks(path, array, present, files)
    if len(present) < total:  # Zarr does not write chunks that hold nothing else
        log.warning("%s: parts of %s are not there and count as %s; is the folder complete?",
                    path, array.name, array.fill_value)  # fmt: skip
    return np.asarray(array[:])


def _numbers(path: Path, name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind not in "fiub" or values.ndim != 1:
        raise ReadError(f"{path}: '{name}' is not one number per node; leave it out")
    return values.astype(np.float64)


def _units(path: Path, axes: list[Mapping[str, Any]]) -> tuple[NDArray[np.float64], str]:
    """Return factors to micrometres of three axes, and the unit after them."""
    units = [axis.get("scaled_unit") or axis.get("unit") for axis in axes]
    factors = [in_micrometres(unit) for unit in units]
    scales = np.array([float(axis.get("scale") or 1.0) for axis in axes])
    if all(factor is None for factor in factors):
        return scales, UNKNOWN
    if any(factor is None for factor in factors):
        raise ReadError(f"{path}: units {', '.join(map(str, units))}; expected one for x, y and z")
    return scales * np.array(factors, dtype=np.float64), MICROMETRE
