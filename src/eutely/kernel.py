"""Compilation of hot loops by Numba: cached on disk, without the GIL."""

import hashlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

F = TypeVar("F", bound=Callable[..., object])

PACKAGE = Path(__file__).parent
"""Folder of the package."""

PATIENCE = 2.0
"""Seconds of compilation in a process after which the user is informed, once."""


def _version() -> str:
    """Return a digest of the package's source files that hold kernels."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if b"@kernel" in text:
            digest.update(str(path.relative_to(PACKAGE)).encode() + text)
    return digest.hexdigest()[:12]


# A kernel's machine code contains that of the kernels it calls, but Numba checks only the time of
# its own file. A folder for each state of the files with kernels avoids outdated code; its name is
# a digest of their content, so that a change elsewhere compiles nothing again.
CACHE = str(PACKAGE / "__pycache__" / f"kernels-{_version()}")


class _Announcement(event.Listener):
    """Log once that code is being compiled, if that takes long enough to be noticed."""

    def __init__(self) -> None:
        self.begins: list[float] = []  # of the current compilations, which are nested
        self.spent = 0.0
        self.announced = False

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        self.begins.append(time.monotonic())

    def on_end(self, event: Any) -> None:
        running = time.monotonic() - self.begins[0]
        begin = self.begins.pop()
        if not self.begins:
            self.spent += time.monotonic() - begin
            running = 0.0
        ours = str(event.data["dispatcher"].py_func.__module__).startswith("eutely")
        if ours and self.spent + running > PATIENCE and not self.announced:
            self.announced = True
            logging.getLogger("eutely").info(
                "compiling on first use: this takes up to a minute, once"
            )


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]
config: Any = numba.config


def kernel(function: F) -> F:
    """Compile ``function`` on first call; keep the machine code beside the package.

    ``fastmath`` stays off: it silently removes NaN checks.
    """
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    finally:
        config.CACHE_DIR = before
    return cast(F, compiled)
