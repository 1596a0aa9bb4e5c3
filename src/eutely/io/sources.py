"""Which files and folders hold specimens, and of which kind: by content, or by name."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from eutely.errors import ReadError
from eutely.io import nwb_file, volumes
from eutely.io.columns import SUFFIXES as TABLES
from eutely.io.names import names_beside
from eutely.io.programs import program_of
from eutely.io.volumes.choice import suffix_of
from eutely.io.volumes.volume import VoxelSize
from eutely.specimen import Specimen

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger("eutely")

SUFFIXES = {
    "volume": volumes.SUFFIXES,
    "points": (".apo", ".ano.ano.txt", ".ano.txt", ".marker"),
    "nwb": nwb_file.SUFFIXES,
    "table": TABLES,
}
"""Endings of file names by content; the first that fits counts."""

_INSIDE = re.compile(
    r"(?P<file>.+\.(h5|hdf5|hdf|nwb)):(?P<part>.+)|"
    r"(?P<other>.+):(?P<entry>[0-9-]+|[a-z]=[0-9]+(,[a-z]=[0-9]+)*)",
    re.IGNORECASE,
)
"""A part of a file: a dataset as in ``worm.h5:segmentation/labels``, a segmentation as in
``worm.nwb:NeuroPALNeurons``, time points as in ``embryo.zip:120`` and ``embryo.zip:100-120``,
or an entry of axes as in ``movie.tif:t=3,c=0``."""


@dataclass(frozen=True)
class Source:
    """A file (or OME-Zarr folder) with a specimen or a cohort."""

    path: Path
    kind: str
    name: str
    """the file's name without its suffix: name of the specimen unless the file has one"""
    part: str | None = None
    """path inside an HDF5 file; time points of a recording, as in ``100-120``; entries of axes"""
    names: Path | None = None
    """table of names beside a volume or point cloud"""
    frame: Any = field(default=None, compare=False)
    """a pandas table instead of a file"""


@dataclass(frozen=True)
class Reading:
    """A specimen and its source."""

    specimen: Specimen
    path: Path
    voxel_size: VoxelSize | None = None
    """x, y, z in micrometres, of a volume"""


ReadProgress = Callable[[float], None]
"""Called with the fraction of a file that was read, 0 to 1."""


def is_frame(given: object) -> TypeGuard[pd.DataFrame]:
    """Return whether a value is a pandas table; imports nothing."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(given, pandas.DataFrame)


def _of_frame(frame: pd.DataFrame, number: int) -> Source:
    """Return the source of a pandas table; its name is its attribute ``name``, or its number."""
    name = str(frame.attrs.get("name") or ("table" if number == 1 else f"table{number}"))
    return Source(Path(name), "frame", name, frame=frame)


def sources(inputs: Sequence[str | PathLike[str] | pd.DataFrame]) -> list[Source]:
    """Return the files of ``inputs``; folders are replaced by the files in them."""
    if not inputs:
        raise ReadError("no input given; name files or folders")
    files: list[Source] = []
    for number, given in enumerate(inputs, start=1):
        if is_frame(given):
            files.append(_of_frame(given, number))
            continue
        if not isinstance(given, str | PathLike):
            what = "None" if given is None else type(given).__name__
            raise ReadError(f"{what} cannot be read; give files, folders or pandas tables")
        path = Path(given)
        part = None
        inside = None if path.exists() else _INSIDE.fullmatch(str(given))
        if inside is not None:
            path, part = (
                Path(inside["file"] or inside["other"]),
                inside["part"] or inside["entry"],
            )
        if not path.exists():
            raise ReadError(f"{given} does not exist")
        source = _source(path)
        if source is not None:
            tail = suffix_of(part) if source.kind == "volume" else ""
            files.append(replace(source, part=part, name=source.name + tail))
        elif path.is_dir():
            if part is not None:
                raise ReadError(f"{given}: time points of a folder; name the files in it")
            files += _folder(path)
        else:
            known = " ".join(suffix for kind in SUFFIXES.values() for suffix in kind)
            known += " or a recording of AceTree, TrackMate or geff"
            raise ReadError(f"{path}: unknown kind of file; expected one of {known}")
    return _with_name_tables(files)


def _with_name_tables(files: Sequence[Source]) -> list[Source]:
    """Return the files, with tables of names as part of the volumes that they lie beside."""
    result = [
        file
        if file.kind in {"table", "recording", "frame"}
        else replace(file, names=_names_of(file))
        for file in files
    ]
    used = {file.names for file in result}
    return [file for file in result if file.path not in used]


def _names_of(file: Source) -> Path | None:
    """Return the table of names of the same stem beside a volume or point cloud."""
    return names_beside(file.path.parent, file.name)


def _source(path: Path) -> Source | None:
    """Return the source at ``path``, by its content or name, or None if it is unknown."""
    if program_of(path) is not None:
        return Source(path, "recording", path.stem)
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
        # "~$" begins the name of the lock file of an open spreadsheet.
        source = None if entry.name.startswith((".", "~$")) else _source(entry)
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
