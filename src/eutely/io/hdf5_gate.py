"""The gate of HDF5 files: links stay in the file, and data are stored in it."""

import math
import mmap
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eutely.errors import ReadError
from eutely.io.limits import DEFLATE, budget, check_deflated, check_unpacked

HEAP = b"GCOL\x01\0\0\0"
"""Beginning of a heap, in which HDF5 keeps texts of any length."""

LZF = 32000
"""Number of the filter LZF."""

MOST_LINKS = 16
"""Soft links that are followed to one dataset."""


def linked(file: Any, name: str, left: int = MOST_LINKS) -> Any:
    """Return the object at a path in an HDF5 file, or None; links to other files are refused.

    Parameters
    ----------
    file
        an open HDF5 file.
    name
        path of the object, from the root.
    left
        how many further soft links may be followed.
    """
    import h5py

    node: Any = file
    parts = [part for part in name.split("/") if part not in {"", "."}]
    for number, part in enumerate(parts):
        name_of_part = part.encode()
        if not isinstance(node, h5py.Group) or name_of_part not in node.id:
            return None
        kind = node.id.links.get_info(name_of_part).type
        if kind == h5py.h5l.TYPE_HARD:
            node = node[part]
            continue
        link = node.get(part, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise ReadError(f"{file.filename}: {name} is a link to another file; copy the data")
        if isinstance(link, h5py.SoftLink):
            if not left:
                raise ReadError(f"{file.filename}: {name} is a link to a link, and so on; name it")
            start = "" if link.path.startswith("/") else f"{node.name}/"
            rest = "/".join(parts[number + 1 :])
            return linked(file, f"{start}{link.path}/{rest}", left - 1)
        return None  # a kind of link that only a plugin knows
    return node


def check_dataset(place: Path, dataset: Any) -> None:
    """Raise a ReadError unless the data of a dataset are stored in its own file, as an array."""
    import h5py

    layout = dataset.id.get_create_plist()
    if layout.get_layout() == h5py.h5d.VIRTUAL:
        raise ReadError(f"{place}: {dataset.name} is a virtual dataset; copy the data into it")
    if layout.get_external_count():
        raise ReadError(f"{place}: the data of {dataset.name} lie in another file; copy them")
    if dataset.shape is None or dataset.shape == ():
        raise ReadError(f"{place}: {dataset.name} is a single value, expected an array")


def stored_chunks(place: Path, dataset: Any) -> tuple[list[Any], int]:
    """Return the chunks of a dataset that are in its file, and how many there should be.

    Raises
    ------
    ReadError
        if they declare more than they can hold, or unpack to more than the budget.
    """
    stored: list[Any] = []
    dataset.id.chunk_iter(stored.append)
    size = math.prod(dataset.chunks) * dataset.dtype.itemsize
    check_unpacked(place, size * len(stored), sum(chunk.size for chunk in stored))
    if dataset.compression == "gzip":
        most = budget()
        for chunk in (chunk for chunk in stored if chunk.size * DEFLATE > most):
            data = partial(_raw, dataset, chunk.chunk_offset)
            check_deflated(place, data, chunk.size, zlib.decompressobj)
    if dataset.compression == "lzf" and not dataset.fletcher32:
        _check_lzf(place, dataset, stored, size)
    return stored, chunk_count(dataset)


def _check_lzf(place: Path, dataset: Any, stored: list[Any], size: int) -> None:
    """Raise a ReadError if a chunk does not unpack to ``size`` bytes: HDF5 would not notice."""
    from eutely.io.lzf import unpacked_size  # here, because importing Numba is slow

    layout = dataset.id.get_create_plist()
    filters = [layout.get_filter(number)[0] for number in range(layout.get_nfilters())]
    skipped = 1 << filters.index(LZF)  # set where a chunk is stored as it is
    for chunk in stored:
        if chunk.filter_mask & skipped:
            continue
        packed = dataset.id.read_direct_chunk(chunk.chunk_offset)[1]
        if unpacked_size(np.frombuffer(packed, np.uint8)) != size:
            at = chunk.chunk_offset
            raise ReadError(f"cannot read {place}: damaged or cut off (chunk {at}); copy it again")


def chunk_count(dataset: Any) -> int:
    """Return the number of chunks that a dataset should have."""
    sides = zip(dataset.shape, dataset.chunks, strict=True)
    return math.prod(-(-length // side) for length, side in sides)


def _raw(dataset: Any, offset: tuple[int, ...]) -> bytes:
    return bytes(dataset.id.read_direct_chunk(offset)[1])


def is_text(node: Any, key: str) -> bool:
    """Return whether an attribute is text (or else) of any length, which lies in a heap."""
    import h5py

    kind = node.attrs.get_id(key).get_type()
    if isinstance(kind, h5py.h5t.TypeStringID):
        return bool(kind.is_variable_str())
    return not isinstance(kind, h5py.h5t.TypeFloatID | h5py.h5t.TypeIntegerID)


def check_heaps(place: Path, apart: tuple[int, int] = (0, 0)) -> None:
    """Raise a ReadError if a heap is damaged in a way that lets HDF5 run in a circle.

    Parameters
    ----------
    place
        of the file.
    apart
        first byte of a region without heaps, and the one after it.
    """
    with place.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for start, end in ((0, apart[0]), (apart[1], len(data))):
            at = data.find(HEAP, start, end)
            while at >= 0:
                if not _walks(data, at):
                    raise ReadError(
                        f"cannot read {place}: damaged or cut off (texts in a heap); copy it"
                    )
                at = data.find(HEAP, at + len(HEAP), end)


def _walks(data: mmap.mmap, start: int) -> bool:
    """Return whether the objects of a heap follow each other up to its end."""
    end = start + int.from_bytes(data[start + 8 : start + 16], "little")
    at = start + 16
    while at + 16 <= end <= len(data):
        index = int.from_bytes(data[at : at + 2], "little")
        size = int.from_bytes(data[at + 8 : at + 16], "little")
        # The object 0 is what is left, its head included.
        step = 16 + -(-size // 8) * 8 if index else size
        if step < 16:
            return False
        at += step
    return at <= end <= len(data)
