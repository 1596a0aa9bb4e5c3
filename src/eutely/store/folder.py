"""The folder of a run: settings, versions, log and the result of each step, to continue from.

A result is stored under a key, the hash of all that it depends on (see `eutely.steps`). Running
again finds what is there and computes what is not; a result that was damaged counts as not there.
"""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import platform
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO

from eutely.errors import ReadError, RunFolderError, WriteError
from eutely.io.limits import small_file
from eutely.io.whole import (
    add_all,
    growing,
    make_folders,
    new_text,
    refuse_link,
    remove,
    write_text,
)
from eutely.io.written import RUN as MARK
from eutely.io.written import finish, tables_in
from eutely.record import Record
from eutely.store.files import Journal, read_record, write_record

log = logging.getLogger("eutely")

SCHEMA = 1
"""Version of the folder's layout."""

LOCK, CURATED = "lock", "curate.lock"
"""Locks of a build and of the server of `eutely curate`."""

INPUTS = "inputs.json"
"""Digests of the specimens of a run."""

ASIDE = re.compile(r"\.[0-9a-f]{8}(-\d+-[0-9a-f]{8})?\.")
"""How the names of unfinished files begin; after a crash they are deleted."""

PACKAGES = ("eutely", "numpy", "scipy", "numba", "optuna", "h5py", "pandas")

NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}
"""What file systems without locks answer (some network file systems)."""


@contextmanager
def open_run(path: Path, command: str = "", *, force: bool = False) -> Iterator[RunFolder]:
    """Create the run folder ``path``, or open it to continue; within the block it is locked.

    The package's log also goes to ``log.txt`` there. A folder that is not a run folder, is
    damaged, or in use by another process is a RunFolderError.

    Parameters
    ----------
    path
        of the folder.
    command
        that made it, for the report.
    force
        whether names that cannot be carried over may be dropped.
    """
    _check(path)
    with ExitStack() as stack:
        try:
            make_folders(path)
            stack.enter_context(locked(path / LOCK))
            if not (path / MARK).exists():
                write_text(path / MARK, _json({"format": "eutely run folder", "schema": SCHEMA}))
            make_folders(path / "stages")
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
        finish(path)
        for folder in (path, path / "stages"):
            _sweep(folder)
        stack.enter_context(_logging_to(path / "log.txt"))
        yield RunFolder(path, command, force=force)


class RunFolder:
    """An open run folder; implements `eutely.steps.Store`. See `open_run`."""

    def __init__(self, path: Path, command: str = "", *, force: bool = False) -> None:
        self.path = path
        self.command = command
        self.force = force

    def get(self, name: str, key: str) -> Record | None:
        """Return a stored result, or None; damaged ones are reported and count as absent."""
        file = self._file(name, key, "npz")
        if not file.is_file():  # nor a pipe or a device
            return None
        try:
            return read_record(file)
        except ReadError as error:
            log.warning("step %s: %s; computing it again", name, error)
            return None

    def put(self, name: str, key: str, record: Record, seconds: float) -> None:
        """Store a result, whole or not at all, and how long it took."""
        # The time first: a result without one would be reported as unknown.
        self._timings.append({"step": name, "key": key, "seconds": round(seconds, 3)})
        write_record(self._file(name, key, "npz"), record)

    def seconds(self, name: str, key: str) -> float:
        """Return how long a result took when it was last computed; NaN where not known."""
        mine = {"key": key, "step": name}
        rows = [
            row for row in self._timings if isinstance(row, dict) and mine.items() <= row.items()
        ]
        seconds = rows[-1].get("seconds") if rows else None
        return float(seconds) if isinstance(seconds, int | float) else math.nan

    def journal(self, name: str, key: str) -> Journal:
        """Return the list in which a long step keeps what it did so far, for example trials."""
        return Journal(self._file(name, key, "jsonl"))

    def describe(self, config: str, inputs: Mapping[str, str]) -> None:
        """Write down what this run is.

        Parameters
        ----------
        config
            the resolved settings, as TOML.
        inputs
            specimen -> digest of its content.
        """
        with tables_in(self.path) as aside:
            for name, text in {
                "config.toml": config,
                INPUTS: _json(dict(inputs)),
                "versions.json": _json(versions()),
            }.items():
                with new_text(aside / name) as file:
                    file.write(text)

    def inputs(self) -> dict[str, str]:
        """Return the digests that `describe` wrote down the last time; {} where none are known."""
        try:
            found = json.loads(small_file(self.path / INPUTS))
        except (ReadError, ValueError, RecursionError):
            return {}
        pairs = found.items() if isinstance(found, dict) else ()
        return {str(name): str(digest) for name, digest in pairs}

    def _file(self, name: str, key: str, kind: str) -> Path:
        return self.path / "stages" / f"{name}-{key}.{kind}"

    @property
    def _timings(self) -> Journal:
        """Apart from all that is hashed or compared: no two runs take the same time."""
        return Journal(self.path / "timings.jsonl")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute."""
    packages = {"python": platform.python_version(), "platform": platform.platform()}
    for package in PACKAGES:
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            packages[package] = "absent"
    return packages


def _check(path: Path) -> None:
    """Refuse what is there already and is not a run folder."""
    advice = "choose a new folder, or delete this one"
    if not path.exists():
        return
    if not path.is_dir():
        raise RunFolderError(f"{path} is a file, expected a folder; {advice}")
    mark = path / MARK
    if not mark.exists():
        others = sorted(
            entry.name
            for entry in path.iterdir()
            if entry.name != LOCK and not ASIDE.match(entry.name)
        )
        others = [name for name in others if not name.startswith(".")] or others
        if others:
            raise RunFolderError(
                f"{path} is not a run folder (it holds {', '.join(others[:3])}"
                f"{', ...' if len(others) > 3 else ''}, but no {MARK}); {advice}"
            )
        return
    try:
        schema = json.loads(small_file(mark))["schema"]
    except (ReadError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunFolderError(f"{path} is damaged: {MARK} is not readable; {advice}") from error
    if schema != SCHEMA:
        raise RunFolderError(
            f"{path} has layout {schema}, this eutely knows {SCHEMA}; {advice}, or use the version "
            "of eutely that made it"
        )
    refuse_link(path / "stages")
    for name, folder in {"stages": True, "log.txt": False, "timings.jsonl": False}.items():
        entry = path / name
        if entry.exists() and entry.is_dir() != folder:
            raise RunFolderError(f"{path} is damaged: {name} is not what it should be; {advice}")


def _sweep(folder: Path) -> None:
    """Remove what a killed process had not finished writing."""
    for entry in folder.iterdir():
        if ASIDE.match(entry.name):
            remove(entry)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


class _Lines:
    """Texts at the end of an open file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def write(self, text: str) -> int:
        """Add a text; return its length."""
        add_all(self.file, text.encode(errors="backslashreplace"))
        return len(text)


class _LogFile(logging.StreamHandler[_Lines]):
    """A log file that gives up silently: a full disk must not bury the error that matters."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Do nothing."""


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Send the package's log to ``path`` as well, from level INFO."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(growing(path))
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
        handler = _LogFile(_Lines(file))
        handler.setLevel(logging.INFO)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        before = log.level
        if log.getEffectiveLevel() > logging.INFO:
            log.setLevel(logging.INFO)
        log.addHandler(handler)
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.setLevel(before)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``; a RunFolderError names the process that has it already.

    The file stays, without meaning: only the lock counts, and it ends with its process, also
    when that was killed, so no lock is ever stale.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(growing(path))
            _hold(file, path)
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
        yield


def _hold(file: IO[bytes], path: Path) -> None:
    """Lock an open file, and write into it who has it."""
    try:
        _take(file)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise RunFolderError(
                f"{path.parent} is in use by {_holder(file)}; wait for it, or choose another"
            ) from error
        log.warning("%s: no locks on this file system; run one build at a time", path.parent)
    file.seek(0)
    file.truncate()
    add_all(file, json.dumps({"process": os.getpid(), "host": socket.gethostname()}).encode())


@contextmanager
def not_curated(folder: Path) -> Iterator[None]:
    """Keep `eutely curate` from opening a folder meanwhile; an error where it has it open."""
    with locked(folder / CURATED) if (folder / CURATED).exists() else nullcontext():
        yield


def _take(file: IO[bytes]) -> None:
    """Lock an open file, or raise OSError at once."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder(file: IO[bytes]) -> str:
    """Return who wrote into the lock file."""
    try:
        file.seek(0)
        holder = json.load(file)
        return f"process {holder['process']} on {holder['host']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
