"""NWB files by HDF5 alone: opened safely, with the images and voxel sizes in them."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.hdf5_gate import check_dataset, check_heaps, linked, stored_chunks
from eutely.io.limits import check_memory, check_regular
from eutely.io.volumes import hdf5
from eutely.io.volumes.volume import (
    BROKEN,
    Volume,
    VoxelSize,
    broken,
    in_micrometres,
    plain,
    triple,
)  # fmt: skip

log = logging.getLogger("eutely")

SUFFIXES = (".nwb",)
"""Endings of NWB files."""

HUGE_SIDE = 1000.0
"""Side of a voxel in micrometres above which the stated unit is wrong: spacings in micrometres are
often left in metres, which is what NWB assumes."""

MOST_SCANNED = 4 * 2**30
"""Bytes of a file up to which damaged texts are looked for before any text is read."""


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open an NWB file; what HDF5 cannot read is one line."""
    import h5py

    check_regular(path)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(h5py.File(path, "r"))
            if path.stat().st_size <= MOST_SCANNED:
                check_heaps(path)
            yield file
        except BROKEN as error:
            raise broken(path, error) from error


def groups(file: Any) -> list[Any]:
    """Return all groups of a file; links are not followed."""
    import h5py

    groups: list[Any] = []
    file.visititems(
        lambda _, node: groups.append(node) if isinstance(node, h5py.Group) else None,
    )
    return groups


def local(group: Any, key: str) -> bool:
    """Return whether an entry is there and in the same file."""
    return key in group and linked(group.file, f"{group.name}/{key}") is not None


def spacing(path: Path, volume: Any) -> tuple[VoxelSize | None, str]:
    """Return x, y, z of a voxel in micrometres from an imaging plane or volume, or the reason."""
    if volume is None or "grid_spacing" not in volume:
        return None, "no grid_spacing in the imaging volume"
    data = volume["grid_spacing"]
    check_dataset(path, data)
    if data.shape != (3,):
        return None, f"grid_spacing has {data.shape} entries"
    sides = np.asarray(data[()], np.float64)
    unit = data.attrs.get("unit", "meters")
    unit = unit.decode("utf-8", "replace") if isinstance(unit, bytes) else str(unit)
    scale = in_micrometres(unit)
    if scale is None or not np.isfinite(sides).all() or not (sides > 0).all():
        return None, f"grid_spacing of {sides.tolist()} '{plain(unit)}'"
    if (sides * scale).max() > HUGE_SIDE and sides.max() <= HUGE_SIDE:
        log.warning(
            "%s: voxels of %s %s cannot be; taken for micrometres",
            path,
            triple(sides.tolist()),
            plain(unit),
        )
        scale = 1.0
    x, y, z = (sides * scale).tolist()
    return (x, y, z), ""


def rows(path: Path, dataset: Any) -> NDArray[Any]:
    """Return a column of a table, after checks of what it declares."""
    check_dataset(path, dataset)
    check_memory(path, 8 * dataset.nbytes, f"the column {plain(dataset.name)}")
    if dataset.chunks is not None:
        stored_chunks(path, dataset)
    return np.asarray(dataset[()])


def text_of(value: Any) -> str:
    """Return text of a file, however HDF5 gives it."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def volumes_of(file: Any) -> list[Any]:
    """Return the images of a file: groups with data x, y, z, channel."""
    import h5py

    return [
        group
        for group in groups(file)
        if group.attrs.get("neurodata_type") in ("MultiChannelVolume", b"MultiChannelVolume")
        and isinstance(group.get("data"), h5py.Dataset)
        and group["data"].ndim == 4
    ]


def volume_in(path: Path, group: Any) -> Volume:
    """Return the image of a MultiChannelVolume."""
    volume = hdf5.volume_of(path, group["data"])
    place = group.get("imaging_volume") if local(group, "imaging_volume") else None
    size, why = spacing(path, place)
    channels: tuple[str, ...] = ()
    if place is not None and local(place, "order_optical_channels"):
        listed = place["order_optical_channels"].get("channels")
        if listed is not None:
            # "name-excitation-emission", as laboratories write them
            texts = [text_of(text) for text in rows(path, listed).ravel().tolist()]
            channels = tuple(text.partition("-")[0] for text in texts)
    return replace(
        volume, axes="xyzc", voxel_size=size, why_unknown=why, channels=channels, named=True
    )


@contextmanager
def open_nwb(path: Path, part: str | None = None) -> Iterator[Volume]:
    """Open the only MultiChannelVolume of an NWB file, or the one called ``part``."""
    with opened(path) as file:
        images = volumes_of(file)
        if part is not None:
            images = [one for one in images if one.name.endswith(f"/{part.strip('/')}")]
        if len(images) != 1:
            names = ", ".join(plain(one.name.rpartition("/")[2]) for one in volumes_of(file)[:5])
            wrong = f"several images ({names})" if len(images) > 1 else f"no such image ({names})"
            raise ReadError(f"{path}: {wrong}; name one MultiChannelVolume: {path}:NAME")
        yield volume_in(path, images[0])
