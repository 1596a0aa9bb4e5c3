"""Bounds for files from strangers: memory, sizes, and where a file may point to.

What a file declares is checked here before anything is allocated or followed.
"""

import math
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

from eutely.errors import ConfigError, ReadError

VARIABLE = "EUTELY_MAX_MEMORY"
"""Environment variable with the budget, such as ``4GB``; the option --max-memory sets it."""

SHARE = 0.25
"""Share of the machine's memory that reading one file may take, by default."""

UNKNOWN_MEMORY = 8 * 2**30
"""Bytes of memory assumed where the system does not tell."""

LARGE = 16 * 2**30
"""Bytes that a file may unpack to, however small it is."""

RATIO = 1000
"""Larger files unpack to at most this many times their size."""

DEFLATE = 1032
"""The largest number of bytes that one byte of gzip, zlib or HDF5's deflate can stand for."""

PIECE = 2**20
"""Bytes that are unpacked at once to count them."""

WHOLE = 20
"""Bytes of memory that a byte of JSON takes, once its values are apart."""

ENTRY = 16
"""Bytes of memory that a byte of the directory of a ZIP archive takes."""

DIRECTORY = (b"PK\x05\x06", 12, 22 + 2**16)
"""Where a ZIP archive tells the size of its directory: after this mark, within these last bytes."""

CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux tells the limit of a container."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def budget() -> int:
    """Return the bytes of memory that reading one file may take."""
    given = os.environ.get(VARIABLE)
    return bytes_of(given) if given else int(SHARE * memory())


def set_budget(text: str) -> None:
    """Set the budget of this process and of those it starts, from text such as ``4GB``."""
    bytes_of(text)
    os.environ[VARIABLE] = text


@cache
def bytes_of(text: str) -> int:
    """Return a number of bytes from text.

    >>> bytes_of("2.5GB"), bytes_of("300 MiB"), bytes_of("1e9")
    (2500000000, 314572800, 1000000000)
    """
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    try:
        if match is None:
            raise ValueError
        prefix, binary = match[2], bool(match[3])
        unit = 1024 ** "kmgt".find(prefix) * 1024 if binary and prefix else _UNITS[prefix]
        count = int(float(match[1]) * unit)
    except (ValueError, OverflowError):
        count = 0
    if count < 1:
        raise ConfigError(f"memory of '{text}': expected a size such as 500MB or 4GB")
    return count


@cache
def memory() -> int:
    """Return the memory of the machine, or of the container that limits this process."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        total = UNKNOWN_MEMORY
    for place in CGROUPS:
        try:
            total = min(total, int(Path(place).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return total


def sized(count: float) -> str:
    """Return a number of bytes as text.

    >>> sized(1.2e9), sized(1e30)
    ('1.2 GB', '1e+18 TB')
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def check_memory(place: object, need: int, what: str) -> None:
    """Raise a ReadError if ``what`` of a file takes more than the budget."""
    most = budget()
    if need > most:
        raise ReadError(
            f"{place}: {what} takes {sized(need)} of memory, more than the limit of "
            f"{sized(most)}; raise it with --max-memory"
        )


def check_unpacked(place: object, unpacked: int, stored: int) -> None:
    """Raise a ReadError if a small file declares far more than it can plausibly hold."""
    if unpacked > max(LARGE, RATIO * stored):
        raise ReadError(
            f"{place}: declares {sized(unpacked)} in a file of {sized(stored)}; expected data, "
            "not an empty array; crop it to the specimen"
        )


def check_regular(path: Path) -> None:
    """Raise a ReadError unless ``path`` is an ordinary file: no device, pipe or socket."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise ReadError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from error
    if not stat.S_ISREG(mode):
        raise ReadError(f"cannot read {path}: not an ordinary file; give a file or a folder")


def small_file(path: Path) -> bytes:
    """Return the content of an ordinary file that is read as a whole, within the budget."""
    check_regular(path)
    try:
        check_memory(path, WHOLE * path.stat().st_size, "the file")
        return path.read_bytes()
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror or error}") from error


def beside(path: Path, name: str) -> Path:
    """Return the file that ``path`` refers to by ``name``; it must lie in the folder of ``path``.

    Links are followed before the place is checked.
    """
    folder = path.parent.resolve()
    try:
        file = (folder / name).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise ReadError(f"{path}: no data file '{ascii(name)[1:-1]}'; copy it too") from error
    if not file.is_relative_to(folder):
        raise ReadError(
            f"{path}: its data file {name} lies outside its folder; move it beside the header"
        )
    check_regular(file)
    return file


def check_deflated(place: object, data: Any, stored: int, decompressor: Any) -> None:
    """Raise a ReadError if compressed bytes may unpack to more than the budget, and do.

    Parameters
    ----------
    place
        of the file.
    data
        function that returns the compressed bytes.
    stored
        how many they are.
    decompressor
        function that returns a new decompressor with ``decompress(data, max_length)``.
    """
    most = budget()
    if stored * DEFLATE <= most:
        return
    check_memory(place, counted(data(), decompressor(), most), "a chunk")


def counted(data: bytes, decompressor: Any, most: float = math.inf) -> int:
    """Return the number of bytes that ``data`` unpacks to; counting stops above ``most``."""
    total = 0
    while True:
        piece = decompressor.decompress(data, PIECE)
        total += len(piece)
        if total > most or decompressor.eof or not piece:
            return total
        data = getattr(decompressor, "unconsumed_tail", b"")


class Unpacked:
    """Bytes of a compressed file as they come; what is cut off or follows the end is an error.

    Parameters
    ----------
    file
        with the compressed bytes, at the first.
    decompressor
        function that returns a new decompressor with ``decompress(data, max_length)``.
    check
        called with the number of bytes so far, to refuse too many.
    """

    def __init__(
        self,
        file: IO[bytes],
        decompressor: Callable[[], Any],
        check: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.file = file
        self.new = decompressor
        self.check = check
        self.current = decompressor()
        self.waiting = b""
        self.total = 0

    def read(self, count: int) -> bytes:
        """Return ``count`` bytes, or fewer at the end."""
        parts = []
        while count > 0:
            if self.current.eof:
                self.waiting = self.current.unused_data.lstrip(b"\0") or self.file.read(PIECE)
                if not self.waiting.strip(b"\0"):  # archives may be padded
                    break
                self.current = self.new()
            if not self.waiting and getattr(self.current, "needs_input", True):
                self.waiting = self.file.read(PIECE)
                if not self.waiting:
                    raise EOFError("the compressed data are cut off")
            part = self.current.decompress(self.waiting, min(count, PIECE))
            self.waiting = getattr(self.current, "unconsumed_tail", b"")
            parts.append(part)
            count -= len(part)
            self.total += len(part)
            self.check(self.total)
        return b"".join(parts)

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes, piece by piece."""
        while piece := self.read(PIECE):
            yield piece


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP archive whose entries are stored or deflated: others unpack without bounds.

    An entry that is read unpacks to the size that it declares and no more; check these sizes.
    """
    mark, offset, tail = DIRECTORY
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - tail))
        end = file.read(tail)
    at = end.rfind(mark)
    if at >= 0:
        declared = int.from_bytes(end[at + offset : at + offset + 4], "little")
        check_memory(path, ENTRY * min(declared, size), "the list of entries")
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ReadError(
                    f"{path}: {ascii(entry.filename)[1:-1]} is not packed by deflate; pack it again"
                )
        yield archive
