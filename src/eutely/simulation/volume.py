"""Label volumes of simulated (or other) nuclei: solid ellipsoids without overlap."""

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eutely.errors import EutelyError
from eutely.kernel import inner, kernel
from eutely.specimen import Specimen

log = logging.getLogger("eutely")

LARGEST = 2**31
"""Largest number of voxels of a volume: more is likely a wrong voxel size."""


def draw(
    specimen: Specimen, voxel_size: float | Sequence[float] = 1.0, *, margin: int = 2
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.float64]]:
    """Draw the nuclei of ``specimen`` as solid ellipsoids.

    A voxel inside several ellipsoids belongs to that with the nearest centre, relative to its
    semi-axes. A nucleus without axes is drawn along x, y, z.

    Parameters
    ----------
    specimen
        with known radii and positive ids.
    voxel_size
        x, y, z in the specimen's unit, or one number.
    margin
        empty voxels around all nuclei.

    Returns
    -------
    labels
        (depth, height, width), axes z, y, x, uint16 or uint32: ids, 0 for the background.
    origin
        (3,) float64, centre of the first voxel in the coordinates of the specimen: the nucleus at
        ``c`` is drawn at ``(c - origin) / voxel_size``, x, y, z.
    """
    size = np.broadcast_to(np.asarray(voxel_size, dtype=np.float64), (3,))
    if not (np.isfinite(size) & (size > 0)).all():
        raise EutelyError(f"voxel size {voxel_size}: expected one or three positive numbers")
    _check(specimen)
    specimen = specimen.take(np.argsort(specimen.ids))
    axes = np.tile(np.eye(3), (len(specimen), 1, 1)) if specimen.axes is None else specimen.axes
    axes = np.where(np.isnan(axes), np.eye(3), axes)
    half = np.sqrt(np.einsum("nac,na->nc", axes**2, specimen.radii**2))  # of the bounding boxes
    origin = (specimen.centroids - half).min(axis=0) - margin * size
    span = ((specimen.centroids + half).max(axis=0) + margin * size - origin) / size
    shape = np.ceil(span).astype(np.int64)[::-1] + 1
    if shape.prod(dtype=np.float64) > LARGEST:
        form = " x ".join(map(str, shape[::-1]))
        raise EutelyError(
            f"{specimen.name}: a volume of {form} voxels is too large to draw; "
            "use a larger voxel size, or a pose along the axes"
        )
    small = max(int(specimen.ids.max()), len(specimen)) < 2**16
    labels = np.zeros(shape, dtype=np.uint16 if small else np.uint32)
    # Maps a step of one voxel to a step in the unit ball of the ellipsoid.
    shrink = axes / specimen.radii[:, :, None] * size
    place = (specimen.centroids - origin) / size
    drawn = draw_ellipsoids(
        labels, place, half / size, np.ascontiguousarray(shrink), specimen.ids.astype(labels.dtype)
    )
    if drawn < len(specimen):
        log.warning(
            "%s: %d of %d nuclei left no voxel; use a smaller voxel size",
            specimen.name, len(specimen) - drawn, len(specimen),
        )  # fmt: skip
    return labels, origin


def _check(specimen: Specimen) -> None:
    """Raise if nuclei cannot be drawn."""
    if not len(specimen):
        raise EutelyError(f"{specimen.name}: no nuclei to draw; give at least one")
    if not (specimen.radii > 0).all():
        raise EutelyError(f"{specimen.name}: nuclei without radii cannot be drawn; give r1, r2, r3")
    if specimen.ids.min() < 1 or specimen.ids.max() >= 2**32:
        raise EutelyError(f"{specimen.name}: ids must be 1 to {2**32 - 1} to serve as labels")


@kernel
def draw_ellipsoids(
    labels: NDArray[np.unsignedinteger],
    place: NDArray[np.float64],
    half: NDArray[np.float64],
    shrink: NDArray[np.float64],
    ids: NDArray[np.unsignedinteger],
) -> int:
    """Fill ``labels`` (z, y, x), all 0, with ellipsoids; return how many have a voxel.

    Parameters
    ----------
    labels
        changed.
    place, half
        (n, 3), centres and half the bounding boxes; x, y, z in voxels.
    shrink
        (n, 3, 3), maps an offset in voxels to an offset in the ellipsoid's unit ball.
    ids
        (n,), label of each; positive, ascending.
    """
    depth, height, width = labels.shape
    count = len(ids)
    low = np.ceil(place - half).astype(np.int64)
    high = np.floor(place + half).astype(np.int64)
    # While drawing, a voxel holds the number of its nucleus, so that nuclei can be compared.
    for n in range(count):
        for z in range(max(low[n, 2], 0), min(high[n, 2] + 1, depth)):
            for y in range(max(low[n, 1], 0), min(high[n, 1] + 1, height)):
                for x in range(max(low[n, 0], 0), min(high[n, 0] + 1, width)):
                    mine = squared_depth(place[n], shrink[n], x, y, z)
                    if mine > 1.0:
                        continue
                    rival = np.int64(labels[z, y, x]) - 1
                    if rival < 0 or mine < squared_depth(place[rival], shrink[rival], x, y, z):
                        labels[z, y, x] = n + 1
    # Sorted ids are never below the numbers they replace, so that, from the last to the first, no
    # id that is already in place is confused with a number.
    drawn = 0
    for n in range(count - 1, -1, -1):
        seen = False
        for z in range(max(low[n, 2], 0), min(high[n, 2] + 1, depth)):
            for y in range(max(low[n, 1], 0), min(high[n, 1] + 1, height)):
                for x in range(max(low[n, 0], 0), min(high[n, 0] + 1, width)):
                    if labels[z, y, x] == n + 1:
                        labels[z, y, x] = ids[n]
                        seen = True
        drawn += seen
    return drawn


@inner
def squared_depth(
    place: NDArray[np.float64], shrink: NDArray[np.float64], x: int, y: int, z: int
) -> float:
    """Return the squared distance of a voxel from the centre, 1 on the ellipsoid's surface."""
    dx, dy, dz = x - place[0], y - place[1], z - place[2]
    total = 0.0
    for axis in range(3):
        step = shrink[axis, 0] * dx + shrink[axis, 1] * dy + shrink[axis, 2] * dz
        total += step * step
    return total
