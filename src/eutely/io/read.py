"""From files and folders to specimens: what each path is, and whether they make a cohort."""

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
"""Nuclei that a specimen needs at least: fewer have no pose."""

SUFFIXES = {
    "volume": volumes.SUFFIXES,
    "points": (".apo", ".ano.ano.txt", ".ano.txt"),
    "table": (*TEXT, *PARQUET),
}
"""How names of files end, by what they hold; the first that fits counts."""


_DATASET = re.compile(r"(?P<file>.+\.(h5|hdf5|hdf)):(?P<dataset>.+)", re.IGNORECASE)
"""A dataset of an HDF5 file, as in ``worm.h5:segmentation/labels``."""

Progress = Callable[[float], None]
"""Called with the share of a file that was read, 0 to 1."""


@dataclass(frozen=True)
class Source:
    """One file (or OME-Zarr folder) that holds a specimen, or a cohort."""

    path: Path
    kind: str
    name: str
    """the file's name without its suffix: the specimen's, unless the file says otherwise"""
    dataset: str | None = None
    """path inside an HDF5 file"""


@dataclass(frozen=True)
class Reading:
    """A specimen and where it comes from."""

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
        label volumes (TIFF, OME-Zarr, HDF5, NRRD), tables (CSV, TSV, Parquet) of one specimen or
        of a cohort, Vaa3D point clouds (``.apo``, ``.ano.txt``), or folders of such;
        a folder stands for the specimens in it, in the order of their names.
    voxel_size
        x, y, z in micrometres (or one number, where all are the same), for files that do not
        say; wins over what they say. Tables and point clouds that count voxels are converted.

    Raises
    ------
    EutelyError
        when a file cannot be read, a specimen has fewer than 4 nuclei, two have one name, or
        units differ.

    Examples
    --------
    >>> import eutely
    >>> cohort = eutely.read("worms/", "another.csv")  # doctest: +SKIP
    """
    found = list(readings(sources(inputs), voxel_size))
    check_cohort(found)
    return [reading.specimen for reading in found]


def sources(inputs: Sequence[str | PathLike[str]]) -> list[Source]:
    """Return the files that ``inputs`` stand for; folders are replaced by what is in them."""
    if not inputs:
        raise ReadError("no input given; name files or folders")
    found: list[Source] = []
    for given in inputs:
        path = Path(given)
        inside = _DATASET.fullmatch(str(given))
        if not path.exists() and inside and Path(inside["file"]).exists():
            file = _source(Path(inside["file"]))
            found += [replace(file, dataset=inside["dataset"])] if file else []
            continue
        if not path.exists():
            raise ReadError(f"{path} does not exist")
        source = _source(path)
        if source is not None:
            found.append(source)
        elif path.is_dir():
            found += _folder(path)
        else:
            known = " ".join(suffix for kind in SUFFIXES.values() for suffix in kind)
            raise ReadError(f"{path}: unknown kind of file; expected one of {known}")
    return found


def _source(path: Path) -> Source | None:
    """Return what ``path`` is, judged by its name, or None."""
    if path.is_dir() and not volumes.is_zarr(path):
        return None
    for kind, suffixes in SUFFIXES.items():
        for suffix in suffixes:
            if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
                return Source(path, kind, path.name[: -len(suffix)])
    return Source(path, "volume", path.name) if path.is_dir() else None


def _folder(path: Path) -> list[Source]:
    """Return the files of a folder that can hold specimens, in the order of their names."""
    found = []
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
            found.append(source)
    if not found:
        folders = [entry.name for entry in entries if entry.is_dir() and entry.name[0] != "."]
        advice = f"name the folder below it ({', '.join(folders)})" if folders else "is it the one?"
        raise ReadError(f"no tables, point clouds or label volumes in the folder {path}; {advice}")
    return found


def readings(
    files: Sequence[Source],
    voxel_size: float | Sequence[float] | None = None,
    progress: Progress = lambda _: None,
) -> Iterator[Reading]:
    """Read one file after the other; the specimens of a file come together."""
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
    """Return a specimen that counts voxels in micrometres, once the size of a voxel is known."""
    if voxel_size is None or specimen.unit != VOXEL:
        return specimen
    return replace(specimen.mapped(np.diag(voxel_size), np.zeros(3)), unit=MICROMETRE)


def _volume(file: Source, voxel_size: VoxelSize | None, progress: Progress) -> Reading:
    """Read the nuclei of a label volume, block by block."""
    from eutely.nuclei import Block, measure  # here, because Numba takes its time

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
    """Return x, y, z of a voxel size given as one number or three."""
    if given is None:
        return None
    values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    if values.shape not in {(1,), (3,)} or not np.isfinite(values).all() or (values <= 0).any():
        raise ReadError(f"voxel size {given}: expected one or three positive numbers (x, y, z)")
    x, y, z = np.broadcast_to(values, (3,)).tolist()
    return x, y, z


def check_cohort(found: Sequence[Reading]) -> None:
    """Refuse specimens that are too small or that cannot stand together."""
    seen: dict[str, Path] = {}
    for reading in found:
        specimen, path = reading.specimen, reading.path
        if len(specimen) < FEWEST_NUCLEI:
            raise ReadError(
                f"{path}: {specimen.name} has {len(specimen)} nuclei, at least {FEWEST_NUCLEI} are needed"
            )
        if specimen.name in seen:
            raise ReadError(
                f"two specimens are called {specimen.name} ({seen[specimen.name]} and {path}); "
                "rename one"
            )
        seen[specimen.name] = path
        first = found[0]
        if specimen.unit != first.specimen.unit:
            raise ReadError(
                f"mixed units: {first.path} is in {first.specimen.unit}, {path} in "
                f"{specimen.unit}; convert to one (tables: column 'unit')"
            )


@contextmanager
def paired_planes(
    first: Source, second: Source, voxel_size: float | Sequence[float] | None = None
) -> Iterator[Iterator[tuple[NDArray[np.integer], NDArray[np.integer]]]]:
    """Open two label volumes of one image; yield their planes side by side.

    Parameters
    ----------
    first, second
        label volumes.
    voxel_size
        as of `read`.
    """
    size = voxel_triple(voxel_size)
    with (
        volumes.open_volume(first.path, size, first.dataset) as one,
        volumes.open_volume(second.path, size, second.dataset) as other,
    ):
        if one.shape != other.shape:
            shapes = [" x ".join(map(str, volume.shape)) for volume in (one, other)]
            raise ReadError(
                f"{first.path} has {shapes[0]} voxels (z, y, x), {second.path} {shapes[1]}; "
                "expected two segmentations of one image"
            )
        yield zip(one.planes(), other.planes(), strict=True)


def read_names(path: Path) -> dict[int, str]:
    """Read a table with the columns ``id`` and ``name``, such as `eutely annotate` writes."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
            found = {int(row["id"]): (row["name"] or "").strip() for row in rows}
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
    except (KeyError, ValueError, TypeError, UnicodeDecodeError, csv.Error) as error:
        raise ReadError(f"{path}: expected a CSV table with columns id and name") from error
    return {id_: name for id_, name in found.items() if name}
