"""Outputs that are written completely or not at all: to a temporary path, then renamed."""

import filecmp
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from eutely.errors import WriteError


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` if the block succeeds.

    The block may create a file or a folder there; the name has the same suffixes. An existing file
    or folder at ``path`` is replaced, so a caller that must not overwrite checks first. If the
    block fails, nothing is left.
    """
    aside = path.with_name(f".{uuid4().hex[:8]}.{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        if path.is_dir() and aside.is_dir():
            old = path.with_name(f".{uuid4().hex[:8]}.old.{path.name}")
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
        if not copy.exists() or filecmp.cmp(path, copy, shallow=False):
            break
        number += 1
    with whole(copy) as aside:
        shutil.copyfile(path, aside)
    return copy


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8), whole or not at all; bytes that are no text become escapes."""
    with whole(path) as aside:
        aside.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
