"""A stage's result on disk: arrays and plain metadata in one file, without pickle.

The file is a ZIP archive of ``.npy`` files and a ``metadata.json``, so that ``numpy.load`` opens
it too. Equal records give equal bytes. The metadata hold the digest of the content; a file that
was cut off or damaged never passes for a result.
"""

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eutely.errors import ReadError
from eutely.io.whole import whole

METADATA = "metadata.json"
BEGINNING = (1980, 1, 1, 0, 0, 0)
"""The date of all members: a real one would make equal records differ."""


@dataclass(frozen=True, eq=False)
class Record:
    """Arrays by name, and metadata of what JSON can hold.

    Attributes
    ----------
    arrays
        numbers, truth values or fixed-length strings, of any shape.
    metadata
        dictionaries with string keys, lists, strings, numbers, truth values, None.
    """

    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        arrays = {name: _plain(name, self.arrays[name]) for name in sorted(self.arrays)}
        object.__setattr__(self, "arrays", MappingProxyType(arrays))
        object.__setattr__(self, "metadata", json.loads(plain_json(dict(self.metadata))))

    def __eq__(self, other: object) -> bool:
        """Tell whether all content agrees, bit by bit."""
        return self.digest == other.digest if isinstance(other, Record) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, in hexadecimal digits."""
        return digest({"arrays": dict(self.arrays), "metadata": self.metadata})


def pieces(values: NDArray[Any], counts: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Cut values that were put one behind the other, so many each."""
    parts = np.split(values, np.cumsum(counts)[:-1])
    return tuple(np.ascontiguousarray(part) for part in parts)


def digest(value: object) -> str:
    """Return the SHA-256 of arrays and plain values, nested in any way; a key for results.

    Equal values have equal digests wherever they are computed: arrays by dtype, shape and bytes,
    other values by their JSON.
    """
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def canonical(value: object) -> str:
    """Return ``value`` as JSON in its only form; an array is stood for by its hash."""
    return _json(value, _stand_in)


def plain_json(value: object) -> str:
    """Return ``value`` as JSON in its only form; NumPy's numbers become plain ones."""
    return _json(value, _number)


def _json(value: object, default: Callable[[object], object]) -> str:
    return json.dumps(value, default=default, sort_keys=True, separators=(",", ":"))


def _stand_in(value: object) -> object:
    """Return the hash of an array, with all that tells arrays of the same bytes apart."""
    if not isinstance(value, np.ndarray):
        return _number(value)
    array = _plain("", value)
    sha = hashlib.sha256(array.tobytes()).hexdigest()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": sha}


def _number(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither a number nor plain data")


def _plain(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in C order and little-endian, read-only; refuse Python objects."""
    array = np.asarray(array)
    if array.dtype.hasobject or array.dtype.names is not None:
        raise TypeError(f"array '{name}' of {array.dtype} cannot be stored without pickle")
    plain = np.array(array, dtype=array.dtype.newbyteorder("<"), order="C")
    plain.setflags(write=False)
    return plain


def write_record(path: Path, record: Record) -> None:
    """Write ``record`` to ``path``, whole or not at all."""
    metadata = {"digest": record.digest, "metadata": record.metadata}
    with whole(path) as aside, zipfile.ZipFile(aside, "w", zipfile.ZIP_STORED) as archive:
        _put(archive, METADATA, plain_json(metadata).encode())
        for name, array in record.arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
            _put(archive, f"{name}.npy", buffer.getvalue())


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    member = zipfile.ZipInfo(name, BEGINNING)
    member.create_system = 3  # the same on every platform
    archive.writestr(member, content)


def read_record(path: Path) -> Record:
    """Read a record; a ReadError says when the file is absent, cut off or damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            stored = json.loads(archive.read(METADATA))
            arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(
                    io.BytesIO(archive.read(name)), allow_pickle=False
                )
                for name in archive.namelist()
                if name != METADATA
            }
        record = Record(arrays, stored["metadata"])
        intact = record.digest == stored["digest"]
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error
    except (
        zipfile.BadZipFile, zlib.error, EOFError, ValueError, KeyError, TypeError,
        NotImplementedError, RuntimeError, OverflowError, MemoryError, struct.error,
    ) as error:  # fmt: skip
        raise ReadError(f"{path} is damaged ({type(error).__name__})") from error
    if not intact:
        raise ReadError(f"{path} is damaged (its content does not have its checksum)")
    return record
