"""All that eutely writes goes through here: nothing is half there, and no link is followed.

A file is made beside its place under a hidden name, brought to the disk, then renamed. Files that
grow (logs, journals, locks) are opened in place, unless they are links or no files. A test checks
that no other module opens a file for writing, or moves or deletes one.
"""

from __future__ import annotations

import errno
import filecmp
import hashlib
import io
import os
import platform
import re
import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, BinaryIO, TextIO
from uuid import uuid4

from eutely.errors import WriteError

MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
"""Which machine writes, since numbers of processes mean nothing on another one."""

OLD = "old."
"""Mark of a folder that is being replaced."""

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Flag of the system that refuses links; without it links are looked for before."""

PLAIN = NO_LINK | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of all files that are opened."""

AT_ONCE, FEW = 4, 12
"""Files that are brought to the disk at the same time, if there are more than a few."""

RawFile = io.FileIO
"""What takes the bytes of all files."""


def temporary(path: Path, mark: str = "") -> Path:
    """Return a hidden path beside ``path`` that says which process writes there."""
    return path.with_name(f".{MACHINE}-{os.getpid()}-{uuid4().hex[:8]}.{mark}{path.name}")


def _is_aside(path: Path) -> bool:
    """Return whether a path is a `temporary` one of this process, or in such a folder."""
    begin = f".{MACHINE}-{os.getpid()}-"
    return path.name.startswith(begin) or path.parent.name.startswith(begin)


def sweep(path: Path) -> None:
    """Remove what processes that were killed left of their writing ``path``.

    A folder that such a process was replacing comes back, if there is none instead.
    """
    pattern = re.compile(
        rf"\.{MACHINE}-(\d+)-[0-9a-f]{{8}}\.({re.escape(OLD)})?{re.escape(path.name)}"
    )
    try:
        names = os.listdir(path.parent)
    except OSError:
        return
    for name in sorted(names):
        match = pattern.fullmatch(name)
        if match is None or _running(int(match[1])):
            continue
        left = path.with_name(name)
        if match[2] and not path.exists():
            os.rename(left, path)
        else:
            remove(left)


def _running(process: int) -> bool:
    """Return whether a process is running, or may be."""
    if os.name != "posix":  # os.kill would end it elsewhere
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def refuse_link(path: Path) -> None:
    """Raise an error if ``path`` is a link: what it leads to is not ours to change."""
    if path.is_symlink():
        raise WriteError(f"{path} is a link, which eutely does not write through; remove it")


@contextmanager
def whole(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` if the block succeeds.

    The block may create a file or a folder there; the name has the same suffixes. An existing file
    or folder at ``path`` is replaced, so a caller that must not overwrite checks first. If the
    block fails, nothing is left; what a killed process left is removed by the next one. What such
    a block writes in its turn, at its path or in its folder, is a part of it.

    Parameters
    ----------
    path
        of the file or folder; a link is refused.
    durable
        whether it is on the disk afterwards, whatever happens to the machine; not needed for what
        has a checksum and is computed again.
    """
    if _is_aside(path):  # what it is a part of becomes whole
        remove(path)
        yield path
        return
    aside = temporary(path)
    try:
        refuse_link(path)
        make_folders(path.parent)
        sweep(path)
        yield aside
        if durable:
            to_disk(aside)
        if path.is_dir() and aside.is_dir():
            old = temporary(path, OLD)
            os.rename(path, old)
            os.rename(aside, path)
            shutil.rmtree(old)
        else:
            move(aside, path)
        if durable:
            entries_to_disk(path.parent)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        remove(aside)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that is not there yet, for bytes."""

    def opened(name: str, _: int) -> int:
        return _opened(Path(name), os.O_WRONLY | os.O_EXCL)

    with io.BufferedWriter(RawFile(str(path), "xb", opener=opened), 2**18) as file:
        yield file


@contextmanager
def new_text(path: Path, encoding: str = "utf-8") -> Iterator[TextIO]:
    """Open a file that is not there yet, for text; what is no text becomes escapes."""
    with (
        new_file(path) as file,
        io.TextIOWrapper(file, encoding, errors="backslashreplace", newline="") as text,
    ):
        yield text


@contextmanager
def changing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that this process has just made, to change parts of it in place."""

    def opened(name: str, _: int) -> int:
        return os.open(name, os.O_RDWR | PLAIN)

    with io.BufferedRandom(RawFile(str(path), "rb+", opener=opened), 2**18) as file:
        yield file


def new_bytes(path: Path, content: bytes | memoryview) -> None:
    """Write a file that is not there yet."""
    with new_file(path) as file:
        file.write(content)


def new_folder(path: Path) -> Path:
    """Make a folder that is not there yet; return its path."""
    make_folders(path.parent)
    os.mkdir(path)
    return path


def make_folders(path: Path) -> None:
    """Make a folder and those that it lies in, where they are not there yet."""
    path.mkdir(parents=True, exist_ok=True)


@contextmanager
def growing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that stays where it is, to read it and to add to its end, without a buffer.

    A link is refused, also a second name of one file, and what is no file: someone else may have
    made the folder, and it may lead anywhere.
    """
    refuse_link(path)
    flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
    try:
        number = _opened(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _not_ours(path) from error
        raise
    with RawFile(number, "ab+") as file:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise _not_ours(path)
        yield file


def _not_ours(path: Path) -> WriteError:
    return WriteError(
        f"{path} is a link or no file, which eutely does not write through; remove it"
    )


def _opened(path: Path, flags: int) -> int:
    """Return the descriptor of a file that is created where it is not there."""
    return os.open(path, flags | os.O_CREAT | PLAIN, 0o666)


def add_all(file: IO[bytes], content: bytes) -> None:
    """Write all bytes to a file without a buffer: a nearly full disk takes a part, then says so."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def move(source: Path, path: Path) -> None:
    """Move a file to ``path``, replacing what is there, in one step."""
    os.replace(source, path)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; neither needs to be there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        path.unlink()


def remove_empty(folder: Path) -> None:
    """Remove a folder if it is empty."""
    with suppress(OSError):
        os.rmdir(folder)


def to_disk(path: Path) -> None:
    """Wait until a file, or a folder with all that is in it, is on the disk.

    Several files at once, after the system has been asked to begin with all of them: the disk then
    writes them in one go, which takes a fraction of the time.
    """
    if not path.is_dir():
        _file_to_disk(path)
        return
    inside = [each for each in path.rglob("*") if not each.is_symlink()]
    files = [each for each in inside if each.is_file()]
    for each in files:
        _begin_to_disk(each)
    folders = [path, *(each for each in inside if each.is_dir())]
    with ThreadPoolExecutor(AT_ONCE) if len(files) > FEW else nullcontext() as pool:
        each_of = pool.map if pool else map  # for a few files, threads cost more than they save
        list(each_of(_file_to_disk, files))
        list(each_of(entries_to_disk, folders))


def _begin_to_disk(path: Path) -> None:
    """Let the system begin to write a file, where it can be asked to, without waiting for it."""
    if not hasattr(os, "posix_fadvise"):
        return
    number = os.open(path, os.O_RDONLY | PLAIN)
    try:
        with suppress(OSError):  # not all file systems take advice
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(number)


def _file_to_disk(path: Path) -> None:
    number = os.open(path, os.O_RDWR | PLAIN)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def entries_to_disk(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can say so."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY | PLAIN & ~NO_LINK)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # not for folders
            raise
    finally:
        os.close(number)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Let no other process that does the same write a file meanwhile.

    Its folder is locked, as files are replaced by each change. Where there are no locks (Windows,
    some network drives) processes are trusted to come one after the other.
    """
    try:
        import fcntl

        make_folders(path.parent)
        folder = os.open(path.parent, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def copy(source: Path, path: Path) -> None:
    """Copy a file or a folder to a path where nothing is yet; links in a folder stay links."""
    if source.is_dir():
        shutil.copytree(source, path, symlinks=True)
        return
    with source.open("rb") as old, new_file(path) as new:
        shutil.copyfileobj(old, new, 2**20)


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a folder of this process outside of all others, for libraries that want a path."""
    with TemporaryDirectory(prefix="eutely-") as folder:
        yield Path(folder)


def keep_copy(path: Path) -> Path:
    """Keep a file that is about to be replaced as ``<name>.bak``; return the path of the copy.

    An earlier copy with other content stays: the next one is ``<name>.bak2``, and so on.
    """
    number = 1
    while True:
        kept = path.with_name(f"{path.name}.bak{number if number > 1 else ''}")
        free = not os.path.lexists(kept)
        if free or (path.is_file() and kept.is_file() and filecmp.cmp(path, kept, shallow=False)):
            break
        number += 1
    if free:
        with whole(kept) as aside:
            copy(path, aside)
    return kept


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8), whole or not at all; bytes that are no text become escapes."""
    with whole(path) as aside, new_text(aside) as file:
        file.write(text)
