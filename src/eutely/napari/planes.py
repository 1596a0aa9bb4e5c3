"""A label volume plane by plane: where each nucleus lies in it, and the volume for napari.

The volume is read once, as a stream. Planes are kept compressed (labels compress a hundredfold),
so that a large volume takes little memory, and napari gets them back one by one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Cuts:
    """Where planes cut nuclei: ``k`` cuts, by plane.

    Attributes
    ----------
    rows
        (k,) int64, the nucleus.
    places
        (k, 3) float64, z of the plane, and the centroid (y, x) of the nucleus in it, in voxels.
    sizes
        (k,) int64, voxels.
    count
        number of nuclei.
    top
        the largest label in the volume, of a nucleus or not.
    """

    rows: NDArray[np.int64]
    places: NDArray[np.float64]
    sizes: NDArray[np.int64]
    count: int
    top: int = 0

    def centroids(self) -> NDArray[np.float64]:
        """Return (n, 3), the centroid (z, y, x) of each nucleus; NaN where it is absent."""
        total = np.bincount(self.rows, self.sizes, self.count)
        sums = [np.bincount(self.rows, self.sizes * axis, self.count) for axis in self.places.T]
        centres = np.full((self.count, 3), np.nan)
        there = total > 0
        centres[there] = (np.stack(sums, axis=1)[there].T / total[there]).T
        return centres

    def central(self) -> NDArray[np.bool_]:
        """Return (k,), whether a cut is the one nearest to the centroid of its nucleus."""
        away = np.abs(self.places[:, 0] - self.centroids()[self.rows, 0])
        order = np.lexsort((self.places[:, 0], away, self.rows))
        first = np.ones(len(order), bool)
        first[1:] = self.rows[order][1:] != self.rows[order][:-1]
        central = np.zeros(len(order), bool)
        central[order[first]] = True
        return central


def cuts(planes: Iterable[NDArray[Any]], ids: NDArray[np.int64]) -> Cuts:
    """Find where planes (y, x) cut nuclei.

    Parameters
    ----------
    planes
        of a label volume, in order; read once.
    ids
        (n,), labels of the nuclei; other labels do not count.
    """
    order = np.argsort(ids)
    labels = ids[order]
    rows: list[NDArray[np.int64]] = []
    places: list[NDArray[np.float64]] = []
    sizes: list[NDArray[np.int64]] = []
    top = 0
    for z, plane in enumerate(planes):
        flat = np.asarray(plane).ravel()
        top = max(top, int(flat.max(initial=0)))
        voxels = np.flatnonzero(flat)
        values = flat[voxels].astype(np.int64, copy=False)
        at = np.minimum(np.searchsorted(labels, values), max(len(labels) - 1, 0))
        known = labels[at] == values if len(labels) else np.zeros(len(values), bool)
        at, voxels = at[known], voxels[known]
        y, x = np.divmod(voxels, plane.shape[1])
        counts = np.bincount(at, minlength=len(labels))
        cut = np.flatnonzero(counts)
        cut = cut[np.argsort(order[cut])]
        middle = [np.bincount(at, axis, len(labels))[cut] / counts[cut] for axis in (y, x)]
        rows.append(order[cut])
        places.append(np.stack([np.full(len(cut), float(z)), *middle], axis=1))
        sizes.append(counts[cut])
    return Cuts(
        np.concatenate(rows) if rows else np.zeros(0, np.int64),
        np.concatenate(places) if places else np.zeros((0, 3)),
        np.concatenate(sizes) if sizes else np.zeros(0, np.int64),
        len(ids),
        top,
    )


class Packed:
    """The planes of a volume, compressed; an array of `dask` gets them back one by one."""

    def __init__(self) -> None:
        self.planes: list[bytes] = []
        self.shape: tuple[int, ...] = (0, 0)
        self.dtype: np.dtype[Any] = np.dtype(np.uint8)

    def kept(self, planes: Iterable[NDArray[Any]]) -> Iterable[NDArray[Any]]:
        """Yield the planes, and keep them."""
        for plane in planes:
            self.shape, self.dtype = plane.shape, plane.dtype.newbyteorder("=")
            whole = np.ascontiguousarray(plane, self.dtype)
            self.planes.append(zlib.compress(whole.tobytes(), 1))
            yield whole

    def plane(self, z: int) -> NDArray[Any]:
        """Return a plane (y, x)."""
        return np.frombuffer(zlib.decompress(self.planes[z]), self.dtype).reshape(self.shape)

    def array(self) -> Any:
        """Return the volume (z, y, x) as an array of `dask`, a chunk for each plane."""
        from dask import array

        chunks: Sequence[Any] = ((1,) * len(self.planes), *((side,) for side in self.shape))

        def block(block_info: Any = None) -> NDArray[Any]:
            return self.plane(block_info[None]["chunk-location"][0])[None]

        return array.map_blocks(
            block, dtype=self.dtype, chunks=chunks, meta=np.zeros((0,) * 3, self.dtype)
        )
