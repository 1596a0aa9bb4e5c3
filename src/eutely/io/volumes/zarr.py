"""Label volumes in Zarr: OME-Zarr 0.4 (Zarr 2) and 0.5 (Zarr 3), and bare arrays."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
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
    grid_steps,
    in_micrometres,
    plain,
    warn_absent,
)  # fmt: skip
from eutely.io.volumes.zarr_chunks import check_chunks, check_codecs, files_of, present_chunks
from eutely.io.whole import new_folder

SUFFIXES = (".ome.zarr", ".zarr")
"""Endings of Zarr folders, longer endings first."""

_MARKS = ("zarr.json", ".zgroup", ".zarray", ".zattrs")
"""Files by which a folder is recognised as Zarr."""

_COMPLETE = "complete"
"""Attribute of arrays that eutely wrote: all chunks are there, the empty ones too."""


_CHUNK = (128, 128, 128)
"""Voxels of a chunk that eutely writes, z, y, x."""


def is_zarr(path: Path) -> bool:
    """Return whether a folder is a Zarr array or group, and not a folder of specimens."""
    return path.is_dir() and (
        path.name.lower().endswith(SUFFIXES) or any((path / mark).is_file() for mark in _MARKS)
    )


@contextmanager
def open_zarr(path: Path, image: bool = False) -> Iterator[Volume]:
    """Open an OME-Zarr image at full resolution, or its labels if it has any; or a bare array.

    Parameters
    ----------
    path
        of the folder.
    image
        open the image itself, not its labels.
    """
    import zarr

    try:
        files = files_of(path)
        node: Any = zarr.open(path, mode="r")
        if isinstance(node, zarr.Array):
            volume = _volume(path, node, files, "", (None, "a bare Zarr array"))
        else:
            group, place = _image(node, path, image)
            volume = _level(group, path, place, files)
    except BROKEN as error:
        raise broken(path, error) from error
    yield volume


def _ome(group: Any) -> Mapping[str, Any]:
    """Return the OME metadata of a group, from the place of version 0.5 or 0.4."""
    attributes = dict(group.attrs)
    metadata = attributes.get("ome", attributes)
    return metadata if isinstance(metadata, dict) else {}


def _image(group: Any, path: Path, itself: bool) -> tuple[Any, str]:
    """Return the group of the label image: in ``labels``, the group itself, or series 0.

    With ``itself``, labels are left aside.
    """
    import zarr

    names = []
    labels = None if itself else group.get("labels")
    if isinstance(labels, zarr.Group):
        names = [str(name) for name in _ome(labels).get("labels", [])]
        names = names or sorted(name for name, _ in labels.groups())
    if len(names) > 1:
        shown = [plain(name) for name in names[:10]]
        raise ReadError(
            f"{path}: several label images ({', '.join(shown)}); name one: {path}/labels/{shown[0]}"
        )
    if names:
        return group[f"labels/{names[0]}"], f"/labels/{names[0]}"
    if "multiscales" not in _ome(group) and isinstance(group.get("0"), zarr.Group):
        if isinstance(group.get("1"), zarr.Group):
            raise ReadError(f"{path}: several images; name one: {path}/0")
        return group["0"], "/0"
    return group, ""


def _level(group: Any, path: Path, place: str, files: Mapping[str, int]) -> Volume:
    """Return the first (finest) level of a multiscale image."""
    multiscales = _ome(group).get("multiscales")
    if not multiscales:
        raise ReadError(f"{path}{place}: a Zarr group without OME metadata; name the array in it")
    image = multiscales[0]
    level = image["datasets"][0]
    named = [axis if isinstance(axis, dict) else {"name": axis} for axis in image.get("axes", [])]
    names = "".join(str(axis["name"]).lower()[:1] for axis in named)
    size, why = _voxel_size((level, image), named, names)
    volume = _volume(path, group[str(level["path"])], files, names, (size, why), place)
    return replace(volume, channels=_channels(_ome(group)), named=bool(names))


def _channels(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the channels in the metadata for viewers; () unless all have one."""
    omero = metadata.get("omero")
    channels = omero.get("channels") if isinstance(omero, dict) else None
    if not isinstance(channels, list):
        return ()
    names = [str(entry.get("label") or "") for entry in channels if isinstance(entry, dict)]
    return tuple(names) if all(names) else ()


def _voxel_size(
    sources: tuple[Mapping[str, Any], ...], named: list[dict[str, Any]], names: str
) -> tuple[VoxelSize | None, str]:
    """Return x, y, z in micrometres, or None and the reason."""
    scale = np.ones(len(named))
    scaled = False
    for source in sources:
        for transformation in source.get("coordinateTransformations", []):
            if transformation.get("type") == "scale" and "scale" in transformation:
                scale = scale * np.asarray(transformation["scale"], dtype=np.float64)
                scaled = True
    if not scaled or not set("xyz") <= set(names):
        return None, "OME metadata without a scale"
    units = {axis: in_micrometres(named[names.index(axis)].get("unit")) for axis in "xyz"}
    x, y, z = (float(scale[names.index(axis)] * (units[axis] or 0.0)) for axis in "xyz")
    if not min(x, y, z) > 0:
        return None, "OME metadata with a scale but without units"
    return (x, y, z), ""


def _volume(
    path: Path,
    array: Any,
    files: Mapping[str, int],
    axes: str,
    voxel_size: tuple[VoxelSize | None, str],
    place: str = "",
) -> Volume:
    if len(axes) != array.ndim:  # before 0.3 the order was fixed and not written
        axes = "tczyx"[-array.ndim :] if array.ndim else ""
    check_codecs(path, array)
    if min((*array.chunks, *(array.shards or ())), default=0) < 1:
        raise ValueError(f"chunks of {array.shards or array.chunks}")
    steps = grid_steps(array.shape, array.dtype.itemsize, array.chunks)
    return Volume(
        path=f"{path}{place}",
        axes=axes,
        stored=tuple(map(int, array.shape)),
        dtype=np.dtype(array.dtype),
        voxel_size=voxel_size[0],
        parts=partial(_parts, path, array, files),
        why_unknown=voxel_size[1],
        part_bytes=math.prod(steps) * array.dtype.itemsize,
        named=False,
    )


def _parts(
    path: Path, array: Any, files: Mapping[str, int]
) -> Iterator[tuple[NDArray[np.integer], tuple[int, ...]]]:
    """Yield the blocks in which there are chunks, after checks of these."""
    present, total = present_chunks(array, files)
    check_chunks(path, array, present, files)
    absent = total - len(present)
    if absent and array.attrs.get(_COMPLETE) is True:
        raise ReadError(f"{path}: {absent} of {total} chunks are missing; copy the folder again")
    warn_absent(path, absent, total)
    some = absent > 0 and array.shards is None
    if absent and array.fill_value:
        raise ReadError(
            f"{path}: missing chunks have the value {array.fill_value}, not 0; write all"
        )
    return grid_parts(array, array.chunks, present if some else None)


def write_zarr(labels: NDArray[np.integer], path: Path, voxel_size: VoxelSize) -> None:
    """Write an OME-Zarr 0.5 label image of one level in chunks of 128^3 voxels."""
    create_labels(path, labels.shape, labels.dtype, voxel_size)[...] = np.ascontiguousarray(labels)


def create_labels(
    path: Path,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    voxel_size: VoxelSize,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Create an OME-Zarr 0.5 label image of one level; return its array, to be filled.

    Chunks have a checksum, and empty ones are written too: what is damaged or missing is noticed.

    Parameters
    ----------
    path
        of the new folder.
    shape, dtype
        of the labels, z, y, x.
    voxel_size
        x, y, z in micrometres.
    about
        metadata of the labels: colours and properties, see the specification of OME-Zarr.
    """
    import zarr
    from zarr.codecs import ZstdCodec

    axes = [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
    scale = {"type": "scale", "scale": [float(side) for side in voxel_size[::-1]]}
    multiscale = {
        "name": "labels",
        "axes": axes,
        "datasets": [{"path": "0", "coordinateTransformations": [scale]}],
    }
    ome = {"version": "0.5", "multiscales": [multiscale], "image-label": dict(about)}
    group = zarr.create_group(new_folder(path), zarr_format=3, attributes={"ome": ome})
    return group.create_array(
        "0",
        shape=shape,
        dtype=dtype,
        chunks=tuple(min(side, max(1, n)) for side, n in zip(_CHUNK, shape, strict=True)),
        dimension_names=["z", "y", "x"],
        compressors=ZstdCodec(level=0, checksum=True),
        attributes={_COMPLETE: True},
        config={"write_empty_chunks": True},
    )
