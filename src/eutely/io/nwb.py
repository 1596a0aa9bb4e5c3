"""Nuclei from NWB files: segmentations by voxel masks, their names, and the colours of NeuroPAL.

Laboratories publish NeuroPAL volumes with the extension ndx-multichannel-volume. Of such a file
eutely reads, with HDF5 alone:

- a ``PlaneSegmentation`` or ``VolumeSegmentation``: one row per nucleus, its voxels in the column
  ``voxel_mask`` (or ``color_voxel_mask``), often its centre only;
- names in the column ``ID_labels``, as texts or as texts split into characters, or in ``labels``;
- the voxel size in the ``grid_spacing`` of its imaging volume;
- a ``MultiChannelVolume`` with the image, x, y, z, channel; ``RGBW_channels`` tells the colours.
"""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.hdf5_gate import check_dataset, check_heaps, linked, stored_chunks
from eutely.io.limits import check_memory, check_regular
from eutely.io.volumes import hdf5
from eutely.io.volumes.image import Image, check_image_memory
from eutely.io.volumes.volume import (
    BROKEN,
    LARGEST_SIDE,
    SMALLEST_SIDE,
    Volume,
    VoxelSize,
    broken,
    in_micrometres,
    plain,
    triple,
)  # fmt: skip
from eutely.specimen import MICROMETRE, Specimen

log = logging.getLogger("eutely")

SUFFIXES = (".nwb",)
"""Endings of NWB files."""

NAMES = ("ID_labels", "ID_label", "labels", "label", "names", "name", "cell_name", "neuron")
"""Columns with the names of nuclei; the first that is there counts."""

MASKS = ("voxel_mask", "color_voxel_mask")
"""Columns with the voxels of nuclei."""

COLOURS = ("R", "G", "B", "W")
"""Features from the colours of NeuroPAL, in the order of ``RGBW_channels``."""

UNNAMED = {"", "nan", "none", "n/a", "na", "unknown", "?"}
"""Texts that stand for no name, in lower case."""

HUGE_SIDE = 1000.0
"""Side of a voxel in micrometres above which the stated unit is wrong: spacings in micrometres are
often left in metres, which is what NWB assumes."""

CENTRE = 1.0
"""Radius in micrometres in which colours are measured around a nucleus of which only the centre is
known: inside the nucleus of a neuron."""

MOST_SCANNED = 4 * 2**30
"""Bytes of a file up to which damaged texts are looked for before any text is read."""


@dataclass(frozen=True)
class Segmentation:
    """A segmentation in an open NWB file.

    Attributes
    ----------
    group
        the table.
    path
        of the table, from the root.
    voxel_size
        x, y, z in micrometres, or None.
    why_unknown
        why it is None.
    """

    group: Any
    path: str
    voxel_size: VoxelSize | None
    why_unknown: str = ""


def read_nwb(
    path: Path, name: str, part: str | None = None, voxel_size: VoxelSize | None = None
) -> Specimen:
    """Read the nuclei of an NWB file, in micrometres.

    Parameters
    ----------
    path
        of the file.
    name
        of the specimen.
    part
        name or path of the segmentation, where there are several.
    voxel_size
        x, y, z in micrometres; takes precedence over the file.

    Returns
    -------
    Specimen
        ids are those of the table; radii where a nucleus has more than one voxel; the features R,
        G, B and W where the file has the colours.
    """
    with opened(path) as file:
        found = segmentation(file, path, part)
        size = _size(path, found, voxel_size)
        ids, starts, voxels = _masks(path, found.group)
        names = _names(path, found.group, len(ids))
        specimen = _specimen(name, ids, starts, voxels, size)
        if names is not None:
            specimen = replace(specimen, names=tuple(names))
        mask = found.group.get(MASKS[1])
        if mask is not None and {"R", "G", "B"} <= set(mask.dtype.names or ()):
            colours = {
                key: _means(voxels[key].astype(np.float64), starts)
                for key in COLOURS
                if key in (voxels.dtype.names or ())
            }
            return replace(specimen, features=colours)
        image = _image(file, path)
        if image is None:
            return specimen
        return _coloured(specimen, image, size, path)


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


def segmentation(file: Any, path: Path, part: str | None) -> Segmentation:
    """Return the segmentation ``part``, or the only one: with names, or called NeuroPAL."""
    tables = {
        group.name: group for group in _groups(file) if any(_local(group, mask) for mask in MASKS)
    }
    if part is not None:
        wanted = part.strip("/")
        chosen = [key for key in tables if key.strip("/") == wanted or key.endswith(f"/{wanted}")]
    else:
        chosen = list(tables)
        for fits in (
            lambda key: NAMES[0] in tables[key],
            lambda key: any(column in tables[key] for column in NAMES),
            lambda key: "neuropal" in key.rpartition("/")[2].lower(),
        ):
            fitting = list(filter(fits, tables))
            if len(chosen) > 1 and len(fitting) == 1:
                chosen = fitting
    if len(chosen) != 1:
        listed = ", ".join(plain(key.strip("/")) for key in list(tables)[:5])
        if not tables:
            raise ReadError(
                f"{path}: no segmentation with voxel masks; expected a PlaneSegmentation or "
                "VolumeSegmentation with the column voxel_mask"
            )
        wrong = "several segmentations" if part is None else f"no segmentation '{plain(part)}'"
        example = plain(next(iter(tables)).rpartition("/")[2])
        raise ReadError(f"{path}: {wrong} ({listed}); name one: {path}:{example}")
    group = tables[chosen[0]]
    volume = next(
        (group.get(key) for key in ("imaging_volume", "imaging_plane") if _local(group, key)), None
    )
    size, why = _spacing(path, volume)
    return Segmentation(group, chosen[0], size, why)


def _groups(file: Any) -> list[Any]:
    """Return all groups of a file; links are not followed."""
    import h5py

    groups: list[Any] = []
    file.visititems(
        lambda _, node: groups.append(node) if isinstance(node, h5py.Group) else None,
    )
    return groups


def _local(group: Any, key: str) -> bool:
    """Return whether an entry is there and in the same file."""
    return key in group and linked(group.file, f"{group.name}/{key}") is not None


def _spacing(path: Path, volume: Any) -> tuple[VoxelSize | None, str]:
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


def _size(path: Path, found: Segmentation, given: VoxelSize | None) -> VoxelSize:
    size = given or found.voxel_size
    if size is None:
        raise ReadError(
            f"{path}: unknown voxel size ({found.why_unknown}); give --voxel-size X,Y,Z in "
            "micrometres"
        )
    if not all(SMALLEST_SIDE <= side <= LARGEST_SIDE for side in size):
        raise ReadError(f"{path}: voxels of {triple(size)} um; give --voxel-size X,Y,Z")
    return size


def _rows(path: Path, dataset: Any) -> NDArray[Any]:
    """Return a column of a table, after checks of what it declares."""
    check_dataset(path, dataset)
    check_memory(path, 8 * dataset.nbytes, f"the column {plain(dataset.name)}")
    if dataset.chunks is not None:
        stored_chunks(path, dataset)
    return np.asarray(dataset[()])


def _masks(path: Path, group: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Return ids (n,), where the voxels of each begin (n + 1,), and all voxels (k,)."""
    key = next(mask for mask in MASKS if mask in group)
    voxels = _rows(path, group[key])
    if voxels.ndim != 1 or not {"x", "y", "z"} <= set(voxels.dtype.names or ()):
        raise ReadError(f"{path}: {key} is no list of voxels x, y, z; is the file damaged?")
    if "id" not in group:
        raise ReadError(f"{path}: a segmentation without ids; is the file damaged?")
    ids = _rows(path, group["id"]).astype(np.int64)
    ends = np.arange(1, len(voxels) + 1)
    if f"{key}_index" in group:
        ends = _rows(path, group[f"{key}_index"]).astype(np.int64)
    starts = np.concatenate([[0], ends])
    if len(ends) != len(ids) or (np.diff(starts) < 1).any() or starts[-1] != len(voxels):
        raise ReadError(
            f"{path}: {len(ids)} nuclei, but masks for {len(ends)} with {len(voxels)} voxels that "
            "do not fit them; is the file damaged?"
        )
    return ids, starts, voxels


def _names(path: Path, group: Any, count: int) -> list[str] | None:
    """Return one name per nucleus; None if the segmentation has no names."""
    key = next((column for column in NAMES if column in group), None)
    if key is None or group[key].dtype.kind not in "OSU":
        return None
    texts = [_text(value) for value in _rows(path, group[key]).ravel().tolist()]
    if f"{key}_index" in group:
        ends = _rows(path, group[f"{key}_index"]).astype(np.int64).tolist()
        begins = [0, *ends[:-1]]
        pairs = zip(begins, ends, strict=True)
        texts = ["".join(texts[begin:end]) for begin, end in pairs if 0 <= begin <= end]
    if len(texts) != count:
        if key == "labels" and [text for text in texts if text] == []:
            return None  # an empty list of labels stands for none
        raise ReadError(f"{path}: {len(texts)} names in {key} for {count} nuclei")
    return ["" if text.strip().lower() in UNNAMED else text for text in texts]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _specimen(
    name: str,
    ids: NDArray[np.int64],
    starts: NDArray[np.int64],
    voxels: NDArray[Any],
    size: VoxelSize,
) -> Specimen:
    """Return nuclei from their voxels: centroids, and ellipsoids where there are several."""
    from eutely.nuclei import COUNT, FIRST, SECOND, WIDTH, ellipsoids

    places = np.stack([voxels[axis].astype(np.int64) for axis in "xyz"], axis=1)
    x, y, z = places.T
    products = np.stack([x * x, y * y, z * z, x * y, x * z, y * z], axis=1)
    sums = np.zeros((len(ids), WIDTH), dtype=np.int64)
    sums[:, COUNT] = np.diff(starts)
    sums[:, FIRST:SECOND] = np.add.reduceat(places, starts[:-1], axis=0)
    sums[:, SECOND:WIDTH] = np.add.reduceat(products, starts[:-1], axis=0)
    centroids, radii, axes = ellipsoids(sums, np.asarray(size, dtype=np.float64))
    single = np.diff(starts) == 1
    radii[single] = np.nan  # a centre, not a nucleus of one voxel
    many = not single.all()
    return Specimen(
        name, ids, centroids, radii, axes=axes if many else None, unit=MICROMETRE,
    )  # fmt: skip


def _means(values: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    sums = np.add.reduceat(values, starts[:-1])
    return np.asarray(sums / np.diff(starts))


def _coloured(specimen: Specimen, image: Image, size: VoxelSize, path: Path) -> Specimen:
    """Return nuclei with the median of each colour in them, or around their centres."""
    from eutely.intensities import STATISTICS, inside, intensities

    balls = np.where(np.isfinite(specimen.radii), specimen.radii, CENTRE)
    regions = inside(replace(specimen, radii=balls), image.volume.shape, size)
    if (regions.counts == 0).any():
        log.warning("%s: nuclei outside the image have no colours", path)
    check = partial(check_memory, path, what="values of nuclei")
    values = intensities(image.blocks(), regions, len(image.channels), check)
    median = STATISTICS.index("median")
    return replace(
        specimen,
        features={
            colour: values[image.channels.index(colour), :, median]
            for colour in COLOURS
            if colour in image.channels
        },
    )


def _image(file: Any, path: Path) -> Image | None:
    """Return the image with the colours of NeuroPAL, channels called R, G, B, W; None if absent."""
    images = [group for group in _volumes(file) if "RGBW_channels" in group]
    if len(images) != 1:
        return None
    volume = _volume(path, images[0])
    order = _rows(path, images[0]["RGBW_channels"]).astype(np.int64).tolist()
    names = [""] * volume.stored[-1]
    for colour, channel in zip(COLOURS, order, strict=False):
        if not 0 <= channel < len(names):
            raise ReadError(f"{path}: channel {channel} of {len(names)} in RGBW_channels")
        names[channel] = colour
    check_image_memory(volume)
    return Image(volume, tuple(names))


def _volumes(file: Any) -> list[Any]:
    """Return the images of a file: groups with data x, y, z, channel."""
    import h5py

    return [
        group
        for group in _groups(file)
        if group.attrs.get("neurodata_type") in ("MultiChannelVolume", b"MultiChannelVolume")
        and isinstance(group.get("data"), h5py.Dataset)
        and group["data"].ndim == 4
    ]


def _volume(path: Path, group: Any) -> Volume:
    """Return the image of a MultiChannelVolume."""
    volume = hdf5.volume_of(path, group["data"])
    place = group.get("imaging_volume") if _local(group, "imaging_volume") else None
    size, why = _spacing(path, place)
    channels: tuple[str, ...] = ()
    if place is not None and _local(place, "order_optical_channels"):
        listed = place["order_optical_channels"].get("channels")
        if listed is not None:
            # "name-excitation-emission", as laboratories write them
            texts = [_text(text) for text in _rows(path, listed).ravel().tolist()]
            channels = tuple(text.partition("-")[0] for text in texts)
    return replace(
        volume, axes="xyzc", voxel_size=size, why_unknown=why, channels=channels, named=True
    )


@contextmanager
def open_nwb(path: Path, part: str | None = None) -> Iterator[Volume]:
    """Open the only MultiChannelVolume of an NWB file, or the one called ``part``."""
    with opened(path) as file:
        images = _volumes(file)
        if part is not None:
            images = [one for one in images if one.name.endswith(f"/{part.strip('/')}")]
        if len(images) != 1:
            names = ", ".join(plain(one.name.rpartition("/")[2]) for one in _volumes(file)[:5])
            wrong = f"several images ({names})" if len(images) > 1 else f"no such image ({names})"
            raise ReadError(f"{path}: {wrong}; name one MultiChannelVolume: {path}:NAME")
        yield _volume(path, images[0])
