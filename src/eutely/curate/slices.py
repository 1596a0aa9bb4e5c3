"""Slices of a label volume and of the channels of an image through a nucleus."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.images import Images, image_in, with_own_image
from eutely.io.limits import check_memory
from eutely.io.sources import Files
from eutely.io.volumes import open_volume
from eutely.io.volumes.choice import chosen
from eutely.io.volumes.image import Image
from eutely.io.volumes.volume import VoxelSize
from eutely.meaning import meaning
from eutely.report.data import packed

WINDOW = 4.0
"""Half the side of a slice, in typical distances between neighbouring nuclei."""

MOST_PIXELS = 256
"""Pixels along the side of a slice at most."""

KEPT = 2
"""Volumes that stay in memory."""

DARK, BRIGHT = 1.0, 99.98
"""Percentiles of a channel between which the page may set the contrast."""

LOOKED_AT = 2**20
"""Voxels of a channel from which these percentiles are taken, at least."""

LIGHTS = {
    "red": (1.0, 0.1, 0.1), "green": (0.1, 1.0, 0.1), "blue": (0.25, 0.35, 1.0),
    "white": (0.8, 0.8, 0.8),
}  # fmt: skip
"""Colours of channels that mean one."""

OTHERS = ((1.0, 1.0, 1.0), (0.2, 1.0, 0.4), (1.0, 0.3, 1.0), (0.2, 0.9, 1.0), (1.0, 0.9, 0.2))
"""Colours of other channels, in order."""

LEVELS = 65535
"""Values of a pixel of an image."""

PLANES = (("x", "y"), ("x", "z"), ("y", "z"))
"""Axes of the three slices: across and down."""


class Loaded(NamedTuple):
    """A volume in memory: voxels (z, y, x) and the size of a voxel, x, y, z."""

    voxels: NDArray[Any]
    size: VoxelSize


class Picture(NamedTuple):
    """An image in memory: its channels, their names, and the ends of their contrast."""

    channels: tuple[Loaded, ...]
    names: tuple[str, ...]
    ends: tuple[tuple[float, float], ...]


class Slicer:
    """Reads volumes when they are first needed, and keeps the last ones."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, specimen: str) -> dict[str, bool]:
        """Return whether a specimen has a label volume, and an image."""
        self._files = with_own_image(self._files, specimen)
        volumes, images = self._files.volumes, self._files.images
        return {
            "labels": specimen in volumes and Path(volumes[specimen][0]).exists(),
            "image": specimen in images and image_exists(images[specimen]),
        }

    def why_not(self, specimen: str, known: bool) -> str:
        """Return why a specimen has no slices; ``known``: whether its nuclei are."""
        volumes, images = self._files.volumes, self._files.images
        lost = [path for path in (volumes.get(specimen, ("", ""))[0], images.get(specimen)) if path]
        if lost:
            return f"No slices: {lost[0]} is not where it was; names and pins do not need it."
        if not known:
            return "No slices: the table with the coordinates of the nuclei is not in this folder."
        return (
            "No slices: this specimen came from a table, not from a label volume. --image RAW "
            "shows its image."
        )

    def through(
        self, specimen: str, ids: NDArray[np.int64], centre: NDArray[np.float64], reach: float
    ) -> dict[str, Any]:
        """Return three slices through a point, and what their images show.

        Parameters
        ----------
        specimen
            whose volumes are cut.
        ids
            (n,) of its nuclei.
        centre
            (3,), x, y, z in micrometres.
        reach
            half the side of a slice, micrometres.

        Returns
        -------
        slices
            ``planes``, for each of `PLANES`: ``across``, ``down`` (names of the axes), ``width``,
            ``height`` (pixels), ``pixel`` (micrometres), ``nuclei`` (row of the nucleus + 1, or 0;
            base64 of little-endian uint32; "" where there are no labels) and ``images`` (base64 of
            uint16, one per channel); ``channels``: their ``name`` and ``colour`` (0 to 1).
        """
        there = self.has(specimen)
        labels = self._labels(specimen) if there["labels"] else None
        image = None
        if there["image"]:
            image = self._image(specimen, None if labels is None else labels.voxels.shape)
        channels = () if image is None else image.channels
        side = min(MOST_PIXELS, max(32, round(2 * reach / self._finest(labels, *channels))))
        pixel = 2 * reach / side
        along = (np.arange(side) + 0.5) * pixel - reach
        planes = []
        for across, down in PLANES:
            points = np.tile(np.asarray(centre, dtype=np.float64), (side, side, 1))
            points[:, :, "xyz".index(across)] += along[None, :]
            points[:, :, "xyz".index(down)] += along[:, None]
            planes.append({
                "across": across, "down": down, "width": side, "height": side, "pixel": pixel,
                "nuclei": "" if labels is None else packed(_rows(_cut(labels, points), ids), "u4"),
                "images": [
                    packed(_levels(_cut(channel, points), ends), "u2")
                    for channel, ends in zip(channels, image.ends if image else (), strict=True)
                ],
            })  # fmt: skip
        names = image.names if image is not None else ()
        lights = [
            {"name": name, "colour": colour}
            for name, colour in zip(names, colours_of(names), strict=True)
        ]
        return {"planes": planes, "channels": lights}

    def _finest(self, *volumes: Loaded | None) -> float:
        return min((min(volume.size) for volume in volumes if volume is not None), default=1.0)

    def _kept_or(self, key: str, read: Callable[[], Any]) -> Any:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = read()
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return self._kept[key]

    def _labels(self, specimen: str) -> Loaded:
        path, part = self._files.volumes[specimen]

        def read() -> Loaded:
            size = self._files.size_of(specimen)
            with open_volume(Path(path), size, part or None) as volume:
                need = int(np.prod(volume.shape)) * volume.dtype.itemsize
                check_memory(path, need, "the volume, for slices,")
                return Loaded(_filled(volume.shape, volume.dtype, volume.blocks()), volume.size)

        return self._kept_or(f"labels {path}:{part}", read)  # type: ignore[no-any-return]

    def _image(self, specimen: str, like: tuple[int, ...] | None) -> Picture:
        shape = None if like is None else (like[0], like[1], like[2])

        def read() -> Picture:
            with image_in(self._files, specimen, shape) as image:
                if image is None or image.volume.voxel_size is None:
                    raise ReadError(f"{self._files.images[specimen]}: unknown voxel size")
                return picture_of(image, image.volume.voxel_size)

        return self._kept_or(f"image {self._files.images[specimen]}", read)  # type: ignore[no-any-return]


def image_exists(place: str) -> bool:
    """Return whether an image is there, also inside an HDF5 file."""
    return Path(place).exists() or Images(Path(place)).there()


def picture_of(image: Image, size: VoxelSize) -> Picture:
    """Read the channels of an opened image that have a name."""
    volume = image.volume
    need = int(np.prod(volume.stored)) * volume.dtype.itemsize
    check_memory(volume.path, 2 * need, "the image, for slices,")
    channels, ends = [], []
    kept = [number for number, name in enumerate(image.channels) if name]
    for number in kept:
        one = chosen(volume, {"c": number}) if "c" in volume.axes else volume
        voxels = _filled(one.shape, one.dtype, one.blocks())
        step = max(1, int((voxels.size / LOOKED_AT) ** (1 / 3)))
        low, high = np.nanpercentile(voxels[::step, ::step, ::step], [DARK, BRIGHT])
        channels.append(Loaded(voxels, size))
        ends.append((float(low), float(high)))
    names = tuple(image.channels[number] for number in kept)
    return Picture(tuple(channels), names, tuple(ends))


def colours_of(names: Sequence[str]) -> list[tuple[float, float, float]]:
    """Return the colours in which channels are drawn, by their meaning."""
    free = iter(cycle(OTHERS))
    meanings = [meaning(name) for name in names]
    return [
        LIGHTS[about[0]] if about is not None and about[0] in LIGHTS else next(free)
        for about in meanings
    ]


def _filled(shape: tuple[int, int, int], dtype: Any, blocks: Iterable[Any]) -> NDArray[Any]:
    """Return blocks of a volume as one array, z, y, x."""
    voxels = np.zeros(shape, dtype)
    for block, (z, y, x) in blocks:
        depth, height, width = block.shape
        voxels[z : z + depth, y : y + height, x : x + width] = block
    return voxels


def _cut(volume: Loaded, points: NDArray[np.float64]) -> NDArray[Any]:
    """Return the nearest voxels of points (h, w, 3), x, y, z; 0 outside."""
    index = np.rint(points / np.asarray(volume.size)).astype(np.int64)[..., ::-1]
    inside = ((index >= 0) & (index < volume.voxels.shape)).all(axis=-1)
    safe = np.where(inside[..., None], index, 0)
    values = volume.voxels[safe[..., 0], safe[..., 1], safe[..., 2]]
    return np.where(inside, values, 0)


def _rows(labels: NDArray[Any], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of the nucleus of each label + 1, or 0."""
    order = np.argsort(ids)
    at = np.minimum(np.searchsorted(ids[order], labels), len(ids) - 1)
    return np.where(ids[order][at] == labels, order[at] + 1, 0)


def _levels(values: NDArray[Any], ends: tuple[float, float]) -> NDArray[np.uint16]:
    """Return values of a channel as numbers from 0 to `LEVELS` between its ends."""
    low, high = ends
    scaled = (np.nan_to_num(values.astype(np.float64)) - low) / max(high - low, 1e-12)
    return np.asarray(np.rint(LEVELS * np.clip(scaled, 0.0, 1.0)), dtype=np.uint16)
