"""The folder of a run: settings, versions, log and each stage's result, to continue from.

A stage's result is stored under a key, the hash of all that it depends on. Running again finds
what is there and computes what is not; a result that was damaged counts as not there.
"""

from __future__ import annotations

import json
import logging
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

from eutely.errors import ReadError, RunFolderError, WriteError
from eutely.store.journal import Journal
from eutely.store.lock import locked
from eutely.record import Record, digest, read_record, write_record
from eutely.io.whole import whole

log = logging.getLogger("eutely")

T = TypeVar("T")

SCHEMA = 1
"""Version of the folder's own layout, and part of every key."""

MARK = "eutely-run.json"
LOCK = "lock"
ASIDE = re.compile(r"\.[0-9a-f]{8}\.")
"""How names begin that ``whole`` writes aside; after a crash they are rubbish."""

PACKAGES = ("eutely", "numpy", "scipy", "numba", "optuna", "h5py", "pandas")


@contextmanager
def open_run(path: Path) -> Iterator[RunFolder]:
    """Create the run folder ``path``, or open it to continue; within the block it is locked.

    The package's log also goes to ``log.txt`` there. A folder that is not a run folder, is
    damaged, or in use by another process is a RunFolderError.
    """
    _check(path)
    with ExitStack() as stack:
        try:
            path.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(path / LOCK))
            if not (path / MARK).exists():
                _write_json(path / MARK, {"format": "eutely run folder", "schema": SCHEMA})
            (path / "stages").mkdir(exist_ok=True)
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
        for folder in (path, path / "stages"):
            _sweep(folder)
        stack.enter_context(_logging_to(path / "log.txt"))
        yield RunFolder(path)


class RunFolder:
    """An open run folder; see ``open_run``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def stage(
        self,
        name: str,
        depends_on: object,
        compute: Callable[[], T],
        save: Callable[[T], Record],
        load: Callable[[Record], T],
    ) -> T:
        """Return a stage's result: the stored one, or else computed and stored.

        What is returned went through ``save`` and ``load`` in either case, so that a run that was
        interrupted cannot differ from one that was not.

        Parameters
        ----------
        name
            of the stage: letters, digits, ``-``.
        depends_on
            all that the result depends on: arrays and plain values, such as digests of inputs,
            the stage's part of the settings and a version of its code.
        compute
            makes the result.
        save, load
            turn a result into a record and back.
        """
        file = self.path / "stages" / f"{name}-{self.key(name, depends_on)}.npz"
        if file.exists():
            try:
                record = read_record(file)
            except ReadError as error:
                log.warning("stage %s: %s; computing it again", name, error)
            else:
                log.info("stage %s: done before", name)
                return load(record)
        start = time.monotonic()
        record = save(compute())
        seconds = time.monotonic() - start
        write_record(file, record)
        self._timings.append({"stage": name, "seconds": round(seconds, 3)})
        log.info("stage %s: %.1f s", name, seconds)
        return load(record)

    def journal(self, name: str, depends_on: object) -> Journal:
        """Return the list in which a long stage keeps what it did so far, for example trials."""
        return Journal(self.path / "stages" / f"{name}-{self.key(name, depends_on)}.jsonl")

    def key(self, name: str, depends_on: object) -> str:
        """Return the key of a stage's result: 16 hexadecimal digits."""
        return digest([SCHEMA, name, depends_on])[:16]

    def describe(self, config: str, inputs: Mapping[str, str]) -> None:
        """Write down what this run is.

        Parameters
        ----------
        config
            the resolved settings, as TOML.
        inputs
            specimen -> digest of what was read.
        """
        with whole(self.path / "config.toml") as aside:
            aside.write_text(config, encoding="utf-8")
        _write_json(self.path / "inputs.json", dict(inputs))
        _write_json(self.path / "versions.json", versions())

    def timings(self) -> dict[str, float]:
        """Return the seconds that each stage took when it was last computed, in order."""
        return {row["stage"]: row["seconds"] for row in self._timings}

    @property
    def _timings(self) -> Journal:
        """Apart from all that is hashed or compared: no two runs take the same time."""
        return Journal(self.path / "timings.jsonl")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


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
        if others:
            raise RunFolderError(
                f"{path} is not a run folder (it holds {', '.join(others[:3])}"
                f"{', ...' if len(others) > 3 else ''}, but no {MARK}); {advice}"
            )
        return
    try:
        schema = json.loads(mark.read_bytes())["schema"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{path} is damaged: {MARK} is not readable; {advice}") from error
    if schema != SCHEMA:
        raise RunFolderError(
            f"{path} has layout {schema}, this eutely knows {SCHEMA}; {advice}, or use the version "
            "of eutely that made it"
        )
    for name, folder in {"stages": True, "log.txt": False, "timings.jsonl": False}.items():
        entry = path / name
        if entry.exists() and entry.is_dir() != folder:
            raise RunFolderError(f"{path} is damaged: {name} is not what it should be; {advice}")


def _sweep(folder: Path) -> None:
    """Remove what a killed process had not finished writing."""
    for entry in folder.iterdir():
        if ASIDE.match(entry.name):
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def _write_json(path: Path, value: object) -> None:
    with whole(path) as aside:
        aside.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


class _LogFile(logging.FileHandler):
    """A log file that gives up silently: a full disk must not bury the error that matters."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Do nothing."""


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Send the package's log to ``path`` as well, from level INFO."""
    try:
        handler = _LogFile(path, encoding="utf-8")
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
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
        handler.close()
        log.setLevel(before)
