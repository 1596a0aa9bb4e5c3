"""Outputs beside what people made: inputs are never replaced, tables corrected by hand are kept.

A folder of outputs holds a small record, ``.written.json``: the hash of each table as eutely wrote
it. A table with another hash was changed by hand since, or is not eutely's at all.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from eutely.errors import ReadError, WriteError
from eutely.io.whole import keep_copy, sweep, temporary, whole, write_text

log = logging.getLogger("eutely")

PAGE = "report.html"
"""The page of a run or of annotations."""

REPORT = "report.npz"
"""What that page shows besides the atlas, to write it again."""

MADE_BY, PAGE_BEGIN = "· eutely</title>", 4000
"""End of the title of all pages, and the characters within which it stands."""

RECORD = ".written.json"
"""File name -> SHA-256 of what eutely wrote."""


def check_finished(folder: Path) -> None:
    """Raise an error unless a folder holds a finished run, or annotations."""
    if not (folder / REPORT).exists():
        raise ReadError(
            f"{folder} holds no finished run and no annotations (no {REPORT}); run eutely build "
            "or eutely annotate first"
        )


def refuse_to_replace(written: Iterable[Path], read: Iterable[Path]) -> None:
    """Raise an error if a file to write was read, or is part of a folder that was read (Zarr)."""
    inputs = [path.resolve() for path in read]
    for path in written:
        target = path.resolve()
        for given in inputs:
            if _same(target, given) or (given.is_dir() and target.is_relative_to(given)):
                raise WriteError(f"{path} is an input and would be replaced; give -o another name")


def refuse_folder(output: Path, inputs: Iterable[Path]) -> None:
    """Raise an error if the folder for the outputs is a folder of inputs."""
    for given in inputs:
        if given.is_dir() and _same(output.resolve(), given.resolve()):
            raise WriteError(f"{output} is the folder of the inputs; give -o another folder")


def _same(first: Path, second: Path) -> bool:
    """Tell whether two resolved paths are one file, also by a link or in another spelling."""
    if first == second:
        return True
    try:
        return os.path.samefile(first, second)
    except OSError:
        return False


@contextmanager
def tables_in(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder; the files in it move to ``folder`` if the block succeeds.

    A file that is there already and was not written by eutely, or was changed since, is kept as
    ``<name>.bak``, and a warning says so.
    """
    new, before = not folder.exists(), _record(folder)
    aside = temporary(folder / "tables")
    try:
        sweep(folder / "tables")
        aside.mkdir(parents=True)
        yield aside
        hashes = {path.name: _hash(path) for path in sorted(aside.iterdir())}
        for name, hash_ in hashes.items():
            if (folder / name).is_file() and _hash(folder / name) not in (before.get(name), hash_):
                _keep(folder / name)
        for name in hashes:
            (aside / name).replace(folder / name)
        write_text(folder / RECORD, json.dumps(before | hashes, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise WriteError(f"cannot write into {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if new and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


@contextmanager
def table_at(path: Path) -> Iterator[Path]:
    """Yield a temporary path with the same name; it becomes ``path`` if the block succeeds.

    A file at ``path`` with other content is kept as ``<name>.bak``, and a warning says so.
    """
    if path.is_dir():
        raise WriteError(f"{path} is a folder; give a file, like {path / 'table.csv'}")
    with whole(path) as aside, TemporaryDirectory() as folder:
        yield Path(folder, path.name)
        shutil.copyfile(Path(folder, path.name), aside)
        if path.is_file() and _hash(path) != _hash(aside):
            _keep(path)


@contextmanager
def copy_at(path: Path) -> Iterator[Path]:
    """Yield a temporary path; the file or folder there becomes ``path`` if the block succeeds.

    As in `tables_in`: what a person changed or made there is kept as ``<name>.bak``.
    """
    before = _record(path.parent)
    with whole(path) as aside:
        yield aside
        new = hash_of(aside)
        if path.exists() and hash_of(path) not in (before.get(path.name), new):
            _keep(path)
    record = before | {path.name: new}
    write_text(path.parent / RECORD, json.dumps(record, indent=1, sort_keys=True) + "\n")


def write_page(path: Path, page: str) -> None:
    """Write a page of eutely; a page of another program or person is kept as ``<name>.bak``."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            foreign = MADE_BY not in file.read(PAGE_BEGIN)
    except FileNotFoundError:
        foreign = False
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
    if foreign:
        _keep(path)
    write_text(path, page)


def _keep(path: Path) -> None:
    """Keep a copy of a file that a person may have made, and say so."""
    log.warning("%s was there with other content; it is kept as %s", path, keep_copy(path).name)


def _record(folder: Path) -> dict[str, str]:
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of all names and files in a folder."""
    if not path.is_dir():
        return _hash(path)
    entries = sorted(entry for entry in path.rglob("*") if entry.is_file())
    lines = [f"{entry.relative_to(path).as_posix()} {_hash(entry)}" for entry in entries]
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def refuse_other_kind(path: Path, keys: Iterable[str]) -> None:
    """Raise an error if a file for JSON is there already and was not written by this command.

    Parameters
    ----------
    path
        for JSON.
    keys
        that the JSON of the command always has.
    """
    try:
        before = json.loads(path.read_bytes() or b"null")
    except FileNotFoundError:
        return
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError):
        before = ""
    if before is not None and not (isinstance(before, dict) and set(keys) <= set(before)):
        raise WriteError(
            f"{path} is there already and is no earlier result of this command; give another name"
        )
