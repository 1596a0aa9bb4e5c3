"""Which files and folders hold specimens, and of which kind: by content, or by name.

A folder of annotations remembers them (`Files`), for slices and for exports.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from eutely.errors import ReadError
from eutely.io import nwb_file, volumes
from eutely.io.columns import SUFFIXES as TABLES
from eutely.io.limits import small_file
from eutely.io.names import names_beside
from eutely.io.programs import program_of
from eutely.io.volumes.choice import suffix_of
from eutely.io.volumes.volume import VoxelSize
from eutely.io.whole import new_text
from eutely.io.written import RUN, tables_in
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


INPUTS = "inputs.json"
"""File in a folder of annotations: where its specimens were read from."""

OF_RUN = "curate.json"
"""The same in the folder of a run, whose ``inputs.json`` holds hashes; any folder before 0.3."""


@dataclass(frozen=True)
class Files:
    """Where specimens were read from; all may be absent.

    Attributes
    ----------
    volumes
        specimen -> path of its label volume, and path inside that file, or "".
    images
        specimen -> path of its image, ``file.h5:dataset`` for a dataset.
    voxel_size
        x, y, z in micrometres, for files that have none.
    others
        specimen -> kind, path and part of an input that is no volume.
    sizes
        specimen -> voxel size as it was read.
    channels
        names of the channels of the images; () for those in the files.
    """

    volumes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    voxel_size: VoxelSize | None = None
    others: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    sizes: Mapping[str, VoxelSize] = field(default_factory=dict)
    channels: tuple[str, ...] = ()

    def size_of(self, specimen: str) -> VoxelSize | None:
        """Return the voxel size that a person gave, or that was read."""
        return self.sizes.get(specimen, self.voxel_size)

    def exchanged(self, features: Sequence[Mapping[str, str]]) -> Files:
        """Return the same with other names of channels, where all specimens call them otherwise.

        ``features`` are old -> new columns of each specimen, such as ``R_mean`` -> ``B_mean``.
        """
        if not features or any(one != features[0] for one in features):
            return self
        names = {old.removesuffix("_mean"): new.removesuffix("_mean")
                 for old, new in features[0].items()}  # fmt: skip
        return replace(self, channels=tuple(names.get(each, each) for each in self.channels))


def remembered(files: Sequence[Source], readings: Sequence[Reading]) -> Files:
    """Return where specimens were read from; images are added by `eutely.io.images.Images`."""
    volumes = {file.name: file for file in files if file.kind == "volume"}
    by_path = {file.path: file for file in files}
    here, others, sizes = {}, {}, {}
    for reading in readings:
        name = reading.specimen.name
        file = volumes.get(name) or by_path.get(reading.path)
        if file is None:
            continue
        place = str(file.path.resolve()), file.part or ""
        if file.kind == "volume":
            here[name] = place
        else:
            others[name] = (file.kind, *place)
        if reading.voxel_size is not None:
            sizes[name] = reading.voxel_size
    return Files(here, others=others, sizes=sizes)


def write_files(folder: Path, files: Files) -> None:
    """Remember in a folder where its specimens were read from."""
    values = {
        "volumes": dict(files.volumes),
        "images": dict(files.images),
        "voxel_size": files.voxel_size,
        "others": dict(files.others),
        "sizes": dict(files.sizes),
        "channels": files.channels,
    }
    name = OF_RUN if (folder / RUN).exists() else INPUTS
    with tables_in(folder) as aside, new_text(aside / name) as file:
        file.write(json.dumps(values, indent=1) + "\n")


def read_files(folder: Path) -> Files:
    """Return where the specimens of a folder were read from; nothing where that is not known.

    Files that moved together with the folder are found in it, or beside it.
    """
    names = (OF_RUN,) if (folder / RUN).exists() else (INPUTS, OF_RUN)
    path = next((folder / name for name in names if (folder / name).exists()), None)
    if path is None:
        return Files()

    def found(place: object) -> str:
        given = Path(str(place))
        near = (given, folder / given.name, folder.resolve().parent / given.name)
        return str(next((one for one in near if one.exists()), given))

    def size(value: Sequence[float] | None) -> VoxelSize | None:
        if value is None:
            return None
        x, y, z = map(float, value)
        if not all(0 < side < math.inf for side in (x, y, z)):
            raise ValueError(f"voxel size {x:g}, {y:g}, {z:g}: expected positive numbers")
        return x, y, z

    try:
        values = json.loads(small_file(path))
        sizes = {str(name): size(each) for name, each in values.get("sizes", {}).items()}
        return Files(
            {name: (found(at[0]), str(at[1])) for name, at in values["volumes"].items()},
            {str(name): found(place) for name, place in values["images"].items()},
            size(values["voxel_size"]),
            {
                str(name): (str(kind), found(place), str(part))
                for name, (kind, place, part) in values.get("others", {}).items()
            },
            {name: each for name, each in sizes.items() if each is not None},
            tuple(map(str, values.get("channels", ()))),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError,
            RecursionError) as error:  # fmt: skip
        raise ReadError(f"{path} is damaged ({error}); delete it to go on without it") from error


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
