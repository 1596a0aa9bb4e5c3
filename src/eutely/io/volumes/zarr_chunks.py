"""The gate of Zarr folders: which codecs may run, which chunks are there, what they unpack to."""

import bz2
import lzma
import math
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.limits import budget, check_deflated, check_memory, check_unpacked, counted, sized

CODECS = frozenset((
    "adler32", "blosc", "bytes", "bz2", "crc32", "crc32c", "delta", "fletcher32", "gzip",
    "jenkins_lookup3", "lz4", "lzma", "sharding_indexed", "shuffle", "transpose", "zlib", "zstd",
))  # fmt: skip
"""Codecs that may run, by their names in Zarr 2 and 3: none can run code of the file."""

PLAIN = {"bytes", "transpose", "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"}
"""Codecs that do not change the size, or only by a checksum."""

ZSTD_RATIO = 40_000
"""The largest number of bytes that one byte of a Zstandard frame of unknown size stands for."""

HEADER = 18
"""Bytes at the beginning of a chunk that tell its size."""


def files_of(root: Path) -> dict[str, int]:
    """Return the files of a Zarr folder, path -> bytes; refuse devices and links that lead out."""
    top = root.resolve()
    files: dict[str, int] = {}
    folders = [(top, "")]
    while folders:
        folder, before = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name = f"{before}{entry.name}"
                if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(top):
                    raise ReadError(f"{root}: {name} is a link out of the folder; copy the data")
                if entry.is_dir(follow_symlinks=False):
                    folders.append((Path(entry.path), f"{name}/"))
                elif entry.is_file():
                    files[name] = entry.stat().st_size
                else:
                    raise ReadError(f"{root}: {name} is not an ordinary file")
    return files


def check_codecs(place: object, array: Any) -> list[str]:
    """Return the names of the codecs of an array, the last one to write last; refuse others."""
    names = list(_codec_names(array.metadata.to_dict()))
    for name in names:
        if name not in CODECS:
            raise ReadError(
                f"{place}: codec '{ascii(name)[1:-1]}' is not one that eutely reads; write the "
                "labels with zstd, blosc or gzip"
            )
    return names


def _codec_names(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all codecs, those inside shards too."""
    codecs = [*(metadata.get("filters") or ()), metadata.get("compressor")]
    for codec in metadata.get("codecs", [entry for entry in codecs if entry]):
        name = codec if isinstance(codec, str) else str(codec.get("id", codec.get("name")))
        yield name.removeprefix("numcodecs.")
        inner = codec.get("configuration") if isinstance(codec, Mapping) else None
        for key in ("index_codecs", "codecs"):
            if isinstance(inner, Mapping) and key in inner:
                yield from _codec_names({"codecs": inner[key]})


def present_chunks(array: Any, files: Iterable[str]) -> tuple[NDArray[np.int64], int]:
    """Return (n, axes) the indices of the chunks (or shards) in files, and how many there are."""
    cells = array.shards or array.chunks
    grid = [-(-length // side) for length, side in zip(array.shape, cells, strict=True)]
    text = array.metadata.encode_chunk_key((0,) * array.ndim)
    before = f"{array.path}/" if array.path else ""
    form = re.compile(re.escape(before) + re.escape(text).replace("0", r"([0-9]{1,15})"))
    found = [form.fullmatch(name) for name in files]
    indices = [[int(word) for word in match.groups()] for match in found if match]
    present = np.array(indices, dtype=np.int64).reshape(-1, array.ndim)
    return present[(present < grid).all(axis=1)], math.prod(grid)


def check_chunks(
    place: Path, array: Any, present: NDArray[np.int64], files: Mapping[str, int]
) -> None:
    """Raise a ReadError if a chunk unpacks to more than it should, by what it declares."""
    names = check_codecs(place, array)
    size = math.prod(array.chunks) * array.dtype.itemsize
    before = f"{array.path}/" if array.path else ""
    cells = math.prod(array.shards or array.chunks) * array.dtype.itemsize
    keys = [before + array.metadata.encode_chunk_key(tuple(row)) for row in present.tolist()]
    check_unpacked(place, len(keys) * cells, sum(files[key] for key in keys))
    outer = [name for name in names if name not in PLAIN]
    if array.shards is not None:
        check_memory(place, 16 * (cells // max(1, size)), "the index of a shard")
    for key in keys if outer else []:
        with (place / key).open("rb") as file:
            if array.shards is None:
                _check_stored(place, outer[-1], file, files[key], size)
            else:
                for offset, length in _inner_chunks(file, files[key], cells // size, array):
                    file.seek(offset)
                    _check_stored(place, outer[-1], file, length, size)


def _inner_chunks(file: Any, stored: int, count: int, array: Any) -> list[tuple[int, int]]:
    """Return offset and length of the chunks in a shard."""
    codec = array.metadata.to_dict()["codecs"][0]["configuration"]
    checksum = 4 if len(codec.get("index_codecs", ())) > 1 else 0
    length = 16 * count + checksum
    if length > stored:
        raise ReadError(f"{file.name}: a shard of {sized(stored)} without a complete index")
    file.seek(0 if codec.get("index_location") == "start" else stored - length)
    index = np.frombuffer(file.read(16 * count), "<u8").reshape(-1, 2)
    there = index[(index != 2**64 - 1).any(axis=1)].tolist()
    if any(offset + size > stored for offset, size in there):
        raise ReadError(f"{file.name}: the index of the shard points outside the file")
    return [(offset, size) for offset, size in there]


def _check_stored(place: Path, codec: str, file: Any, stored: int, size: int) -> None:
    """Raise a ReadError if stored bytes declare more than ``size``, or unpack to too much."""
    if codec in {"gzip", "zlib"}:
        check_deflated(place, partial(file.read, stored), stored, partial(zlib.decompressobj, 47))
        return
    streams: dict[str, Callable[[], Any]] = {
        "bz2": bz2.BZ2Decompressor,
        "lzma": partial(lzma.LZMADecompressor, memlimit=budget()),
    }
    if codec in streams:
        check_memory(place, counted(file.read(stored), streams[codec](), budget()), "a chunk")
        return
    declared = declared_size(codec, file.read(HEADER))
    if declared is None:
        check_memory(place, ZSTD_RATIO * stored, "a chunk of unknown size")
    elif declared > 2 * size + 1024:
        raise ReadError(
            f"{place}: a chunk declares {sized(declared)}, expected {sized(size)}; is it damaged?"
        )


def declared_size(codec: str, head: bytes) -> int | None:
    """Return the unpacked size that a chunk declares, or None if it does not.

    >>> declared_size("lz4", bytes([8, 1, 0, 0]))
    264
    """
    if codec == "blosc":
        return int.from_bytes(head[4:8], "little")
    if codec == "lz4":
        return int.from_bytes(head[:4], "little")
    if codec != "zstd":
        return 0
    if len(head) < 5 or head[:4] != b"\x28\xb5\x2f\xfd":
        return 0  # no frame: the codec says so
    flags = head[4]
    single = flags >> 5 & 1
    at = 5 + (0 if single else 1) + (0, 1, 2, 4)[flags & 3]
    width = (single, 2, 4, 8)[flags >> 6]
    if not width:
        return None
    return int.from_bytes(head[at : at + width], "little") + (256 if width == 2 else 0)
