"""Files of a run folder: records, whole or not at all, and journals that grow line by line.

The file of a record is a ZIP archive of ``.npy`` files and a ``metadata.json``, so that
``numpy.load`` opens it too. Equal records give equal bytes. The metadata hold the digest of the
content: a file that was cut off or damaged is not taken for a result.
"""

import io
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError, WriteError
from eutely.io.limits import check_regular, small_file
from eutely.io.whole import add_all, growing, make_folders, new_bytes, whole
from eutely.record import Record, plain_json

METADATA = "metadata.json"
BEGINNING = (1980, 1, 1, 0, 0, 0)
"""The date of all members: a real one would make equal records differ."""


def write_record(path: Path, record: Record) -> None:
    """Write ``record`` to ``path``, whole or not at all.

    It is not waited for until it is on the disk: it has a checksum, and can be computed again.
    """
    with whole(path, durable=False) as aside:
        new_record(aside, record)


def new_record(path: Path, record: Record) -> None:
    """Write ``record`` to a file that is not there yet."""
    metadata = {"digest": record.digest, "metadata": record.metadata}
    memory = io.BytesIO()  # in one piece to the disk
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as archive:
        _put(archive, METADATA, plain_json(metadata).encode())
        for name, array in record.arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
            _put(archive, f"{name}.npy", buffer.getvalue())
    new_bytes(path, memory.getbuffer())


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    member = zipfile.ZipInfo(name, BEGINNING)
    member.create_system = 3  # the same on every platform
    archive.writestr(member, content)


def read_record(path: Path) -> Record:
    """Read a record; a ReadError says when the file is absent, cut off or damaged."""
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(archive, path.stat().st_size)
            stored = json.loads(archive.read(METADATA))
            arrays = {
                name.removesuffix(".npy"): _array(archive.read(name))
                for name in archive.namelist()
                if name != METADATA
            }
        record = Record(arrays, stored["metadata"])
        intact = record.digest == stored["digest"]
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
    except (
        zipfile.BadZipFile, zlib.error, EOFError, ValueError, KeyError, TypeError,
        NotImplementedError, RuntimeError, OverflowError, MemoryError, struct.error, LookupError,
        AttributeError, SyntaxError, TokenError,
    ) as error:  # fmt: skip
        raise ReadError(f"{path} is damaged ({type(error).__name__})") from error
    if not intact:
        raise ReadError(f"{path} is damaged (its content does not have its checksum)")
    return record


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Raise a ValueError where members are not stored as they are, or exceed the file."""
    members = archive.infolist()
    total = sum(member.file_size for member in members)
    if any(member.compress_type != zipfile.ZIP_STORED for member in members) or total > size:
        raise ValueError("members that unpack to more than the file holds")


def _array(content: bytes) -> NDArray[Any]:
    """Return the array of a ``.npy`` file; its size is checked before it is allocated."""
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("another version of .npy")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if (
        fortran
        or dtype.hasobject
        or math.prod(shape) * dtype.itemsize != len(content) - file.tell()
    ):
        raise ValueError(f"an array of {dtype} {shape} in {len(content)} bytes")
    return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape)


class Journal:
    """Plain values (what JSON can hold) in the order in which they were added.

    Each line carries a checksum. What a crash or a full disk left unfinished at the end is cut
    off on opening, so that a journal always is a prefix of what was added.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._values: list[Any] = []
        try:
            content = small_file(path) if path.exists() else b""
            good = 0
            for line in content.splitlines(keepends=True):
                if not line.endswith(b"\n") or not _intact(line):
                    break
                try:
                    self._values.append(json.loads(line[9:]))
                except (ValueError, RecursionError):
                    break
                good += len(line)
            if good < len(content):
                with growing(path) as file:
                    file.truncate(good)
        except OSError as error:
            raise WriteError(f"cannot use {path}: {error.strerror or error}") from error

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._values))

    def append(self, value: object) -> None:
        """Add ``value``; when this returns, the end of this process cannot lose it."""
        text = plain_json(value)
        line = f"{zlib.crc32(text.encode()):08x} {text}\n".encode()
        try:
            make_folders(self.path.parent)
            with growing(self.path) as file:
                size = file.seek(0, os.SEEK_END)
                try:
                    add_all(file, line)
                except OSError:
                    file.truncate(size)
                    raise
        except OSError as error:
            raise WriteError(f"cannot write {self.path}: {error.strerror or error}") from error
        self._values.append(json.loads(text))


def _intact(line: bytes) -> bool:
    """Tell whether a line has its checksum."""
    return line[:9] == f"{zlib.crc32(line[9:-1]):08x} ".encode()
