"""Atlas files: HDF5 with a schema version; equal atlases give equal bytes."""

from __future__ import annotations

import hashlib
import io
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from eutely.atlas import Atlas
from eutely.errors import AtlasError, ReadError, WriteError
from eutely.io.hdf5_gate import check_dataset, check_heaps, chunk_count, linked, stored_chunks
from eutely.io.limits import DEFLATE, budget, check_memory, check_regular, sized
from eutely.io.text import read_text
from eutely.io.whole import new_bytes
from eutely.io.written import finish, replaced

BUILT_IN = Path(__file__).parents[1] / "atlases"
"""Folder of the atlases of the package."""

REGISTRIES = "EUTELY_ATLASES"
"""Environment variable with folders and files of further atlases."""

FORMAT = "eutely atlas"
"""Value of the attribute ``format`` of an atlas file."""

SCHEMA = 1
"""Version of the layout; raised if an older reader could misunderstand a file."""

PLAIN: dict[str, type] = {
    "specimens": int,
    "freedom": float,
    "unit": str,
    "model": str,
    "warp": bool,
    "scale": bool,
    "c0": float,
    "k_min": int,
    "tau_centroid": float,
    "tau_radius": float,
}
"""Fields stored as attributes, in this order; provenance is JSON, all others are datasets."""

STORED_AS = {"k_min": "least"}
"""Attributes whose name in the file differs from that of the field, for older files."""

BROKEN = (
    OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, ArithmeticError,
    MemoryError,
)  # fmt: skip
"""Errors that a damaged file leads to."""

SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""First bytes of an HDF5 file, as eutely writes them."""

TEXTS = ("names", "features", "origins")
"""Fields that are lists of texts."""

OPTIONAL = ("shown", "origins", "hands", "origin_presence", "origin_scores")
"""Fields that are left out of files where they are empty; older files do not have them."""

LATER = OPTIONAL[1:]
"""Those that do not change the checksum of an atlas without them."""


def write_atlas(atlas: Atlas, path: Path | str) -> None:
    """Write ``atlas`` to ``path`` (``.h5``), completely or not at all."""
    if not isinstance(path, str | os.PathLike):
        raise WriteError(f"{path!r} is no path; give the name of a file, such as atlas.h5")
    with replaced(Path(path)) as aside:
        new_bytes(aside, _content(atlas))


def _content(atlas: Atlas) -> bytes:
    """Return the bytes of a file; made in memory, since HDF5 crashes where a disk becomes full."""
    import h5py

    memory = io.BytesIO()
    with h5py.File(memory, "w", libver="v110") as file:
        file.attrs["format"] = FORMAT
        file.attrs["schema"] = SCHEMA
        for key in PLAIN:
            file.attrs[STORED_AS.get(key, key)] = getattr(atlas, key)
        file.attrs["provenance"] = json.dumps(dict(atlas.provenance), sort_keys=True)
        for key in TEXTS:
            if key in OPTIONAL and not getattr(atlas, key):
                continue
            texts = np.array([text.encode() for text in getattr(atlas, key)], dtype="S")
            _put(file, key, texts if texts.itemsize else texts.astype("S1"))
        for field in fields(atlas):
            value = getattr(atlas, field.name)
            if isinstance(value, np.ndarray) and (field.name not in OPTIONAL or value.size):
                _put(file, field.name, value)
    return memory.getvalue()


def read_atlas(path: Path | str) -> Atlas:
    """Read an atlas file."""
    place = Path(path)
    check_file(place)
    import h5py  # after errors: importing it takes a while

    try:
        check_heaps(place)
        with h5py.File(place, "r") as file:
            return _read(file, place)
    except BROKEN as error:
        raise _unreadable(place, str(error)) from error


def check_file(place: Path) -> None:
    """Raise an error if a file is not there, or no HDF5 file: a check that takes no time."""
    if not place.is_file():
        known = ", ".join(known_atlases())
        raise ReadError(
            f"{place}: no such file; expected an atlas (.h5), a run folder, or one of: {known}"
        )
    check_regular(place)
    try:
        with place.open("rb") as file:
            begin = file.read(len(SIGNATURE))
    except OSError as error:
        raise _unreadable(place, error.strerror or str(error)) from error
    if begin != SIGNATURE:
        known = ", ".join(known_atlases())
        raise ReadError(
            f"{place}: not an atlas; expected an atlas (.h5), a run folder, or one of: {known}"
        )


def _unreadable(place: Path, why: str) -> ReadError:
    return ReadError(f"{place}: not a readable atlas ({why}); build it again")


def atlas_path(given: Path | str) -> Path:
    """Return the file of an atlas given by its file, the folder of a run, or its name."""
    if not isinstance(given, str | os.PathLike):
        raise AtlasError(f"{given!r} is no atlas; give a file, a run folder or the name of one")
    place = Path(given)
    if not place.exists():
        place = known_atlases().get(str(given), place)
    if not place.is_dir():
        return place
    finish(place)
    return place / "atlas.h5"


def open_atlas(given: Path | str) -> Atlas:
    """Read an atlas from a file, the folder of a run, or by its name in a registry."""
    return read_atlas(atlas_path(given))


def checksum(atlas: Atlas) -> str:
    """Return the SHA-256 of all that an atlas holds, however its file was written."""
    digest = hashlib.sha256()
    for field in fields(atlas):
        value = getattr(atlas, field.name)
        if field.name in LATER and not len(value):
            continue
        if isinstance(value, np.ndarray):
            value = f"{value.dtype.str}{value.shape}".encode() + value.tobytes()
        elif field.name == "provenance":
            value = json.dumps(dict(value), sort_keys=True).encode()
        else:
            value = json.dumps(value).encode()
        digest.update(field.name.encode() + b"\0" + value + b"\0")
    return digest.hexdigest()


def cells_of(atlas: Atlas) -> str:
    """Return what tells the cells of two builds apart, whatever they are called since."""
    digest = hashlib.sha256()
    for values in (atlas.means, atlas.covariances, atlas.seen):
        digest.update(f"{values.dtype.str}{values.shape}".encode() + values.tobytes())
    return digest.hexdigest()


def known_atlases() -> dict[str, Path]:
    """Return all atlases that have a name: those of the package, and those of registries.

    The environment variable ``EUTELY_ATLASES`` lists registries, separated as in ``PATH``: folders
    of atlas files, single atlas files, or text files with one path of an atlas per line, relative
    to the text file. An atlas is called after its file; later ones take precedence.
    """
    known = built_in()
    for entry in filter(None, os.environ.get(REGISTRIES, "").split(os.pathsep)):
        place = Path(entry).expanduser()
        if place.is_dir():
            files = sorted(place.glob("*.h5"))
        elif place.suffix.lower() == ".h5":
            files = [place]
        else:
            lines = (line.strip() for line in read_text(place).splitlines())
            files = [place.parent / line for line in lines if line and not line.startswith("#")]
        known |= {file.stem: file for file in files}
    return known


def built_in() -> dict[str, Path]:
    """Return the atlases of the package: name -> file."""
    return {path.stem: path for path in sorted(BUILT_IN.glob("*.h5"))}


def _read(file: Any, place: Path) -> Atlas:
    if file.attrs.get("format") != FORMAT:
        raise ReadError(f"{place}: an HDF5 file but no atlas, expected a file written by eutely")
    schema = int(file.attrs["schema"])
    if schema > SCHEMA:
        raise ReadError(
            f"{place}: atlas of schema {schema}, expected at most {SCHEMA}; update eutely"
        )
    found = {field.name: linked(file, field.name) for field in fields(Atlas)}
    values: dict[str, Any] = {
        key: _values(place, dataset) for key, dataset in found.items() if dataset is not None
    }
    for key in TEXTS:
        values[key] = tuple(text.decode() for text in values.get(key, np.array([])).tolist())
    for key, kind in PLAIN.items():
        stored = STORED_AS.get(key, key)
        if stored in file.attrs:
            values[key] = kind(file.attrs[stored])
    provenance = json.loads(file.attrs["provenance"])
    values["provenance"] = {str(key): str(value) for key, value in provenance.items()}
    try:
        return Atlas(**values)
    except AtlasError as error:
        raise ReadError(f"{place}: {error}") from error


def _values(place: Path, dataset: Any) -> Any:
    """Return the content of a dataset, after checks of what it declares."""
    check_dataset(place, dataset)
    if dataset.dtype.kind not in "fiubS":
        raise TypeError(f"{dataset.name} is {dataset.dtype}")
    size = dataset.nbytes
    check_memory(place, 2 * size, "a dataset")
    if dataset.chunks is None:
        complete = dataset.id.get_storage_size() >= size
    elif place.stat().st_size * DEFLATE > budget():  # chunks may unpack to too much
        stored, total = stored_chunks(place, dataset)
        complete = len(stored) == total
    else:
        complete = dataset.id.get_num_chunks() == chunk_count(dataset)
    if size and not complete:
        raise ValueError(f"{dataset.name} declares {sized(size)} that are not there")
    return dataset[()]


def _put(file: Any, key: str, value: Any) -> None:
    """Store an array, compressed, without the time stamp that HDF5 would add."""
    small = value.size == 0
    file.create_dataset(
        key,
        data=value,
        track_times=False,
        compression=None if small else "gzip",
        shuffle=not small,
    )
