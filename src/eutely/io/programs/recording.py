"""Nuclei at one or many time points, as programs for tracking and lineages store them."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.specimen import MICROMETRE, UNKNOWN, Specimen

log = logging.getLogger("eutely")

VoxelSize = tuple[float, float, float]

PLANES = "planes"
"""Unit of coordinates with x and y in pixels and z in planes: not a unit of length."""

MOST_TIMES = 10_000
"""Time points that can be read at once."""

_RANGE = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
"""A time point or a range of them, as in ``120`` or ``100-120``."""


@dataclass(frozen=True, eq=False)
class Recording:
    """The nuclei of a file of another program; one row per nucleus and time point.

    Attributes
    ----------
    program
        that wrote the file.
    times
        (n,) int64, time point of each row; all equal where the file has no time.
    ids
        (n,) int64, unique within a time point.
    centroids
        (n, 3) float64, x, y, z in ``unit``.
    radii
        (n,) float64 in ``unit`` (in pixels of x and y if that is `PLANES`), or None.
    names
        n names of cells, "" where not known.
    features
        further measurements, name -> (n,) float64.
    unit
        of lengths, or `PLANES`.
    voxel_size
        x, y, z in micrometres that the file states, for `PLANES`.
    """

    program: str
    times: NDArray[np.int64]
    ids: NDArray[np.int64]
    centroids: NDArray[np.float64]
    radii: NDArray[np.float64] | None = None
    names: Sequence[str] = ()
    features: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    unit: str = UNKNOWN
    voxel_size: VoxelSize | None = None

    def specimens(
        self, path: Path, name: str, chosen: str | None = None, voxel_size: VoxelSize | None = None
    ) -> list[Specimen]:
        """Return one specimen per chosen time point.

        Parameters
        ----------
        path
            of the file, for errors.
        name
            of the specimen; ``_t120`` is added where a time point was chosen.
        chosen
            time points, as in ``120`` or ``100-120``; None if the file has only one.
        voxel_size
            x, y, z in micrometres, for coordinates in pixels and planes.
        """
        scale, unit = self._scale(path, voxel_size)
        rows = {time: np.flatnonzero(self.times == time) for time in self._times(path, chosen)}
        log.info(
            "%s: %s; %d nuclei at %s", path, self.program, sum(map(len, rows.values())),
            f"time point {next(iter(rows))}" if len(rows) == 1 else f"{len(rows)} time points",
        )  # fmt: skip
        return [
            Specimen.from_arrays(
                name if chosen is None else f"{name}_t{time}",
                self.centroids[index] * scale,
                ids=self.ids[index],
                radii=None if self.radii is None else self.radii[index] * scale[0],
                names=[self.names[row] for row in index.tolist()] if self.names else None,
                features=_known(self.features, index),
                unit=unit,
            )
            for time, index in rows.items()
        ]

    def _times(self, path: Path, chosen: str | None) -> list[int]:
        """Return the time points to read."""
        present: list[int] = np.unique(self.times).tolist()
        if not present:
            raise ReadError(f"{path}: no nuclei in this file of {self.program}; is it complete?")
        example = f"{path}:{present[len(present) // 2]}"
        if chosen is None:
            if len(present) > 1:
                raise ReadError(
                    f"{path}: {len(present)} time points ({present[0]} to {present[-1]}); choose "
                    f"one or a range, as in {example} or {path}:{present[0]}-{present[-1]}"
                )
            return present
        first, last = time_range(chosen)
        times = [time for time in present if first <= time <= last]
        if not times:
            raise ReadError(
                f"{path}: no nuclei at time point {chosen}; there are {present[0]} to {present[-1]}"
            )
        if len(times) > MOST_TIMES:
            raise ReadError(f"{path}: {len(times)} time points; choose at most {MOST_TIMES}")
        return times

    def _scale(self, path: Path, given: VoxelSize | None) -> tuple[NDArray[np.float64], str]:
        """Return factors of x, y, z, and the unit after them."""
        if self.unit != PLANES:
            return np.ones(3), self.unit
        size = given or self.voxel_size
        if size is None:
            raise ReadError(
                f"{path}: {self.program} stores x and y in pixels and z in planes; give "
                "--voxel-size X,Y,Z in micrometres"
            )
        return np.array(size), MICROMETRE


def time_range(text: str) -> tuple[int, int]:
    """Return the first and last time point of ``120`` or ``100-120``.

    >>> time_range("120"), time_range("100-120")
    ((120, 120), (100, 120))
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ReadError(f"time point '{text}': expected a number or a range, as in 120 or 100-120")
    first = int(match["first"])
    last = int(match["last"] or first)
    if last < first:
        raise ReadError(f"time points {text}: the last one is before the first one; swap them")
    return first, last


def _known(
    features: Mapping[str, NDArray[np.float64]], index: NDArray[np.intp]
) -> dict[str, NDArray[np.float64]]:
    """Return features of some rows, without those that none of them has."""
    chosen = {key: values[index] for key, values in features.items()}
    return {key: values for key, values in chosen.items() if np.isfinite(values).any()}
