"""Outputs that are written completely or not at all: to a temporary path, then renamed."""

import filecmp
import hashlib
import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from eutely.errors import WriteError

MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
"""Which machine writes, since numbers of processes mean nothing on another one."""

OLD = "old."
"""Mark of a folder that is being replaced."""


def temporary(path: Path, mark: str = "") -> Path:
    """Return a hidden path beside ``path`` that says which process writes there."""
    return path.with_name(f".{MACHINE}-{os.getpid()}-{uuid4().hex[:8]}.{mark}{path.name}")


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
            left.rename(path)
        elif left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


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


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` if the block succeeds.

    The block may create a file or a folder there; the name has the same suffixes. An existing file
    or folder at ``path`` is replaced, so a caller that must not overwrite checks first. If the
    block fails, nothing is left; what a killed process left is removed by the next one.
    """
    aside = temporary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path)
        yield aside
        if path.is_dir() and aside.is_dir():
            old = temporary(path, OLD)
            path.rename(old)
            aside.rename(path)
            shutil.rmtree(old)
        else:
            os.replace(aside, path)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if aside.is_dir():
            shutil.rmtree(aside, ignore_errors=True)
        elif aside.exists():
            aside.unlink()


def keep_copy(path: Path) -> Path:
    """Keep a file that is about to be replaced as ``<name>.bak``; return the path of the copy.

    An earlier copy with other content stays: the next one is ``<name>.bak2``, and so on.
    """
    number = 1
    while True:
        copy = path.with_name(f"{path.name}.bak{number if number > 1 else ''}")
        if not copy.exists() or (path.is_file() and filecmp.cmp(path, copy, shallow=False)):
            break
        number += 1
    with whole(copy) as aside:
        copied = shutil.copytree if path.is_dir() else shutil.copyfile
        copied(path, aside)
    return copy


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8), whole or not at all; bytes that are no text become escapes."""
    with whole(path) as aside:
        aside.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
