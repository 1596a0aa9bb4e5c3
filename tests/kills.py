"""Ends a process at a chosen moment, as a power cut would; for scripts that tests run."""

import os
import signal
import sys
from collections.abc import Callable

USES = {"open", "os.rename", "os.remove", "os.mkdir", "os.truncate"}


def kill_at(count: int, folder: str) -> None:
    """Count what this process does in ``folder``, and end it before use number ``count``."""
    left = count

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in USES and isinstance(arguments[0], str | os.PathLike):
            left -= folder in os.fspath(arguments[0])
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def child(work: Callable[[], None], folder: str, moment: int | None) -> int:
    """Do ``work`` in a child process, killed at ``moment``; return how it ended."""
    process = os.fork()
    if process == 0:
        if moment is not None:
            kill_at(moment, folder)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
