"""Slices of a label volume and of a raw image through a nucleus."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eutely.curate.folder import Files
from eutely.errors import ReadError
from eutely.io.limits import check_memory
from eutely.io.volumes import open_volume
from eutely.io.volumes.volume import VoxelSize
from eutely.report.data import packed

WINDOW = 4.0
"""Half the side of a slice, in typical distances between neighbouring nuclei."""

MOST_PIXELS = 256
"""Pixels along the side of a slice at most."""

KEPT = 2
"""Volumes that stay in memory."""

DARK, BRIGHT = 1.0, 99.7
"""Percentiles of the intensities in a window that are drawn black and white."""

PLANES = (("x", "y"), ("x", "z"), ("y", "z"))
"""Axes of the three slices: across and down."""


class Loaded(NamedTuple):
    """A volume in memory: voxels (z, y, x) and the size of a voxel, x, y, z."""

    voxels: NDArray[Any]
    size: VoxelSize


class Slicer:
    """Reads volumes when they are first needed, and keeps the last ones."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._kept: OrderedDict[str, Loaded] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, specimen: str) -> dict[str, bool]:
        """Return whether a specimen has a label volume, and an image."""
        volumes, images = self._files.volumes, self._files.images
        return {
            "labels": specimen in volumes and Path(volumes[specimen][0]).exists(),
            "image": specimen in images and Path(images[specimen]).exists(),
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
    ) -> list[dict[str, Any]]:
        """Return three slices through a point.

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
            for each of `PLANES`: ``across``, ``down`` (names of the axes), ``width``, ``height``
            (pixels), ``pixel`` (micrometres), ``nuclei`` (row of the nucleus + 1, or 0; base64 of
            little-endian uint32) and ``image`` (base64 of uint8); "" where there is none.
        """
        there = self.has(specimen)
        labels = self._load(*self._files.volumes[specimen]) if there["labels"] else None
        image = self._load(self._files.images[specimen]) if there["image"] else None
        side = min(MOST_PIXELS, max(32, round(2 * reach / self._finest(labels, image))))
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
                "image": "" if image is None else packed(_grey(_cut(image, points)), "u1"),
            })  # fmt: skip
        return planes

    def _finest(self, *volumes: Loaded | None) -> float:
        return min((min(volume.size) for volume in volumes if volume is not None), default=1.0)

    def _load(self, path: str, part: str = "") -> Loaded:
        with self._lock:
            if path not in self._kept:
                with open_volume(Path(path), self._files.voxel_size, part or None) as volume:
                    need = int(np.prod(volume.shape)) * volume.dtype.itemsize
                    check_memory(path, need, "the volume, for slices,")
                    voxels = np.zeros(volume.shape, volume.dtype)
                    for block, (z, y, x) in volume.blocks():
                        depth, height, width = block.shape
                        voxels[z : z + depth, y : y + height, x : x + width] = block
                    self._kept[path] = Loaded(voxels, volume.size)
            self._kept.move_to_end(path)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return self._kept[path]


def images_of(image: Path, specimens: list[str]) -> dict[str, str]:
    """Return specimen -> raw image: the file given, or that of the same name in a folder."""
    if not image.exists():
        raise ReadError(f"--image {image}: there is no such file or folder")
    if not image.is_dir() or image.name.endswith(".zarr"):
        if len(specimens) != 1:
            raise ReadError(
                f"--image {image} is one image for {len(specimens)} specimens; give a folder with "
                "images called after them"
            )
        return {specimens[0]: str(image.resolve())}
    found = {path.name.split(".")[0]: str(path.resolve()) for path in sorted(image.iterdir())}
    images = {name: found[name] for name in specimens if name in found}
    if not images:
        raise ReadError(f"--image {image}: no file is called after a specimen ({specimens[0]}.tif)")
    return images


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


def _grey(values: NDArray[Any]) -> NDArray[np.uint8]:
    low, high = np.percentile(values, [DARK, BRIGHT])
    scaled = (values.astype(np.float64) - low) / max(float(high - low), 1e-12)
    return np.asarray(np.rint(255 * np.clip(scaled, 0.0, 1.0)), dtype=np.uint8)
