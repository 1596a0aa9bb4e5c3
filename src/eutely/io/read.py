"""Specimens from files and folders: the format of each path, and checks of the cohort."""

import csv
import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io import volumes
from eutely.io.apo import read_apo
from eutely.io.tables import PARQUET, TEXT, read_table
from eutely.io.volumes.volume import VoxelSize
from eutely.specimen import MICROMETRE, VOXEL, Specimen

log = logging.getLogger("eutely")

FEWEST_NUCLEI = 4
"""Smallest number of nuclei of a specimen: fewer have no pose."""

SUFFIXES = {
    "volume": volumes.SUFFIXES,
    "points": (".apo", ".ano.ano.txt", ".ano.txt"),
    "table": (*TEXT, *PARQUET),
}
"""Endings of file names by content; the first that fits counts."""

_DATASET = re.compile(r"(?P<file>.+\.(h5|hdf5|hdf)):(?P<dataset>.+)", re.IGNORECASE)
"""A dataset of an HDF5 file, as in ``worm.h5:segmentation/labels``."""

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


@dataclass(frozen=True)
class Reading:
    """A specimen and its source."""

    specimen: Specimen
    path: Path
    voxel_size: VoxelSize | None = None
    """x, y, z in micrometres, of a volume"""


def read(
    *inputs: str | PathLike[str], voxel_size: float | Sequence[float] | None = None
) -> list[Specimen]:
    """Read specimens from files and folders.

    Parameters
    ----------
    inputs
        label volumes (TIFF, OME-Zarr, HDF5, NRRD), tables (CSV, TSV, Parquet) of a specimen or a
        cohort, Vaa3D point clouds (``.apo``, ``.ano.txt``), or folders of such files, which are
        read in the order of their names.
    voxel_size
        x, y, z in micrometres (or one number if all are equal); takes precedence over the files.
        Tables and point clouds in voxels are converted.

    Raises
    ------
    EutelyError
        if a file cannot be read, a specimen has fewer than 4 nuclei, two specimens have the same
        name, or units differ.

    Examples
    --------
    >>> import eutely
    >>> cohort = eutely.read("worms/", "another.csv")  # doctest: +SKIP
    """
    cohort = list(readings(sources(inputs), voxel_size))
    check_cohort(cohort)
    return [reading.specimen for reading in cohort]


def sources(inputs: Sequence[str | PathLike[str]]) -> list[Source]:
    """Return the files of ``inputs``; folders are replaced by the files in them."""
    if not inputs:
        raise ReadError("no input given; name files or folders")
    files: list[Source] = []
    for given in inputs:
        path = Path(given)
        inside = _DATASET.fullmatch(str(given))
        if not path.exists() and inside and Path(inside["file"]).exists():
            file = _source(Path(inside["file"]))
            files += [replace(file, dataset=inside["dataset"])] if file else []
            continue
        if not path.exists():
            raise ReadError(f"{path} does not exist")
        source = _source(path)
        if source is not None:
            files.append(source)
        elif path.is_dir():
            files += _folder(path)
        else:
            known = " ".join(suffix for kind in SUFFIXES.values() for suffix in kind)
            raise ReadError(f"{path}: unknown kind of file; expected one of {known}")
    return files


def _source(path: Path) -> Source | None:
    """Return the source at ``path``, by its name, or None if it is unknown."""
    if path.is_dir() and not volumes.is_zarr(path):
        return None
    for kind, suffixes in SUFFIXES.items():
        for suffix in suffixes:
            if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
                return Source(path, kind, path.name[: -len(suffix)])
    return Source(path, "volume", path.name) if path.is_dir() else None


def _folder(path: Path) -> list[Source]:
    """Return the files of a folder that can contain specimens, in the order of their names."""
    files = []
    try:
        entries = sorted(path.iterdir())
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
    for entry in entries:
        source = None if entry.name.startswith(".") else _source(entry)
        # Any other text is more likely a note than a table.
        if source is None or (source.kind == "table" and entry.suffix.lower() == ".txt"):
            log.debug("%s: not a specimen, left out", entry)
        else:
            files.append(source)
    if not files:
        folders = [entry.name for entry in entries if entry.is_dir() and entry.name[0] != "."]
        advice = f"name a folder in it ({', '.join(folders)})" if folders else "check the path"
        raise ReadError(f"no tables, point clouds or label volumes in the folder {path}; {advice}")
    return files


def readings(
    files: Sequence[Source],
    voxel_size: float | Sequence[float] | None = None,
    progress: ReadProgress = lambda _: None,
) -> Iterator[Reading]:
    """Read one file after the other; the specimens of a file are consecutive."""
    size = voxel_triple(voxel_size)
    for file in files:
        if file.kind == "volume":
            yield _volume(file, size, progress)
        elif file.kind == "points":
            yield Reading(_in_micrometres(read_apo(file.path, file.name), size), file.path)
        else:
            for specimen in read_table(file.path, file.name):
                yield Reading(_in_micrometres(specimen, size), file.path)
        progress(1.0)


def _in_micrometres(specimen: Specimen, voxel_size: VoxelSize | None) -> Specimen:
    """Return a specimen in voxels in micrometres, if the voxel size is given."""
    if voxel_size is None or specimen.unit != VOXEL:
        return specimen
    return replace(specimen.mapped(np.diag(voxel_size), np.zeros(3)), unit=MICROMETRE)


def _volume(file: Source, voxel_size: VoxelSize | None, progress: ReadProgress) -> Reading:
    """Read the nuclei of a label volume, block by block."""
    from eutely.nuclei import Block, measure  # here, because importing Numba is slow

    with volumes.open_volume(file.path, voxel_size, file.dataset) as volume:
        total, done = math.prod(volume.shape), 0

        def counted() -> Iterator[Block]:
            nonlocal done
            for block, start in volume.blocks():
                yield block, start
                done += block.size
                progress(done / total)

        specimen = measure(counted(), volume.shape, volume.size, file.name)
        return Reading(specimen, file.path, volume.size)


def voxel_triple(given: float | Sequence[float] | None) -> VoxelSize | None:
    """Return x, y, z of a voxel size given as one or three numbers."""
    if given is None:
        return None
    values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if values.shape not in {(1,), (3,)} or not np.isfinite(values).all() or (values <= 0).any():
        raise ReadError(f"voxel size {given}: expected one or three positive numbers (x, y, z)")
    x, y, z = np.broadcast_to(values, (3,)).tolist()
    return x, y, z


def check_cohort(cohort: Sequence[Reading]) -> None:
    """Raise if a specimen is too small, or if names or units do not fit together."""
    seen: dict[str, Path] = {}
    for reading in cohort:
        specimen, path = reading.specimen, reading.path
        if len(specimen) < FEWEST_NUCLEI:
            raise ReadError(
                f"{path}: {specimen.name} has {len(specimen)} nuclei, expected at least "
                f"{FEWEST_NUCLEI}; is the file complete?"
            )
        if specimen.name in seen:
            raise ReadError(
                f"two specimens are called {specimen.name} ({seen[specimen.name]} and {path}); "
                "rename one"
            )
        seen[specimen.name] = path
        first = cohort[0]
        if specimen.unit != first.specimen.unit:
            raise ReadError(
                f"mixed units: {first.path} is in {first.specimen.unit}, {path} in "
                f"{specimen.unit}; convert to one (tables: column 'unit')"
            )


@contextmanager
def paired_planes(
    first: Source, second: Source, voxel_size: float | Sequence[float] | None = None
) -> Iterator[Iterator[tuple[NDArray[np.integer], NDArray[np.integer]]]]:
    """Open two label volumes of the same image; yield their planes in pairs.

    Parameters
    ----------
    first, second
        label volumes.
    voxel_size
        see `read`.
    """
    size = voxel_triple(voxel_size)
    with (
        volumes.open_volume(first.path, size, first.dataset) as left,
        volumes.open_volume(second.path, size, second.dataset) as right,
    ):
        if left.shape != right.shape:
            shapes = [" x ".join(map(str, volume.shape)) for volume in (left, right)]
            raise ReadError(
                f"{first.path} has {shapes[0]} voxels (z, y, x), {second.path} {shapes[1]}; "
                "expected two segmentations of the same image"
            )
        yield zip(left.planes(), right.planes(), strict=True)


def read_names(path: Path) -> dict[int, str]:
    """Read the names, id -> name, from a table with the columns ``id`` and ``name``."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
            names = {int(row["id"]): (row["name"] or "").strip() for row in rows}
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
    except (KeyError, ValueError, TypeError, UnicodeDecodeError, csv.Error) as error:
        raise ReadError(f"{path}: expected a CSV table with columns id and name") from error
    return {id_: name for id_, name in names.items() if name}
