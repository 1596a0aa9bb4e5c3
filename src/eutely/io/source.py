"""Where specimens come from: files, and what was read of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eutely.io.volumes.volume import VoxelSize
from eutely.specimen import Specimen

ReadProgress = Callable[[float], None]
"""Called with the fraction of a file that was read, 0 to 1."""


@dataclass(frozen=True)
class Source:
    """A file (or OME-Zarr folder) with a specimen or a cohort."""

    path: Path
    kind: str
    name: str
    """the file's name without its suffix: name of the specimen unless the file has one"""
    dataset: str | None = None
    """path inside an HDF5 file"""
    names: Path | None = None
    """table of names beside a volume or point cloud"""


@dataclass(frozen=True)
class Reading:
    """A specimen and its source."""

    specimen: Specimen
    path: Path
    voxel_size: VoxelSize | None = None
    """x, y, z in micrometres, of a volume"""
