"""Compilation of hot loops by Numba: cached on disk where possible, without the GIL."""

import gc
import hashlib
import logging
import os
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.extending import register_jitable

F = TypeVar("F", bound=Callable[..., object])

PACKAGE = Path(__file__).parent
"""Folder of the package."""

PATIENCE = 2.0
"""Seconds of compilation in a process after which the user is informed, once."""

ROOM = 1 << 16
"""Values, of 8 bytes, on the stack of the function that compiles; hardly any of them is used."""


def _version() -> str:
    """Return a digest of the package's source files that hold kernels."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if any(mark in text for mark in (b"@kernel", b"@inner", b"@inlined", b"@bare")):
            digest.update(str(path.relative_to(PACKAGE)).encode() + text)
    return digest.hexdigest()[:12]


def _cache() -> str | None:
    """Return the folder for machine code: the first of several that can be written, or None.

    A kernel's machine code contains that of the kernels it calls, but Numba checks only its own
    file. A folder for each state of the files with kernels avoids outdated code; its name is a
    digest of their content, so that a change elsewhere compiles nothing again.
    """
    name = f"kernels-{_version()}"
    given = os.environ.get("NUMBA_CACHE_DIR")
    user = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    places = [Path(given)] if given else [PACKAGE / "__pycache__", Path(user) / "eutely"]
    for place in places:
        if _writable(place / name):
            return str(place / name)
    # The names in a folder for all users are known to all of them, and machine code is run: it
    # must belong to this user, and to nobody else.
    shared = Path(tempfile.gettempdir()) / f"eutely-{getattr(os, 'getuid', int)()}"
    return str(shared / name) if _private(shared) and _writable(shared / name) else None


def _writable(folder: Path) -> bool:
    """Make a folder; return whether files can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _private(folder: Path) -> bool:
    """Make a folder; return whether it is one of this user, closed to all others."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    if os.name != "posix":  # the temporary folder is the user's own
        return True
    mine = found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077
    return mine and stat.S_ISDIR(found.st_mode)


CACHE = _cache()
"""Folder of machine code, or None where none can be kept."""


class _Compilation(event.Listener):
    """Log once that code is being compiled, if that takes long enough to be noticed.

    Meanwhile Python does not look for unused cycles of objects: the compiler makes millions of
    objects that stay in use, and looking takes an eighth of its time.
    """

    def __init__(self) -> None:
        self.begins: list[float] = []  # of the current compilations, which are nested
        self.spent = 0.0
        self.announced = False
        self.collecting = False

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        if not self.begins:
            self.collecting = gc.isenabled()
            gc.disable()
        self.begins.append(time.monotonic())

    def on_end(self, event: Any) -> None:
        running = time.monotonic() - self.begins[0]
        begin = self.begins.pop()
        if not self.begins:
            self.spent += time.monotonic() - begin
            running = 0.0
            if self.collecting:
                gc.enable()
        ours = str(event.data["dispatcher"].py_func.__module__).startswith("eutely")
        if ours and self.spent + running > PATIENCE and not self.announced:
            self.announced = True
            logging.getLogger("eutely").info(
                "compiling on first use: this takes up to a minute, once"
            )


event.register("numba:compile", _Compilation())  # type: ignore[no-untyped-call]
config: Any = numba.config


def kernel(function: F) -> F:
    """Compile ``function`` on first call; keep the machine code in ``CACHE``, if there is one.

    ``fastmath`` stays off: it silently removes NaN checks. Nothing takes the address of a kernel,
    so it gets no entry for C.
    """
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE or before
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
    try:
        compiled = numba.njit(cache=CACHE is not None, **options)(function)
    except RuntimeError:  # the folder cannot be written any more
        compiled = numba.njit(**options)(function)
    finally:
        config.CACHE_DIR = before
    if compiled is not function:  # NUMBA_DISABLE_JIT, to debug a kernel, leaves it as it is
        compiled._compile_for_args = _with_room(compiled._compile_for_args)
    return cast(F, compiled)


def _with_room(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, called with room for the frames of all that it calls.

    From 3.11 on, Python keeps frames in pieces of 16 KiB, and returns a piece to the system as soon
    as it is empty. The compiler calls short functions a million times: where such a call needs the
    next piece, each of them maps memory anew, which took up to a quarter of the compilation,
    depending on how deep the stack was. A frame that asks for `ROOM` gets a piece twice as large.
    """

    def call(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    call.__code__ = call.__code__.replace(co_stacksize=ROOM)
    return call


def inner(function: F) -> F:
    """Compile ``function`` as part of the kernels that call it.

    An entry from Python that unpacks a dozen arrays takes longer to compile than a short
    function, so only kernels have one. Called from Python, ``function`` runs as it is.
    """
    register: Any = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return cast(F, register(function))


def inlined(function: F) -> F:
    """Compile ``function`` into its callers, as `inner`, without a call.

    A call counts references of all arrays that it gets, which takes longer than a short function.
    """
    register: Any = register_jitable(
        no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True
    )
    return cast(F, register(function))


def bare(function: F) -> F:
    """Compile ``function`` as `inner`, without counting references of arrays.

    It must neither make nor return arrays; slices are allowed. Counting takes longer than a short
    function: every array that it gets is counted, whether it is used or not.
    """
    register: Any = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
    return cast(F, register(function))
