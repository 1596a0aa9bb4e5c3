"""Other systems lack what POSIX has: nothing that a user needs imports or calls it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import builtins, os, pkgutil, signal, sys, types
from pathlib import Path

LACKING = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog"}
plain = builtins.__import__

def lacking(name, globals=None, locals=None, fromlist=(), level=0):
    caller = (globals or {}).get("__name__", "")
    if name.partition(".")[0] in LACKING and caller.startswith("eutely"):
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)
    if name == "msvcrt" and caller.startswith("eutely"):
        return locks
    return plain(name, globals, locals, fromlist, level)

locks = types.ModuleType("msvcrt")
locks.LK_NBLCK, locks.calls = 2, []
locks.locking = lambda number, mode, count: locks.calls.append((mode, count))
builtins.__import__ = lacking

import eutely

for module in pkgutil.walk_packages(eutely.__path__, "eutely."):
    if not module.name.startswith("eutely.napari"):
        __import__(module.name)

for name in ("fork", "forkpty", "getuid", "geteuid", "getgid", "killpg", "setsid", "getpgid",
             "sched_getaffinity", "sysconf", "mkfifo", "fchmod", "chown", "getloadavg"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_DIRECTORY"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGCHLD"):
    if hasattr(signal, name):
        delattr(signal, name)

from typer.testing import CliRunner
from eutely.cli import app

def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.output

place = Path(sys.argv[1])
run("simulate", "-o", place / "worms", "--cells", 30, "--specimens", 3)
run("check", place / "worms")
run("build", place / "worms", "-o", place / "run", "--workers", 1)
assert locks.calls == [(2, 1)], locks.calls
run("name", place / "run", place / "worms", "-o", place / "named.h5")
run("annotate", place / "named.h5", place / "worms", "-o", place / "annotated", "--workers", 1)
run("export", place / "annotated", "--csv", "--excel")
run("report", place / "run")
assert "cores" in run("doctor")
"""


def test_nothing_needs_what_only_posix_has(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "annotated" / "export" / "annotations.xlsx").is_file()
