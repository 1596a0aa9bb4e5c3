"""Processes that obey permissions of files, also where the tests run as root."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

DROP, OVERRIDE = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


def _drop() -> None:
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (OVERRIDE, OVERRIDE + 1):
            if libc.prctl(DROP, capability, 0, 0, 0):
                os._exit(99)


COMMAND = "from eutely.cli import main; main()"


def eutely(
    *words: object,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    code: str = COMMAND,
) -> "subprocess.CompletedProcess[str]":
    """Run the command line without the right to write where permissions forbid it."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        preexec_fn=_drop,
        env=dict(env or os.environ),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def closed(folder: Path) -> None:
    """Take away the right to write from a folder and everything in it."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
