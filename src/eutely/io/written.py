"""What a command leaves in a folder is one commit, beside what people made.

A folder of outputs holds a manifest, ``.written.json``: the hash of each file as eutely wrote it,
and the cells that its tables are of. A command makes its files and the next manifest in a hidden
folder, which one rename turns into the commit; then they move to their places, the manifest last.
So all files of a command are there or none, also after a crash: whoever opens the folder next
completes the moves. A file with another hash was changed by hand since, or is not eutely's at all.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from eutely.errors import ReadError, WriteError
from eutely.io.limits import check_regular, small_file
from eutely.io.whole import (
    alone,
    copy,
    entries_to_disk,
    keep_copy,
    move,
    new_folder,
    new_text,
    refuse_link,
    remove,
    remove_empty,
    scratch,
    sweep,
    temporary,
    to_disk,
    whole,
    write_text,
)

log = logging.getLogger("eutely")

PAGE = "report.html"
"""The page of a run or of annotations."""

REPORT = "report.npz"
"""What that page shows besides the atlas, to write it again."""

RECORD = ".written.json"
"""The manifest of a folder."""

COMMIT = ".eutely-commit"
"""Folder of files that are committed and not yet at their places; its manifest moves last."""

SCHEMA = 2
"""Version of the manifest; the first one was only file name -> hash."""

RUN = "eutely-run.json"
"""File by which the folder of a run is recognised."""

OURS = ("annotations", "look-here-first", "pins")
"""Tables in a folder of annotations that no specimen can be called after."""

_open: ContextVar[Mapping[Path, Commit]] = ContextVar("commits", default={})  # noqa: B039


@dataclass
class Manifest:
    """What eutely wrote into a folder.

    Attributes
    ----------
    files
        file name -> SHA-256.
    cells
        hash of the cells that tables and report are of, see `eutely.io.atlas.cells_of`; ""
        where that is not known, as in older folders.
    """

    files: dict[str, str] = field(default_factory=dict)
    cells: str = ""


@dataclass
class Commit:
    """Files on their way into a folder."""

    aside: Path
    cells: str = ""
    instead_of: set[str] = field(default_factory=set)


def check_finished(folder: Path) -> None:
    """Raise an error unless a folder holds a finished run, or annotations."""
    finish(folder)
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


def refuse_run(output: Path) -> None:
    """Raise an error if the folder for annotations is that of a run, whose page they would take."""
    if (output / RUN).exists():
        raise WriteError(f"{output} is the folder of eutely build; give -o another folder")


def _same(first: Path, second: Path) -> bool:
    """Tell whether two resolved paths are one file, also by a link or in another spelling."""
    if first == second:
        return True
    try:
        return os.path.samefile(first, second)
    except OSError:
        return False


@contextmanager
def tables_in(folder: Path, cells: str = "", instead_of: Iterable[str] = ()) -> Iterator[Path]:
    """Yield a temporary folder; the files in it are committed to ``folder`` if the block succeeds.

    A file that is there already and was not written by eutely, or was changed since, is kept as
    ``<name>.bak``, and a warning says so. A block inside of another one for the same folder takes
    part in its commit.

    Parameters
    ----------
    folder
        for the files.
    cells
        checksum of the cells that the files are of, for the manifest.
    instead_of
        files of earlier commands that these are written instead of: the manifest forgets them.
    """
    place = folder.resolve()
    outer = _open.get().get(place)
    if outer is not None:
        outer.cells = cells or outer.cells
        outer.instead_of.update(instead_of)
        yield outer.aside
        return
    new = not folder.exists()
    commit = Commit(temporary(folder / "tables"), cells, set(instead_of))
    try:
        finish(folder)
        sweep(folder / "tables")
        new_folder(commit.aside)
        token = _open.set({**_open.get(), place: commit})
        try:
            yield commit.aside
        finally:
            _open.reset(token)
        _commit(folder, commit)
    except OSError as error:
        raise WriteError(f"cannot write into {folder}: {error.strerror or error}") from error
    finally:
        remove(commit.aside)
        if new:
            remove_empty(folder)


def _commit(folder: Path, commit: Commit) -> None:
    """Turn the files of a finished block into those of the folder."""
    hashes = {path.name: _hash(path) for path in sorted(commit.aside.iterdir())}
    with alone(folder / RECORD):
        _finish(folder)  # of another process that wrote meanwhile
        before = manifest_of(folder)
        _keep_changed(folder, before, hashes)
        files = before.files | hashes
        content = {
            "schema": SCHEMA,
            "cells": commit.cells or before.cells,
            "files": {name: files[name] for name in files.keys() - commit.instead_of},
        }
        with new_text(commit.aside / RECORD) as file:
            file.write(json.dumps(content, indent=1, sort_keys=True) + "\n")
        to_disk(commit.aside)
        move(commit.aside, folder / COMMIT)
        entries_to_disk(folder)
        _complete(folder)


def _keep_changed(folder: Path, before: Manifest, hashes: Mapping[str, str]) -> None:
    """Keep what a person changed or made at the places of new files, given by their hashes."""
    for name, hash_ in hashes.items():
        there = folder / name
        refuse_link(there)
        if there.is_dir():
            raise WriteError(f"{there} is a folder, where a file goes; move it away")
        if there.is_file() and _hash(there) not in (before.files.get(name), hash_):
            _keep(there)


def finish(folder: Path) -> None:
    """Complete what a command had committed to a folder when it was ended."""
    if os.path.lexists(folder / COMMIT):
        with alone(folder / RECORD):  # a command may be about to complete it
            _finish(folder)


def _finish(folder: Path) -> None:
    ready = folder / COMMIT
    if not os.path.lexists(ready):
        return
    advice = f"delete {ready}, then run the last command again"
    if ready.is_symlink() or not ready.is_dir():
        raise ReadError(f"{ready} is no folder of eutely's; {advice}")
    try:
        hashes = manifest_of(ready).files
        waiting = {}
        for path in sorted(ready.iterdir()):
            if not stat.S_ISREG(path.lstat().st_mode):
                raise ReadError(f"{path} is no file; {advice}")
            if path.name != RECORD:
                waiting[path.name] = _hash(path)
                if hashes.get(path.name) not in (None, waiting[path.name]):
                    raise ReadError(f"{path} is not what was written there; {advice}")
        _keep_changed(folder, manifest_of(folder), waiting)
        _complete(folder)
    except OSError as error:
        raise ReadError(
            f"{folder} was left in the middle of writing, and cannot be completed "
            f"({error.strerror or error}); open it where it can be written"
        ) from error


def _complete(folder: Path) -> None:
    """Move committed files to their places, the manifest last."""
    ready = folder / COMMIT
    try:
        for path in sorted(ready.iterdir(), key=lambda path: (path.name == RECORD, path.name)):
            move(path, folder / path.name)
    except FileNotFoundError:
        pass  # another process is completing it, too
    remove_empty(ready)


def check_together(folder: Path, cells: str, names: Iterable[str] = ()) -> None:
    """Raise an error if files of a folder are not of one build or annotation.

    Parameters
    ----------
    folder
        with or without a manifest; of an older one nothing is known.
    cells
        checksum of the cells of its atlas.
    names
        of files that nobody changes by hand.
    """
    known = manifest_of(folder)
    if not known.cells:
        return
    apart = "" if cells == known.cells else "its atlas"
    for name in names:
        if name in known.files and _hash(folder / name) != known.files[name]:
            apart = apart or name
    if apart:
        raise ReadError(
            f"{folder} holds files of different builds or annotations: {apart} does not belong to "
            f"the others; restore it, or run eutely build or annotate again, into a new folder"
        )


def manifest_of(folder: Path) -> Manifest:
    """Return the manifest of a folder; an empty one where there is none."""
    try:
        found = json.loads(small_file(folder / RECORD))
    except (ReadError, ValueError, RecursionError):
        return Manifest()
    if not isinstance(found, dict):
        return Manifest()
    files = found.get("files") if found.get("schema") == SCHEMA else found
    cells = found.get("cells")
    return Manifest(
        dict(files) if isinstance(files, dict) else {}, cells if isinstance(cells, str) else ""
    )


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a file, which is committed with its folder if that has it."""
    if path.name in manifest_of(path.parent).files:
        with tables_in(path.parent) as aside:
            yield aside / path.name
    else:
        with whole(path) as aside:
            yield aside


@contextmanager
def table_at(path: Path) -> Iterator[Path]:
    """Yield a temporary path with the same name; it becomes ``path`` if the block succeeds.

    A file at ``path`` with other content is kept as ``<name>.bak``, and a warning says so.
    """
    if path.is_dir():
        raise WriteError(f"{path} is a folder; give a file, like {path / 'table.csv'}")
    with whole(path) as aside, scratch() as folder:
        yield folder / path.name
        copy(folder / path.name, aside)
        if path.is_file() and _hash(path) != _hash(aside):
            _keep(path)


@contextmanager
def copy_at(path: Path) -> Iterator[Path]:
    """Yield a temporary path; the file or folder there becomes ``path`` if the block succeeds.

    As in `tables_in`: what a person changed or made there is kept as ``<name>.bak``.
    """
    finish(path.parent)
    with whole(path) as aside:
        yield aside
        new = hash_of(aside)
        if path.exists() and hash_of(path) not in (_known_hash(path), new):
            _keep(path)
    with alone(path.parent / RECORD):  # others may have committed files since
        _finish(path.parent)
        known = manifest_of(path.parent)
        files = known.files | {path.name: new}
        after = {"schema": SCHEMA, "cells": known.cells, "files": files}
        write_text(path.parent / RECORD, json.dumps(after, indent=1, sort_keys=True) + "\n")


def _known_hash(path: Path) -> str | None:
    """Return the hash of a file as eutely wrote it; None where that is not known."""
    return manifest_of(path.parent).files.get(path.name)


def write_page(path: Path, page: str) -> None:
    """Write a page of eutely; one that a person changed or made is kept as ``<name>.bak``."""
    with tables_in(path.parent) as aside, new_text(aside / path.name) as file:
        file.write(page)


def _keep(path: Path) -> None:
    """Keep a copy of a file that a person may have made, and say so."""
    log.warning("%s was there with other content; it is kept as %s", path, keep_copy(path).name)


def _hash(path: Path) -> str:
    check_regular(path)
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
