"""A lock that the operating system takes back when its process ends, however it ends."""

import errno
import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from eutely.errors import RunFolderError

log = logging.getLogger("eutely")

NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}
"""What file systems without locks answer (some network file systems)."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``; a RunFolderError names the process that has it already.

    The file stays, without meaning: only the lock counts, and it ends with its process, also
    when that was killed, so no lock is ever stale.
    """
    with path.open("a+", encoding="utf-8") as file:
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
        json.dump({"process": os.getpid(), "host": socket.gethostname()}, file)
        file.flush()
        yield


def _take(file: IO[str]) -> None:
    """Lock an open file, or raise OSError at once."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder(file: IO[str]) -> str:
    """Return who wrote into the lock file."""
    try:
        file.seek(0)
        holder = json.load(file)
        return f"process {holder['process']} on {holder['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
