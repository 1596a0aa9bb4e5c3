"""Nouns as records: arrays and plain values, ready to be hashed or stored, without pickle.

`pack` turns a noun (a dataclass or named tuple of arrays, plain values and other nouns) into a
`Record`, `unpack` makes the noun of it again. The type hints of its fields say how, so a record
holds nothing but data: no class names, no code.
"""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


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


def pack(value: object) -> Record:
    """Return a noun, or plain values and arrays nested in tuples and dictionaries, as a record."""
    arrays: dict[str, NDArray[Any]] = {}
    return Record(arrays=arrays, metadata={"value": _encode(value, "value", arrays)})


def unpack(record: Record, kind: type[T]) -> T:
    """Return the noun that `pack` made a record of.

    Parameters
    ----------
    record
        from `pack`.
    kind
        the noun's class, or a hint such as ``tuple[Pose, ...]``.

    Raises
    ------
    ValueError, TypeError, KeyError
        where the record does not fit ``kind``; or the error by which the noun refuses its values.
    """
    decode: Decoder = _decoder(cast(Any, kind))
    return cast(T, decode(record.metadata["value"], record.arrays))


def _encode(value: Any, path: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return ``value`` as JSON can hold it; its arrays go to ``arrays`` under the path to them."""
    if isinstance(value, np.ndarray):
        if path in arrays:
            raise TypeError(f"two arrays at {path}")
        arrays[path] = value
        return path
    if isinstance(value, np.generic):
        return value.item()
    parts = _parts(value)
    if parts is not None:
        return {name: _encode(part, f"{path}.{name}", arrays) for name, part in parts.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        if _ragged(value):
            arrays[path] = np.concatenate(value)
            arrays[f"{path}.counts"] = np.array([len(part) for part in value])
            return {"ragged": path}
        return [_encode(inner, f"{path}.{number}", arrays) for number, inner in enumerate(value)]
    return value


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the fields of a noun, or the entries of a dictionary; None for anything else."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if hasattr(value, "_fields"):
        return {name: getattr(value, name) for name in value._fields}
    if isinstance(value, Mapping):
        return {str(key): inner for key, inner in value.items()}
    return None


def _ragged(value: Sequence[Any]) -> bool:
    """Return whether a sequence holds arrays that differ in their first length only."""
    alike = {
        (part.dtype, part.shape[1:]) if isinstance(part, np.ndarray) and part.ndim else None
        for part in value
    }
    return len(value) > 1 and len(alike) == 1 and None not in alike


Decoder = Callable[[Any, Mapping[str, NDArray[Any]]], Any]
"""Makes a value of what `_encode` made of it, and of the arrays."""


@cache
def _decoder(kind: Any) -> Decoder:
    """Return the decoder of values of type ``kind``; made once, since records are long."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is np.ndarray or origin is np.ndarray:
        return lambda data, arrays: np.array(arrays[data])
    if origin in (Union, types.UnionType):
        optional = type(None) in inner
        some = _decoder(next(hint for hint in inner if hint is not type(None)))
        return lambda data, arrays: None if data is None and optional else some(data, arrays)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = _hints(kind)
        return lambda data, arrays: kind(
            **{name: _decoder(hints[name])(part, arrays) for name, part in data.items()}
        )
    if origin in (tuple, list, Sequence):
        return _sequence_decoder(origin, inner)
    if origin in (dict, Mapping):
        entry = _decoder(inner[1])
        return lambda data, arrays: {key: entry(part, arrays) for key, part in data.items()}
    if kind in (int, float, str, bool):
        return lambda data, arrays: kind(data)  # noqa: ARG005
    return lambda data, arrays: data  # noqa: ARG005


def _sequence_decoder(origin: Any, inner: tuple[Any, ...]) -> Decoder:
    made = list if origin is list else tuple
    if origin is tuple and inner[-1] is not Ellipsis:
        parts = [_decoder(hint) for hint in inner]
        return lambda data, arrays: tuple(
            [decode(part, arrays) for decode, part in zip(parts, data, strict=True)]
        )
    entry = _decoder(inner[0])

    def decode(data: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
        if isinstance(data, dict):
            path = data["ragged"]
            split = np.split(arrays[path], np.cumsum(arrays[f"{path}.counts"])[:-1])
            return made(np.array(part) for part in split)
        return made([entry(part, arrays) for part in data])

    return decode


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)
