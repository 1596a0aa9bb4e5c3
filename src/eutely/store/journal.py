"""A list of plain records that grows on disk, one line each: what a long stage did so far."""

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eutely.errors import WriteError
from eutely.record import plain_json


class Journal:
    """Plain values (what JSON can hold) in the order in which they were added.

    Each line carries a checksum. What a crash or a full disk left unfinished at the end is cut
    off on opening, so that a journal always is a prefix of what was added.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._values: list[Any] = []
        try:
            content = path.read_bytes() if path.exists() else b""
            good = 0
            for line in content.splitlines(keepends=True):
                if not line.endswith(b"\n") or not _intact(line):
                    break
                self._values.append(json.loads(line[9:]))
                good += len(line)
            if good < len(content):
                with path.open("r+b") as file:
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
            self.path.parent.mkdir(parents=True, exist_ok=True)
            size = self.path.stat().st_size if self.path.exists() else 0
            try:
                with self.path.open("ab", buffering=0) as file:
                    rest = line
                    while rest:  # a nearly full disk takes a part, then says so
                        rest = rest[file.write(rest) :]
            except OSError:
                if self.path.exists():
                    with self.path.open("r+b") as file:
                        file.truncate(size)
                raise
        except OSError as error:
            raise WriteError(f"cannot write {self.path}: {error.strerror or error}") from error
        self._values.append(json.loads(text))


def _intact(line: bytes) -> bool:
    """Tell whether a line has its checksum."""
    return line[:9] == f"{zlib.crc32(line[9:-1]):08x} ".encode()
