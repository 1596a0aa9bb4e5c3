"""Label volumes in Zarr: OME-Zarr 0.4 (Zarr 2) and 0.5 (Zarr 3), and bare arrays."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.volumes.volume import (
    BROKEN,
    Volume,
    VoxelSize,
    broken,
    grid_parts,
    in_micrometres,
)  # fmt: skip

SUFFIXES = (".ome.zarr", ".zarr")
"""Endings of Zarr folders, longer endings first."""

_MARKS = ("zarr.json", ".zgroup", ".zarray", ".zattrs")
"""Files by which a folder is recognised as Zarr."""


def is_zarr(path: Path) -> bool:
    """Return whether a folder is a Zarr array or group, and not a folder of specimens."""
    return path.is_dir() and (
        path.name.lower().endswith(SUFFIXES) or any((path / mark).is_file() for mark in _MARKS)
    )


@contextmanager
def open_zarr(path: Path) -> Iterator[Volume]:
    """Open the labels of an OME-Zarr image at full resolution, or a bare array."""
    import zarr

    try:
        node: Any = zarr.open(path, mode="r")
        if isinstance(node, zarr.Array):
            volume = _volume(path, node, "", None, "a bare Zarr array")
        else:
            group, place = _image(node, path)
            volume = _level(group, f"{path}{place}")
    except BROKEN as error:
        raise broken(path, error) from error
    yield volume


def _ome(group: Any) -> Mapping[str, Any]:
    """Return the OME metadata of a group, from the place of version 0.5 or 0.4."""
    attributes = dict(group.attrs)
    metadata = attributes.get("ome", attributes)
    return metadata if isinstance(metadata, dict) else {}


def _image(group: Any, path: Path) -> tuple[Any, str]:
    """Return the group of the label image: in ``labels``, the group itself, or series 0."""
    import zarr

    names = []
    labels = group.get("labels")
    if isinstance(labels, zarr.Group):
        names = [str(name) for name in _ome(labels).get("labels", [])]
        names = names or sorted(name for name, _ in labels.groups())
    if len(names) > 1:
        raise ReadError(
            f"{path}: several label images ({', '.join(names)}); name one: {path}/labels/{names[0]}"
        )
    if names:
        return group[f"labels/{names[0]}"], f"/labels/{names[0]}"
    if "multiscales" not in _ome(group) and isinstance(group.get("0"), zarr.Group):
        if isinstance(group.get("1"), zarr.Group):
            raise ReadError(f"{path}: several images; name one: {path}/0")
        return group["0"], "/0"
    return group, ""


def _level(group: Any, path: str) -> Volume:
    """Return the first (finest) level of a multiscale image."""
    multiscales = _ome(group).get("multiscales")
    if not multiscales:
        raise ReadError(f"{path}: a Zarr group without OME metadata; name the array in it")
    image = multiscales[0]
    level = image["datasets"][0]
    named = [axis if isinstance(axis, dict) else {"name": axis} for axis in image.get("axes", [])]
    names = "".join(str(axis["name"]).lower()[:1] for axis in named)
    scale = np.ones(len(named))
    scaled = False
    for source in (level, image):
        for transformation in source.get("coordinateTransformations", []):
            if transformation.get("type") == "scale" and "scale" in transformation:
                scale = scale * np.asarray(transformation["scale"], dtype=np.float64)
                scaled = True
    size: VoxelSize | None = None
    why = "OME metadata without a scale"
    if scaled and set("xyz") <= set(names):
        units = {axis: in_micrometres(named[names.index(axis)].get("unit")) for axis in "xyz"}
        sides = [scale[names.index(axis)] * (units[axis] or 0.0) for axis in "xyz"]
        why = "OME metadata with a scale but without units"
        if min(sides) > 0:
            size = (float(sides[0]), float(sides[1]), float(sides[2]))
    return _volume(Path(path), group[str(level["path"])], names, size, why)


def _volume(path: Path, array: Any, axes: str, size: VoxelSize | None, why: str) -> Volume:
    if len(axes) != array.ndim:  # before 0.3 the order was fixed and not written
        axes = "tczyx"[-array.ndim :]
    return Volume(
        path=str(path),
        axes=axes,
        stored=tuple(map(int, array.shape)),
        dtype=np.dtype(array.dtype),
        voxel_size=size,
        parts=lambda: grid_parts(array, array.chunks),
        why_unknown=why,
    )


def write_zarr(labels: NDArray[np.integer], path: Path, voxel_size: VoxelSize) -> None:
    """Write an OME-Zarr 0.5 label image of one level in chunks of 128^3 voxels."""
    import zarr

    axes = [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
    scale = {"type": "scale", "scale": [float(side) for side in voxel_size[::-1]]}
    multiscale = {
        "name": "labels",
        "axes": axes,
        "datasets": [{"path": "0", "coordinateTransformations": [scale]}],
    }
    group = zarr.create_group(
        path,
        zarr_format=3,
        attributes={"ome": {"version": "0.5", "multiscales": [multiscale], "image-label": {}}},
    )
    group.create_array(
        "0",
        data=np.ascontiguousarray(labels),
        chunks=tuple(min(128, max(1, length)) for length in labels.shape),
        dimension_names=["z", "y", "x"],
    )
