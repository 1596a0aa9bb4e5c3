"""Nuclei from NWB files: segmentations by voxel masks, their names, and the colours of NeuroPAL.

Laboratories publish NeuroPAL volumes with the extension ndx-multichannel-volume. Of such a file
eutely reads, with HDF5 alone:

- a ``PlaneSegmentation`` or ``VolumeSegmentation``: one row per nucleus, its voxels in the column
  ``voxel_mask`` (or ``color_voxel_mask``), often its centre only;
- names in the column ``ID_labels``, as texts or as texts split into characters, or in ``labels``;
- the voxel size in the ``grid_spacing`` of its imaging volume;
- columns whose description begins with "feature", as `eutely.io.nwb_layout` writes them;
- a ``MultiChannelVolume`` with the image, x, y, z, channel; ``RGBW_channels`` tells the colours.
"""

import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.images import CENTRE
from eutely.io.limits import check_memory
from eutely.io.nwb_file import groups, local, opened, rows, spacing, text_of, volume_in, volumes_of
from eutely.io.volumes.image import Image, check_image_memory
from eutely.io.volumes.volume import (
    LARGEST_SIDE,
    SMALLEST_SIDE,
    VoxelSize,
    plain,
    triple,
)  # fmt: skip
from eutely.specimen import MICROMETRE, Specimen

log = logging.getLogger("eutely")

NAMES = ("ID_labels", "ID_label", "labels", "label", "names", "name", "cell_name", "neuron")
"""Columns with the names of nuclei; the first that is there counts."""

MASKS = ("voxel_mask", "color_voxel_mask")
"""Columns with the voxels of nuclei."""

COLOURS = ("R", "G", "B", "W")
"""Features from the colours of NeuroPAL, in the order of ``RGBW_channels``."""

FEATURE = "feature"
"""Begins the description of a column that is a measurement of nuclei."""

UNNAMED = {"", "nan", "none", "n/a", "na", "unknown", "?"}
"""Texts that stand for no name, in lower case."""


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
        own = _features(path, found.group, len(ids))
        if own:
            return replace(specimen, features=own)
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


def segmentation(file: Any, path: Path, part: str | None) -> Segmentation:
    """Return the segmentation ``part``, or the only one: with names, or called NeuroPAL."""
    tables = {
        group.name: group for group in groups(file) if any(local(group, mask) for mask in MASKS)
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
        (group.get(key) for key in ("imaging_volume", "imaging_plane") if local(group, key)), None
    )
    size, why = spacing(path, volume)
    return Segmentation(group, chosen[0], size, why)


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


def _masks(path: Path, group: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Return ids (n,), where the voxels of each begin (n + 1,), and all voxels (k,)."""
    key = next(mask for mask in MASKS if mask in group)
    voxels = rows(path, group[key])
    if voxels.ndim != 1 or not {"x", "y", "z"} <= set(voxels.dtype.names or ()):
        raise ReadError(f"{path}: {key} is no list of voxels x, y, z; is the file damaged?")
    if "id" not in group:
        raise ReadError(f"{path}: a segmentation without ids; is the file damaged?")
    ids = rows(path, group["id"]).astype(np.int64)
    ends = np.arange(1, len(voxels) + 1)
    if f"{key}_index" in group:
        ends = rows(path, group[f"{key}_index"]).astype(np.int64)
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
    texts = [text_of(value) for value in rows(path, group[key]).ravel().tolist()]
    if f"{key}_index" in group:
        ends = rows(path, group[f"{key}_index"]).astype(np.int64).tolist()
        begins = [0, *ends[:-1]]
        pairs = zip(begins, ends, strict=True)
        texts = ["".join(texts[begin:end]) for begin, end in pairs if 0 <= begin <= end]
    if len(texts) != count:
        if key == "labels" and [text for text in texts if text] == []:
            return None  # an empty list of labels stands for none
        raise ReadError(f"{path}: {len(texts)} names in {key} for {count} nuclei; is it complete?")
    return ["" if text.strip().lower() in UNNAMED else text for text in texts]


def _features(path: Path, group: Any, count: int) -> dict[str, NDArray[np.float64]]:
    """Return the columns that their descriptions call features, by the names they had."""
    features = {}
    for key in sorted(group):
        words = text_of(group[key].attrs.get("description", ""))
        if words.startswith(f"{FEATURE} ") and group[key].shape == (count,):
            values = rows(path, group[key])
            if values.dtype.kind in "iuf":
                features[words.removeprefix(f"{FEATURE} ")] = values.astype(np.float64)
    return features


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
    images = [group for group in volumes_of(file) if "RGBW_channels" in group]
    if len(images) != 1:
        return None
    volume = volume_in(path, images[0])
    order = rows(path, images[0]["RGBW_channels"]).astype(np.int64).tolist()
    names = [""] * volume.stored[-1]
    for colour, channel in zip(COLOURS, order, strict=False):
        if channel == -1:
            continue  # this image has no such colour
        if not 0 <= channel < len(names):
            raise ReadError(
                f"{path}: channel {channel} of {len(names)} in RGBW_channels; correct it"
            )
        names[channel] = colour
    check_image_memory(volume)
    return Image(volume, tuple(names))
