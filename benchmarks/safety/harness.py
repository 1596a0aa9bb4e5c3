"""Ends a process, or fills its disk, at its n-th write, fsync, rename, new folder or removal.

`run` does some work in a child process whose uses of a folder are counted. At the chosen one the
process is killed (half of a write is done by then), or meets a full disk, which stays full: half of
the write is done, then it and all further writes fail. What is not in the folder is not counted.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from eutely.errors import EutelyError

KILL, FULL = "SIGKILL", "no space"

MOVES = ("rename", "replace")


class Ended(NamedTuple):
    """How a process ended.

    Attributes
    ----------
    code
        of the process, or minus the signal that ended it.
    uses
        kind of each use of the folder, in order.
    said
        on standard output and standard error.
    """

    code: int
    uses: tuple[str, ...]
    said: str


def run(work: Callable[[], object], folder: Path, place: int = 0, what: str = KILL) -> Ended:
    """Do ``work`` in a child process in ``folder``, disturbed at use number ``place`` (from 1)."""
    counted, said = folder.parent / "uses.txt", folder.parent / "said.txt"
    process = os.fork()
    if process == 0:
        code = 70
        try:
            os.chdir(folder)
            _redirect(said)
            _disturb(folder.resolve(), place, what, os.open(counted, _NEW, 0o666))
            work()
            code = 0
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 0
        except EutelyError as error:  # as the command line ends
            print(f"error: {error}")
            code = 2
        except BaseException:  # noqa: BLE001  # a traceback is what is looked for
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return Ended(code, tuple(counted.read_text().split()), said.read_text(errors="replace"))


_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def _redirect(said: Path) -> None:
    """Send what the process says into a file."""
    number = os.open(said, _NEW, 0o666)
    os.dup2(number, 1)
    os.dup2(number, 2)
    sys.stdout, sys.stderr = (os.fdopen(each, "w", closefd=False) for each in (1, 2))


def _disturb(folder: Path, place: int, what: str, counted: int) -> None:
    """Count what this process does in a folder; disturb it there. For the rest of its life."""
    import eutely.io.whole as writer
    from eutely import steps

    record, left, full = os.write, place, False
    number, one = os.getpid(), threading.Lock()

    def use(kind: str, half: Callable[[], object] = lambda: None) -> None:
        """Count one use; end the process, or raise, where that is due."""
        nonlocal left, full
        if os.getpid() != number:
            return
        with one:
            record(counted, f"{kind}\n".encode())
            left -= 1
            here = left == 0
        if here:
            half()
            if what == KILL:
                os.kill(number, signal.SIGKILL)
            full = kind != "remove"
            if kind in ("rename", "fsync"):
                full = False
                raise _no_space()
        if full and kind in ("write", "mkdir"):
            raise _no_space()

    def inside(path: Any) -> bool:
        return os.path.abspath(os.fspath(path)).startswith(str(folder))

    def counting(name: str, kind: str) -> None:
        original = getattr(os, name)

        def replaced(*given: Any, **options: Any) -> Any:
            if name == "fsync" or (isinstance(given[0], str | os.PathLike) and inside(given[0])):
                use(kind)
            return original(*given, **options)

        setattr(os, name, replaced)

    for name in MOVES:
        counting(name, "rename")
    for name, kind in {"fsync": "fsync", "mkdir": "mkdir", "unlink": "remove"}.items():
        counting(name, kind)

    class Raw(io.FileIO):
        """A file whose writes are counted."""

        def write(self, content: Any) -> int:
            view = memoryview(content).cast("B")
            use("write", lambda: io.FileIO.write(self, view[: len(view) // 2]))
            return io.FileIO.write(self, view)

    writer.RawFile = Raw  # type: ignore[misc]
    # No two runs take the same time, and pages and reports tell it.
    steps.time = SimpleNamespace(monotonic=lambda: 0.0)  # type: ignore[assignment]


def _no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
